//! Account events of a user stream.
//!
//! The venue reports a fill twice: by an order event and by an account event. The documents give no
//! order for the two, either may be late or lost, and the account event may leave out a closed
//! position. So the books change only by the part that an event explains itself: a fill by its
//! order event; funding, a transfer or a charge by the change (`bc`) in its account event.
//!
//! The balances and positions of an account event are a statement. The engine compares it with the
//! books:
//! - It agrees with the books, apart from rounding: the rounding is corrected.
//! - It agrees with a recent state of the books: the event is late.
//! - It differs from one of these by estimated commissions: the engine requests the true ones
//!   (`windvane_evidence::estimates`).
//! - It differs by commissions that nothing else reports: they are booked (`stated_fees`).
//! - It differs by the order in which fills were booked: it is taken (`reordered_fills`).
//! - In any other case it is pending until a fill explains it. After [`FILL_MS`] a reconciliation
//!   round reads the account.
//!
//! While a statement is pending, the loss limits allow for both versions of the account.

use windvane_model::decimal::Amount;
use windvane_model::effect::Cause;
use windvane_model::ids::Time;
use windvane_model::order::Surface;
use windvane_model::planted;
use windvane_model::protocol::{AccountReason, AccountUpdate, BalanceUpdate};
use windvane_model::state_report::AccountSnapshot;

use super::Engine;

/// A statement waits this long for the fill that explains it, before the account is read.
const FILL_MS: i64 = 1_000;
/// The wait for that fill if the statement shows a smaller position and no own order can have
/// closed it.
const CLOSE_MS: i64 = 250;

/// Time to the next snapshot after one that was older than the statement.
const READ_AGAIN_MS: i64 = 5_000;

impl Engine {
    pub(super) fn handle_account_update(&mut self, update: &AccountUpdate) {
        if self.live.is_none() {
            self.take_update(update);
            return;
        }
        let surface = update.surface;
        for balance in &update.balances {
            self.take_change(update, balance);
        }
        let mut newest = update.clone();
        if let Some(connection) = self.connection_mut(surface) {
            connection.newest_events.filter(&mut newest);
        }
        self.note_stated_positions(update, &newest);
        self.compare_account_event(&newest);
        self.note_stated_balances(&newest);
        self.watch_after(update);
    }

    /// Takes all of an event at once: the events of a backtest are complete and in order.
    fn take_update(&mut self, update: &AccountUpdate) {
        for balance in &update.balances {
            if update.reason == AccountReason::FundingFee && update.surface == Surface::Futures {
                self.book_funding(balance);
            }
            if update.reason == AccountReason::Other {
                let change = self.evidence().stated_change(update, balance);
                self.shift_losses(update.surface, balance, change);
                let balance = BalanceUpdate { change, ..*balance };
                self.take_balance(update.surface, &balance, Cause::Event);
            } else {
                self.take_balance(update.surface, balance, Cause::Event);
            }
        }
        for position in &update.positions {
            self.take_position(position, Cause::Event);
        }
        self.watch_after(update);
    }

    /// Checks the loss limits after a payment, and handles payments of the insurance fund.
    fn watch_after(&mut self, update: &AccountUpdate) {
        let payments = [
            AccountReason::FundingFee,
            AccountReason::Charge,
            AccountReason::InsuranceClear,
        ];
        if payments.contains(&update.reason) {
            self.watch_losses_after_fill();
        }
        if update.reason == AccountReason::InsuranceClear {
            self.take_insurance_clear(update);
        }
    }

    /// Moves the base of the loss limits by a transfer.
    fn shift_losses(&mut self, surface: Surface, balance: &BalanceUpdate, change: Amount) {
        let worth = self.evidence().worth(surface, balance.asset, change);
        self.losses.shift(worth);
    }

