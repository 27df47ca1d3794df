//! Positions that an outside party closed: a person, another program, or the venue.
//!
//! An account snapshot may lack a position that the books hold. From then on the run is degraded,
//! and the engine reads the account again. One snapshot alone is not enough to book a close: a
//! venue may return an incomplete list for a moment. The engine books the position as closed in one
//! of these cases:
//! - The venue's list of the account's trades explains it.
//! - Two snapshots agree, and a balance changed by about the amount that the close must have
//!   realized.
//! - Two snapshots agree, and the venue refused to close the position because it has none.
//! - The snapshots agreed for [`INCOMPLETE_MS`](crate::stale_reports::INCOMPLETE_MS) without such a change.
//!
//! The engine then takes the closed quantity from the strategies that held it, at the same price.
//! It cancels those of their orders that would now open a position.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::holding::Ledger;
use windvane_model::ids::{AssetId, InstrumentId, OrderSeq, StrategyId, Time};
use windvane_model::names::Names;
use windvane_model::order::{OrderTerms, PositionSide, Qty, Side, Surface};
use windvane_model::orders::Order;
use windvane_model::planted;
use windvane_model::protocol::{BalanceUpdate, Fill, OrderUpdate, PositionUpdate};
use windvane_model::state_report::AccountSnapshot;

use crate::{Evidence, PositionKey};

/// Reduce-only order rejected, and position not sufficient (docs/interface/errors.md#20xx). In
/// hedge mode no order has the reduce-only flag.
pub const REDUCES_NOTHING: [i32; 2] = [-2022, -2024];

/// The venue made a close at most this long before the first event that reports the position
/// otherwise than the books.
const CLOSED_BEFORE_MS: i64 = 1_000;

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

/// How a snapshot lists held positions.
#[derive(Clone, Debug, Default)]
pub struct ListedPositions {
    /// Positions that it lists.
    pub listed: Vec<PositionKey>,
    /// Positions that it does not list, and that no own order closed.
    pub unlisted: Vec<PositionKey>,
}

/// Positions that a pending account event shows as smaller than the books.
#[derive(Clone, Debug)]
pub struct SmallerPositions {
    /// Since when the event is pending.
    pub since: Time,
    /// All of them, also those that it leaves out while its balance fits their close.
    pub stated: Vec<PositionKey>,
    /// Those that it lists and that no own order can have closed.
    pub unexplained: Vec<PositionKey>,
}

/// Whether a snapshot lists neither a balance nor a position.
fn is_empty(account: &AccountSnapshot) -> bool {
    account.balances.is_empty() && account.positions.iter().all(|reported| reported.qty.0 == 0)
}

/// The position that a report is about.
pub(crate) fn key_of(reported: &PositionUpdate) -> PositionKey {
    (reported.instrument, reported.position_side)
}

/// The side of orders that close a position.
pub const fn closing_side(qty: i64) -> Side {
    if qty > 0 { Side::Sell } else { Side::Buy }
}

/// Takes at most `qty`, which an order of this side closed, out of the quantity by which a position
/// moved. Returns the taken quantity.
pub(crate) fn take_closed(moved: &mut i64, closing: Side, qty: i64) -> i64 {
    let taken = (closing.sign() * *moved).max(0).min(qty.max(0));
    *moved -= closing.sign() * taken;
    taken
}

