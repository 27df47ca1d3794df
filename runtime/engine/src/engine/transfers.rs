//! Changes of a balance without an event: the process was not running, or the event was lost. The
//! engine knows the profit and cost of own fills. If positions agree and no own fill is missing,
//! the rest was a transfer, which moves the base of the loss limits, or it was profit or loss.
//! `income` decides which.
//!
//! Fees of fills that were derived from totals are estimates, and the venue rounds. So a small
//! difference counts as profit or loss.

use windvane_model::decimal::Amount;
use windvane_model::order::Surface;
use windvane_model::protocol::BalanceUpdate;

use super::Engine;

/// Estimates and rounding are at most one part in this many of the positions' cost.
const UNSEEN_PARTS: i128 = 1_000;

impl Engine {
    /// Moves the base of the account's loss limits by the part of an unexplained change that is a
    /// transfer. Called before the balance is accepted, if positions agree.
    pub(super) fn shift_by_untold(&mut self, surface: Surface, told: &BalanceUpdate) {
        if self.live.is_none() || !self.is_untold(surface, told) {
            return;
        }
        let moved = self.untold_change(surface, told);
        let is_transfer = surface == Surface::Spot || self.start_equity.is_none();
        let transferred = if is_transfer {
            moved
        } else {
            self.transferred(surface, told.asset, moved)
        };
        if self.is_outside_equity(surface, told.asset) {
            let lost = transferred - moved;
            if lost > Amount::ZERO && !is_transfer {
                self.lose_other_asset(told.asset, lost);
            }
            return;
        }
        let worth = self.worth(surface, told.asset, transferred);
        self.losses.shift(worth);
    }

    /// Handles a balance outside equity that fell while positions differ or a fill is missing. The
    /// decrease counts as commissions, because no other part of equity shows it. A fill that is
    /// reported later and that the snapshot contains costs nothing more.
    pub(super) fn lose_beside_differences(&mut self, surface: Surface, told: &BalanceUpdate) {
        let lost = -self.untold_change(surface, told);
        let is_watched = surface == Surface::Futures && self.start_equity.is_some();
        if is_watched && lost > Amount::ZERO && self.is_outside_equity(surface, told.asset) {
            self.lose_other_asset(told.asset, lost);
        }
    }

    /// How much larger a reported balance is than the books explain.
    pub(super) fn untold_change(&self, surface: Surface, told: &BalanceUpdate) -> Amount {
        let moved = told.total - self.balance(surface, told.asset).total - told.change;
        moved - self.correction_of_estimates(surface, told.asset, moved)
    }

    /// Whether such a change is large enough to request the income history.
    pub(super) fn is_untold(&self, surface: Surface, told: &BalanceUpdate) -> bool {
        let moved = self.untold_change(surface, told);
        if surface == Surface::Futures && self.is_outside_equity(surface, told.asset) {
            return moved != Amount::ZERO;
        }
        let worth = self.worth(surface, told.asset, moved);
        worth.abs() > self.unseen(surface) && !self.is_rounding(surface, told.asset, moved)
    }

    /// Estimates and rounding are at most this amount.
    pub(super) fn unseen(&self, surface: Surface) -> Amount {
        Amount(self.cost_of_positions(surface).0 / UNSEEN_PARTS)
    }

    /// The cost of a surface's positions and of the last fill.
    pub(super) fn cost_of_positions(&self, surface: Surface) -> Amount {
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