    /// Adds the change that an event explains, unless the books already contain it.
    fn take_change(&mut self, update: &AccountUpdate, balance: &BalanceUpdate) {
        let surface = update.surface;
        let payment = self.evidence().payment_of(update, balance);
        if payment.is_some_and(|payment| self.stated_payments.contains(&payment)) {
            return;
        }
        let mut change = self.evidence().stated_change(update, balance);
        if change == Amount::ZERO {
            change = self.evidence().implied_funding(update, balance);
        }
        if change == Amount::ZERO {
            return;
        }
        if let Some(payment) = payment {
            self.stated_payments.remember(payment);
        }
        let balance = &BalanceUpdate { change, ..*balance };
        let was_listed = self.note_income(update, balance);
        let was_read = self.evidence().predates_last_snapshot(update);
        let contained = was_read || self.evidence().contains_change(update, balance, change);
        if update.reason == AccountReason::FundingFee
            && surface == Surface::Futures
            && (was_read || !contained)
            && !was_listed
        {
            self.book_funding(balance);
        }
        if contained {
            return;
        }
        if update.reason == AccountReason::Other {
            self.shift_losses(surface, balance, change);
        }
        let known = self.balance(surface, balance.asset);
        let changed = BalanceUpdate {
            total: known.total + change,
            locked: known.locked,
            change,
            ..*balance
        };
        self.take_balance(surface, &changed, Cause::Event);
    }

    /// Compares an event with the books, and keeps it as pending if they do not agree.
    fn compare_account_event(&mut self, update: &AccountUpdate) {
        let (surface, now) = (update.surface, self.now);
        let explained = |reported: &BalanceUpdate| BalanceUpdate {
            change: Amount::ZERO,
            ..*reported
        };
        let mut statement = AccountSnapshot {
            balances: update.balances.iter().map(explained).collect(),
            positions: update.positions.clone(),
            ..AccountSnapshot::default()
        };
        let agree = self.evidence().positions_agree(&update.positions);
        let taken = planted!(ClosedPositionBookedTwice) && agree;
        if taken || planted!(AccountBeforeFill) {
            self.take_whole_event(surface, &statement);
            return;
        }
        if surface == Surface::Spot {
            self.take_locked_balances(&statement.balances);
        }
        if !self.evidence().agrees_with_books(surface, &statement)
            && self.evidence().agreed_recently(surface, &statement)
        {
            return;
        }
        if self
            .evidence()
            .is_late_apart_from_estimates(surface, &statement)
        {
            self.late_fees.want();
            return;
        }
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        let mut since = now;
        let older = connection.pending_event.take();
        if let Some((mut older, at)) = older {
            if surface == Surface::Futures {
                (older.positions)
                    .retain(|reported| !self.evidence().is_from_before_close(reported));
            }
            let entries = |state_report: &AccountSnapshot| {
                state_report.balances.len() + state_report.positions.len()
            };
            let listed = entries(&statement);
            statement.complete(older);
            since = if entries(&statement) > listed {
                at
            } else {
                now
            };
        }
        if lists_nothing(&statement) {
            return;
        }
        if let Some(connection) = self.connection_mut(surface) {
            connection.pending_event = Some((statement, since));
        }
        self.settle_account_event(surface);
    }

    /// Takes a statement as it is: for the planted bug.
    fn take_whole_event(&mut self, surface: Surface, statement: &AccountSnapshot) {
        let has_fill = !statement.positions.is_empty()
            && self.evidence().positions_agree(&statement.positions);
        for balance in &statement.balances {
            if has_fill {
                self.shift_loss_base(surface, balance);
            }
            self.take_balance(surface, balance, Cause::Event);
        }
        for position in &statement.positions {
            self.take_position(position, Cause::Event);
        }
    }

    /// Takes the locked part of spot balances from an event at once.
    fn take_locked_balances(&mut self, balances: &[BalanceUpdate]) {
        for balance in balances {
            let total = self.balance(Surface::Spot, balance.asset).total;
            let locked = BalanceUpdate { total, ..*balance };
            self.take_balance(Surface::Spot, &locked, Cause::Event);
        }
    }

