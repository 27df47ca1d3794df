//! Events that were lost while a user stream was down.
//!
//! While the stream was down, an outside party may have closed a position, or an order may have
//! filled. Account snapshots may lag by [`READ_LAG_MS`], so the first snapshots prove nothing about
//! that time. If a position or an order was open, strategies open nothing until a snapshot agrees
//! that is certainly newer. Renewals of countdowns go on.

use windvane_evidence::lag::READ_LAG_MS;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::order::Surface;

use super::Engine;

/// Time to the next snapshot after one that proved nothing, once snapshots are new enough.
const AGAIN_MS: i64 = 2_000;

impl Engine {
    /// The stream connected. Everything that happened before is known from snapshots only.
    pub(super) fn degrade_for_lost_events(&mut self, surface: Surface) {
        let ids = (0..self.instruments.len()).map(|index| InstrumentId(index as u16));
        let mut of_surface = ids.filter(|id| self.surface_of(*id) == surface);
        let strategies = &self.ledgers.strategies;
        let is_held = |id: InstrumentId| strategies.iter().any(|ledger| ledger.holds(id));
        let is_open = |id: InstrumentId| self.orders.iter().any(|order| order.instrument() == id);
        let is_exposed = of_surface.any(|id| is_held(id) || is_open(id));
        self.set_degraded(DegradedReason::LostEvents(surface), is_exposed);
    }

    /// When a snapshot may first clear the degraded reason; `None` if it is not set.
    pub(super) fn lost_events_end(&self, surface: Surface) -> Option<Time> {
        let live = self.live.as_ref()?;
        let up = self.stream_up.get(&surface)?;
        let is_degraded = live.is_degraded_for(&[DegradedReason::LostEvents(surface)]);
        let again = self.now.plus_ms(AGAIN_MS);
        let ends = up.plus_ms(READ_LAG_MS);
        is_degraded.then_some(if ends > self.now { ends } else { again })
    }

    /// Clears the degraded reason if the running reconciliation round is new enough. Its snapshot
    /// agrees with the books, now or at a moment since the stream connected.
    pub(super) fn clear_lost_events(&mut self, surface: Surface) {
        let Some(asked) = self.orders_requested_at(surface) else {
            return;
        };
        let up = self.stream_up.get(&surface);
        if up.is_some_and(|up| asked >= up.plus_ms(READ_LAG_MS)) {
            self.set_degraded(DegradedReason::LostEvents(surface), false);
        }
    }
}
