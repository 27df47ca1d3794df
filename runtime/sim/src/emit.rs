//! Reports user events: complete ones ([`stream`](crate::stream)), or those of the engine.

use std::collections::VecDeque;

use windvane_model::protocol::{AccountUpdate, BalanceUpdate, OrderUpdate, UserEvent};
use windvane_model::{Amount, AssetId, InstrumentId, PositionSide, Surface};

use crate::stream::{Cause, Met, OrderEvent, StreamEvent};
use crate::venue::Venue;
use crate::view::PositionView;

impl Venue {
    /// This venue, with [`Venue::poll_stream`] instead of the user events of [`Venue::poll`].
    #[must_use]
    pub fn with_stream(mut self) -> Self {
        self.stream = Some(VecDeque::new());
        self.orders.index_ids();
        self
    }

    /// The next complete user event. Call it until it returns `None`.
    pub fn poll_stream(&mut self) -> Option<StreamEvent> {
        self.stream.as_mut()?.pop_front()
    }

    fn stream(&mut self, event: StreamEvent) {
        if let Some(stream) = &mut self.stream {
            stream.push_back(event);
        }
    }

    pub(crate) fn emit_update(&mut self, update: OrderUpdate, met: Option<Met>) {
        if self.stream.is_none() {
            return self.emit(UserEvent::Order(update));
        }
        let Some(key) = self.orders.find_id(update.order_id) else {
            return;
        };
        let open = &self.at(update.instrument).open_notional;
        let event = OrderEvent {
            update,
            order: self.view_of(self.orders.at(key)),
            open_notional: open[update.position_side as usize].0,
            met,
        };
        self.stream(StreamEvent::Order(Box::new(event)));
    }

    /// Reports a change of balances (with `bc`) and positions.
    pub(crate) fn emit_change(
        &mut self,
        surface: Surface,
        cause: Cause,
        balances: &[(AssetId, Amount)],
        positions: &[(InstrumentId, PositionSide)],
    ) {
        let time = self.now;
        if self.stream.is_none() {
            // Spot events do not contain the change (docs/interface/user-stream.md#spot-events).
            let change_of = |change| match surface {
                Surface::Spot => Amount::ZERO,
                Surface::Futures => change,
            };
            let of = |(asset, change): &(AssetId, Amount)| BalanceUpdate {
                change: change_of(*change),
                ..self.balance(surface, *asset)
            };
            let held = positions.iter().map(|(i, side)| self.position(*i, *side));
            let changed = positions
                .iter()
                .filter(|_| cause == Cause::MarginTypeChange);
            let changed: Vec<_> = changed
                .map(|(instrument, _)| UserEvent::MarginType {
                    instrument: *instrument,
                    isolated: self.at(*instrument).isolated,
                })
                .collect();
            let update = AccountUpdate {
                surface,
                reason: cause.reason(),
                balances: balances.iter().map(of).collect(),
                positions: held.collect(),
                transaction_time: time,
                event_time: time,
            };
            for event in changed {
                self.emit(event);
            }
            return self.emit(UserEvent::Account(update));
        }
        let event = match surface {
            Surface::Spot => StreamEvent::Spot {
                cause,
                balances: balances
                    .iter()
                    .map(|(a, _)| self.spot_balance(*a))
                    .collect(),
                time,
            },
            Surface::Futures => {
                let of =
                    |(asset, change): &(AssetId, Amount)| (self.futures_balance(*asset), *change);
                let held = positions.iter();
                StreamEvent::Futures {
                    cause,
                    balances: balances.iter().map(of).collect(),
                    positions: held.map(|(i, side)| self.position_of(*i, *side)).collect(),
                    time,
                }
            }
        };
        self.stream(event);
    }

    /// Reports a margin call for the crossed positions of an asset, or for one isolated symbol.
    pub(crate) fn emit_margin_call(&mut self, asset: AssetId, isolated: Option<InstrumentId>) {
        if self.stream.is_none() {
            return self.emit(UserEvent::MarginCall);
        }
        let called = |view: &PositionView| match isolated {
            Some(instrument) => view.instrument == instrument,
            None => !view.isolated && self.at(view.instrument).instrument.quote == asset,
        };
        let cross_wallet = self.futures_balance(asset).cross_wallet;
        let event = StreamEvent::MarginCall {
            cross_wallet: isolated.is_none().then_some(cross_wallet),
            positions: self.position_views().filter(called).collect(),
            time: self.now,
        };
        self.stream(event);
    }

    pub(crate) fn emit_leverage(&mut self, instrument: InstrumentId, leverage: u32) {
        if self.stream.is_none() {
            return self.emit(UserEvent::Leverage {
                instrument,
                leverage,
            });
        }
        self.stream(StreamEvent::Leverage {
            instrument,
            leverage,
            time: self.now,
        });
    }

    /// Reports a change of the position mode or the assets mode.
    pub(crate) fn emit_config(&mut self, position_mode: bool) {
        let (hedge, multi_assets) = (self.hedge, self.multi_assets);
        if self.stream.is_none() {
            return self.emit(if position_mode {
                UserEvent::PositionMode { hedge }
            } else {
                UserEvent::AssetMode { multi_assets }
            });
        }
        self.stream(StreamEvent::Config {
            multi_assets,
            hedge,
            time: self.now,
        });
    }
}
