//! Positions that an outside party closed: a person, another program, or the venue.
//!
//! An account snapshot may lack a position that the books hold. From then on the run is degraded,
//! and the engine reads the account again. One snapshot alone decides nothing: a venue may return
//! an incomplete list for a moment. The engine books the position as closed in one of these cases:
//! - Account trades explain it.
//! - Two snapshots agree, and a balance changed by about the amount that the close must have
//!   realized.
//! - Two snapshots agree, and the venue refused to close the position because it has none.
//! - The snapshots agreed for [`lag::SHORT_MS`](super::lag::SHORT_MS) without such a change.
//!
//! The engine then takes the closed quantity from the strategies that held it, at the same price.
//! It cancels those of their orders that would now open a position.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::doubt::Doubt;
use windvane_model::effect::{Adjustment, Cause, Notice};
use windvane_model::ids::{AssetId, InstrumentId, OrderSeq, StrategyId, Time};
use windvane_model::order::{OrderTerms, PositionSide, Qty, Side, Surface};
use windvane_model::orders::Order;
use windvane_model::planted;
use windvane_model::protocol::{BalanceUpdate, Fill, OrderUpdate, PositionUpdate};
use windvane_model::truth::AccountTruth;

use super::Engine;
use super::close_gains::CloseGain;
use super::forced::take_closed;
use super::snapshot::Names;

/// Reduce-only order rejected, and position not sufficient (spec 1, Errors). In hedge mode no order
/// has the reduce-only flag.
pub(super) const REDUCES_NOTHING: [i32; 2] = [-2022, -2024];
/// The venue made a close at most this long before the first event that reports the position
/// otherwise than the books.
const CLOSED_BEFORE_MS: i64 = 1_000;

type Key = (InstrumentId, PositionSide);
/// Closed quantities by position, signed like the closing side.
pub(super) type ExplainedCloses = BTreeMap<Key, i64>;
/// Positions with a time, by the venue's clock, after which own fills may be newer than the close.
pub(super) type StatedCloses = BTreeMap<Key, Time>;
/// The venue's time of the last outside close that account trades listed, for positions with a due
/// close.
pub(super) type ListedCloses = BTreeMap<Key, Time>;

/// The state of outside closes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct OutsideCloses {
    /// Held positions that the last snapshot did not list.
    unlisted: BTreeSet<Key>,
    /// Positions that the venue refused to reduce because it has none.
    refused: BTreeSet<Key>,
    /// Closed quantities that no strategy gave up yet, signed like the closing orders.
    pub(super) due: BTreeMap<Key, i64>,
    /// Closed quantities in accepted snapshots: their events may still arrive.
    pub(super) read: BTreeMap<Key, Taken>,
    /// Quantities that strategies gave up: a late own fill may turn out to be the close.
    pub(super) settled: BTreeMap<(StrategyId, InstrumentId, PositionSide), Taken>,
}

/// A closed quantity.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Taken {
    /// Signed like the closing orders.
    pub(super) qty: i64,
    pub(super) quote: Amount,
    /// The venue's time up to which fills are included.
    pub(super) until: Time,
}

impl Taken {
    /// Takes the part that a fill explains; 0 if the fill is newer or of the other side.
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

/// Whether a snapshot lists neither a balance nor a position.
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

    /// Positions that the books hold and a snapshot does not list. A snapshot that lists nothing at
    /// all proves nothing, unless an account event agrees.
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

    /// Balances that the books hold and a snapshot does not list: venues may leave out empty ones.
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

    /// The account event that no fill explains yet, if any.
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

    /// Completes a snapshot for comparison: positions that it does not list become flat, and
    /// balances empty.
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

    /// Whether a snapshot lacks positions or balances without other evidence of a close: its list
    /// may be incomplete. An account event that reports them as flat or empty is such evidence.
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

    /// Whether the venue refused to reduce a position because it has none.
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

    /// Notes which positions a snapshot lists, if no event arrived in between. Positions that an
    /// old snapshot lacks are not noted.
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
                // A newer event showed a smaller position: this snapshot does not refute it.
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

    /// Whether a pending account event shows a smaller position, and the running snapshot may be
    /// older.
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

    /// Sets a degraded reason if a pending account event shows a smaller position than the books,
    /// and no own order can have closed it. A fill or a snapshot will explain it. Returns whether
    /// there is such a position.
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
        // The order event of an earlier stream may have been lost with that stream.
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

