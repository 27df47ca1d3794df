//! Balances that account events report and that the books do not have: the degraded reason of it
//! (`windvane_evidence::stated_balances`).

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::ids::Time;
use windvane_model::order::Surface;
use windvane_model::protocol::AccountUpdate;

use super::Engine;

impl Engine {
    /// Notes the balances of an account event. `newest` is the event without values that a newer
    /// event reported.
    pub(super) fn note_stated_balances(&mut self, newest: &AccountUpdate) {
        self.stated_balances.note(&evidence!(self), newest);
        self.review_stated_balances(newest.surface);
    }

    /// Forgets balances that the books reached, and sets or clears the degraded reason.
    pub(super) fn review_stated_balances(&mut self, surface: Surface) {
        self.stated_balances.review(&evidence!(self), surface);
        self.degrade_for_stated_balances(surface);
    }

    fn degrade_for_stated_balances(&mut self, surface: Surface) {
        let evidence = self.evidence();
        let is_overdue = self.stated_balances.is_overdue(&evidence, surface);
        let reason = DegradedReason::StatedBalance(surface);
        let live = self.live.as_ref();
        if live.is_some_and(|live| live.is_degraded_for(&[reason]) != is_overdue) {
            self.set_degraded(reason, is_overdue);
            self.update_state();
        }
    }

    /// Drops events that a snapshot refutes.
    pub(super) fn refute_stated_balances(&mut self, surface: Surface, asked: Time) {
        self.stated_balances.refute(surface, asked);
        self.review_stated_balances(surface);
    }

    /// Drops all reported balances of a surface. Either the books match a snapshot, or earlier
    /// events may be lost.
    pub(super) fn forget_stated_balances(&mut self, surface: Surface) {
        self.stated_balances.forget(surface);
        self.degrade_for_stated_balances(surface);
    }
}
