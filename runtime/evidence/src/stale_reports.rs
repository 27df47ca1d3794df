//! Reports that may be older than the books: account snapshots, whose source may be behind the
//! order book, and account events that arrive out of order. They may show what the account was a
//! moment ago. Such a report proves nothing about a newer state, and it does not show an error in
//! the books.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::ids::{AssetId, InstrumentId, Time};
use windvane_model::order::{PositionSide, Surface};
use windvane_model::protocol::AccountUpdate;
use windvane_model::state_report::AccountSnapshot;

use crate::Evidence;

/// A source that seems further behind than this is not late: its values are right.
pub(crate) const MAX_LAG_MS: i64 = 30_000;
/// Lists and queries may be behind the stream by this much. The documents name no bound; the engine
/// allows for twelve seconds.
pub const READ_LAG_MS: i64 = 12_000;
/// Snapshots that looked old for this long, without one that agreed, are believed after all. A real
/// difference may look like an earlier state, and `updateTime` may not advance.
const PATIENCE_MS: i64 = 300_000;
/// Snapshots that lack positions for this long, without other evidence of a close, are believed. A
/// venue that returns an incomplete list for a moment has recovered by then.
pub(crate) const INCOMPLETE_MS: i64 = 60_000;
/// At most this many moments are kept; those of a busier account are closer together.
const MOMENTS: usize = 512;

/// How a snapshot that differs from the books is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotAge {
    /// The snapshot may show the present account.
    Current,
    /// The snapshot may show an earlier state of the account.
    Stale,
    /// The snapshot lacks positions, and nothing shows that they were closed.
    Incomplete,
}

/// The states of an account before each of its last changes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct AccountHistory {
    moments: VecDeque<PastAccount>,
    /// The venue's time of the newest fill, and when it was booked here.
    filled: Option<(Time, Time)>,
    /// Since when every snapshot showed an earlier state.
    since: Option<Time>,
}

impl AccountHistory {
    /// A snapshot agrees with the books.
    pub const fn note_agreement(&mut self) {
        self.since = None;
    }

    /// Notes a booked fill; `made` is the venue's time of it.
    pub fn note_fill(&mut self, made: Time, now: Time) {
        if self.filled.is_none_or(|(newest, _)| made > newest) {
            self.filled = Some((made, now));
        }
    }
}

impl AccountHistory {
    /// Corrects remembered balances after `since`: a commission was learned later.
    pub fn move_since(&mut self, since: Time, asset: AssetId, amount: Amount) {
        let moments = self.moments.iter_mut();
        for moment in moments.filter(|moment| moment.until > since) {
            let mut balances = moment.balances.iter_mut();
            if let Some((_, total)) = balances.find(|(of, _)| *of == asset) {
                *total += amount;
            }
        }
    }

    /// Whether a fill was booked that the venue made after this moment. `false` if the moment is
    /// not known.
    pub(crate) fn has_fill_after(&self, at: Time) -> bool {
        at != Time::default() && self.filled.is_some_and(|(made, _)| made > at)
    }

    /// Whether a snapshot requested at this time may be older than the last own fill.
    pub(crate) fn may_precede(&self, asked: Time) -> bool {
        let filled = self.filled.map(|(_, booked)| booked);
        filled.is_some_and(|booked| asked <= booked.plus_ms(READ_LAG_MS))
    }

    /// Whether a position had this quantity within the last moments.
    pub fn had_position(&self, now: Time, key: (InstrumentId, PositionSide), qty: i64) -> bool {
        let recent = |moment: &&PastAccount| now <= moment.until.plus_ms(MAX_LAG_MS);
        let mut moments = self.moments.iter().filter(recent);
        moments.any(|moment| {
            let mut held = moment.positions.iter();
            let held = held.find(|(id, side, _)| (*id, *side) == key);
            held.map_or(0, |(_, _, qty)| *qty) == qty
        })
    }

