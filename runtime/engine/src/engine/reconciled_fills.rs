//! Fills that an accepted account snapshot already contains: they decide which strategy owns the
//! position, and the account stays as in the snapshot (`windvane_evidence::reconciled_fills`).

use windvane_evidence::reconciled_fills::PreservedValues;
use windvane_model::effect::{Adjustment, Cause};
use windvane_model::ids::Time;
use windvane_model::order::Surface;
use windvane_model::protocol::{Fill, OrderUpdate};
use windvane_model::state_report::AccountSnapshot;

use super::Engine;

impl Engine {
    /// Notes that a snapshot is accepted. It contains every fill up to its own newest time, or, if
    /// it has none, up to the moment of the request. For a snapshot from a source that may lag,
    /// neither is known.
    pub(super) fn note_accepted_snapshot(&mut self, surface: Surface, account: &AccountSnapshot) {
        self.note_snapshot_changes(surface, account);
        // Without the venue's clock, the time of the request cannot be compared with the venue's
        // times.
        let offset_ns = self.clock_offset_ns(surface);
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        let asked_at = connection.round.asked_at.0;
        let asked = offset_ns.map(|offset_ns| Time(asked_at.saturating_add(offset_ns)));
        let contains = account.updated.or(asked.filter(|_| !account.lags));
        connection.reconciled_until = connection.reconciled_until.max(contains);
    }

    fn note_snapshot_changes(&mut self, surface: Surface, account: &AccountSnapshot) {
        let now = self.now;
        let differences = self.evidence().differences(surface, account);
        let asked = self
            .connection_mut(surface)
            .map(|connection| connection.round.asked_at);
        let changes = self.snapshot_changes.entry(surface).or_default();
        changes.note(surface, &differences, asked, now);
    }

    /// The account values that must not change because the last snapshot contained the fill; `None`
    /// if the fill is newer.
    pub(super) fn preserved_by_snapshot(
        &mut self,
        update: &OrderUpdate,
        fill: &Fill,
    ) -> Option<PreservedValues> {
        let surface = self.surface_of(update.instrument);
        let changes = self.snapshot_changes.get(&surface);
        if !self.evidence().may_be_in_snapshot(changes, surface, update) {
            return None;
        }
        let until = self
            .live
            .as_ref()?
            .connections
            .get(&surface)?
            .reconciled_until;
        let made = update.transaction_time;
        let was_read = self.outside_closes.take_from_snapshot_closes(update, fill);
        let is_old = made != Time::default() && until.is_some_and(|until| made <= until);
        if !was_read && !is_old {
            return None;
        }
        self.evidence()
            .preserved_values(surface, update, fill.fee_asset)
    }

    /// Reverts what a fill changed in the account: the quantity moves from the unowned position to
    /// the fill's owner. On spot, snapshots contain only balances. Each reverted balance is
    /// reported as an adjustment, so that fills and adjustments together sum to the balance's
    /// change.
    pub(super) fn restore_preserved(&mut self, kept: &PreservedValues) {
        let surface = self.surface_of(kept.instrument);
        for (asset, to) in kept.balances {
            let from = self.balance(surface, asset).total;
            if from != to {
                self.balances.entry((surface, asset)).or_default().total = to;
                let adjustment = Adjustment::Balance {
                    surface,
                    asset,
                    from,
                    to,
                };
                self.snapshot_changes
                    .entry(surface)
                    .or_default()
                    .add(&adjustment);
                self.report_adjustment(adjustment, Cause::Reconciliation);
            }
        }
        if surface == Surface::Spot {
            return;
        }
        let account = self.ledgers.account.at_mut(kept.instrument, kept.side);
        let position = &mut account.position;
        let (qty, cost) = (kept.qty - position.qty, kept.cost - position.cost);
        let changes = self.snapshot_changes.entry(surface).or_default();
        changes.add(&Adjustment::Position {
            instrument: kept.instrument,
            side: kept.side,
            from: position.qty,
            to: kept.qty,
        });
        position.qty += qty;
        position.cost += cost;
        let external = self.ledgers.external.at_mut(kept.instrument, kept.side);
        external.position.qty += qty;
        external.position.cost += cost;
    }
}
