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
//! - The snapshots agreed for [`INCOMPLETE_MS`](crate::account_history::INCOMPLETE_MS) without such a change.
//!
//! The engine then takes the closed quantity from the strategies that held it, at the same price.
//! It cancels those of their orders that would now open a position.

use std::collections::BTreeSet;

use windvane_model::decimal::Amount;
use windvane_model::ids::{AssetId, OrderSeq, Time};
use windvane_model::order::{OrderTerms, Qty, Surface};
use windvane_model::orders::Order;
use windvane_model::planted;
use windvane_model::protocol::{BalanceUpdate, OrderUpdate, PositionUpdate};
use windvane_model::state_report::AccountSnapshot;

use crate::position::{closing_side, key_of};
use crate::{Evidence, PositionKey};

/// The venue made a close at most this long before the first event that reports the position
/// otherwise than the books.
const CLOSED_BEFORE_MS: i64 = 1_000;

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

/// Whether a snapshot lists no balances and no positions.
fn is_empty(account: &AccountSnapshot) -> bool {
    account.balances.is_empty() && account.positions.iter().all(|reported| reported.qty.0 == 0)
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
