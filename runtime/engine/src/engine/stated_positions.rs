//! Positions that account events report and that the books do not have: the degraded reason of it
//! (`windvane_evidence::stated_positions`).

use std::collections::BTreeSet;

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::order::Surface;
use windvane_model::protocol::AccountUpdate;

use super::Engine;

impl Engine {
    /// Compares the positions of an account event with the books. `newest` is the event without
    /// values that a newer event reported.
    pub(super) fn note_stated_positions(&mut self, update: &AccountUpdate, newest: &AccountUpdate) {
        if update.surface != Surface::Futures {
            return;
        }
        let closed = self.stated_positions.note(&evidence!(self), update, newest);
        self.note_stated_closes(&closed);
        self.review_stated_positions();
    }

    /// Forgets positions that the books have by now, and sets or clears the degraded reasons.
    pub(super) fn review_stated_positions(&mut self) {
        self.stated_positions.review(&self.ledgers.account);
        self.degrade_for_stated_positions();
    }

    /// Sets the degraded reasons of positions that nothing explained in time.
    fn degrade_for_stated_positions(&mut self) {
        let overdue = self.stated_positions.overdue(&self.evidence());
        let instruments: BTreeSet<InstrumentId> = overdue.iter().map(|(id, _)| *id).collect();
        let reasons = self.degraded_reasons();
        let known = reasons.iter().filter_map(|reason| match reason {
            DegradedReason::StatedPosition(id) => Some(*id),
            _ => None,
        });
        let known: BTreeSet<InstrumentId> = known.collect();
        let ended: Vec<_> = (known.difference(&instruments).copied())
            .filter(|id| !self.examines_trades(*id))
            .collect();
        let begun: Vec<_> = instruments.difference(&known).copied().collect();
        let smaller = self.stated_positions.smaller(&self.evidence(), &overdue);
        self.note_stated_closes(&smaller);
        if ended.is_empty() && begun.is_empty() {
            return;
        }
        for id in ended {
            self.set_degraded(DegradedReason::StatedPosition(id), false);
        }
        for id in begun {
            self.set_degraded(DegradedReason::StatedPosition(id), true);
        }
        self.update_state();
    }

    /// Whether it is still unknown if the venue made an outside trade to close a position.
    fn examines_trades(&self, id: InstrumentId) -> bool {
        self.stated_positions.has_unreported_trade(id) || self.awaits_forced_orders(id)
    }

    /// Drops events that a snapshot refutes: it agrees with the books and was requested so long
    /// after the event that it cannot be older.
    pub(super) fn refute_stated_positions(&mut self, asked: Time) {
        self.stated_positions.refute(asked);
        self.degrade_for_stated_positions();
    }

    /// Drops all reported positions. Either the books match a snapshot, or earlier events may be
    /// lost.
    pub(super) fn forget_stated_positions(&mut self) {
        self.stated_positions.forget();
        self.degrade_for_stated_positions();
    }
}