impl Evidence<'_> {
    /// Positions that the books hold and a snapshot does not list. A snapshot that lists nothing at
    /// all proves nothing, unless an account event agrees.
    fn unlisted_in(&self, surface: Surface, account: &AccountSnapshot) -> Vec<(PositionKey, i64)> {
        if surface != Surface::Futures || planted!(UnlistedPositionKept) {
            return Vec::new();
        }
        let listed = |key: PositionKey| {
            let mut positions = account.positions.iter();
            positions.any(|reported| (reported.instrument, reported.position_side) == key)
        };
        let says_nothing = is_empty(account);
        let mut held = self.held_positions(surface);
        held.retain(|(key, _)| {
            !listed(*key) && (!says_nothing || self.is_stated_flat(surface, *key))
        });
        held
    }

    /// Balances that the books hold and a snapshot does not list: venues may leave out empty ones.
    pub fn unlisted_balances(&self, surface: Surface, account: &AccountSnapshot) -> Vec<AssetId> {
        if planted!(UnlistedPositionKept) {
            return Vec::new();
        }
        let listed = |asset: AssetId| {
            account
                .balances
                .iter()
                .any(|reported| reported.asset == asset)
        };
        let says_nothing = is_empty(account);
        let held = self.balances.iter().filter(|((of, asset), balance)| {
            let believed = !says_nothing || self.is_stated_empty(surface, *asset);
            *of == surface && balance.total != Amount::ZERO && !listed(*asset) && believed
        });
        held.map(|((_, asset), _)| *asset).collect()
    }

    /// The account event that no fill explains yet, if any.
    pub(crate) fn pending_account_event(&self, surface: Surface) -> Option<&AccountSnapshot> {
        let connection = self.connection(surface)?;
        connection
            .pending_event
            .as_ref()
            .map(|(statement, _)| statement)
    }

    fn is_stated_flat(&self, surface: Surface, key: PositionKey) -> bool {
        let statement = self.pending_account_event(surface);
        let mut positions = statement
            .into_iter()
            .flat_map(|reported| &reported.positions);
        positions.any(|reported| {
            (reported.instrument, reported.position_side) == key && reported.qty.0 == 0
        })
    }

    fn is_stated_empty(&self, surface: Surface, asset: AssetId) -> bool {
        let statement = self.pending_account_event(surface);
        let mut balances = statement
            .into_iter()
            .flat_map(|reported| &reported.balances);
        balances.any(|reported| reported.asset == asset && reported.total == Amount::ZERO)
    }

    /// Completes a snapshot for comparison: positions that it does not list become flat, and
    /// balances empty.
    pub fn complete_snapshot(&self, surface: Surface, read: &AccountSnapshot) -> AccountSnapshot {
        let mut account = read.clone();
        for ((instrument, position_side), _) in self.unlisted_in(surface, read) {
            account.positions.push(PositionUpdate {
                instrument,
                position_side,
                qty: Qty(0),
                cost: Amount::ZERO,
            });
        }
        for asset in self.unlisted_balances(surface, read) {
            account.balances.push(BalanceUpdate {
                asset,
                total: Amount::ZERO,
                locked: Amount::ZERO,
                change: Amount::ZERO,
            });
        }
        account
    }

    /// Whether a snapshot lacks positions or balances without other evidence of a close: its list
    /// may be incomplete. An account event that reports them as flat or empty is such evidence.
    pub fn is_incomplete(&self, surface: Surface, read: &AccountSnapshot) -> bool {
        let flat = read.positions.iter().all(|reported| reported.qty.0 == 0);
        let mut empty = self.unlisted_balances(surface, read);
        empty.retain(|asset| !self.is_stated_empty(surface, *asset));
        if !empty.is_empty() {
            return true;
        }
        let mut held = self.held_positions(surface);
        held.retain(|(key, _)| !self.is_stated_flat(surface, *key));
        let mut reported = read.balances.iter();
        let unchanged =
            reported.all(|reported| reported.total == self.balance(surface, reported.asset).total);
        let may_be_short = surface == Surface::Futures && !held.is_empty();
        if may_be_short && flat && unchanged && !self.all_have_evidence(&held) {
            return true;
        }
        let mut unlisted = self.unlisted_in(surface, read);
        unlisted.retain(|(key, _)| {
            !self.has_close_evidence(*key) && !self.is_stated_flat(surface, *key)
        });
        let assets: BTreeSet<AssetId> = unlisted
            .iter()
            .map(|((id, _), _)| self.instruments[usize::from(id.0)].quote)
            .collect();
        assets
            .into_iter()
            .any(|asset| !self.fits_closes(surface, read, asset, &unlisted))
    }

    /// Whether the venue refused to reduce a position, or lists a forced order that closed it.
    fn has_close_evidence(&self, key: PositionKey) -> bool {
        self.outside_closes.was_refused(key) || self.forced_close_evidence.has(key)
    }

    fn all_have_evidence(&self, held: &[(PositionKey, i64)]) -> bool {
        let mut keys = held.iter();
        keys.all(|(key, _)| self.has_close_evidence(*key))
    }

    /// Whether a pending account event shows a smaller position, and the running snapshot may be
    /// older.
    fn may_be_behind_close(&self, surface: Surface, key: PositionKey) -> bool {
        let connection = self.connection(surface);
        let Some((connection, (statement, _))) = connection
            .and_then(|connection| Some((connection, connection.pending_event.as_ref()?)))
        else {
            return false;
        };
        let mut stated = statement.positions.iter();
        stated.any(|reported| key_of(reported) == key && self.closed_by(reported).is_some())
            && self.may_predate_account_event(surface, connection.round.asked_at)
    }

    /// Held positions that an account event leaves out, as it may do with flat ones, while its
    /// balance fits their close. That alone does not degrade the run: another symbol may have moved
    /// the balance.
    fn omitted_closes(
        &self,
        surface: Surface,
        statement: &AccountSnapshot,
    ) -> Vec<(PositionKey, i64)> {
        let mut held = self.held_positions(surface);
        held.retain(|(key, _)| {
            !statement
                .positions
                .iter()
                .any(|reported| key_of(reported) == *key)
        });
        let fits = |closes: &[(PositionKey, i64)]| {
            let quote =
                |(key, _): &(PositionKey, i64)| self.instruments[usize::from(key.0.0)].quote;
            let mut assets = closes.iter().map(quote);
            assets.all(|asset| self.fits_closes(surface, statement, asset, closes))
        };
        if !fits(&held) {
            held.retain(|close| fits(&[*close]));
        }
        held
    }

    /// Whether an own order was open at that time that may have closed this quantity of a position.
    pub fn may_have_closed(&self, key: PositionKey, qty: i64, at: Time) -> bool {
        self.orders.iter().any(|order| {
            let terms = &order.terms;
            (terms.instrument, terms.position_side, terms.side) == (key.0, key.1, closing_side(qty))
                && order.submitted <= at
        })
    }

    /// Whether own orders executed the close of a position, and their fills are still in flight.
    fn is_closed_by_own(&self, (id, side): PositionKey, qty: i64) -> bool {
        let closing = self.orders.iter().filter(|order| {
            let terms = &order.terms;
            (terms.instrument, terms.position_side, terms.side) == (id, side, closing_side(qty))
        });
        let missing = closing.map(|order| (order.reported_qty - order.executed_qty).max(0));
        missing.sum::<i64>() >= qty.saturating_abs()
    }

    /// The quantity of a position that a snapshot shows as closed, signed like the position.
    pub(crate) fn closed_by(&self, reported: &PositionUpdate) -> Option<i64> {
        let (id, side) = (reported.instrument, reported.position_side);
        if usize::from(id.0) >= self.instruments.len() || planted!(UnlistedPositionKept) {
            return None;
        }
        let from = self.ledgers.account.at(id, side).position.qty;
        let to = reported.qty.0;
        let smaller = to.saturating_abs() < from.saturating_abs();
        (smaller && (to == 0 || to.signum() == from.signum())).then_some(from - to)
    }

    /// Like [`Self::closed_by`], for an accepted snapshot. An outside party that reversed a
    /// position closed all of it first.
    pub fn closed_in_snapshot(&self, reported: &PositionUpdate) -> Option<i64> {
        let (id, side) = (reported.instrument, reported.position_side);
        if usize::from(id.0) >= self.instruments.len() || planted!(UnlistedPositionKept) {
            return None;
        }
        let from = self.ledgers.account.at(id, side).position.qty;
        let turned = from != 0 && reported.qty.0.signum() == -from.signum();
        if turned {
            Some(from)
        } else {
            self.closed_by(reported)
        }
    }

    /// Which held positions a snapshot lists, if no event arrived in between. Positions that an
    /// old snapshot lacks are left out.
    pub fn listed_in(
        &self,
        surface: Surface,
        read: &AccountSnapshot,
        is_old: bool,
    ) -> ListedPositions {
        let listed: BTreeSet<PositionKey> = (read.positions.iter())
            .filter(|reported| reported.qty.0 != 0)
            .map(|reported| (reported.instrument, reported.position_side))
            .collect();
        let mut found = ListedPositions::default();
        for (key, qty) in self.held_positions(surface) {
            if listed.contains(&key) && self.may_be_behind_close(surface, key) {
                // A newer event showed a smaller position: this snapshot does not refute it.
                continue;
            }
            if listed.contains(&key) {
                found.listed.push(key);
            } else if !is_old && !self.is_closed_by_own(key, qty) {
                found.unlisted.push(key);
            }
        }
        found
    }

    /// The positions that a pending account event shows as smaller than the books.
    pub fn positions_stated_smaller(&self, surface: Surface) -> Option<SmallerPositions> {
        let (statement, since) = self.connection(surface)?.pending_event.as_ref()?;
        if surface != Surface::Futures {
            return None;
        }
        let mut stated: Vec<(PositionKey, i64)> = (statement.positions.iter())
            .filter_map(|reported| Some((key_of(reported), self.closed_by(reported)?)))
            .collect();
        let mut closed = stated.clone();
        closed.retain(|(key, qty)| !self.may_have_closed(*key, *qty, *since));
        stated.extend(self.omitted_closes(surface, statement));
        Some(SmallerPositions {
            since: *since,
            stated: stated.into_iter().map(|(key, _)| key).collect(),
            unexplained: closed.into_iter().map(|(key, _)| key).collect(),
        })
    }

    /// The venue's time after which own fills may be newer than the close of a position. `stated`
    /// is when an event first reported the position otherwise than the books.
    pub fn closed_after(&self, key: PositionKey, stated: Option<Time>) -> Time {
        let quote = self.instruments[usize::from(key.0.0)].quote;
        let connection = self.connection(Surface::Futures);
        let event = connection.and_then(|connection| connection.newest_events.balance(quote));
        let made = stated.or(event);
        made.unwrap_or_default().plus_ms(-CLOSED_BEFORE_MS)
    }

    /// The position that a refused closing order shows to be closed: there is nothing to reduce,
    /// and no other own order could have closed it.
    pub fn refused_close(&self, seq: OrderSeq) -> Option<PositionKey> {
        let terms = self.orders.known(seq)?.terms;
        let key = (terms.instrument, terms.position_side);
        let qty = self.account_qty(key.0, key.1);
        if qty == 0 || terms.side != closing_side(qty) {
            return None;
        }
        let closes = |terms: &OrderTerms| {
            (terms.instrument, terms.position_side) == key && terms.side == closing_side(qty)
        };
        let may_have_closed = |order: &Order| order.seq != seq && closes(&order.terms);
        let is_closed = self.orders.iter().any(may_have_closed);
        (!is_closed).then_some(key)
    }

    /// Splits the position change of an outside fill in two: the quantity that it closed, and the
    /// rest. Both have the sign of the change. `before` is the position before the fill was booked.
    /// `later` is the signed quantity of own fills that are booked already, although the venue
    /// executed them after this fill.
    pub fn closed_by_outside(&self, update: &OrderUpdate, before: i64, later: i64) -> (i64, i64) {
        let (id, side) = (update.instrument, update.position_side);
        let before = before - later;
        let after = self.account_qty(id, side) - later;
        let is_close = after.saturating_abs() < before.saturating_abs()
            || (before != 0 && after.signum() == -before.signum());
        let closed = if is_close {
            let closed = (before - after).saturating_abs();
            update.side.sign() * closed.min(before.saturating_abs())
        } else {
            0
        };
        (closed, after - before - closed)
    }
}