    /// Settles the pending statement if the books agree with it by now: the remaining difference is
    /// rounding.
    pub(super) fn settle_account_event(&mut self, surface: Surface) {
        self.review_stated_balances(surface);
        if surface == Surface::Futures {
            self.review_stated_positions();
            self.forget_older_lines();
        }
        let connection = self
            .live
            .as_ref()
            .and_then(|live| live.connections.get(&surface));
        let Some((statement, _)) =
            connection.and_then(|connection| connection.pending_event.clone())
        else {
            return;
        };
        if self.evidence().agrees_with_books(surface, &statement)
            || self.take_reordered_fills(surface, &statement)
        {
            self.forget_free_fills_by_event(surface, &statement);
        } else if self.evidence().awaits_fees(surface, &statement) {
            self.late_fees.want();
            // The market may not move: no other event would check the reported balance.
            self.watch_losses_after_fill();
            return;
        } else if self.evidence().agreed_recently(surface, &statement)
            || self
                .evidence()
                .is_late_apart_from_estimates(surface, &statement)
        {
            // The statement was late. The commission that it contained is booked now, or estimated.
            if let Some(connection) = self.connection_mut(surface) {
                connection.pending_event = None;
            }
            self.watch_losses_after_fill();
            return;
        } else if !self.book_stated_fees(surface, &statement) {
            return;
        }
        if surface == Surface::Futures {
            self.forget_stated_closes();
        }
        let reported = self
            .connection_mut(surface)
            .and_then(|connection| connection.pending_event.take());
        for balance in reported
            .iter()
            .flat_map(|(statement, _)| &statement.balances)
        {
            if self.balance(surface, balance.asset).total != balance.total {
                self.take_balance(surface, balance, Cause::Event);
            }
        }
        self.watch_losses_after_fill();
    }

    /// Requests the account for a statement that no fill explained in time.
    pub(super) fn investigate_account_event(&mut self, surface: Surface) {
        let waited = |engine: &Self, ms: i64| {
            let connection = engine
                .live
                .as_ref()
                .and_then(|live| live.connections.get(&surface));
            let since = connection
                .and_then(|connection| connection.pending_event.as_ref())
                .map(|(_, at)| *at);
            since.is_some_and(|since| engine.now > since.plus_ms(ms))
        };
        let is_close = waited(self, CLOSE_MS) && self.degrade_for_stated_closes(surface);
        let is_overdue = is_close || waited(self, FILL_MS);
        let connection = self
            .live
            .as_ref()
            .and_then(|live| live.connections.get(&surface));
        let Some(connection) =
            connection.filter(|connection| connection.round.is_idle() && connection.stream_up)
        else {
            return;
        };
        let statement = connection.pending_event.as_ref().filter(|_| is_overdue);
        if statement.is_some_and(|(statement, _)| !self.evidence().awaits_fees(surface, statement))
        {
            self.begin_round(surface);
        } else {
            self.ask_for_fees(surface);
        }
    }

    /// Delays the next snapshot, because the last one may have been older than the statement.
    pub(super) fn postpone_account_request(&mut self, surface: Surface) {
        let again = self.now.plus_ms(READ_AGAIN_MS - FILL_MS);
        if let Some(connection) = self.connection_mut(surface)
            && let Some((_, since)) = &mut connection.pending_event
        {
            *since = again;
        }
    }

    /// Drops a statement after a reconciliation round that began later compared the account. A
    /// snapshot may be behind the event. If it agrees with the books but was requested shortly
    /// after the event, it does not refute the event's positions.
    pub(super) fn drop_account_event(&mut self, surface: Surface, asked: Option<Time>) {
        if asked.is_some_and(|asked| self.evidence().may_predate_account_event(surface, asked)) {
            self.postpone_account_request(surface);
            return;
        }
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        let read_since =
            |(_, at): &(AccountSnapshot, Time)| asked.is_some_and(|asked| *at <= asked);
        if connection.pending_event.as_ref().is_some_and(read_since) {
            connection.pending_event = None;
            self.watch_losses_after_fill();
        }
    }

    /// Marks the pending statement as possibly older than a snapshot that was accepted since:
    /// alone, it no longer decides for the loss limits.
    pub(super) fn mark_account_event_stale(&mut self, surface: Surface) {
        if let Some(connection) = self.connection_mut(surface)
            && let Some((statement, _)) = &mut connection.pending_event
        {
            statement.lags = true;
        }
    }
}

fn lists_nothing(statement: &AccountSnapshot) -> bool {
    statement.balances.is_empty() && statement.positions.is_empty()
}
