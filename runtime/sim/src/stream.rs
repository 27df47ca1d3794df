//! User events with all fields of their wire format (docs/interface/user-stream.md), for a server
//! that sends that format. The engine's [`UserEvent`] has fewer fields: only those that a
//! strategy's runtime uses.
//!
//! A venue made with [`Venue::with_stream`] returns every user event through [`Venue::poll_stream`]
//! and none through [`Venue::poll`], which then returns only replies. Their order is the same.

use std::collections::VecDeque;

use windvane_model::protocol::{
    AccountReason, AccountUpdate, BalanceUpdate, OrderUpdate, UserEvent,
};
use windvane_model::{Amount, AssetId, InstrumentId, PositionSide, Price, Surface, Time, TradeId};

use crate::venue::Venue;
use crate::view::{FuturesBalance, OrderView, PositionView, SpotBalance};

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// Why balances or positions changed: `m` of an account update
        /// (docs/interface/user-stream.md#account_update).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Cause { $($(#[$doc])* $name,)* }

        impl Cause {
            /// Every cause.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The cause as the venue spells it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

causes! {
    /// A deposit.
    Deposit = "DEPOSIT";
    /// A withdrawal.
    Withdraw = "WITHDRAW";
    /// A fill, or an order that locks or releases balance.
    Order = "ORDER";
    /// A funding payment.
    FundingFee = "FUNDING_FEE";
    /// A withdrawal that was returned.
    WithdrawReject = "WITHDRAW_REJECT";
    /// A correction by the venue.
    Adjustment = "ADJUSTMENT";
    /// A payment of the insurance fund.
    InsuranceClear = "INSURANCE_CLEAR";
    /// A deposit by the venue.
    AdminDeposit = "ADMIN_DEPOSIT";
    /// A withdrawal by the venue.
    AdminWithdraw = "ADMIN_WITHDRAW";
    /// Margin of an isolated position was added or reduced.
    MarginTransfer = "MARGIN_TRANSFER";
    /// The margin type of a symbol changed.
    MarginTypeChange = "MARGIN_TYPE_CHANGE";
    /// A transfer between the surfaces, or to another account.
    AssetTransfer = "ASSET_TRANSFER";
    /// An exchange of assets in multi-assets mode.
    AutoExchange = "AUTO_EXCHANGE";
}

impl Cause {
    const fn reason(self) -> AccountReason {
        match self {
            Self::Order => AccountReason::Order,
            Self::FundingFee => AccountReason::FundingFee,
            Self::Adjustment => AccountReason::Charge,
            Self::InsuranceClear => AccountReason::InsuranceClear,
            _ => AccountReason::Other,
        }
    }
}

/// One user event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// `executionReport` or `ORDER_TRADE_UPDATE`.
    Order(Box<OrderEvent>),
    /// `outboundAccountPosition`.
    Spot {
        /// `m`.
        cause: Cause,
        /// `B`.
        balances: Vec<SpotBalance>,
        /// `T`.
        time: Time,
    },
    /// `ACCOUNT_UPDATE`.
    Futures {
        /// `m`.
        cause: Cause,
        /// `B`: the balance, and `bc`.
        balances: Vec<(FuturesBalance, Amount)>,
        /// `P`.
        positions: Vec<PositionView>,
        /// `T`.
        time: Time,
    },
    /// `MARGIN_CALL`.
    MarginCall {
        /// `cw`; `None` if the call is for an isolated position.
        cross_wallet: Option<Amount>,
        /// `p`: the positions in danger.
        positions: Vec<PositionView>,
        /// The time of the call.
        time: Time,
    },
    /// `ACCOUNT_CONFIG_UPDATE` with `ac`.
    Leverage {
        /// `s`.
        instrument: InstrumentId,
        /// `l`.
        leverage: u32,
        /// `T`.
        time: Time,
    },
    /// `ACCOUNT_CONFIG_UPDATE` with `ai`.
    Config {
        /// `j`.
        multi_assets: bool,
        /// `d`.
        hedge: bool,
        /// `T`.
        time: Time,
    },
}

/// The counterparty of a fill. A venue for several accounts makes one public market from these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// The displayed quantity of the other side at this price. The order was the taker, or the
    /// maker if the other side came to its price.
    Level(i64),
    /// A public trade that the venue received.
    Trade,
    /// An order of another account ([`Venue::meet`]).
    Order(Deal),
    /// A counterparty that is not in the book ([`Venue::fill_order`]).
    Outside,
    /// The insurance fund, or the counterparty of auto-deleveraging: not part of the market.
    Fund,
}

/// A trade with another account, from the view of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deal {
    /// Its id, the same for both.
    pub trade_id: TradeId,
    /// Its price, the same for both.
    pub price: Price,
    /// Whether this account was the maker.
    pub maker: bool,
}

/// An order update, with the order after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderEvent {
    /// The update.
    pub update: OrderUpdate,
    /// The order after it.
    pub order: OrderView,
    /// Notional of the open buys and sells of its position side: `b` and `a`. Futures only.
    pub open_notional: [Amount; 2],
    /// The counterparty of the fill, if this is a fill.
    pub met: Option<Met>,
}

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
