//! Positions that somebody else closed: a person, another program, the venue.
//!
//! A reading of the account may not list a position that is held here. From then on the run is
//! degraded, and the account is read again. One reading settles nothing: a venue may return a short
//! list for a moment. The position is closed here when
//! - the trades of the account explain it;
//! - two readings agree, and a balance changed by about what the close must have brought;
//! - two readings agree, and the venue refused to close the position because there is none;
//! - the readings agreed for [`lag::SHORT_MS`](super::lag::SHORT_MS), without such a change.
//!
//! The closed quantity is then taken from the strategies that held it, at the same price, and their
//! orders that would now open a position are cancelled.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::effect::{Adjustment, Cause, Notice};
use crate::ids::{AssetId, InstrumentId, OrderSeq, StrategyId, Time};
use crate::order::{OrderTerms, PositionSide, Qty, Side, Surface};
use crate::orders::Order;
use crate::planted;
use crate::protocol::{BalanceUpdate, Fill, OrderUpdate, PositionUpdate};
use crate::truth::AccountTruth;

use super::Engine;
use super::close_gains::CloseGain;
use super::doubt::Doubt;
use super::forced::take_closed;
use super::snapshot::Names;

/// Reduce-only order rejected, and position not sufficient (spec 1, Errors): in hedge mode no order has the flag.
pub(super) const REDUCES_NOTHING: [i32; 2] = [-2022, -2024];
/// The venue made a close at most so long before the first event that states it otherwise than the books.
const CLOSED_BEFORE_MS: i64 = 1_000;

type Key = (InstrumentId, PositionSide);
/// Closed quantities by position, signed like the closing side.
pub(super) type ExplainedCloses = BTreeMap<Key, i64>;
/// Positions, with a moment from which on own fills may be newer than the close, by the venue's clock.
pub(super) type StatedCloses = BTreeMap<Key, Time>;
/// The venue's time of the last close by others that account trades listed, of positions that are due.
pub(super) type ListedCloses = BTreeMap<Key, Time>;

/// The state of closes by others.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct OutsideCloses {
    /// Held positions that the last reading did not list.
    unlisted: BTreeSet<Key>,
    /// Positions that the venue refused to reduce, because it knows of none.
    refused: BTreeSet<Key>,
    /// Closed quantities that no strategy gave up yet, signed like the closing orders.
    pub(super) due: BTreeMap<Key, i64>,
    /// Closed quantities in readings that were taken: their events may still come.
    pub(super) read: BTreeMap<Key, Taken>,
    /// Quantities that strategies gave up: a late own fill may have been the close.
    pub(super) settled: BTreeMap<(StrategyId, InstrumentId, PositionSide), Taken>,
}

/// A closed quantity.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Taken {
    /// Signed as the closing orders are.
    pub(super) qty: i64,
    pub(super) quote: Amount,
    /// The venue's time up to which fills are in it.
    pub(super) until: Time,
}

