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

impl Engine {
    /// Moves the base of the account's loss limits by the part of an unexplained change that is a
    /// transfer. Called before the balance is accepted, if positions agree.
    pub(super) fn shift_loss_base(&mut self, surface: Surface, reported: &BalanceUpdate) {
        if self.live.is_none() || !self.evidence().is_unexplained_change(surface, reported) {
            return;
        }
        let moved = self.evidence().unexplained_change(surface, reported);
        let is_transfer = surface == Surface::Spot || self.start_equity.is_none();
        let transferred = if is_transfer {
            moved
        } else {
            self.transferred(surface, reported.asset, moved)
        };
        if self.evidence().is_outside_equity(surface, reported.asset) {
            let lost = transferred - moved;
            if lost > Amount::ZERO && !is_transfer {
                self.count_lost_asset_as_fee(reported.asset, lost);
            }
            return;
        }
        let worth = self.evidence().worth(surface, reported.asset, transferred);
        self.losses.shift(worth);
    }

    /// Handles a balance outside equity that fell while positions differ or a fill is missing. The
    /// decrease counts as commissions, because no other part of equity shows it. A fill that is
    /// reported later and that the snapshot contains costs nothing more.
    pub(super) fn count_lost_other_assets(&mut self, surface: Surface, reported: &BalanceUpdate) {
        let lost = -self.evidence().unexplained_change(surface, reported);
        let is_watched = surface == Surface::Futures && self.start_equity.is_some();
        if is_watched
            && lost > Amount::ZERO
            && self.evidence().is_outside_equity(surface, reported.asset)
        {
            self.count_lost_asset_as_fee(reported.asset, lost);
        }
    }
}
