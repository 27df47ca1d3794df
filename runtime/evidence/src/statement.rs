//! Account events as statements about the account: whether the books agree with them, now or a
//! moment ago, and what they mean for the loss limits while nothing explains them.

use windvane_model::decimal::Amount;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::ids::Time;
use windvane_model::order::{PositionSide, Surface};
use windvane_model::protocol::{AccountReason, AccountUpdate, BalanceUpdate, PositionUpdate};
use windvane_model::truth::AccountTruth;

use crate::Evidence;
use crate::past::READ_LAG_MS;

/// A statement that no fill explained for this long counts as correct for the loss limits.
const TRUSTED_MS: i64 = 1_000;

/// The loss limits of strategies wait at most this long for a statement to be explained.
const STRATEGIES_WAIT_MS: i64 = 10_000;

impl Evidence<'_> {
    /// The change of a balance that an event explains itself. A spot event does not state it: the
    /// whole difference came in or went out, unless an own order may have filled.
    pub fn stated_change(&self, update: &AccountUpdate, balance: &BalanceUpdate) -> Amount {
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

    /// Whether the last accepted snapshot is newer than an event.
    pub fn was_read(&self, update: &AccountUpdate) -> bool {
        let line = self.line(update.surface);
        let taken = line.and_then(|line| line.taken);
        let at = update.event_time;
        at != Time::default() && taken.is_some_and(|taken| at <= taken)
    }

    /// Whether the books already contain a change: its event was repeated, or arrived after an
    /// account snapshot.
    pub fn contains_change(
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
        let Some(line) = self.line(surface) else {
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

    /// Whether the books match the statement: positions exactly, balances apart from rounding.
    pub fn agrees(&self, surface: Surface, statement: &AccountTruth) -> bool {
        self.positions_agree(&statement.positions)
            && self.different_balances(surface, statement).next().is_none()
    }

    /// Whether the books matched the statement within the last moments.
    pub fn agreed_lately(&self, surface: Surface, statement: &AccountTruth) -> bool {
        let line = self.line(surface);
        let same = |asset, told, known| self.is_same(surface, asset, told, known);
        line.is_some_and(|line| line.past.was(self.now, statement, same))
    }

    /// Whether a statement is late and differs only by estimated commissions. A present statement
    /// stays pending, because the loss limits use it.
    pub fn is_late_beside_estimates(&self, surface: Surface, statement: &AccountTruth) -> bool {
        !self.agrees(surface, statement)
            && !self.awaits_fees(surface, statement)
            && self.agreed_beside_estimates(surface, statement)
    }

    /// Whether a snapshot requested at this time may be older than the statement about a position,
    /// or about a balance that fell.
    pub fn may_be_behind_statement(&self, surface: Surface, asked: Time) -> bool {
        let Some(offset_ns) = self.clock_offset_ns(surface) else {
            return false;
        };
        let line = self.line(surface);
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
    /// `TRUSTED_MS` the statement counts as correct, because snapshots that agree with the books
    /// may be older.
    pub fn best_equity(&self, books: Amount) -> Option<Amount> {
        let mut best = None;
        for (surface, line) in self.lines {
            let statement = line.told.as_ref();
            let statement = statement.filter(|(told, _)| !self.awaits_fees(*surface, told));
            if let Some((statement, _)) = statement {
                let gain = self.stated_gain(*surface, statement);
                let more = if self.is_statement_right(*surface, statement) {
                    // Unlisted positions on other symbols may be closed too.
                    (gain + self.others.losses()).min(gain.max(Amount::ZERO))
                } else {
                    gain.max(Amount::ZERO)
                };
                best = Some(best.unwrap_or(books) + more);
            }
        }
        best
    }

    /// Whether the statement counts as correct: nothing newer than its balances is booked or was
    /// read. Also, no fill explained these balances, or an earlier statement, for a long time.
    fn is_statement_right(&self, surface: Surface, statement: &AccountTruth) -> bool {
        let line = self.line(surface);
        let (Some(line), Some(offset_ns)) = (line, self.clock_offset_ns(surface)) else {
            return false;
        };
        let venue_now = Time(self.now.0.saturating_add(offset_ns));
        // An outside party may move the balance at every event: then no statement would ever be old
        // enough.
        let is_overdue = self
            .doubts
            .contains(&DegradedReason::StatedBalance(surface));
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
    pub fn strategies_wait(&self) -> bool {
        let pending = |at: Time| self.now <= at.plus_ms(STRATEGIES_WAIT_MS);
        let mut lines = self.lines.iter();
        lines.any(|(surface, line)| {
            let statement = line.told.as_ref();
            statement.is_some_and(|(told, at)| pending(*at) && !self.awaits_fees(*surface, told))
        })
    }
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
