//! The recent states of an account: its state before each of its last changes, and the newest
//! event of each balance and position. Reports that are behind are compared with it
//! (`stale_reports`).

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::ids::{AssetId, InstrumentId, Time};
use windvane_model::order::PositionSide;
use windvane_model::protocol::AccountUpdate;
use windvane_model::state_report::AccountSnapshot;

use crate::lag::{MAX_LAG_MS, READ_LAG_MS};

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
    /// The venue's time of the newest fill, and when it was booked here.
    pub(crate) const fn newest_fill(&self) -> Option<(Time, Time)> {
        self.filled
    }

    /// When the account last changed.
    pub(crate) fn changed(&self) -> Option<Time> {
        self.moments.back().map(|moment| moment.until)
    }

    /// Whether a snapshot requested at this time may show an earlier state of the account, and its
    /// positions are those of that state.
    pub(crate) fn had_positions(&self, asked: Time, account: &AccountSnapshot) -> bool {
        let is_recent = |moment: &&PastAccount| asked <= moment.until.plus_ms(READ_LAG_MS);
        let mut moments = self.moments.iter().filter(is_recent);
        moments.any(|moment| moment.holds(account))
    }

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
    /// The account before a change at this time. Positions that are flat are left out.
    pub(crate) const fn new(
        until: Time,
        balances: Vec<(AssetId, Amount)>,
        positions: Vec<(InstrumentId, PositionSide, i64)>,
    ) -> Self {
        Self {
            until,
            balances,
            positions,
        }
    }

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
