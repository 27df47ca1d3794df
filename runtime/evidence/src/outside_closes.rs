//! The closes of outside parties that are remembered: positions that snapshots lack, closed
//! quantities that strategies still have to give up, and quantities that are settled.
//! `close_evidence` says when a position counts as closed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::holding::Ledger;
use windvane_model::ids::{InstrumentId, StrategyId, Time};
use windvane_model::names::Names;
use windvane_model::order::{PositionSide, Side};
use windvane_model::protocol::{Fill, OrderUpdate};

use crate::PositionKey;

/// Reduce-only order rejected, and position not sufficient (docs/interface/errors.md#20xx). In
/// hedge mode no order has the reduce-only flag.
pub const REDUCES_NOTHING: [i32; 2] = [-2022, -2024];

/// Closed quantities by position, signed like the closing side.
pub type ExplainedCloses = BTreeMap<PositionKey, i64>;

/// Positions with a time, by the venue's clock, after which own fills may be newer than the close.
pub type StatedCloses = BTreeMap<PositionKey, Time>;

/// The venue's time of the last outside close in its list of the account's trades, for positions
/// with a due close.
pub type ListedCloses = BTreeMap<PositionKey, Time>;

/// The state of outside closes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct OutsideCloses {
    /// Held positions that the last snapshot did not list.
    unlisted: BTreeSet<PositionKey>,
    /// Positions that the venue refused to reduce because it has none.
    refused: BTreeSet<PositionKey>,
    /// Closed quantities that no strategy gave up yet, signed like the closing orders.
    due: BTreeMap<PositionKey, i64>,
    /// Closed quantities in accepted snapshots: their events may still arrive.
    read: BTreeMap<PositionKey, ClosedQty>,
    /// Quantities that strategies gave up: a late own fill may turn out to be the close.
    settled: BTreeMap<(StrategyId, InstrumentId, PositionSide), ClosedQty>,
}

/// A closed quantity.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ClosedQty {
    /// Signed like the closing orders.
    pub qty: i64,
    /// Its value.
    pub quote: Amount,
    /// The venue's time up to which fills are included.
    pub until: Time,
}

impl OutsideCloses {
    /// Whether the venue refused to reduce a position because it has none.
    pub fn was_refused(&self, key: PositionKey) -> bool {
        self.refused.contains(&key)
    }

    /// The venue refused to reduce a position because it has none.
    pub fn note_refused(&mut self, key: PositionKey) {
        self.refused.insert(key);
    }

    /// A snapshot lists a held position.
    pub fn note_listed(&mut self, key: PositionKey) {
        self.unlisted.remove(&key);
        self.refused.remove(&key);
    }

    /// Snapshots or events do not show these held positions, or as smaller.
    pub fn note_unlisted(&mut self, keys: impl IntoIterator<Item = PositionKey>) {
        self.unlisted.extend(keys);
    }

    /// Whether every held position is listed.
    pub fn are_all_listed(&self) -> bool {
        self.unlisted.is_empty()
    }

    /// Forgets positions that are flat by now. Returns the instruments of the others that are not
    /// listed.
    pub fn review(&mut self, account: &Ledger) -> BTreeSet<InstrumentId> {
        let is_held = |key: &PositionKey| account.at(key.0, key.1).position.qty != 0;
        self.unlisted.retain(is_held);
        self.refused.retain(is_held);
        self.unlisted.iter().map(|(id, _)| *id).collect()
    }

    /// Whether strategies still have to give up a close of a position.
    pub fn is_due(&self, key: PositionKey) -> bool {
        self.due.contains_key(&key)
    }

    /// Whether strategies need not give up anything for a close by an outside party.
    pub fn has_none_due(&self) -> bool {
        self.due.is_empty()
    }

    /// Strategies have to give up a closed quantity, signed like the closing orders.
    pub fn add_due(&mut self, key: PositionKey, closed: i64) {
        *self.due.entry(key).or_default() += closed;
    }

    /// Returns the quantities that outside parties closed and that no strategy gave up yet, by
    /// position, and removes them.
    pub fn take_all_due(&mut self) -> BTreeMap<PositionKey, i64> {
        std::mem::take(&mut self.due)
    }

    /// Puts a close back: the strategies cannot give up its quantity yet.
    pub fn put_back(&mut self, key: PositionKey, due: i64) {
        self.due.insert(key, due);
    }

    /// Instruments with closed quantities that no strategy gave up yet.
    pub fn instruments_with_due(&self) -> BTreeSet<InstrumentId> {
        self.due.keys().map(|(id, _)| *id).collect()
    }