impl Taken {
    /// Takes as much of it as a fill explains; 0 where the fill is newer or of the other side.
    fn take(&mut self, update: &OrderUpdate, qty: i64) -> (i64, Amount) {
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

/// Whether a reading lists neither a balance nor a position.
fn is_empty(account: &AccountTruth) -> bool {
    account.balances.is_empty() && account.positions.iter().all(|told| told.qty.0 == 0)
}

pub(super) fn key_of(told: &PositionUpdate) -> Key {
    (told.instrument, told.position_side)
}

/// The side of orders that close a position.
pub(super) const fn closing_side(qty: i64) -> Side {
    if qty > 0 { Side::Sell } else { Side::Buy }
}

impl Engine {
    pub(super) fn held_positions(&self, surface: Surface) -> Vec<(Key, i64)> {
        let account = self.ledgers.account.iter();
        let held = account.filter(|(id, _, holding)| {
            holding.position.qty != 0 && self.surface_of(*id) == surface
        });
        held.map(|(id, side, holding)| ((id, side), holding.position.qty))
            .collect()
    }

    /// Positions that are held here and that a reading does not list. One that lists nothing at all says
    /// nothing, unless an account event agrees.
    fn unlisted_in(&self, surface: Surface, account: &AccountTruth) -> Vec<(Key, i64)> {
        if surface != Surface::Futures || planted!(UnlistedPositionKept) {
            return Vec::new();
        }
        let listed = |key: Key| {
            let mut positions = account.positions.iter();
            positions.any(|told| (told.instrument, told.position_side) == key)
        };
        let says_nothing = is_empty(account);
        let mut held = self.held_positions(surface);
        held.retain(|(key, _)| {
            !listed(*key) && (!says_nothing || self.is_stated_flat(surface, *key))
        });
        held
    }

    /// Balances that are held here and that a reading does not list: venues may leave out empty ones.
    pub(super) fn unlisted_balances(
        &self,
        surface: Surface,
        account: &AccountTruth,
    ) -> Vec<AssetId> {
        if planted!(UnlistedPositionKept) {
            return Vec::new();
        }
        let listed = |asset: AssetId| account.balances.iter().any(|told| told.asset == asset);
        let says_nothing = is_empty(account);
        let held = self.balances().filter(|(of, asset, balance)| {
            let believed = !says_nothing || self.is_stated_empty(surface, *asset);
            *of == surface && balance.total != Amount::ZERO && !listed(*asset) && believed
        });
        held.map(|(_, asset, _)| asset).collect()
    }

    /// The account event that no fill explains yet, if there is one.
    pub(super) fn pending_statement(&self, surface: Surface) -> Option<&AccountTruth> {
        let line = self.live.as_ref()?.lines.get(&surface)?;
        line.told.as_ref().map(|(statement, _)| statement)
    }

    fn is_stated_flat(&self, surface: Surface, key: Key) -> bool {
        let statement = self.pending_statement(surface);
        let mut positions = statement.into_iter().flat_map(|told| &told.positions);
        positions.any(|told| (told.instrument, told.position_side) == key && told.qty.0 == 0)
    }

    fn is_stated_empty(&self, surface: Surface, asset: AssetId) -> bool {
        let statement = self.pending_statement(surface);
        let mut balances = statement.into_iter().flat_map(|told| &told.balances);
        balances.any(|told| told.asset == asset && told.total == Amount::ZERO)
    }

    /// A reading with the positions and balances that it does not list as flat and empty ones, so that
    /// they are compared.
    pub(super) fn complete_reading(&self, surface: Surface, read: &AccountTruth) -> AccountTruth {
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

    /// Whether a reading lacks positions or balances and shows no trace of their close: it may be short.
    /// An account event that states them as flat and empty is such a trace.
    pub(super) fn is_short(&self, surface: Surface, read: &AccountTruth) -> bool {
        let flat = read.positions.iter().all(|told| told.qty.0 == 0);
        let mut empty = self.unlisted_balances(surface, read);
        empty.retain(|asset| !self.is_stated_empty(surface, *asset));
        if !empty.is_empty() {
            return true;
        }
        let mut held = self.held_positions(surface);
        held.retain(|(key, _)| !self.is_stated_flat(surface, *key));
        let mut told = read.balances.iter();
        let unchanged = told.all(|told| told.total == self.balance(surface, told.asset).total);
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

    /// Whether the venue refused to reduce a position, because it knows of none.
    pub(super) fn was_close_refused(&self, id: InstrumentId, side: PositionSide) -> bool {
        self.outside.refused.contains(&(id, side))
    }

    /// Whether the venue refused to reduce a position, or lists a forced order that closed it.
    fn has_close_evidence(&self, key: Key) -> bool {
        self.outside.refused.contains(&key) || self.has_forced_trace(key)
    }

    fn all_have_evidence(&self, held: &[(Key, i64)]) -> bool {
        let mut keys = held.iter();
        keys.all(|(key, _)| self.has_close_evidence(*key))
    }

    /// Notes which positions a quiet reading lists; an older reading than the account is ignored.
    pub(super) fn note_listing(&mut self, surface: Surface, read: &AccountTruth, is_old: bool) {
        if surface != Surface::Futures || planted!(UnlistedPositionKept) {
            return;
        }
        let listed: BTreeSet<Key> = (read.positions.iter())
            .filter(|told| told.qty.0 != 0)
            .map(|told| (told.instrument, told.position_side))
            .collect();
        for (key, qty) in self.held_positions(surface) {
            if listed.contains(&key) && self.may_be_behind_close(surface, key) {
                // A newer event showed less of it: the reading refutes nothing.
                continue;
            }
            if listed.contains(&key) {
                self.outside.unlisted.remove(&key);
                self.outside.refused.remove(&key);
                self.forget_forced_trace(key);
            } else if !is_old && !self.is_closed_by_own(key, qty) {
                self.outside.unlisted.insert(key);
            }
        }
        self.review_unlisted();
    }

    /// Whether a pending statement shows less of a position, and the running reading may be older.
    fn may_be_behind_close(&self, surface: Surface, key: Key) -> bool {
        let line = self.live.as_ref().and_then(|live| live.lines.get(&surface));
        let Some((line, (statement, _))) = line.and_then(|line| Some((line, line.told.as_ref()?)))
        else {
            return false;
        };
        let mut stated = statement.positions.iter();
        stated.any(|told| key_of(told) == key && self.closed_by(told).is_some())
            && self.may_be_behind_statement(surface, line.round.asked_at)
    }

    /// A pending statement shows less of a position than is held, and no own order can have closed it:
    /// a degraded reason, until a fill or a reading explains it. Answers whether there is such a position.
    pub(super) fn doubt_stated_closes(&mut self, surface: Surface) -> bool {
        let line = self.live.as_ref().and_then(|live| live.lines.get(&surface));
        let Some((statement, since)) = line.and_then(|line| line.told.as_ref()) else {
            return false;
        };
        if surface != Surface::Futures {
            return false;
        }
        let since = *since;
        let mut stated: Vec<(Key, i64)> = (statement.positions.iter())
            .filter_map(|told| Some((key_of(told), self.closed_by(told)?)))
            .collect();
        let mut closed = stated.clone();
        closed.retain(|(key, qty)| !self.may_have_closed(*key, *qty, since));
        stated.extend(self.closes_left_out(surface, statement));
        // The order event of an earlier stream may have been lost with it.
        if self.stream_up.get(&surface).is_some_and(|up| *up <= since) {
            let keys: Vec<Key> = stated.into_iter().map(|(key, _)| key).collect();
            self.state_closes(&keys);
        }
        let is_any = !closed.is_empty();
        if is_any {
            let keys = closed.into_iter().map(|(key, _)| key);
            self.outside.unlisted.extend(keys);
            self.review_unlisted();
        }
        is_any
    }

    /// Held positions that a statement leaves out, as it may do with flat ones, while the balance that it
    /// states fits their close. That alone is no degraded reason: another symbol may have moved the balance.
    fn closes_left_out(&self, surface: Surface, statement: &AccountTruth) -> Vec<(Key, i64)> {
        let mut held = self.held_positions(surface);
        held.retain(|(key, _)| !statement.positions.iter().any(|told| key_of(told) == *key));
        let fits = |closes: &[(Key, i64)]| {
            let quote = |(key, _): &(Key, i64)| self.instruments[usize::from(key.0.0)].quote;
            let mut assets = closes.iter().map(quote);
            assets.all(|asset| self.fits_closes(surface, statement, asset, closes))
        };
        if !fits(&held) {
            held.retain(|close| fits(&[*close]));
        }
        held
    }

    /// Account events state that these positions were closed, at least in part. Where the venue does not list
    /// forced orders, that is the evidence of one: own fills that are on their way close nothing for others.
    pub(super) fn state_closes(&mut self, keys: &[Key]) {
        for key in keys {
            let quote = self.instruments[usize::from(key.0.0)].quote;
            let live = self.live.as_ref();
            let line = live.and_then(|live| live.lines.get(&Surface::Futures));
            let event = line.and_then(|line| line.newest.balance(quote));
            let made = self.stated_otherwise_since(*key).or(event);
            let made = made.unwrap_or_default().plus_ms(-CLOSED_BEFORE_MS);
            self.stated_closes.entry(*key).or_insert(made);
        }
    }

    /// The books agree with a statement without a close: it stated none.
    pub(super) fn forget_stated_closes(&mut self) {
        let mut stated = std::mem::take(&mut self.stated_closes);
        stated.retain(|key, _| self.outside.due.contains_key(key) || self.is_shifted(key.0, key.1));
        self.stated_closes = stated;
    }

    /// Whether an own order is open that may have closed so much of a position at that time.
    pub(super) fn may_have_closed(&self, key: Key, qty: i64, at: Time) -> bool {
        self.orders.iter().any(|order| {
            let terms = &order.terms;
            (terms.instrument, terms.position_side, terms.side) == (key.0, key.1, closing_side(qty))
                && order.submitted <= at
        })
    }

    /// Whether own orders executed what closes a position, and their fills are on the way.
    fn is_closed_by_own(&self, (id, side): Key, qty: i64) -> bool {
        let closing = self.orders.iter().filter(|order| {
            let terms = &order.terms;
            (terms.instrument, terms.position_side, terms.side) == (id, side, closing_side(qty))
        });
        let missing = closing.map(|order| (order.reported_qty - order.executed_qty).max(0));
        missing.sum::<i64>() >= qty.saturating_abs()
    }

    /// After an event: what it closed needs no degraded reason.
    pub(super) fn review_listing(&mut self) {
        if self.outside.unlisted.is_empty() {
            self.update_state();
        } else {
            self.review_unlisted();
        }
    }

    /// Sets and clears the degraded reasons: a position that is flat by now needs none.
    pub(super) fn review_unlisted(&mut self) {
        let account = &self.ledgers.account;
        let is_held = |key: &Key| account.at(key.0, key.1).position.qty != 0;
        self.outside.unlisted.retain(is_held);
        self.outside.refused.retain(is_held);
        self.review_forced_traces();
        let unlisted: BTreeSet<InstrumentId> =
            self.outside.unlisted.iter().map(|(id, _)| *id).collect();
        for doubt in self.doubts() {
            if let Doubt::Unlisted(id) = doubt
                && !unlisted.contains(&id)
            {
                self.set_doubt(doubt, false);
            }
        }
        for id in unlisted {
            self.set_doubt(Doubt::Unlisted(id), true);
        }
        self.update_state();
    }

    /// The venue refused a closing order because there is nothing to reduce. That is evidence where
    /// no other own order could have closed the position; the account is read.
    pub(super) fn note_refused_close(&mut self, seq: OrderSeq) {
        let Some(terms) = self.orders.known_mut(seq).map(|order| order.terms) else {
            return;
        };
        let key = (terms.instrument, terms.position_side);
        let qty = self.ledgers.account.at(key.0, key.1).position.qty;
        if qty == 0 || terms.side != closing_side(qty) {
            return;
        }
        let closes = |terms: &OrderTerms| {
            (terms.instrument, terms.position_side) == key && terms.side == closing_side(qty)
        };
        let may_have_closed = |order: &Order| order.seq != seq && closes(&order.terms);
        if self.orders.iter().any(may_have_closed) {
            return;
        }
        self.outside.refused.insert(key);
        self.reconcile_soon(self.surface_of(terms.instrument));
    }

    /// How much of a position a reading shows as closed, signed like the position.
    pub(super) fn closed_by(&self, told: &PositionUpdate) -> Option<i64> {
        let (id, side) = (told.instrument, told.position_side);
        if usize::from(id.0) >= self.instruments.len() || planted!(UnlistedPositionKept) {
            return None;
        }
        let from = self.ledgers.account.at(id, side).position.qty;
        let to = told.qty.0;
        let smaller = to.saturating_abs() < from.saturating_abs();
        (smaller && (to == 0 || to.signum() == from.signum())).then_some(from - to)
    }

    /// The same of a reading that is taken. Others who turned a position around closed all of it first.
    pub(super) fn closed_in_taken(&self, told: &PositionUpdate) -> Option<i64> {
        let (id, side) = (told.instrument, told.position_side);
        if usize::from(id.0) >= self.instruments.len() || planted!(UnlistedPositionKept) {
            return None;
        }
        let from = self.ledgers.account.at(id, side).position.qty;
        let turned = from != 0 && told.qty.0.signum() == -from.signum();
        if turned {
            Some(from)
        } else {
            self.closed_by(told)
        }
    }

    /// Books the close that a reading shows, with its profit. Answers whether it is one.
    pub(super) fn take_outside_close(&mut self, told: &PositionUpdate, gain: CloseGain) -> bool {
        let Some(closed) = self.closed_in_taken(told) else {
            return false;
        };
        let key @ (id, side) = (told.instrument, told.position_side);
        let closing = closing_side(closed);
        let qty = closed.saturating_abs();
        let position = &mut self.ledgers.account.at_mut(id, side).position;
        let from = position.qty;
        let cost = position.cost.part(qty, from.saturating_abs());
        // A long position sells its cost and the profit, a short one buys at its cost less it.
        let quote = match closing {
            Side::Sell => cost + gain.amount,
            Side::Buy => -cost - gain.amount,
        };
        let quote = quote.max(Amount::ZERO);
        position.fill(closing, qty, quote);
        let external = &mut self.ledgers.external.at_mut(id, side).position;
        external.fill(closing, qty, quote);
        let until = self.asked_at_venue(self.surface_of(id));
        let read = self.outside.read.entry(key).or_default();
        if read.qty.signum() != closing.sign() {
            *read = Taken::default();
        }
        read.qty += closing.sign() * qty;
        read.quote += quote;
        read.until = until;
        *self.outside.due.entry(key).or_default() += closing.sign() * qty;
        self.note_close_value(key, closing.sign() * qty, quote);
        let value = if gain.is_stated { quote } else { Amount::ZERO };
        self.note_gain(key, closing.sign() * qty, gain.amount, value);
        let adjustment = Adjustment::Position {
            instrument: id,
            side,
            from,
            to: from - closed,
        };
        self.tell_adjustment(adjustment, Cause::Reconciliation);
        true
    }

    /// Notes a booked fill of others: strategies give up the quantity that it closed. One that account trades
    /// list may be older than own fills that are booked already: it closed what was held before them.
    pub(super) fn note_outside_fill(
        &mut self,
        update: &OrderUpdate,
        before: i64,
        realized: Amount,
        by_event: bool,
    ) {
        let (id, side) = (update.instrument, update.position_side);
        let made = update.transaction_time;
        let later = if by_event {
            0
        } else {
            self.own_fills_after(id, side, made)
        };
        let before = before - later;
        let after = self.ledgers.account.at(id, side).position.qty - later;
        let is_close = after.saturating_abs() < before.saturating_abs()
            || (before != 0 && after.signum() == -before.signum());
        if self.live.is_none() || self.surface_of(id) != Surface::Futures {
            self.review_coins();
            return;
        }
        let closed = if is_close {
            let closed = (before - after).saturating_abs();
            update.side.sign() * closed.min(before.saturating_abs())
        } else {
            0
        };
        if by_event {
            self.forget_inquiry(update);
            self.note_executed_without_fill(update);
        } else {
            self.note_untold_trade(id);
            // The venue may have closed a position that strategies turned around meanwhile.
            self.note_listed_shift(update, after - before - closed);
        }
        if closed == 0 {
            if !by_event {
                self.reconcile_soon(Surface::Futures);
            }
            return;
        }
        *self.outside.due.entry((id, side)).or_default() += closed;
        if let Some(fill) = &update.fill {
            let quote = fill
                .quote_qty
                .part(closed.saturating_abs(), fill.qty.0.max(1));
            self.note_close_value((id, side), closed, quote);
        }
        self.note_gain((id, side), closed, realized, Amount::ZERO);
        if by_event {
            *self.explained_closes.entry((id, side)).or_default() += closed;
        } else {
            self.listed_closes.insert((id, side), made);
            self.inquire_after_order(update);
        }
        self.reconcile_soon(Surface::Futures);
    }

    /// Instruments with closed quantities that no strategy gave up yet.
    pub(super) fn instruments_with_due_closes(&self) -> BTreeSet<InstrumentId> {
        self.outside.due.keys().map(|(id, _)| *id).collect()
    }

    /// How much orders of this side closed that is still due, and that no event of another order explains.
    pub(super) fn due_close(&self, key: Key, closing: Side) -> i64 {
        let due = self.outside.due.get(&key).copied().unwrap_or_default();
        let explained = self.explained_closes.get(&key).copied();
        let mut open = due - explained.unwrap_or_default();
        take_closed(&mut open, closing, i64::MAX)
    }

    /// Takes out of the closed quantities that are still due, and that no event of another order explains,
    /// as much as a forced close explains, which is settled at its own price, where that is known: `value` of a
    /// quantity. Answers the quantity.
    pub(super) fn take_due_close(
        &mut self,
        id: InstrumentId,
        side: PositionSide,
        closing: Side,
        qty: i64,
        value: impl Fn(i64) -> Option<Amount>,
    ) -> i64 {
        let explained = self.explained_closes.get(&(id, side));
        let explained = explained.copied().unwrap_or_default();
        let Some(due) = self.outside.due.get_mut(&(id, side)) else {
            return 0;
        };
        let mut open = *due - explained;
        let taken = take_closed(&mut open, closing, qty);
        *due = open + explained;
        self.take_close_value((id, side), taken, value(taken));
        taken
    }

    /// Whether a reading that was taken contains a fill that is reported now.
    pub(super) fn was_in_reading(&mut self, update: &OrderUpdate, fill: &Fill) -> bool {
        let key = (update.instrument, update.position_side);
        let Some(read) = self.outside.read.get_mut(&key) else {
            return false;
        };
        let covers = read.qty.saturating_abs() >= fill.qty.0;
        covers && read.take(update, fill.qty.0).0 > 0
    }

    /// A late own fill may be the close that strategies gave up: they get the quantity back, first the
    /// owner of the fill, and the fill is booked in its place.
    pub(super) fn undo_settlement(&mut self, owner: StrategyId, update: &OrderUpdate, fill: &Fill) {
        let key @ (id, side) = (update.instrument, update.position_side);
        let others = (0..self.strategies.len()).map(|index| StrategyId(index as u16));
        let others = others.filter(|other| *other != owner);
        let mut left = fill.qty.0;
        for strategy in std::iter::once(owner).chain(others.collect::<Vec<_>>()) {
            let Some(settled) = self.outside.settled.get_mut(&(strategy, id, side)) else {
                continue;
            };
            let (qty, quote) = settled.take(update, left);
            if qty == 0 {
                continue;
            }
            left -= qty;
            let opening = closing_side(update.side.sign());
            self.move_to_external(strategy, key, opening, qty, quote);
            self.notices.push_back(Notice::NotClosedOutside {
                time: self.now,
                strategy,
                instrument: id,
                qty: opening.sign() * qty,
            });
            if strategy != owner {
                self.tell_position(strategy, id, side);
            }
        }
    }

    /// When the last question left, by the venue's clock.
    fn asked_at_venue(&mut self, surface: Surface) -> Time {
        let offset_ns = self.clock_offset_ns(surface).unwrap_or_default();
        let now = self.now;
        let asked = self
            .line_mut(surface)
            .map_or(now, |line| line.round.asked_at);
        Time(asked.0.saturating_add(offset_ns))
    }

    /// Takes over the knowledge of an earlier process. The account is read again anyway.
    pub(super) fn inherit_outside_closes(&mut self, from: &Self, names: &Names) {
        let new = |id: &InstrumentId| names.instruments.get(id).copied();
        for ((id, side), due) in &from.outside.due {
            if let Some(id) = new(id) {
                self.outside.due.insert((id, *side), *due);
            }
        }
        for ((id, side), explained) in &from.explained_closes {
            if let Some(id) = new(id) {
                self.explained_closes.insert((id, *side), *explained);
            }
        }
        for ((id, side), made) in &from.listed_closes {
            if let Some(id) = new(id) {
                self.listed_closes.insert((id, *side), *made);
            }
        }
        for ((id, side), read) in &from.outside.read {
            if let Some(id) = new(id) {
                self.outside.read.insert((id, *side), *read);
            }
        }
        for ((strategy, id, side), settled) in &from.outside.settled {
            if let (Some(strategy), Some(id)) = (names.strategies.get(strategy), new(id)) {
                let key = (*strategy, id, *side);
                self.outside.settled.insert(key, *settled);
            }
        }
    }
}
