//! Reports that may be older than the books: account snapshots, whose source may be behind the
//! order book, and account events that arrive out of order. They may show what the account was a
//! moment ago. Such a report proves nothing about a newer state, and it does not show an error in
//! the books.

use windvane_model::ids::{InstrumentId, Time};
use windvane_model::order::{PositionSide, Surface};
use windvane_model::state_report::AccountSnapshot;

use crate::Evidence;
use crate::account_history::PastAccount;
use crate::lag::READ_LAG_MS;

impl Evidence<'_> {
    /// The state of a surface's account now.
    pub fn account_now(&self, surface: Surface) -> PastAccount {
        let mut positions = Vec::new();
        for index in 0..self.instruments.len() {
            let id = InstrumentId(index as u16);
            for side in PositionSide::ALL.iter().copied() {
                let qty = self.ledgers.account.at(id, side).position.qty;
                if qty != 0 && self.surface_of(id) == surface {
                    positions.push((id, side, qty));
                }
            }
        }
        let balances = self.balances.iter();
        let balances = balances
            .filter(|((of, _), _)| *of == surface)
            .map(|((_, asset), balance)| (*asset, balance.total))
            .collect();
        PastAccount::new(self.now, balances, positions)
    }

    /// Whether the first snapshots after a start, or after the stream connected, may be older than
    /// the last fill: the last one was requested less than the longest lag after it. A fill after
    /// the stream connected is reported there, and the engine knows that it is newer than a
    /// snapshot. `is_lost` means that the account's initial state is not known after a lost
    /// journal.
    pub fn may_precede_fill(&self, surface: Surface, is_lost: bool) -> bool {
        let offset_ns = self.clock_offset_ns(surface).unwrap_or_default();
        let connection = self.connection(surface);
        let Some(connection) =
            connection.filter(|connection| connection.last_clean_round.is_none())
        else {
            return false;
        };
        // The venue's time of the fill, by our clock. A fill cannot be newer than its event.
        let made = |(made, booked): (Time, Time)| {
            let ours = Time(made.0.saturating_sub(offset_ns));
            ours.min(booked)
        };
        // If the account is not known at all, its state before a fill is not known either. A
        // snapshot that changed by the size of this fill may show an earlier fill of the same size.
        let up = self.stream_up.get(&surface).filter(|_| !is_lost).copied();
        let filled = connection.history.newest_fill().map(made);
        let filled = filled.map(|made| made.min(up.unwrap_or(self.now)));
        filled.is_some_and(|made| connection.round.asked_at <= made.plus_ms(READ_LAG_MS))
    }

    /// Whether the positions of a snapshot are those of a moment that the snapshot may show. Its
    /// balances may differ for another reason.
    pub(crate) fn lists_stale_positions(
        &self,
        surface: Surface,
        account: &AccountSnapshot,
    ) -> bool {
        let connection = self.connection(surface);
        let Some(connection) = connection.filter(|_| !self.positions_agree(&account.positions))
        else {
            return false;
        };
        let asked = connection.round.asked_at;
        connection.history.had_positions(asked, account)
    }

    /// Whether nothing changed the account, and the stream was up, for longer than the last
    /// snapshot may lag: then the snapshot shows the present account.
    pub fn is_unchanged_for_long(&self, surface: Surface) -> bool {
        let connection = self.connection(surface);
        let (Some(connection), Some(up)) = (connection, self.stream_up.get(&surface)) else {
            return false;
        };
        let last = connection.history.changed();
        connection.round.asked_at > last.max(Some(*up)).unwrap_or(*up).plus_ms(READ_LAG_MS)
    }

    /// Whether the account matched the snapshot within the last moments. A snapshot of that time
    /// contains commissions that the venue's list of trades will report later. The remembered books
    /// do not contain them.
    pub fn was_true_recently(&self, surface: Surface, account: &AccountSnapshot) -> bool {
        let Some(connection) = self.connection(surface) else {
            return false;
        };
        let may_lack_fees = !self.positions_agree(&account.positions);
        connection
            .history
            .matched_recently(self.now, account, |asset, reported, known| {
                reported == known
                    || (may_lack_fees && self.may_await_fees(surface, asset, reported - known))
            })
    }
}