    /// The quantity that orders of this side closed, that is still due, and that no event of
    /// another order explains; `explained` is the explained quantity.
    pub fn open_due(&self, key: PositionKey, closing: Side, explained: i64) -> i64 {
        let due = self.due.get(&key).copied().unwrap_or_default();
        let mut open = due - explained;
        take_closed(&mut open, closing, i64::MAX)
    }

    /// Takes the part that a forced close explains out of [`Self::open_due`], and returns that
    /// quantity; `None` if nothing is due.
    pub fn take_due(
        &mut self,
        key: PositionKey,
        closing: Side,
        qty: i64,
        explained: i64,
    ) -> Option<i64> {
        let due = self.due.get_mut(&key)?;
        let mut open = *due - explained;
        let taken = take_closed(&mut open, closing, qty);
        *due = open + explained;
        Some(taken)
    }

    /// Notes a close that an accepted snapshot contains. `until` is the venue's time up to which
    /// the snapshot contains fills.
    pub fn note_snapshot_close(
        &mut self,
        key: PositionKey,
        closing: Side,
        qty: i64,
        quote: Amount,
        until: Time,
    ) {
        let read = self.read.entry(key).or_default();
        if read.qty.signum() != closing.sign() {
            *read = ClosedQty::default();
        }
        read.qty += closing.sign() * qty;
        read.quote += quote;
        read.until = until;
    }

    /// The venue's time up to which an accepted snapshot with a close of this side contains fills.
    pub fn snapshot_close_until(&self, key: PositionKey, closing: Side) -> Option<Time> {
        let read = self.read.get(&key)?;
        (read.qty.signum() == closing.sign()).then_some(read.until)
    }

    /// Takes a fill that is reported now out of the closes that accepted snapshots contain. Returns
    /// whether one contains it.
    pub fn take_from_snapshot_closes(&mut self, update: &OrderUpdate, fill: &Fill) -> bool {
        let key = (update.instrument, update.position_side);
        let Some(read) = self.read.get_mut(&key) else {
            return false;
        };
        let covers = read.qty.saturating_abs() >= fill.qty.0;
        covers && read.take(update, fill.qty.0).0 > 0
    }

    /// Notes a quantity that a strategy gave up.
    pub fn note_settled(
        &mut self,
        key: (StrategyId, InstrumentId, PositionSide),
        closing: Side,
        qty: i64,
        quote: Amount,
        until: Time,
    ) {
        let settled = self.settled.entry(key).or_default();
        if settled.qty.signum() != closing.sign() {
            *settled = ClosedQty::default();
        }
        settled.qty += closing.sign() * qty;
        settled.quote += quote;
        settled.until = until;
    }

    /// Takes the part of a settled close that a late own fill turns out to be.
    pub fn take_settled(
        &mut self,
        key: (StrategyId, InstrumentId, PositionSide),
        update: &OrderUpdate,
        qty: i64,
    ) -> (i64, Amount) {
        let settled = self.settled.get_mut(&key);
        settled.map_or((0, Amount::ZERO), |settled| settled.take(update, qty))
    }

    /// Takes over the state of an earlier process.
    pub fn inherit(&mut self, old: &Self, names: &Names) {
        self.due.extend(renamed(&old.due, names));
        self.read.extend(renamed(&old.read, names));
        for ((strategy, id, side), settled) in &old.settled {
            let id = names.instruments.get(id);
            if let (Some(strategy), Some(id)) = (names.strategies.get(strategy), id) {
                self.settled.insert((*strategy, *id, *side), *settled);
            }
        }
    }
}

/// The entries of another configuration's positions, under the ids of the present one.
pub fn renamed<T: Copy>(
    old: &BTreeMap<PositionKey, T>,
    names: &Names,
) -> impl Iterator<Item = (PositionKey, T)> {
    old.iter().filter_map(|((id, side), value)| {
        let id = names.instruments.get(id)?;
        Some(((*id, *side), *value))
    })
}

impl ClosedQty {
    /// Takes the part that a fill explains; 0 if the fill is newer or of the other side.
    pub(crate) fn take(&mut self, update: &OrderUpdate, qty: i64) -> (i64, Amount) {
        let made = update.transaction_time;
        let fits = self.qty.signum() == update.side.sign();
        if !fits || made > self.until || made == Time::default() {
            return (0, Amount::ZERO);
        }
        let whole = self.qty.saturating_abs();
        let taken = qty.min(whole);
        let quote = self.quote.part(taken, whole);
        self.qty -= update.side.sign() * taken;
        self.quote -= quote;
        (taken, quote)
    }
}

/// Takes at most `qty`, which an order of this side closed, out of the quantity by which a position
/// moved. Returns the taken quantity.
pub(crate) fn take_closed(moved: &mut i64, closing: Side, qty: i64) -> i64 {
    let taken = (closing.sign() * *moved).max(0).min(qty.max(0));
    *moved -= closing.sign() * taken;
    taken
}
