//! Commissions that only account events show: the events of the fills leave them out, and the venue
//! serves no account trades.
//!
//! The difference between an account event and the books is commissions if all of these hold:
//! - The listed positions equal the books, and no booked fill is newer than the balance.
//! - The balance cannot contain a fill that is not booked yet.
//! - The balance is lower, by at most the possible commissions of the fills.

use windvane_model::decimal::Amount;
use windvane_model::effect::Cause;
use windvane_model::ids::{AssetId, Time};
use windvane_model::order::Surface;
use windvane_model::protocol::{BalanceUpdate, PositionUpdate};
use windvane_model::truth::AccountTruth;

use super::super::Engine;
use super::super::session::Line;
use super::{LateFee, SURFACE, shares_by_value};

/// A balance that is reported this long after a fill includes its commission. Events of the same
/// moment may belong to several fills.
const STATED_MS: i64 = 1_000;

/// A balance, and the fills whose commissions lowered it.
type StatedFee = (BalanceUpdate, Vec<LateFee>);

impl Engine {
    /// Books the commissions that an account event shows. Returns whether the books then match it,
    /// apart from rounding.
    pub(in crate::engine) fn book_stated_fees(
        &mut self,
        surface: Surface,
        statement: &AccountTruth,
    ) -> bool {
        let Some(fees) = self.stated_fees(surface, statement) else {
            return false;
        };
        for (told, fills) in &fees {
            self.book_stated_fee(told, fills);
        }
        for (told, fills) in &fees {
            self.forget_stated_fills(statement, told.asset, fills);
        }
        true
    }

    /// The commissions that an account event shows; `None` if anything else differs.
    fn stated_fees(&self, surface: Surface, statement: &AccountTruth) -> Option<Vec<StatedFee>> {
        let is_possible = surface == SURFACE && !self.tells_trades();
        if !is_possible || !self.positions_agree(&statement.positions) {
            return None;
        }
        let differs = |told: &&BalanceUpdate| {
            let known = self.balance(surface, told.asset).total;
            !self.is_same(surface, told.asset, told.total, known)
        };
        let different = statement.balances.iter().filter(differs);
        different
            .map(|told| Some((*told, self.fills_that_lowered(statement, told)?)))
            .collect()
    }

    fn fills_that_lowered(
        &self,
        statement: &AccountTruth,
        told: &BalanceUpdate,
    ) -> Option<Vec<LateFee>> {
        let moved = told.total - self.balance(SURFACE, told.asset).total;
        let line = self.futures_line()?;
        let at = line.newest.balance(told.asset)?;
        let is_late = line.past.has_fill_after(at) || self.may_hide_fill(line, statement, at);
        if moved >= Amount::ZERO || is_late {
            return None;
        }
        let may_contain = |late: &&LateFee| {
            let key = (late.instrument, late.side);
            let is_flat = self.ledgers.account.at(key.0, key.1).position.qty == 0;
            !late.in_reading && (is_flat || lists(line, statement, late))
        };
        let waiting = self.late_fees.waiting.iter();
        let mut fills: Vec<LateFee> = waiting.filter(may_contain).copied().collect();
        if fills.iter().any(|late| self.quote_of(late) == told.asset) {
            fills.retain(|late| self.quote_of(late) == told.asset);
        }
        self.may_be_fees_of(&fills, told.asset, moved)
            .then_some(fills)
    }

    fn futures_line(&self) -> Option<&Line> {
        self.live.as_ref()?.lines.get(&SURFACE)
    }

    /// Whether a balance of this time may contain a fill that is not booked. Its position would
    /// differ, unless the event leaves out the position because it was closed (spec 2,
    /// `ACCOUNT_UPDATE`).
    fn may_hide_fill(&self, line: &Line, statement: &AccountTruth, at: Time) -> bool {
        let is_listed = |told: &PositionUpdate| {
            let stated = line.newest.position(told.instrument, told.position_side);
            stated.is_some_and(|stated| stated >= at)
        };
        let listed = statement.positions.iter().filter(|told| is_listed(told));
        let listed: Vec<_> = listed
            .map(|told| (told.instrument, told.position_side))
            .collect();
        let is_missing = self.orders.iter().any(|order| {
            let key = (order.instrument(), order.terms.position_side);
            self.surface_of(key.0) == SURFACE && !listed.contains(&key) && self.is_unsettled(order)
        });
        let mut held = self.held_positions(SURFACE).into_iter();
        let is_closed = |(key, qty)| self.may_have_closed(key, qty, self.now);
        is_missing || (listed.is_empty() && held.any(is_closed))
    }

