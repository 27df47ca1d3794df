//! Why requested closes are not done, and since when. For display only: no rule reads it.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::ids::{ClientOrderId, InstrumentId, StrategyId, Time};
use windvane_model::order::{OrderType, Side, Surface};
use windvane_model::order_state::OrderState;
use windvane_model::run_state::KillSwitch;

use super::Engine;
use super::closing::FLATTEN_TRIES;

/// A strategy whose positions are being closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseWait {
    /// The strategy.
    pub strategy: StrategyId,
    /// When the close was requested. If an earlier process received the request: when this process
    /// began.
    pub since: Time,
    /// Positions that are still open; negative when short.
    pub positions: Vec<(InstrumentId, i64)>,
    /// The reasons why the next step waits.
    pub reasons: Vec<CloseReason>,
}

/// A reason why a close waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CloseReason {
    /// The engine compares its state with the venue first.
    Syncing,
    /// Own orders that are being cancelled; their number.
    Cancels(usize),
    /// An order with an unknown outcome, which the engine queries.
    OutcomeUnknown(ClientOrderId),
    /// The result of a closing order that was sent.
    Sent(ClientOrderId),
    /// The venue accepts no request until this time.
    VenueWait(Surface, Time),
    /// The venue accepts no order until this time.
    OrderLimit(Surface, Time),
    /// The journal does not write, and the engine sends nothing that the journal does not contain.
    Journal,
    /// The venue's clock is not known: the venue would refuse every request.
    Clock(Surface),
    /// An account snapshot, because the user stream is down or silent.
    Stream(Surface),
    /// An account snapshot, because the account is not reconciled.
    AwaitsSnapshot(Surface),
    /// The pause after a close that closed nothing.
    Pause(Time),
    /// The venue refused the closing orders so far, or they were not sent.
    Refused {
        /// The instrument.
        instrument: InstrumentId,
        /// Code of the last refusal; 0 for an order that was not sent.
        code: i32,
        /// Number of such orders in a row.
        count: u32,
        /// When the next order is sent.
        next: Time,
    },
    /// Orders of another strategy with an opposite position, which are being cancelled.
    Opposite,
    /// The position is smaller than the smallest order of the symbol: no order can close it.
    TooSmall {
        /// The instrument.
        instrument: InstrumentId,
        /// Quantity of the smallest order.
        min_qty: i64,
    },
}

impl Engine {
    /// Every requested close that is not done, with the reasons why it waits.
    pub fn close_waits(&self) -> Vec<CloseWait> {
        let all = (0..self.strategies.len()).map(|index| StrategyId(index as u16));
        let mut waits = Vec::new();
        for strategy in all {
            let since = self.closing_since.get(&strategy);
            let since = since.copied().unwrap_or(self.now);
            if self.is_flattening(strategy) {
                waits.push(CloseWait {
                    strategy,
                    since,
                    positions: self.open_positions(strategy),
                    reasons: self.close_reasons(strategy),
                });
            }
            let wanted_flat =
                self.is_flattening(strategy) || self.closing_since.contains_key(&strategy);
            for (instrument, qty, min_qty) in self.too_small_to_close(strategy) {
                if wanted_flat || self.is_stopped_for_good(strategy) {
                    waits.push(CloseWait {
                        strategy,
                        since,
                        positions: vec![(instrument, qty)],
                        reasons: vec![CloseReason::TooSmall {
                            instrument,
                            min_qty,
                        }],
                    });
                }
            }
        }
        waits
    }

    /// Whether the strategy or the whole run is halted, or the strategy is quarantined.
    fn is_stopped_for_good(&self, strategy: StrategyId) -> bool {
        let halted = self.kill_switch() == KillSwitch::Halted
            || self.kill_switch_of(strategy) == KillSwitch::Halted;
        halted || self.fault(strategy).is_some()
    }

    /// Futures positions of a strategy that are smaller than the smallest order, with the size of
    /// that order.
    pub(super) fn too_small_to_close(&self, strategy: StrategyId) -> Vec<(InstrumentId, i64, i64)> {
        let held = self.held_by(strategy).into_iter();
        let too_small = held.filter_map(|(id, qty)| {
            let instrument = &self.instruments[usize::from(id.0)];
            let filters = &instrument.filters;
            let lots = [filters.lot_size, filters.market_lot_size];
            let min_qty = lots.iter().flatten().map(|lot| lot.min_qty).max()?;
            let is_futures = instrument.surface == Surface::Futures;
            (is_futures && qty.saturating_abs() < min_qty).then_some((id, qty, min_qty))
        });
        too_small.collect()
    }

