//! Compares the account as the venue reports it with the books. A difference counts after two
//! snapshots that agree, if no own fill explains it. Then the engine takes the venue's value, as an
//! adjustment with its cause (`docs/promises.md#3-the-venue-is-the-authority`). The round
//! (`reconcile`) decides when to request the account.

use windvane_evidence::account_history::SnapshotAge;
use windvane_evidence::agreement::{Agreement, MOVING_READS, have_equal_positions};
use windvane_evidence::connection::{Connection, RoundStep};
use windvane_evidence::lag::READ_LAG_MS;
use windvane_model::decimal::Amount;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::{Adjustment, Cause};
use windvane_model::ids::InstrumentId;
use windvane_model::order::{PositionSide, Surface};
use windvane_model::planted;
use windvane_model::state_report::AccountSnapshot;
use windvane_model::timer::Timer;

use super::Engine;

/// Time from the first snapshot to the second. Two snapshots within a shorter time may come from
/// the same cached copy.
pub(super) const READ_AGAIN_MS: i64 = 1_000;
/// Time from the first snapshot to the second for an account that is not known at all: no own fill
/// can explain a difference.
const READ_AGAIN_UNKNOWN_MS: i64 = 250;
/// Time between snapshots once they have never agreed for [`READS_MAX`] snapshots.
const READ_AGAIN_UNEXPLAINED_MS: i64 = 2_000;
/// Time between snapshots where positions are missing and nothing else changed.
const READ_AGAIN_SHORT_MS: i64 = 5_000;
/// Pause between two reads of the list of the account's trades, while that list may be behind the
/// account.
const TRADES_AGAIN_MS: i64 = 2_000;
/// After this many snapshots that never agree, the account counts as unexplained.
const READS_MAX: u32 = 8;