    /// The quantity of a position at time `at` by our clock; `held` is the present quantity. `None`
    /// if the time is too long ago.
    pub(crate) fn qty_at(
        &self,
        now: Time,
        at: Time,
        key: (InstrumentId, PositionSide),
        held: i64,
    ) -> Option<i64> {
        if now > at.plus_ms(MAX_LAG_MS) || self.is_truncated_after(at) {
            return None;
        }
        let Some(moment) = self.moments.iter().find(|moment| moment.until > at) else {
            return Some(held);
        };
        let mut positions = moment.positions.iter();
        let known = positions.find(|(id, side, _)| (*id, *side) == key);
        Some(known.map_or(0, |(_, _, qty)| *qty))
    }

    /// Whether moments after this one may have been dropped because there were too many.
    fn is_truncated_after(&self, at: Time) -> bool {
        let first = self.moments.front();
        self.moments.len() >= MOMENTS && first.is_some_and(|first| first.until > at)
    }

    /// Whether a balance had this value within the last moments.
    pub fn had_balance(&self, now: Time, asset: AssetId, total: Amount) -> bool {
        self.had_one_balance(now, asset, |known| known == total)
    }

    /// Whether a balance had one of these values within the last moments.
    pub(crate) fn had_one_balance(
        &self,
        now: Time,
        asset: AssetId,
        is_one: impl Fn(Amount) -> bool,
    ) -> bool {
        let recent = |moment: &&PastAccount| now <= moment.until.plus_ms(MAX_LAG_MS);
        let mut moments = self.moments.iter().filter(recent);
        moments.any(|moment| {
            let mut balances = moment.balances.iter();
            balances.any(|(of, known)| *of == asset && is_one(*known))
        })
    }

    /// Whether a past state of the account from `since` on matches the statement; `same` compares
    /// balances.
    pub(crate) fn matched_since(
        &self,
        since: Time,
        statement: &AccountSnapshot,
        same: impl Fn(AssetId, Amount, Amount) -> bool,
    ) -> bool {
        let mut moments = self.moments.iter().filter(|moment| moment.until >= since);
        moments.any(|moment| moment.matches(statement, &same))
    }

    /// Whether the account matched the statement within the last moments; `same` compares balances.
    pub(crate) fn matched_recently(
        &self,
        now: Time,
        statement: &AccountSnapshot,
        same: impl Fn(AssetId, Amount, Amount) -> bool,
    ) -> bool {
        let recent = |moment: &&PastAccount| now <= moment.until.plus_ms(MAX_LAG_MS);
        let mut moments = self.moments.iter().filter(recent);
        moments.any(|moment| moment.matches(statement, &same))
    }
}

/// The account at a moment, before a change.
#[derive(Debug, Serialize, Deserialize)]
pub struct PastAccount {
    until: Time,
    balances: Vec<(AssetId, Amount)>,
    /// Positions that are not flat.
    positions: Vec<(InstrumentId, PositionSide, i64)>,
}

/// `E` of the newest account event of each balance and position. Events may arrive out of order
/// (docs/interface/user-stream.md#order-of-events), and an older one must not override a newer one.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct NewestEvents {
    balances: BTreeMap<AssetId, Time>,
    positions: BTreeMap<(InstrumentId, PositionSide), Time>,
}

impl NewestEvents {
    /// Whether an event of this time or later reported a balance.
    pub(crate) fn has_newer(&self, asset: AssetId, at: Time) -> bool {
        self.balances
            .get(&asset)
            .is_some_and(|newest| *newest >= at)
    }

    /// The time of the newest event that reports a balance.
    pub fn balance(&self, asset: AssetId) -> Option<Time> {
        self.balances.get(&asset).copied()
    }

    /// The time of the newest event that reports a position.
    pub fn position(&self, id: InstrumentId, side: PositionSide) -> Option<Time> {
        self.positions.get(&(id, side)).copied()
    }

    /// Removes from an event the values that a newer event reported, and remembers its time.
    pub fn filter(&mut self, update: &mut AccountUpdate) {
        let at = update.event_time;
        (update.balances).retain(|reported| is_newest(&mut self.balances, reported.asset, at));
        (update.positions).retain(|reported| {
            let key = (reported.instrument, reported.position_side);
            is_newest(&mut self.positions, key, at)
        });
    }
}

