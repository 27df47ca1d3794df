//! Account events as statements about the account: whether the books agree with them, now or a
//! moment ago, and what they mean for the loss limits while nothing explains them.

use windvane_model::decimal::Amount;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::ids::Time;
use windvane_model::order::{PositionSide, Surface};
use windvane_model::protocol::{AccountReason, AccountUpdate, BalanceUpdate, PositionUpdate};
use windvane_model::state_report::AccountSnapshot;

use crate::Evidence;
use crate::lag::READ_LAG_MS;

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
    pub fn predates_last_snapshot(&self, update: &AccountUpdate) -> bool {
        let connection = self.connection(update.surface);
        let taken = connection.and_then(|connection| connection.reconciled_until);
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
        let Some(connection) = self.connection(surface) else {
            return false;
        };
        let is_old = connection.newest_events.has_newer(asset, update.event_time);
        let pending = connection
            .pending_event
            .iter()
            .flat_map(|(statement, _)| &statement.balances);
        let mut pending = pending.filter(|reported| reported.asset == asset);
        if pending.any(|reported| reported.total == known + change) {
            return false;
        }
        balance.total == known
            || (is_old
                && connection
                    .history
                    .had_balance(self.now, asset, balance.total))
    }

    /// Whether the books match the statement: positions exactly, balances apart from rounding.
    pub fn agrees_with_books(&self, surface: Surface, statement: &AccountSnapshot) -> bool {
        self.positions_agree(&statement.positions)
            && self.different_balances(surface, statement).next().is_none()
    }

    /// Whether the books matched the statement within the last moments.
    pub fn agreed_recently(&self, surface: Surface, statement: &AccountSnapshot) -> bool {
        let connection = self.connection(surface);
        let same = |asset, reported, known| self.is_same(surface, asset, reported, known);
        connection.is_some_and(|connection| {
            connection
                .history
                .matched_recently(self.now, statement, same)
        })
    }

    /// Whether a statement is late and differs only by estimated commissions. A present statement
    /// stays pending, because the loss limits use it.
    pub fn is_late_apart_from_estimates(
        &self,
        surface: Surface,
        statement: &AccountSnapshot,
    ) -> bool {
        !self.agrees_with_books(surface, statement)
            && !self.awaits_fees(surface, statement)
            && self.agreed_apart_from_estimates(surface, statement)
    }

    /// Whether a snapshot requested at this time may be older than the statement about a position,
    /// or about a balance that fell.
    pub fn may_predate_account_event(&self, surface: Surface, asked: Time) -> bool {
        let Some(offset_ns) = self.clock_offset_ns(surface) else {
            return false;
        };
        let connection = self.connection(surface);
        let Some((connection, (statement, _))) = connection
            .and_then(|connection| Some((connection, connection.pending_event.as_ref()?)))
        else {
            return false;
        };
        let asked = Time(asked.0.saturating_add(offset_ns));
        let is_recent = |at: Time| asked <= at.plus_ms(READ_LAG_MS);
        let mut positions = statement.positions.iter();
        let mut balances = statement.balances.iter();
        let position = positions.any(|reported| {
            let at = connection
                .newest_events
                .position(reported.instrument, reported.position_side);
            !self.positions_agree(&[*reported]) && at.is_some_and(is_recent)
        });
        let balance = balances.any(|reported| {
            let known = self.balance(surface, reported.asset).total;
            let at = connection.newest_events.balance(reported.asset);
            let lost = surface == Surface::Futures && reported.total < known;
            lost && !self.is_same(surface, reported.asset, reported.total, known)
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
        for (surface, connection) in self.connections {
            let statement = connection.pending_event.as_ref();
            let statement = statement.filter(|(reported, _)| !self.awaits_fees(*surface, reported));
            if let Some((statement, _)) = statement {
                let gain = self.stated_gain(*surface, statement);
                let more = if self.is_account_event_right(*surface, statement) {
                    // Unlisted positions on other symbols may be closed too.
                    (gain + self.unconfigured_positions.losses()).min(gain.max(Amount::ZERO))
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
    fn is_account_event_right(&self, surface: Surface, statement: &AccountSnapshot) -> bool {
        let connection = self.connection(surface);
        let (Some(connection), Some(offset_ns)) = (connection, self.clock_offset_ns(surface))
        else {
            return false;
        };
        let venue_now = Time(self.now.0.saturating_add(offset_ns));
        // An outside party may move the balance at every event: then no statement would ever be old
        // enough.
        let is_overdue = self
            .degraded_reasons
            .contains(&DegradedReason::StatedBalance(surface));
        let is_old = |reported: &BalanceUpdate| {
            let at = connection.newest_events.balance(reported.asset);
            at.is_some_and(|at| {
                at != Time::default()
                    && (is_overdue || venue_now > at.plus_ms(TRUSTED_MS))
                    && !connection.history.has_fill_after(at)
            })
        };
        surface == Surface::Futures && !statement.lags && statement.balances.iter().all(is_old)
    }

    /// How much more equity the statement allows than the books.
    fn stated_gain(&self, surface: Surface, statement: &AccountSnapshot) -> Amount {
        let gain = |reported: &BalanceUpdate| {
            let known = self.balance(surface, reported.asset).total;
            self.worth(surface, reported.asset, reported.total - known)
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
                Some(reported) if reported.qty.0 == holding.position.qty => Amount::ZERO,
                Some(reported) => {
                    windvane_model::ledger::value(instrument, reported.qty.0, mark)
                        - reported.cost
                        - known
                }
                None => (-known).max(Amount::ZERO),
            };
        }
        gain
    }

    /// Whether the loss limits of strategies wait for a statement to be explained.
    pub fn strategy_limits_wait(&self) -> bool {
        let pending = |at: Time| self.now <= at.plus_ms(STRATEGIES_WAIT_MS);
        let mut connections = self.connections.iter();
        connections.any(|(surface, connection)| {
            let statement = connection.pending_event.as_ref();
            statement
                .is_some_and(|(reported, at)| pending(*at) && !self.awaits_fees(*surface, reported))
        })
    }
}

/// The entry of a statement for a position.
fn stated(
    statement: &AccountSnapshot,
    id: windvane_model::ids::InstrumentId,
    side: PositionSide,
) -> Option<&PositionUpdate> {
    let mut positions = statement.positions.iter();
    positions.find(|reported| (reported.instrument, reported.position_side) == (id, side))
}