impl Engine {
    pub(super) fn take_account(&mut self, surface: Surface, read: &AccountSnapshot) {
        self.compare_modes(surface, read);
        self.close_by_snapshot(surface, read);
        self.take_locked(surface, read);
        let account = &self.evidence().complete_snapshot(surface, read);
        let differences = self.evidence().differences(surface, account);
        let misses_fill = self.evidence().misses_fill(surface);
        let age = if differences.is_empty() {
            SnapshotAge::Current
        } else {
            let is_incomplete = self.evidence().is_incomplete(surface, read);
            self.snapshot_age(surface, account, is_incomplete)
        };
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        let now_events = connection.events;
        let quiet = now_events == connection.round.events_when_asked;
        if quiet {
            self.note_listed_positions(surface, read, age == SnapshotAge::Stale);
        }
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        let no_trades = connection.no_trades;
        if differences.is_empty() {
            connection.history.note_agreement();
            self.take_unconfigured_positions();
            if surface == Surface::Futures {
                self.forget_unconfigured_profit();
                self.incomes.end_query();
            }
            // Two unknown fills may cancel each other out and leave the account as it is in the
            // books.
            if quiet && !misses_fill {
                self.verify_trades(surface);
                if !account.lags || self.evidence().is_unchanged_for_long(surface) {
                    // An unknown close moves the balance, even if the same quantity was bought
                    // again.
                    self.take_entries(account, true);
                }
            }
            if let Some(asked) = self
                .connection_mut(surface)
                .map(|connection| connection.round.asked_at)
            {
                self.forget_free_fills(surface, asked);
                if quiet && surface == Surface::Futures {
                    let (orders, instruments) = (&self.orders, &self.instruments);
                    self.fills_from_totals.confirm(asked, orders, instruments);
                }
                self.refute_stated_balances(surface, asked);
                if surface == Surface::Futures {
                    self.refute_stated_positions(asked);
                }
            }
            self.watch_all_losses();
            self.end_round(surface);
            return;
        }
        let rash = planted!(AdjustAfterOneRead) && quiet;
        let believed = planted!(OlderAccountRead) && !quiet;
        if rash || believed {
            self.adjust(surface, account);
            self.end_round(surface);
            return;
        }
        if age == SnapshotAge::Incomplete {
            self.request_forced_close_evidence(surface, read);
            self.degrade_for_unlisted_coins(surface, read);
            self.reconcile_later(surface, READ_AGAIN_SHORT_MS);
            return;
        }
        if age == SnapshotAge::Stale && connection.last_clean_round.is_some() {
            self.postpone_account_request(surface);
            self.end_round_with_stale_snapshot(surface, account);
            return;
        }
        if age == SnapshotAge::Stale {
            // No snapshot agreed since the stream connected, so this one does not prove that the
            // books are right.
            self.reconcile_later(surface, READ_AGAIN_MS);
            return;
        }
        if self.wait_for_fees(surface, account, &differences) {
            return;
        }
        let Agreement {
            agreed,
            was_searched,
        } = self.evidence().agreement(surface, account, &differences);
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        if agreed && !was_searched {
            // The account's trades, or its open orders, are read first: if own fills explain the
            // difference, no adjustment is needed. Trades or orders that were read for another
            // difference, or earlier, may lack the one that explains this difference.
            let changes = differences.clone();
            let searched_trades_for = connection.round.searched_trades_for.replace(differences);
            connection.round.last_differences = None;
            // These two agreed, so the next two are requested soon after each other.
            connection.round.snapshots_read = connection.round.snapshots_read.min(READS_MAX - 3);
            self.request_trades_for_difference(surface, no_trades);
            // On an active account other balances change meanwhile. A position difference that
            // stays has already waited.
            let waited =
                searched_trades_for.is_some_and(|before| have_equal_positions(&before, &changes));
            if !waited {
                self.begin_trades_delay(surface, &changes);
            }
            self.ask_next(surface);
            return;
        }
        if agreed
            && (self.timers.is_set(Timer::TradesLag { surface }) || self.may_precede_fill(surface))
        {
            // The list of trades may be behind the account, or the account may be behind the last
            // fill. Both are read again before the difference counts.
            self.degrade_before_first_comparison(surface);
            self.request_trades_for_difference(surface, no_trades);
            self.reconcile_later(surface, TRADES_AGAIN_MS);
            return;
        }
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        // Since this difference was seen, open orders were read, and unlisted orders were queried.
        let since = connection.round.orders_asked;
        if agreed && no_trades && self.evidence().may_miss_fill_of(surface, since) {
            // The fill will be reported late, or derived from the order's totals. An adjustment now
            // would count it twice.
            self.reconcile_later(surface, READ_AGAIN_MS);
            return;
        }
        if agreed && self.ask_for_income(surface, account, &differences) {
            return;
        }
        if agreed {
            self.adjust(surface, account);
            self.end_round(surface);
            return;
        }
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        let counts = quiet || connection.round.snapshots_read + 1 >= MOVING_READS;
        connection.round.last_differences = counts.then_some((differences, now_events));
        connection.round.snapshots_read += 1;
        let unexplained = connection.round.snapshots_read >= READS_MAX;
        let wait_ms = match (unexplained, self.is_account_known(surface)) {
            (true, _) => READ_AGAIN_UNEXPLAINED_MS,
            (false, true) => READ_AGAIN_MS,
            (false, false) => READ_AGAIN_UNKNOWN_MS,
        };
        self.reconcile_later(surface, wait_ms);
        if unexplained {
            self.notify_round(surface, false);
            self.set_degraded(DegradedReason::Reconciliation(surface), true);
            self.update_state();
        }
    }