    /// Positions of a strategy that orders can close.
    fn open_positions(&self, strategy: StrategyId) -> Vec<(InstrumentId, i64)> {
        let too_small = self.too_small_to_close(strategy);
        let mut open = self.held_by(strategy);
        open.retain(|(id, qty)| {
            !too_small
                .iter()
                .any(|(of, small, _)| (of, small) == (id, qty))
        });
        open
    }

    fn held_by(&self, strategy: StrategyId) -> Vec<(InstrumentId, i64)> {
        let own = self.ledgers.strategies[usize::from(strategy.0)].iter();
        let open = own.filter(|(_, _, holding)| holding.position.qty != 0);
        open.map(|(id, _, holding)| (id, holding.position.qty))
            .collect()
    }

    fn close_reasons(&self, strategy: StrategyId) -> Vec<CloseReason> {
        let mut reasons = Vec::new();
        let Some(live) = &self.live else {
            return reasons;
        };
        if !live.is_running() {
            reasons.push(CloseReason::Syncing);
        }
        let mut cancels = 0;
        for order in self.orders.of(strategy, None) {
            let id = order.client_order_id;
            match order.state {
                OrderState::Unknown => reasons.push(CloseReason::OutcomeUnknown(id)),
                _ if order.terms.order_type == OrderType::Market => {
                    reasons.push(CloseReason::Sent(id));
                }
                _ => cancels += 1,
            }
        }
        if cancels > 0 {
            reasons.push(CloseReason::Cancels(cancels));
        }
        let held = self.open_positions(strategy).into_iter();
        let surfaces = held.map(|(id, _)| self.surface_of(id));
        for surface in surfaces.collect::<std::collections::BTreeSet<_>>() {
            self.surface_reasons(surface, &mut reasons);
        }
        if self.waits_for_opposite(strategy) {
            reasons.push(CloseReason::Opposite);
        }
        let state = &self.strategies[usize::from(strategy.0)];
        let tried = state.flattening.is_some_and(|tries| tries < FLATTEN_TRIES);
        let refused = self.refused_closes(strategy);
        if tried && !refused.is_empty() {
            reasons.extend(refused);
        } else if reasons.is_empty() && tried && self.now < state.flatten_again {
            reasons.push(CloseReason::Pause(state.flatten_again));
        }
        reasons
    }

    /// Positions whose closing orders were refused several times in a row.
    fn refused_closes(&self, strategy: StrategyId) -> Vec<CloseReason> {
        let next = self.strategies[usize::from(strategy.0)].flatten_again;
        let held = self.open_positions(strategy).into_iter();
        let refused = held.filter_map(|(instrument, qty)| {
            let side = if qty > 0 { Side::Sell } else { Side::Buy };
            let series = self.refused_exits(strategy, instrument, side)?;
            Some(CloseReason::Refused {
                instrument,
                code: series.code,
                count: series.count,
                next,
            })
        });
        refused.collect()
    }

    fn surface_reasons(&self, surface: Surface, reasons: &mut Vec<CloseReason>) {
        let Some(live) = &self.live else { return };
        if let Some(until) = self.venue_wait(surface) {
            reasons.push(CloseReason::VenueWait(surface, until));
        }
        if let Some(until) = self.order_wait(surface) {
            reasons.push(CloseReason::OrderLimit(surface, until));
        }
        if live.is_degraded_for(&[DegradedReason::Journal]) {
            reasons.push(CloseReason::Journal);
        }
        if live.is_degraded_for(&[DegradedReason::Clock(surface)]) {
            reasons.push(CloseReason::Clock(surface));
        }
        let stream_up =
            (live.connections.get(&surface)).is_some_and(|connection| connection.stream_up);
        if !live.is_running() && stream_up {
            // The close waits for startup: no reconciliation round ended since the stream
            // connected.
        } else if live.is_degraded_for(&[DegradedReason::Stream(surface)]) {
            reasons.push(CloseReason::Stream(surface));
        } else if !live.is_healthy(surface, self.now) && live.is_running() {
            reasons.push(CloseReason::AwaitsSnapshot(surface));
        }
    }
}
