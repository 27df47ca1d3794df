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
//!   (`late_fees::estimates`).
//! - It differs by commissions that nothing else reports: they are booked (`late_fees::stated`).
//! - It differs by the order in which fills were booked: it is taken (`fill_order`).
//! - In any other case it is pending until a fill explains it. After [`FILL_MS`] a reconciliation
//!   round reads the account.
//!
//! While a statement is pending, the loss limits allow for both versions of the account.

use windvane_model::decimal::Amount;
use windvane_model::doubt::Doubt;
use windvane_model::effect::Cause;
use windvane_model::ids::{AssetId, Time};
use windvane_model::order::{PositionSide, Surface};
use windvane_model::planted;
use windvane_model::protocol::{AccountReason, AccountUpdate, BalanceUpdate, PositionUpdate};
use windvane_model::truth::AccountTruth;

use super::Engine;
use super::lag::READ_LAG_MS;

/// A statement waits this long for the fill that explains it, before the account is read.
const FILL_MS: i64 = 1_000;
/// The same wait if the statement shows a smaller position and no own order can have closed it.
const CLOSE_MS: i64 = 250;
/// A statement that no fill explained for this long counts as correct for the loss limits.
const TRUSTED_MS: i64 = 1_000;
/// Time to the next snapshot after one that was older than the statement.
const READ_AGAIN_MS: i64 = 5_000;
/// The loss limits of strategies wait at most this long for a statement to be explained.
const STRATEGIES_WAIT_MS: i64 = 10_000;

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
        if let Some(line) = self.line_mut(surface) {
            line.newest.filter(&mut newest);
        }
        self.note_stated_positions(update, &newest);
        self.compare_statement(&newest);
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
                let change = self.stated_change(update, balance);
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

    /// The change of a balance that an event explains itself. A spot event does not state it: the
    /// whole difference came in or went out, unless an own order may have filled.
    fn stated_change(&self, update: &AccountUpdate, balance: &BalanceUpdate) -> Amount {
        let surface = update.surface;
        let transferred = surface == Surface::Spot && update.reason == AccountReason::Other;
        let mut orders = self.orders.iter();
        if !transferred {
            return balance.change;
        }
        if self.live.is_some() && orders.any(|order| self.surface_of(order.instrument()) == surface)
        {
            return Amount::ZERO;
        }
        balance.total - self.balance(surface, balance.asset).total
    }

    /// Moves the base of the loss limits by a transfer.
    fn shift_losses(&mut self, surface: Surface, balance: &BalanceUpdate, change: Amount) {
        let worth = self.worth(surface, balance.asset, change);
        self.losses.shift(worth);
    }

    /// Adds the change that an event explains, unless the books already contain it.
    fn take_change(&mut self, update: &AccountUpdate, balance: &BalanceUpdate) {
        let surface = update.surface;
        if self.is_repeated(update, balance) {
            return;
        }
        let mut change = self.stated_change(update, balance);
        if change == Amount::ZERO {
            change = self.unstated_funding(update, balance);
        }
        if change == Amount::ZERO {
            return;
        }
        self.remember_payment(update, balance);
        let balance = &BalanceUpdate { change, ..*balance };
        let was_listed = self.note_income(update, balance);
        let was_read = self.was_read(update);
        let contained = was_read || self.contains_change(update, balance, change);
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

    /// Whether the last accepted snapshot is newer than an event.
    fn was_read(&self, update: &AccountUpdate) -> bool {
        let line = self.live.as_ref();
        let line = line.and_then(|live| live.lines.get(&update.surface));
        let taken = line.and_then(|line| line.taken);
        let at = update.event_time;
        at != Time::default() && taken.is_some_and(|taken| at <= taken)
    }

    /// Whether the books already contain a change: its event was repeated, or arrived after an
    /// account snapshot.
    fn contains_change(
        &self,
        update: &AccountUpdate,
        balance: &BalanceUpdate,
        change: Amount,
    ) -> bool {
        let (surface, asset) = (update.surface, balance.asset);
        let known = self.balance(surface, asset).total;
        if balance.total == known + change {
            return false;
        }
        let Some(line) = self.live.as_ref().and_then(|it| it.lines.get(&surface)) else {
            return false;
        };
        let is_old = line.newest.has_newer(asset, update.event_time);
        let pending = line
            .told
            .iter()
            .flat_map(|(statement, _)| &statement.balances);
        let mut pending = pending.filter(|told| told.asset == asset);
        if pending.any(|told| told.total == known + change) {
            return false;
        }
        balance.total == known || (is_old && line.past.had(self.now, asset, balance.total))
    }

    /// Compares an event with the books, and keeps it as pending if they do not agree.
    fn compare_statement(&mut self, update: &AccountUpdate) {
        let (surface, now) = (update.surface, self.now);
        let explained = |told: &BalanceUpdate| BalanceUpdate {
            change: Amount::ZERO,
            ..*told
        };
        let mut statement = AccountTruth {
            balances: update.balances.iter().map(explained).collect(),
            positions: update.positions.clone(),
            ..AccountTruth::default()
        };
        let agree = self.positions_agree(&update.positions);
        let taken = planted!(ClosedPositionBookedTwice) && agree;
        if taken || planted!(AccountBeforeFill) {
            self.believe(surface, &statement);
            return;
        }
        if surface == Surface::Spot {
            self.take_locks(&statement.balances);
        }
        if !self.agrees(surface, &statement) && self.agreed_lately(surface, &statement) {
            return;
        }
        if self.is_late_beside_estimates(surface, &statement) {
            self.want_fees();
            return;
        }
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        let mut since = now;
        let older = line.told.take();
        if let Some((mut older, at)) = older {
            if surface == Surface::Futures {
                (older.positions).retain(|told| !self.is_from_before_close(told));
            }
            let lines = |truth: &AccountTruth| truth.balances.len() + truth.positions.len();
            let told = lines(&statement);
            statement.complete(older);
            since = if lines(&statement) > told { at } else { now };
        }
        if lines_are_empty(&statement) {
            return;
        }
        if let Some(line) = self.line_mut(surface) {
            line.told = Some((statement, since));
        }
        self.explain_statement(surface);
    }

    /// Takes a statement as it is: for the planted bug.
    fn believe(&mut self, surface: Surface, statement: &AccountTruth) {
        let has_fill =
            !statement.positions.is_empty() && self.positions_agree(&statement.positions);
        for balance in &statement.balances {
            if has_fill {
                self.shift_by_untold(surface, balance);
            }
            self.take_balance(surface, balance, Cause::Event);
        }
        for position in &statement.positions {
            self.take_position(position, Cause::Event);
        }
    }

    /// Takes the locked part of spot balances from an event at once.
    fn take_locks(&mut self, balances: &[BalanceUpdate]) {
        for balance in balances {
            let total = self.balance(Surface::Spot, balance.asset).total;
            let locked = BalanceUpdate { total, ..*balance };
            self.take_balance(Surface::Spot, &locked, Cause::Event);
        }
    }

    /// Whether the books match the statement: positions exactly, balances apart from rounding.
    fn agrees(&self, surface: Surface, statement: &AccountTruth) -> bool {
        let balance = |told: &BalanceUpdate| {
            let known = self.balance(surface, told.asset).total;
            self.is_same(surface, told.asset, told.total, known)
        };
        self.positions_agree(&statement.positions) && statement.balances.iter().all(balance)
    }

    /// Whether the books matched the statement within the last moments.
    fn agreed_lately(&self, surface: Surface, statement: &AccountTruth) -> bool {
        let line = self.live.as_ref().and_then(|it| it.lines.get(&surface));
        let same = |asset, told, known| self.is_same(surface, asset, told, known);
        line.is_some_and(|line| line.past.was(self.now, statement, same))
    }

    /// Whether a statement is late and differs only by estimated commissions. A present statement
    /// stays pending, because the loss limits use it.
    fn is_late_beside_estimates(&self, surface: Surface, statement: &AccountTruth) -> bool {
        !self.agrees(surface, statement)
            && !self.awaits_fees(surface, statement)
            && self.agreed_beside_estimates(surface, statement)
    }

    /// Whether two balances are equal apart from rounding. Futures round profits; spot rounds
    /// nothing.
    pub(super) fn is_same(
        &self,
        surface: Surface,
        asset: AssetId,
        told: Amount,
        known: Amount,
    ) -> bool {
        let rounds = surface == Surface::Futures;
        told == known || (rounds && self.is_rounding(surface, asset, told - known))
    }

    /// Settles the pending statement if the books agree with it by now: the remaining difference is
    /// rounding.
    pub(super) fn explain_statement(&mut self, surface: Surface) {
        self.review_stated_balances(surface);
        if surface == Surface::Futures {
            self.review_stated_positions();
            self.forget_older_lines();
        }
        let line = self.live.as_ref().and_then(|live| live.lines.get(&surface));
        let Some((statement, _)) = line.and_then(|line| line.told.clone()) else {
            return;
        };
        if self.agrees(surface, &statement) || self.take_order_of_fills(surface, &statement) {
            self.forget_free_stated_fills(surface, &statement);
        } else if self.awaits_fees(surface, &statement) {
            self.want_fees();
            // The market may not move: no other event would check the reported balance.
            self.watch_losses_after_fill();
            return;
        } else if self.agreed_lately(surface, &statement)
            || self.is_late_beside_estimates(surface, &statement)
        {
            // The statement was late. The commission that it contained is booked now, or estimated.
            if let Some(line) = self.line_mut(surface) {
                line.told = None;
            }
            self.watch_losses_after_fill();
            return;
        } else if !self.book_stated_fees(surface, &statement) {
            return;
        }
        if surface == Surface::Futures {
            self.forget_stated_closes();
        }
        let told = self.line_mut(surface).and_then(|line| line.told.take());
        for balance in told.iter().flat_map(|(statement, _)| &statement.balances) {
            if self.balance(surface, balance.asset).total != balance.total {
                self.take_balance(surface, balance, Cause::Event);
            }
        }
        self.watch_losses_after_fill();
    }

    /// Requests the account for a statement that no fill explained in time.
    pub(super) fn look_into_statement(&mut self, surface: Surface) {
        let waited = |engine: &Self, ms: i64| {
            let line = engine
                .live
                .as_ref()
                .and_then(|live| live.lines.get(&surface));
            let since = line.and_then(|line| line.told.as_ref()).map(|(_, at)| *at);
            since.is_some_and(|since| engine.now > since.plus_ms(ms))
        };
        let is_close = waited(self, CLOSE_MS) && self.doubt_stated_closes(surface);
        let is_overdue = is_close || waited(self, FILL_MS);
        let line = self.live.as_ref().and_then(|live| live.lines.get(&surface));
        let Some(line) = line.filter(|line| line.round.is_idle() && line.stream_up) else {
            return;
        };
        let statement = line.told.as_ref().filter(|_| is_overdue);
        if statement.is_some_and(|(statement, _)| !self.awaits_fees(surface, statement)) {
            self.begin_round(surface);
        } else {
            self.ask_for_fees(surface);
        }
    }

    /// Delays the next snapshot, because the last one may have been older than the statement.
    pub(super) fn postpone_statement(&mut self, surface: Surface) {
        let again = self.now.plus_ms(READ_AGAIN_MS - FILL_MS);
        if let Some(line) = self.line_mut(surface)
            && let Some((_, since)) = &mut line.told
        {
            *since = again;
        }
    }

    /// Drops a statement after a round that began later compared the account. A snapshot may be
    /// behind the event. If it agrees with the books but was requested shortly after the event, it
    /// does not refute the event's positions.
    pub(super) fn forget_statement(&mut self, surface: Surface, asked: Option<Time>) {
        if asked.is_some_and(|asked| self.may_be_behind_statement(surface, asked)) {
            self.postpone_statement(surface);
            return;
        }
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        let read_since = |(_, at): &(AccountTruth, Time)| asked.is_some_and(|asked| *at <= asked);
        if line.told.as_ref().is_some_and(read_since) {
            line.told = None;
            self.watch_losses_after_fill();
        }
    }

    /// Whether a snapshot requested at this time may be older than the statement about a position,
    /// or about a balance that fell.
    pub(super) fn may_be_behind_statement(&self, surface: Surface, asked: Time) -> bool {
        let Some(offset_ns) = self.clock_offset_ns(surface) else {
            return false;
        };
        let line = self.live.as_ref().and_then(|live| live.lines.get(&surface));
        let Some((line, (statement, _))) = line.and_then(|line| Some((line, line.told.as_ref()?)))
        else {
            return false;
        };
        let asked = Time(asked.0.saturating_add(offset_ns));
        let is_recent = |at: Time| asked <= at.plus_ms(READ_LAG_MS);
        let mut positions = statement.positions.iter();
        let mut balances = statement.balances.iter();
        let position = positions.any(|told| {
            let at = line.newest.position(told.instrument, told.position_side);
            !self.positions_agree(&[*told]) && at.is_some_and(is_recent)
        });
        let balance = balances.any(|told| {
            let known = self.balance(surface, told.asset).total;
            let at = line.newest.balance(told.asset);
            let lost = surface == Surface::Futures && told.total < known;
            lost && !self.is_same(surface, told.asset, told.total, known)
                && at.is_some_and(is_recent)
        });
        position || balance
    }

    /// The equity that the loss limits use while a statement is pending; `None` without a pending
    /// statement.
    ///
    /// Either the books or the statement is correct. A position that the statement does not list is
    /// closed or unchanged. A limit is breached if it is breached in all these cases. After
    /// [`TRUSTED_MS`] the statement counts as correct, because snapshots that agree with the books
    /// may be older.
    pub(super) fn best_equity(&self, books: Amount) -> Option<Amount> {
        let live = self.live.as_ref()?;
        let mut best = None;
        for (surface, line) in &live.lines {
            let statement = line.told.as_ref();
            let statement = statement.filter(|(told, _)| !self.awaits_fees(*surface, told));
            if let Some((statement, _)) = statement {
                let gain = self.stated_gain(*surface, statement);
                let more = if self.is_statement_right(*surface, statement) {
                    // Unlisted positions on other symbols may be closed too.
                    (gain + self.losses_of_others()).min(gain.max(Amount::ZERO))
                } else {
                    gain.max(Amount::ZERO)
                };
                best = Some(best.unwrap_or(books) + more);
            }
        }
        best
    }

    /// Marks the pending statement as possibly older than a snapshot that was accepted since:
    /// alone, it no longer decides for the loss limits.
    pub(super) fn doubt_statement(&mut self, surface: Surface) {
        if let Some(line) = self.line_mut(surface)
            && let Some((statement, _)) = &mut line.told
        {
            statement.lags = true;
        }
    }

    /// Whether the statement counts as correct: nothing newer than its balances is booked or was
    /// read. Also, no fill explained these balances, or an earlier statement, for a long time.
    fn is_statement_right(&self, surface: Surface, statement: &AccountTruth) -> bool {
        let line = self.live.as_ref().and_then(|live| live.lines.get(&surface));
        let (Some(line), Some(offset_ns)) = (line, self.clock_offset_ns(surface)) else {
            return false;
        };
        let venue_now = Time(self.now.0.saturating_add(offset_ns));
        // An outside party may move the balance at every event: then no statement would ever be old
        // enough.
        let is_overdue = (self.live.as_ref())
            .is_some_and(|live| live.doubts_any(&[Doubt::StatedBalance(surface)]));
        let is_old = |told: &BalanceUpdate| {
            let at = line.newest.balance(told.asset);
            at.is_some_and(|at| {
                at != Time::default()
                    && (is_overdue || venue_now > at.plus_ms(TRUSTED_MS))
                    && !line.past.has_fill_after(at)
            })
        };
        surface == Surface::Futures && !statement.lags && statement.balances.iter().all(is_old)
    }

    /// How much more equity the statement allows than the books.
    fn stated_gain(&self, surface: Surface, statement: &AccountTruth) -> Amount {
        let gain = |told: &BalanceUpdate| {
            let known = self.balance(surface, told.asset).total;
            self.worth(surface, told.asset, told.total - known)
        };
        let mut gain: Amount = statement.balances.iter().map(gain).sum();
        if surface == Surface::Spot {
            return gain;
        }
        for (id, side, holding) in self.ledgers.account.iter() {
            let instrument = &self.instruments[usize::from(id.0)];
            if instrument.surface != surface || Some(instrument.quote) != self.equity_asset() {
                continue;
            }
            let Some(mark) = self.markets[usize::from(id.0)].mark(instrument.price_scale) else {
                continue;
            };
            let known = holding.position.unrealized_pnl(instrument, mark);
            gain += match stated(statement, id, side) {
                Some(told) if told.qty.0 == holding.position.qty => Amount::ZERO,
                Some(told) => {
                    windvane_model::ledger::value(instrument, told.qty.0, mark) - told.cost - known
                }
                None => (-known).max(Amount::ZERO),
            };
        }
        gain
    }

    /// Whether the loss limits of strategies wait for a statement to be explained.
    pub(super) fn strategies_wait(&self) -> bool {
        let pending = |at: Time| self.now <= at.plus_ms(STRATEGIES_WAIT_MS);
        let mut lines = self.live.iter().flat_map(|live| &live.lines);
        lines.any(|(surface, line)| {
            let statement = line.told.as_ref();
            statement.is_some_and(|(told, at)| pending(*at) && !self.awaits_fees(*surface, told))
        })
    }
}

fn lines_are_empty(statement: &AccountTruth) -> bool {
    statement.balances.is_empty() && statement.positions.is_empty()
}

/// The entry of a statement for a position.
fn stated(
    statement: &AccountTruth,
    id: windvane_model::ids::InstrumentId,
    side: PositionSide,
) -> Option<&PositionUpdate> {
    let mut positions = statement.positions.iter();
    positions.find(|told| (told.instrument, told.position_side) == (id, side))
}
