//! Transfers that no event told: the run was down, or the event was lost. A balance that differs
//! where positions agree and no own fill is missing moved by no doing of the strategies; money that
//! came in is no profit, and money that went out no loss (as for a transfer that is told).
//!
//! What own fills realize and cost is known from them. Funding may have been paid unseen, and fees
//! of fills made up from totals are estimated: a difference that these may explain stays what it
//! looks like, a profit or a loss.

use crate::decimal::Amount;
use crate::order::Surface;
use crate::protocol::BalanceUpdate;

use super::Engine;

/// Unseen funding and estimates are at most this part of what positions cost: ten funding payments
/// of the usual rate.
const UNSEEN_PARTS: i128 = 1_000;

impl Engine {
    /// Moves the base of the account's loss limits by what a told balance has more, or less, than
    /// what we know explains. To be asked before the balance is taken, where positions agree.
    pub(super) fn shift_by_untold(&mut self, surface: Surface, told: &BalanceUpdate) {
        if self.live.is_none() {
            return;
        }
        let known = self.balance(surface, told.asset).total + told.change;
        let worth = self.worth(surface, told.asset, told.total - known);
        let unseen = self.cost_of_positions(surface).0 / UNSEEN_PARTS;
        if worth.abs().0 > unseen && !self.is_rounding(surface, told.total - known) {
            self.losses.shift(worth);
        }
    }

    /// What positions of a surface, and the last fill, cost.
    fn cost_of_positions(&self, surface: Surface) -> Amount {
        let line = self.live.as_ref().and_then(|live| live.lines.get(&surface));
        let last = line.map_or(Amount::ZERO, |line| line.fill_value.abs());
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
