//! The reasons why closes that were asked for are not done, and since when. For people: no rule reads it.

use crate::ids::{ClientOrderId, InstrumentId, StrategyId, Time};
use crate::order::{OrderType, Surface};
use crate::order_state::OrderState;

use super::Engine;
use super::closing::FLATTEN_TRIES;
use super::session::Doubt;

/// A strategy whose positions are being closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseWait {
    /// The strategy.
    pub strategy: StrategyId,
    /// When the close was asked for; of an earlier process, when this one began with it.
    pub since: Time,
    /// Positions that are still open, negative when short.
    pub positions: Vec<(InstrumentId, i64)>,
    /// The reasons why the next step waits.
    pub reasons: Vec<CloseReason>,
}

/// A reason why a close waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CloseReason {
    /// The runtime compares its state with the venue first.
    Syncing,
    /// Own orders that are being cancelled.
    Cancels(usize),
    /// An order of unknown outcome, which is queried.
    InDoubt(ClientOrderId),
    /// The result of a closing order that was sent.
    Sent(ClientOrderId),
    /// The venue takes no request until then.
    VenueWait(Surface, Time),
    /// The venue takes no new order until then. Closes are tried in between only where the venue
    /// stated no end.
    OrderLimit(Surface, Time),
    /// The journal does not write: nothing that it does not have may be sent.
    Journal,
    /// The venue's clock is not known: it would refuse every request.
    Clock(Surface),
    /// A reading of the account, because the user stream is down or silent.
    Stream(Surface),
    /// A reading of the account, because the account is not reconciled.
    Reading(Surface),
    /// The pause after a close that came to nothing.
    Pause(Time),
    /// The orders of another strategy with an opposite position, which are being cancelled.
    Opposite,
}

impl Engine {
    /// Every close that was asked for and is not done, with what it waits for.
    pub fn close_waits(&self) -> Vec<CloseWait> {
        let all = (0..self.strategies.len()).map(|index| StrategyId(index as u16));
        let closing = all.filter(|strategy| self.is_flattening(*strategy));
        closing
            .map(|strategy| CloseWait {
                strategy,
                since: self
                    .closing_since
                    .get(&strategy)
                    .copied()
                    .unwrap_or(self.now),
                positions: self.open_positions(strategy),
                reasons: self.close_reasons(strategy),
            })
            .collect()
    }

    fn open_positions(&self, strategy: StrategyId) -> Vec<(InstrumentId, i64)> {
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
                OrderState::Unknown => reasons.push(CloseReason::InDoubt(id)),
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
        if reasons.is_empty() && tried && self.now < state.flatten_again {
            reasons.push(CloseReason::Pause(state.flatten_again));
        }
        reasons
    }

    fn surface_reasons(&self, surface: Surface, reasons: &mut Vec<CloseReason>) {
        let Some(live) = &self.live else { return };
        if let Some(until) = self.venue_wait(surface) {
            reasons.push(CloseReason::VenueWait(surface, until));
        }
        if let Some(until) = self.order_wait(surface) {
            reasons.push(CloseReason::OrderLimit(surface, until));
        }
        if live.doubts_any(&[Doubt::Journal]) {
            reasons.push(CloseReason::Journal);
        }
        if live.doubts_any(&[Doubt::Clock(surface)]) {
            reasons.push(CloseReason::Clock(surface));
        }
        if live.doubts_any(&[Doubt::Stream(surface)]) {
            reasons.push(CloseReason::Stream(surface));
        } else if !live.healthy(surface, self.now) && live.is_running() {
            reasons.push(CloseReason::Reading(surface));
        }
    }
}
