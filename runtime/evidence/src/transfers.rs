//! Changes of a balance without an event: the process was not running, or the event was lost.
//!
//! Fees of fills that were derived from totals are estimates, and the venue rounds. So a small
//! difference counts as profit or loss.

use windvane_model::decimal::Amount;
use windvane_model::order::Surface;
use windvane_model::protocol::BalanceUpdate;

use crate::Evidence;

/// Estimates and rounding are at most one part in this many of the positions' cost.
const ROUNDING_PARTS: i128 = 1_000;

impl Evidence<'_> {
    /// How much larger a reported balance is than the books explain.
    pub fn unexplained_change(&self, surface: Surface, reported: &BalanceUpdate) -> Amount {
        let moved = reported.total - self.balance(surface, reported.asset).total - reported.change;
        moved - self.correction_of_estimates(surface, reported.asset, moved)
    }

    /// Whether such a change is large enough to request the income history.
    pub fn is_unexplained_change(&self, surface: Surface, reported: &BalanceUpdate) -> bool {
        let moved = self.unexplained_change(surface, reported);
        if surface == Surface::Futures && self.is_outside_equity(surface, reported.asset) {
            return moved != Amount::ZERO;
        }
        let worth = self.worth(surface, reported.asset, moved);
        worth.abs() > self.rounding_tolerance(surface)
            && !self.is_rounding(surface, reported.asset, moved)
    }

    /// Estimates and rounding are at most this amount.
    pub fn rounding_tolerance(&self, surface: Surface) -> Amount {
        Amount(self.cost_of_positions(surface).0 / ROUNDING_PARTS)
    }

    /// The cost of a surface's positions and of the last fill.
    pub(crate) fn cost_of_positions(&self, surface: Surface) -> Amount {
        let connection = self.connection(surface);
        let last = connection.map_or(Amount::ZERO, |connection| connection.fill_value.abs());
        if surface == Surface::Spot {
            return last;
        }
        let account = self.ledgers.account.iter();
        let of_surface = account.filter(|(id, ..)| self.surface_of(*id) == surface);
        last + of_surface
            .map(|(_, _, holding)| holding.position.cost.abs())
            .sum::<Amount>()
    }
}