    /// Handles balances that differ by an amount that may be commissions left out of events. The
    /// engine reads the list of the account's trades once for these commissions, and again later if
    /// the trades are not listed yet. Returns whether nothing else differs.
    fn wait_for_fees(
        &mut self,
        surface: Surface,
        account: &AccountSnapshot,
        differences: &[Adjustment],
    ) -> bool {
        if !self.evidence().awaits_fees(surface, account) {
            return false;
        }
        self.late_fees.want();
        let Some(connection) = self.connection_mut(surface) else {
            return false;
        };
        if connection.round.searched_trades_for.is_some() {
            self.end_round(surface);
            return true;
        }
        connection.round.searched_trades_for = Some(differences.to_vec());
        connection.round.last_differences = None;
        if self.evidence().has_derived_fill() {
            // Trades that no event has reported yet also state the commission of an estimated fill.
            self.request_trades_for_difference(surface, false);
        } else {
            let step = self.step_of_fees();
            if let Some(connection) = self.connection_mut(surface) {
                connection.round.step = step;
            }
        }
        self.ask_next(surface);
        true
    }

    /// Continues the reconciliation round with the list of the account's trades, or with the open
    /// orders where the venue lists no trades.
    fn request_trades_for_difference(&mut self, surface: Surface, no_trades: bool) {
        let instruments = self.instruments_of(surface);
        if let Some(connection) = self.connection_mut(surface) {
            connection.round.step = if no_trades {
                RoundStep::Orders
            } else {
                RoundStep::Trades(instruments)
            };
        }
    }

    /// Waits for late trades after a new position difference. The engine does not wait at the first
    /// snapshot of an account that is not known at all, because no own fill explains its positions.
    /// It does not wait for a position that the venue refused to reduce. Where a journal was lost,
    /// the first snapshot waits for trades from before the stream connected: a trade listed later
    /// would be counted twice.
    fn begin_trades_delay(&mut self, surface: Surface, differences: &[Adjustment]) {
        let moves_position = differences.iter().any(|one| match one {
            Adjustment::Position {
                instrument, side, ..
            } => !self.outside_closes.was_refused((*instrument, *side)),
            _ => false,
        });
        let timer = Timer::TradesLag { surface };
        let waits = moves_position && self.is_account_known(surface);
        let listed = waits.then(|| self.now.plus_ms(READ_LAG_MS));
        let live = self.live.as_ref();
        let is_initial_state_unknown =
            live.is_some_and(|live| live.is_recovering_lost_account(surface));
        let up = self
            .stream_up
            .get(&surface)
            .filter(|_| is_initial_state_unknown);
        let found = up.map(|up| up.plus_ms(READ_LAG_MS));
        let until = listed.max(found).filter(|until| *until > self.now);
        match until.filter(|_| !planted!(TradesLagIgnored)) {
            Some(until) => self.timers.set(until, timer),
            None => self.timers.cancel(timer),
        }
    }

    /// Whether balances of this surface are known, from a snapshot or from an earlier process.
    fn is_account_known(&self, surface: Surface) -> bool {
        self.balances.keys().any(|(of, _)| *of == surface)
    }

    /// Shows the degraded reason while the engine waits for more snapshots, if nothing was compared
    /// since the stream connected.
    fn degrade_before_first_comparison(&mut self, surface: Surface) {
        let is_first = |connection: &mut Connection| connection.last_clean_round.is_none();
        if self.connection_mut(surface).is_some_and(is_first) {
            self.set_degraded(DegradedReason::Reconciliation(surface), true);
            self.update_state();
        }
    }

    /// The list of trades is complete now: the engine reads it once more, and then the account.
    pub(super) fn trades_delay_is_over(&mut self, surface: Surface) {
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        if connection.round.is_idle() || connection.round.searched_trades_for.is_none() {
            return;
        }
        connection.round.last_differences = None;
        let no_trades = connection.no_trades;
        self.request_trades_for_difference(surface, no_trades);
    }

