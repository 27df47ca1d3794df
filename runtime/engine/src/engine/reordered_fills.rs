//! Fills that were booked in another order than the venue executed them. If an account event
//! differs from the books only for this reason, the engine adopts its values
//! (`windvane_evidence::reordered_fills`).

use windvane_model::effect::Cause;
use windvane_model::order::Surface;
use windvane_model::state_report::AccountSnapshot;

use super::Engine;

impl Engine {
    /// Takes an account event that differs from the books only by the order of fills. Returns
    /// whether it does.
    pub(super) fn take_reordered_fills(
        &mut self,
        surface: Surface,
        statement: &AccountSnapshot,
    ) -> bool {
        let Some(shifts) = self.evidence().entry_shifts(surface, statement) else {
            return false;
        };
        for (balance, (id, side)) in shifts {
            let moved = balance.total - self.balance(surface, balance.asset).total;
            let position = &mut self.ledgers.account.at_mut(id, side).position;
            position.cost += moved;
            position.realized_pnl += moved;
            self.confirm_entry(id, side);
            self.take_balance(surface, &balance, Cause::Event);
        }
        true
    }
}