    fn book_stated_fee(&mut self, told: &BalanceUpdate, fills: &[LateFee]) {
        let asset = told.asset;
        let paid = self.balance(SURFACE, asset).total - told.total;
        if fills.iter().any(|late| self.quote_of(late) == asset) {
            self.charge_by_value(fills, paid);
        } else {
            let cost = self.cost_of_stated_fee(asset, paid, fills);
            self.charge_by_value(fills, cost);
            *self.other_fees.entry(asset).or_default() += paid;
            self.fee_costs.total += cost;
        }
        self.take_balance(SURFACE, told, Cause::Commission);
        let values: Vec<Amount> = fills.iter().map(|late| late.value).collect();
        let shares = shares_by_value(&values, paid);
        let Some(line) = self.line_mut(SURFACE) else {
            return;
        };
        // A snapshot that is behind shows the balance after the commissions.
        for (late, share) in fills.iter().zip(shares) {
            line.past.move_since(late.booked, asset, -share);
        }
    }

    /// The value of commissions in another asset.
    fn cost_of_stated_fee(&mut self, asset: AssetId, paid: Amount, fills: &[LateFee]) -> Amount {
        if !self.is_outside_equity(SURFACE, asset) {
            return Amount::ZERO;
        }
        let value = self.value_in_equity(asset, paid);
        value.unwrap_or_else(|| {
            self.tell_unpriced(asset);
            self.estimated_fees_of(fills.iter())
        })
    }

    /// Forgets fills whose commission is booked. A fill whose position the event does not list may
    /// have been made just after the event. It is forgotten only if no other fill explains the
    /// balance.
    fn forget_stated_fills(&mut self, statement: &AccountTruth, asset: AssetId, fills: &[LateFee]) {
        let Some(line) = self.futures_line() else {
            return;
        };
        let at = line.newest.balance(asset).unwrap_or_default();
        let is_booked = |late: &LateFee| {
            fills.iter().any(|one| one.is_same_fill(late))
                && (fills.len() == 1 || lists(line, statement, late) || is_long_before(late, at))
        };
        let waiting = self.late_fees.waiting.iter();
        let kept = waiting.filter(|late| !is_booked(late)).copied().collect();
        self.late_fees.waiting = kept;
    }

    /// Forgets older fills after an account event agreed with the books: fills from long before it
    /// had no commission.
    pub(in crate::engine) fn forget_free_stated_fills(
        &mut self,
        surface: Surface,
        statement: &AccountTruth,
    ) {
        if surface != SURFACE || self.tells_trades() || self.late_fees.waiting.is_empty() {
            return;
        }
        let newest = self.futures_line().map(|line| &line.newest);
        let balances = statement.balances.iter();
        let stated = balances.filter_map(|told| newest?.balance(told.asset));
        let at = stated.max().unwrap_or_default();
        let waiting = &mut self.late_fees.waiting;
        waiting.retain(|late| late.in_reading || !is_long_before(late, at));
    }

    /// Forgets the parts of the pending account event about positions that were closed since. If
    /// the venue serves account trades, the next account event does this: until then, its balance
    /// may be from before the close.
    pub(in crate::engine) fn forget_older_lines(&mut self) {
        if self.tells_trades() || self.late_fees.waiting.is_empty() {
            return;
        }
        let line = self.futures_line();
        let Some((statement, _)) = line.and_then(|line| line.told.as_ref()) else {
            return;
        };
        let positions = statement.positions.iter();
        let kept: Vec<_> = positions
            .filter(|told| !self.is_from_before_close(told))
            .copied()
            .collect();
        let line = self.line_mut(SURFACE);
        if let Some((statement, _)) = line.and_then(|line| line.told.as_mut()) {
            statement.positions = kept;
        }
    }

    /// Whether a position was reported before its close, which is booked without a commission.
    /// Later events leave out a closed position, so nothing else would replace this report.
    pub(in crate::engine) fn is_from_before_close(&self, told: &PositionUpdate) -> bool {
        let key = (told.instrument, told.position_side);
        let Some(line) = self.futures_line().filter(|_| told.qty.0 != 0) else {
            return false;
        };
        let stated = line.newest.position(key.0, key.1).unwrap_or_default();
        let is_since = |late: &LateFee| (late.instrument, late.side) == key && late.made >= stated;
        let is_known = usize::from(key.0.0) < self.instruments.len() && stated != Time::default();
        is_known
            && self.ledgers.account.at(key.0, key.1).position.qty == 0
            && self.late_fees.waiting.iter().any(is_since)
            && line.past.held(self.now, key, told.qty.0)
    }
}

/// Whether an account event lists the position of a fill in its state after the fill.
fn lists(line: &Line, statement: &AccountTruth, late: &LateFee) -> bool {
    let key = (late.instrument, late.side);
    let mut positions = statement.positions.iter();
    let is_listed = positions.any(|told| (told.instrument, told.position_side) == key);
    let stated = line.newest.position(key.0, key.1);
    is_listed && stated.is_some_and(|at| at >= late.made || at == Time::default())
}

/// Whether a fill was made so long before this time that the balance of the time includes its
/// commission.
fn is_long_before(late: &LateFee, at: Time) -> bool {
    late.made != Time::default() && late.made.plus_ms(STATED_MS) <= at
}
