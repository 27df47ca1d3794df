//! Reports that may be older than the books: the engine remembers the account before each change and
//! judges snapshots by it (`windvane_evidence::stale_reports`).

use windvane_evidence::account_history::SnapshotAge;
use windvane_model::order::Surface;
use windvane_model::state_report::AccountSnapshot;

use super::Engine;

impl Engine {
    /// Remembers the account before an event or a fill changes it.
    pub(super) fn remember_account(&mut self, surface: Surface) {
        if self.live.is_none() {
            return;
        }
        let moment = self.evidence().account_now(surface);
        if let Some(connection) = self.connection_mut(surface) {
            connection.history.remember(moment);
        }
    }

    /// Whether a snapshot that agrees may be older than the last fill.
    pub(super) fn may_precede_fill(&self, surface: Surface) -> bool {
        let live = self.live.as_ref();
        let is_lost = live.is_some_and(|live| live.is_recovering_lost_account(surface));
        self.evidence().may_precede_fill(surface, is_lost)
    }

    /// Judges the age of a snapshot that differs from the books.
    pub(super) fn snapshot_age(
        &mut self,
        surface: Surface,
        account: &AccountSnapshot,
        is_incomplete: bool,
    ) -> SnapshotAge {
        let was_so = self.evidence().was_true_recently(surface, account);
        let now = self.now;
        let Some(connection) = self.connection_mut(surface) else {
            return SnapshotAge::Current;
        };
        connection
            .history
            .snapshot_age(now, account, was_so, is_incomplete)
    }

    /// Takes over when an earlier process booked its last fills.
    pub(super) fn inherit_fill_times(&mut self, from: &Self) {
        let (Some(live), Some(old)) = (&mut self.live, &from.live) else {
            return;
        };
        for (surface, connection) in &mut live.connections {
            let old = old.connections.get(surface);
            connection.history.inherit(old.map(|old| &old.history));
        }
    }
}