    /// Held positions that an account event leaves out, as it may do with flat ones, while its
    /// balance fits their close. That alone does not degrade the run: another symbol may have moved
    /// the balance.
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

    /// Notes that account events report these positions as closed, at least in part. On a venue
    /// that does not list forced orders, this is the evidence of a forced close: own fills in
    /// flight do not count as outside closes.
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

    /// The books agree with an account event without an outside close, so no such close happened.
    pub(super) fn forget_stated_closes(&mut self) {
        let mut stated = std::mem::take(&mut self.stated_closes);
        stated.retain(|key, _| self.outside.due.contains_key(key) || self.is_shifted(key.0, key.1));
        self.stated_closes = stated;
    }

    /// Whether an own order was open at that time that may have closed this quantity of a position.
    pub(super) fn may_have_closed(&self, key: Key, qty: i64, at: Time) -> bool {
        self.orders.iter().any(|order| {
            let terms = &order.terms;
            (terms.instrument, terms.position_side, terms.side) == (key.0, key.1, closing_side(qty))
                && order.submitted <= at
        })
    }

    /// Whether own orders executed the close of a position, and their fills are still in flight.
    fn is_closed_by_own(&self, (id, side): Key, qty: i64) -> bool {
        let closing = self.orders.iter().filter(|order| {
            let terms = &order.terms;
            (terms.instrument, terms.position_side, terms.side) == (id, side, closing_side(qty))
        });
        let missing = closing.map(|order| (order.reported_qty - order.executed_qty).max(0));
        missing.sum::<i64>() >= qty.saturating_abs()
    }

    /// Reviews the degraded reasons after an event: a position that the event closed needs none.
    pub(super) fn review_listing(&mut self) {
        if self.outside.unlisted.is_empty() {
            self.update_state();
        } else {
            self.review_unlisted();
        }
    }

    /// Sets and clears the degraded reasons. A position that is flat by now needs none.
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

    /// Handles a closing order that the venue refused because there is nothing to reduce. That is
    /// evidence of a close if no other own order could have closed the position. The engine reads
    /// the account.
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

    /// The quantity of a position that a snapshot shows as closed, signed like the position.
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

    /// Like [`Engine::closed_by`], for an accepted snapshot. An outside party that reversed a
    /// position closed all of it first.
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

    /// Books the close that a snapshot shows, with its profit. Returns whether there is one.
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
        // A long position sells at its cost plus the profit; a short one buys at its cost minus the
        // profit.
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

    /// Notes a booked fill of an outside party: strategies give up the quantity that it closed. A
    /// fill that account trades list may be older than own fills that are booked already. It then
    /// closed the position that was held before them.
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
            // The venue may have closed a position that strategies reversed meanwhile.
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

    /// The quantity that orders of this side closed, that is still due, and that no event of
    /// another order explains.
    pub(super) fn due_close(&self, key: Key, closing: Side) -> i64 {
        let due = self.outside.due.get(&key).copied().unwrap_or_default();
        let explained = self.explained_closes.get(&key).copied();
        let mut open = due - explained.unwrap_or_default();
        take_closed(&mut open, closing, i64::MAX)
    }

    /// Takes the part that a forced close explains out of the due closes that no event of another
    /// order explains, and returns that quantity. The forced close settles it at its own price:
    /// `value` returns the value of a quantity, if known.
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

    /// Whether an accepted snapshot contains a fill that is reported now.
    pub(super) fn was_in_reading(&mut self, update: &OrderUpdate, fill: &Fill) -> bool {
        let key = (update.instrument, update.position_side);
        let Some(read) = self.outside.read.get_mut(&key) else {
            return false;
        };
        let covers = read.qty.saturating_abs() >= fill.qty.0;
        covers && read.take(update, fill.qty.0).0 > 0
    }

    /// Handles a late own fill that may be the close that strategies gave up. They get the quantity
    /// back, the fill's owner first, and the fill is booked instead.
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

    /// When the last request was sent, by the venue's clock.
    fn asked_at_venue(&mut self, surface: Surface) -> Time {
        let offset_ns = self.clock_offset_ns(surface).unwrap_or_default();
        let now = self.now;
        let asked = self
            .line_mut(surface)
            .map_or(now, |line| line.round.asked_at);
        Time(asked.0.saturating_add(offset_ns))
    }

    /// Takes over the state of an earlier process. The account is read again anyway.
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