fn is_newest<K: Ord>(known: &mut BTreeMap<K, Time>, key: K, at: Time) -> bool {
    let newest = known.entry(key).or_insert(at);
    *newest = at.max(*newest);
    *newest == at
}

impl PastAccount {
    /// Whether a snapshot shows this state. Values that the snapshot does not list are not
    /// compared.
    fn matches(
        &self,
        account: &AccountSnapshot,
        same: impl Fn(AssetId, Amount, Amount) -> bool,
    ) -> bool {
        let balances = account.balances.iter().all(|reported| {
            let mut known = self.balances.iter();
            let known = known.find(|(asset, _)| *asset == reported.asset);
            let known = known.map_or(Amount::ZERO, |(_, total)| *total);
            same(reported.asset, reported.total, known)
        });
        balances && self.holds(account)
    }

    /// Whether a snapshot's positions are those of this moment.
    fn holds(&self, account: &AccountSnapshot) -> bool {
        account.positions.iter().all(|reported| {
            let mut known = self.positions.iter();
            let known = known.find(|(id, side, _)| {
                (*id, *side) == (reported.instrument, reported.position_side)
            });
            known.map_or(0, |(_, _, qty)| *qty) == reported.qty.0
        })
    }
}

impl AccountHistory {
    /// Remembers the account before an event or a fill changes it.
    pub fn remember(&mut self, moment: PastAccount) {
        let now = moment.until;
        let moments = &mut self.moments;
        moments.push_back(moment);
        while moments.len() > MOMENTS
            || (moments.front()).is_some_and(|first| now > first.until.plus_ms(MAX_LAG_MS))
        {
            moments.pop_front();
        }
    }

    /// Judges the age of a snapshot that differs from the books. It is old if it matches a recent
    /// state of the account (`was_so`), or if its own `updateTime` is before the last fill.
    /// `is_incomplete` means that it lacks positions.
    pub fn snapshot_age(
        &mut self,
        now: Time,
        account: &AccountSnapshot,
        was_so: bool,
        is_incomplete: bool,
    ) -> SnapshotAge {
        let is_recent = |at: Time| now <= at.plus_ms(MAX_LAG_MS);
        let precedes = |made: Time| account.updated.is_some_and(|updated| updated < made);
        let fill = self.filled;
        let is_old =
            was_so || fill.is_some_and(|(made, booked)| is_recent(booked) && precedes(made));
        let (age, patience_ms) = match (is_old, is_incomplete) {
            (true, _) => (SnapshotAge::Stale, PATIENCE_MS),
            (false, true) => (SnapshotAge::Incomplete, INCOMPLETE_MS),
            (false, false) => {
                self.since = None;
                return SnapshotAge::Current;
            }
        };
        if now <= self.since.get_or_insert(now).plus_ms(patience_ms) {
            age
        } else {
            SnapshotAge::Current
        }
    }

    /// Takes over when an earlier process booked its last fill.
    pub fn inherit(&mut self, old: Option<&Self>) {
        self.filled = old.and_then(|old| old.filled);
    }
}

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
        PastAccount {
            until: self.now,
            balances: balances
                .filter(|((of, _), _)| *of == surface)
                .map(|((_, asset), balance)| (*asset, balance.total))
                .collect(),
            positions,
        }
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
        let filled = connection.history.filled.map(made);
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
        let is_recent = |moment: &&PastAccount| asked <= moment.until.plus_ms(READ_LAG_MS);
        let mut moments = connection.history.moments.iter().filter(is_recent);
        moments.any(|moment| moment.holds(account))
    }

    /// Whether nothing changed the account, and the stream was up, for longer than the last
    /// snapshot may lag: then the snapshot shows the present account.
    pub fn is_unchanged_for_long(&self, surface: Surface) -> bool {
        let connection = self.connection(surface);
        let (Some(connection), Some(up)) = (connection, self.stream_up.get(&surface)) else {
            return false;
        };
        let last = connection.history.moments.back().map(|moment| moment.until);
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