    /// Adjusts the books to the venue's values.
    fn adjust(&mut self, surface: Surface, account: &AccountSnapshot) {
        self.note_accepted_snapshot(surface, account);
        self.take_unconfigured_positions();
        let is_transfer = self.evidence().positions_agree(&account.positions)
            && !self.evidence().misses_fill(surface);
        let gains = self.evidence().gains_of_closes(surface, account);
        let mut fees = self.evidence().fees_by_agreement(surface, account);
        for balance in &account.balances {
            let known = self.balance(surface, balance.asset).total;
            if known != balance.total {
                if is_transfer {
                    self.shift_loss_base(surface, balance);
                    let moved = balance.total - known;
                    let correction =
                        self.evidence()
                            .correction_of_estimates(surface, balance.asset, moved);
                    if correction != Amount::ZERO {
                        fees = None;
                        self.correct_estimates(balance.asset, correction);
                    }
                } else {
                    self.count_lost_other_assets(surface, balance);
                }
                self.take_balance(surface, balance, Cause::Reconciliation);
            }
        }
        for position in &account.positions {
            let key = (position.instrument, position.position_side);
            let gain = gains.get(&key).copied().unwrap_or_default();
            self.take_outside_close(position, gain);
            // After a close, outside parties may have opened the other side. Or own fills did so,
            // and the venue closed more than is left in the books.
            self.note_moved_position(position);
            self.take_position(position, Cause::Reconciliation);
        }
        self.review_unlisted();
        self.forget_stated_balances(surface);
        if surface == Surface::Futures {
            self.forget_stated_positions();
        }
        if let Some(fees) = fees {
            self.share_fees(fees);
        }
        // The snapshot's positions equalled the books, so it contains every booked fill.
        self.fees_are_in_snapshot(surface, is_transfer);
        if surface == Surface::Futures {
            self.incomes.end_query();
        }
        if !account.lags {
            let serves_account_trades = self
                .connection_mut(surface)
                .is_some_and(|connection| !connection.no_trades);
            self.take_entries(account, serves_account_trades);
        }
        self.mark_account_event_stale(surface);
        // Losses in the adjustment count even if no position is held any more.
        self.watch_losses_after_fill();
    }

    /// Takes the venue's entry cost of each position. Fills that were recovered in a different
    /// order give another average. There are two exceptions. The venue may round the entry to the
    /// tick (docs/interface/user-stream.md#account_update): a difference within that rounding is
    /// ignored. If all fills are known (`all_known`) and a snapshot confirmed the entry, a later
    /// difference is ignored too: the venue rounds to a tick that the engine has not read yet. A
    /// fill in the order of its trade ids keeps a confirmed entry confirmed.
    fn take_entries(&mut self, account: &AccountSnapshot, all_known: bool) {
        for reported in &account.positions {
            let (id, side) = (reported.instrument, reported.position_side);
            if usize::from(id.0) >= self.instruments.len() || reported.cost == Amount::ZERO {
                continue;
            }
            let Some(entry) = self.evidence().stated_entry(reported) else {
                continue;
            };
            if entry.is_rounding {
                self.confirm_entry(id, side);
            } else if !all_known || !self.is_entry_confirmed(id, side) {
                self.ledgers.account.at_mut(id, side).position.cost = reported.cost;
                self.ledgers.external.at_mut(id, side).position.cost += entry.moved;
            }
        }
    }

    /// Marks the present entry as confirmed: a snapshot agrees with it, or fills in trade order led
    /// to it from a confirmed entry.
    pub(super) fn confirm_entry(&mut self, id: InstrumentId, side: PositionSide) {
        let known = self.evidence().known_entry(id, side);
        self.confirmed_entries.insert((id, side), known);
    }

    pub(super) fn is_entry_confirmed(&self, id: InstrumentId, side: PositionSide) -> bool {
        let known = self.evidence().known_entry(id, side);
        self.confirmed_entries.get(&(id, side)) == Some(&known)
    }

    /// Takes the unavailable part of each balance from a snapshot without events in between. It
    /// changes with every order and every mark price, so it never counts as a difference.
    fn take_locked(&mut self, surface: Surface, account: &AccountSnapshot) {
        let is_quiet =
            |connection: &mut Connection| connection.events == connection.round.events_when_asked;
        if !self.connection_mut(surface).is_some_and(is_quiet) {
            return;
        }
        for read in &account.balances {
            if let Some(balance) = self.balances.get_mut(&(surface, read.asset))
                && balance.total == read.total
            {
                balance.locked = read.locked;
            }
        }
    }
}
