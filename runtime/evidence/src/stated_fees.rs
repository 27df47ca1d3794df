//! Commissions that only account events show: the events of the fills leave them out, and the venue
//! does not list the account's trades.
//!
//! The difference between an account event and the books is commissions if all of these hold:
//! - The listed positions equal the books, and no booked fill is newer than the balance.
//! - The balance cannot contain a fill that is not booked yet.
//! - The balance is lower, by at most the possible commissions of the fills.

use std::collections::VecDeque;

use windvane_model::decimal::Amount;
use windvane_model::ids::{AssetId, Time};
use windvane_model::order::Surface;
use windvane_model::protocol::{BalanceUpdate, PositionUpdate};
use windvane_model::state_report::AccountSnapshot;

use crate::Evidence;
use crate::connection::Connection;
use crate::late_fees::{LateFee, SURFACE};

/// A balance that is reported this long after a fill includes its commission. Events of the same
/// moment may belong to several fills.
const STATED_MS: i64 = 1_000;

/// A balance, and the fills whose commissions lowered it.
pub type StatedFee = (BalanceUpdate, Vec<LateFee>);

impl Evidence<'_> {
    /// The commissions that an account event shows; `None` if anything else differs.
    pub fn stated_fees(
        &self,
        surface: Surface,
        statement: &AccountSnapshot,
    ) -> Option<Vec<StatedFee>> {
        let is_possible = surface == SURFACE && !self.serves_account_trades();
        if !is_possible || !self.positions_agree(&statement.positions) {
            return None;
        }
        self.different_balances(surface, statement)
            .map(|reported| Some((*reported, self.fills_that_lowered(statement, reported)?)))
            .collect()
    }

    fn fills_that_lowered(
        &self,
        statement: &AccountSnapshot,
        reported: &BalanceUpdate,
    ) -> Option<Vec<LateFee>> {
        let moved = reported.total - self.balance(SURFACE, reported.asset).total;
        let connection = self.futures_connection()?;
        let at = connection.newest_events.balance(reported.asset)?;
        let is_late =
            connection.history.has_fill_after(at) || self.may_hide_fill(connection, statement, at);
        if moved >= Amount::ZERO || is_late {
            return None;
        }
        let may_contain = |late: &&LateFee| {
            let key = (late.instrument, late.side);
            let is_flat = self.ledgers.account.at(key.0, key.1).position.qty == 0;
            !late.in_snapshot && (is_flat || lists(connection, statement, late))
        };
        let waiting = self.late_fees.waiting.iter();
        let mut fills: Vec<LateFee> = waiting.filter(may_contain).copied().collect();
        if fills
            .iter()
            .any(|late| self.quote_of(late) == reported.asset)
        {
            fills.retain(|late| self.quote_of(late) == reported.asset);
        }
        self.may_be_fees_of(&fills, reported.asset, moved)
            .then_some(fills)
    }

    fn futures_connection(&self) -> Option<&Connection> {
        self.connection(SURFACE)
    }

    /// Whether a balance of this time may contain a fill that is not booked. Its position would
    /// differ, unless the event leaves out the position because it was closed
    /// (docs/interface/user-stream.md#account_update).
    fn may_hide_fill(
        &self,
        connection: &Connection,
        statement: &AccountSnapshot,
        at: Time,
    ) -> bool {
        let is_listed = |reported: &PositionUpdate| {
            let stated = connection
                .newest_events
                .position(reported.instrument, reported.position_side);
            stated.is_some_and(|stated| stated >= at)
        };
        let listed = statement
            .positions
            .iter()
            .filter(|reported| is_listed(reported));
        let listed: Vec<_> = listed
            .map(|reported| (reported.instrument, reported.position_side))
            .collect();
        let is_missing = self.orders.iter().any(|order| {
            let key = (order.instrument(), order.terms.position_side);
            self.surface_of(key.0) == SURFACE && !listed.contains(&key) && self.is_unsettled(order)
        });
        let mut held = self.held_positions(SURFACE).into_iter();
        let is_closed = |(key, qty)| self.may_have_closed(key, qty, self.now);
        is_missing || (listed.is_empty() && held.any(is_closed))
    }

    /// Whether a position was reported before its close, which is booked without a commission.
    /// Later events leave out a closed position, so nothing else would replace this report.
    pub fn is_from_before_close(&self, reported: &PositionUpdate) -> bool {
        let key = (reported.instrument, reported.position_side);
        let Some(connection) = self.futures_connection().filter(|_| reported.qty.0 != 0) else {
            return false;
        };
        let stated = connection
            .newest_events
            .position(key.0, key.1)
            .unwrap_or_default();
        let is_since = |late: &LateFee| (late.instrument, late.side) == key && late.made >= stated;
        let is_known = usize::from(key.0.0) < self.instruments.len() && stated != Time::default();
        is_known
            && self.ledgers.account.at(key.0, key.1).position.qty == 0
            && self.late_fees.waiting.iter().any(is_since)
            && connection
                .history
                .had_position(self.now, key, reported.qty.0)
    }

    /// The fills that are left after those with a booked commission. A fill whose position the
    /// event does not list may have been made just after the event. It is forgotten only if no
    /// other fill explains the balance.
    pub fn fills_without_fee(
        &self,
        statement: &AccountSnapshot,
        asset: AssetId,
        fills: &[LateFee],
    ) -> Option<VecDeque<LateFee>> {
        let connection = self.futures_connection()?;
        let at = connection.newest_events.balance(asset).unwrap_or_default();
        let is_booked = |late: &LateFee| {
            fills.iter().any(|one| one.is_same_fill(late))
                && (fills.len() == 1
                    || lists(connection, statement, late)
                    || is_long_before(late, at))
        };
        let waiting = self.late_fees.waiting.iter();
        Some(waiting.filter(|late| !is_booked(late)).copied().collect())
    }

    /// The fills that are left after an account event agreed with the books: fills from long before
    /// it had no commission. `None` if it proves nothing.
    pub fn fills_after_agreement(
        &self,
        surface: Surface,
        statement: &AccountSnapshot,
    ) -> Option<VecDeque<LateFee>> {
        if surface != SURFACE || self.serves_account_trades() || self.late_fees.waiting.is_empty() {
            return None;
        }
        let newest = self
            .futures_connection()
            .map(|connection| &connection.newest_events);
        let balances = statement.balances.iter();
        let stated = balances.filter_map(|reported| newest?.balance(reported.asset));
        let at = stated.max().unwrap_or_default();
        let waiting = self.late_fees.waiting.iter();
        let kept = waiting.filter(|late| late.in_snapshot || !is_long_before(late, at));
        Some(kept.copied().collect())
    }

    /// The parts of the pending account event about positions that were not closed since. `None` if
    /// nothing changes. If the venue lists the account's trades, the parts stay until the next
    /// account event: until then, the balance may be from before the close.
    pub fn newer_lines(&self) -> Option<Vec<PositionUpdate>> {
        if self.serves_account_trades() || self.late_fees.waiting.is_empty() {
            return None;
        }
        let (statement, _) = self.futures_connection()?.pending_event.as_ref()?;
        let positions = statement.positions.iter();
        let kept = positions.filter(|reported| !self.is_from_before_close(reported));
        Some(kept.copied().collect())
    }
}

/// Whether an account event lists the position of a fill in its state after the fill.
fn lists(connection: &Connection, statement: &AccountSnapshot, late: &LateFee) -> bool {
    let key = (late.instrument, late.side);
    let mut positions = statement.positions.iter();
    let is_listed = positions.any(|reported| (reported.instrument, reported.position_side) == key);
    let stated = connection.newest_events.position(key.0, key.1);
    is_listed && stated.is_some_and(|at| at >= late.made || at == Time::default())
}

/// Whether a fill was made so long before this time that the balance of the time includes its
/// commission.
fn is_long_before(late: &LateFee, at: Time) -> bool {
    late.made != Time::default() && late.made.plus_ms(STATED_MS) <= at
}
