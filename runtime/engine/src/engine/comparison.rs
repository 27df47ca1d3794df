//! The account as the venue tells it, held against ours. A difference counts after two readings
//! that agree and that nothing of our own explains; then the venue's word is taken, as an
//! adjustment with its cause (promise 3). When the account is asked for is the round's business.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::effect::{Adjustment, Cause};
use crate::ids::InstrumentId;
use crate::order::{PositionSide, Surface};
use crate::planted;
use crate::protocol::PositionUpdate;
use crate::timer::Timer;
use crate::truth::AccountTruth;

use super::Engine;
use super::agreement::{Agreement, MOVING_READS, have_equal_positions};
use super::doubt::Doubt;
use super::lag::{Age, READ_LAG_MS};
use super::reconcile::Step;
use super::session::Line;

/// From the first read to the second. Two readings within a shorter time may come from one copy.
pub(super) const READ_AGAIN_MS: i64 = 1_000;
/// The same for an account that is not known at all: no fill of ours can explain it.
const READ_AGAIN_UNKNOWN_MS: i64 = 250;
/// After readings that never agreed.
const READ_AGAIN_UNEXPLAINED_MS: i64 = 2_000;
/// Where positions are missing and nothing else changed.
const READ_AGAIN_SHORT_MS: i64 = 5_000;
/// While the list of trades may be behind the account, it is read again so often.
const TRADES_AGAIN_MS: i64 = 2_000;
/// So many reads that never agree leave the account unexplained.
const READS_MAX: u32 = 8;
/// An entry that differs by less than this part is what the venue rounds.
const ENTRY_PARTS: i128 = 100_000_000;

/// Entries of positions that a reading confirmed.
pub(super) type ConfirmedEntries = BTreeMap<(InstrumentId, PositionSide), ConfirmedEntry>;

/// A position, as we knew it when a reading confirmed its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ConfirmedEntry {
    qty: i64,
    cost: Amount,
    /// The tick to which the venue may have rounded what it told.
    tick: i64,
}

impl Engine {
    pub(super) fn take_account(&mut self, surface: Surface, read: &AccountTruth) {
        self.compare_modes(surface, read);
        self.close_by_reading(surface, read);
        self.take_locked(surface, read);
        let account = &self.complete_reading(surface, read);
        let differences = self.differences(surface, account);
        let misses_fill = self.misses_fill(surface);
        let age = if differences.is_empty() {
            Age::Present
        } else {
            let is_short = self.is_short(surface, read);
            self.age_of(surface, account, is_short)
        };
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        let now_events = line.events;
        let quiet = now_events == line.round.events_when_asked;
        if quiet {
            self.note_listing(surface, read, age == Age::Past);
        }
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        let no_trades = line.no_trades;
        if differences.is_empty() {
            line.past.agreed();
            self.take_stated();
            if surface == Surface::Futures {
                self.forget_realized_elsewhere();
                self.end_income_question();
            }
            // Two fills that we do not know may leave the account as we know it.
            if quiet && !misses_fill {
                self.verify_trades(surface);
                if !account.lags || self.is_unchanged_for_long(surface) {
                    // An unknown close moves the balance, whatever was bought again.
                    self.take_entries(account, true);
                }
            }
            if let Some(asked) = self.line_mut(surface).map(|line| line.round.asked_at) {
                self.forget_free_fills(surface, asked);
                if quiet && surface == Surface::Futures {
                    self.confirm_estimates(asked);
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
        if age == Age::Short {
            self.ask_for_traces(surface, read);
            self.doubt_unlisted_coins(surface, read);
            self.later(surface, READ_AGAIN_SHORT_MS);
            return;
        }
        if age == Age::Past && line.clean.is_some() {
            self.postpone_statement(surface);
            self.end_round_of_the_past(surface, account);
            return;
        }
        if age == Age::Past {
            // Nothing was compared since the stream came up: this is no evidence that all is well.
            self.later(surface, READ_AGAIN_MS);
            return;
        }
        if self.wait_for_fees(surface, account, &differences) {
            return;
        }
        let Agreement {
            agreed,
            was_looked_for,
        } = self.agreement(surface, account, &differences);
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        if agreed && !was_looked_for {
            // What our own fills explain needs no adjustment. Trades, or orders, that were read for
            // another difference, or before it, may lack the one that explains this.
            let changes = differences.clone();
            let looked_for = line.round.looked_for.replace(differences);
            line.round.seen = None;
            // These two agreed: the next two are not far apart.
            line.round.reads = line.round.reads.min(READS_MAX - 3);
            self.look_for_trades(surface, no_trades);
            // Other balances move on an active account: a position whose gap stays has waited already.
            let waited = looked_for.is_some_and(|before| have_equal_positions(&before, &changes));
            if !waited {
                self.begin_trades_lag(surface, &changes);
            }
            self.ask_next(surface);
            return;
        }
        if agreed
            && (self.timers.is_set(Timer::TradesLag { surface }) || self.may_precede_fill(surface))
        {
            // The list may be behind the account, or the account behind the last fill: both are read
            // again before the difference counts.
            self.doubt_first_reading(surface);
            self.look_for_trades(surface, no_trades);
            self.later(surface, TRADES_AGAIN_MS);
            return;
        }
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        // Orders were read since this difference was seen, and those that are not listed asked for.
        let since = line.round.orders_asked;
        if agreed && no_trades && self.may_miss_fill_of(surface, since) {
            // It is told late, or made up from the order's totals: taken now, it would count twice.
            self.later(surface, READ_AGAIN_MS);
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
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        let counts = quiet || line.round.reads + 1 >= MOVING_READS;
        line.round.seen = counts.then_some((differences, now_events));
        line.round.reads += 1;
        let unexplained = line.round.reads >= READS_MAX;
        let wait_ms = match (unexplained, self.is_account_known(surface)) {
            (true, _) => READ_AGAIN_UNEXPLAINED_MS,
            (false, true) => READ_AGAIN_MS,
            (false, false) => READ_AGAIN_UNKNOWN_MS,
        };
        self.later(surface, wait_ms);
        if unexplained {
            self.tell_round(surface, false);
            self.set_doubt(Doubt::Reconciliation(surface), true);
            self.update_state();
        }
    }

    /// Balances differ by what commissions may be that events left out: account trades are read once for
    /// them, and later again where they are not listed yet. Answers whether nothing else differs.
    fn wait_for_fees(
        &mut self,
        surface: Surface,
        account: &AccountTruth,
        differences: &[Adjustment],
    ) -> bool {
        if !self.awaits_fees(surface, account) {
            return false;
        }
        self.want_fees();
        let Some(line) = self.line_mut(surface) else {
            return false;
        };
        if line.round.looked_for.is_some() {
            self.end_round(surface);
            return true;
        }
        line.round.looked_for = Some(differences.to_vec());
        line.round.seen = None;
        if self.has_made_up_fill() {
            // Trades that no event told yet state its commission too.
            self.look_for_trades(surface, false);
        } else {
            let step = self.step_of_fees();
            if let Some(line) = self.line_mut(surface) {
                line.round.step = step;
            }
        }
        self.ask_next(surface);
        true
    }

    /// The round goes on with the account trades, or with the open orders where there are none.
    fn look_for_trades(&mut self, surface: Surface, no_trades: bool) {
        let instruments = self.instruments_of(surface);
        if let Some(line) = self.line_mut(surface) {
            line.round.step = if no_trades {
                Step::Orders
            } else {
                Step::Trades(instruments)
            };
        }
    }

    /// A new difference of a position waits for trades that are listed late. The first reading of an
    /// account that is not known at all does not: no fill of ours explains it. Neither does a position
    /// that the venue refused to reduce. Where a journal was lost, the first reading waits for the trades
    /// of before the stream came up: one that is listed later would be counted beside it.
    fn begin_trades_lag(&mut self, surface: Surface, differences: &[Adjustment]) {
        let moves_position = differences.iter().any(|one| match one {
            Adjustment::Position {
                instrument, side, ..
            } => !self.was_close_refused(*instrument, *side),
            _ => false,
        });
        let timer = Timer::TradesLag { surface };
        let waits = moves_position && self.is_account_known(surface);
        let listed = waits.then(|| self.now.plus_ms(READ_LAG_MS));
        let live = self.live.as_ref();
        let is_finding = live.is_some_and(|live| live.finds_lost_account(surface));
        let up = self.stream_up.get(&surface).filter(|_| is_finding);
        let found = up.map(|up| up.plus_ms(READ_LAG_MS));
        let until = listed.max(found).filter(|until| *until > self.now);
        match until.filter(|_| !planted!(TradesLagIgnored)) {
            Some(until) => self.timers.set(until, timer),
            None => self.timers.cancel(timer),
        }
    }

    /// Whether balances of this surface are known, from a reading or from an earlier process.
    fn is_account_known(&self, surface: Surface) -> bool {
        self.balances.keys().any(|(of, _)| *of == surface)
    }

    /// Nothing was compared since the stream came up, and the readings differ: the reason is shown while
    /// later ones are waited for.
    fn doubt_first_reading(&mut self, surface: Surface) {
        let is_first = |line: &mut Line| line.clean.is_none();
        if self.line_mut(surface).is_some_and(is_first) {
            self.set_doubt(Doubt::Reconciliation(surface), true);
            self.update_state();
        }
    }

    /// The list of trades has everything now: it is read once more, and then the account.
    pub(super) fn trades_lag_is_over(&mut self, surface: Surface) {
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        if line.round.is_idle() || line.round.looked_for.is_none() {
            return;
        }
        line.round.seen = None;
        let no_trades = line.no_trades;
        self.look_for_trades(surface, no_trades);
    }

    /// Where the account differs from ours. What is not listed is not compared.
    pub(super) fn differences(&self, surface: Surface, account: &AccountTruth) -> Vec<Adjustment> {
        let mut differences = Vec::new();
        for balance in &account.balances {
            let from = self.balance(surface, balance.asset).total;
            if from != balance.total {
                differences.push(Adjustment::Balance {
                    surface,
                    asset: balance.asset,
                    from,
                    to: balance.total,
                });
            }
        }
        for position in &account.positions {
            let (id, side) = (position.instrument, position.position_side);
            if usize::from(id.0) >= self.instruments.len() {
                continue;
            }
            let from = self.ledgers.account.at(id, side).position.qty;
            if from != position.qty.0 {
                differences.push(Adjustment::Position {
                    instrument: id,
                    side,
                    from,
                    to: position.qty.0,
                });
            }
        }
        differences
    }

    /// Whether every position that is told is as we know it.
    pub(super) fn positions_agree(&self, told: &[PositionUpdate]) -> bool {
        told.iter().all(|position| {
            let (id, side) = (position.instrument, position.position_side);
            usize::from(id.0) >= self.instruments.len()
                || self.ledgers.account.at(id, side).position.qty == position.qty.0
        })
    }

    /// Takes the venue's word.
    fn adjust(&mut self, surface: Surface, account: &AccountTruth) {
        self.note_taken(surface, account);
        self.take_stated();
        let is_transfer = self.positions_agree(&account.positions) && !self.misses_fill(surface);
        let gains = self.gains_of_closes(surface, account);
        let mut fees = self.fees_by_agreement(surface, account);
        for balance in &account.balances {
            let known = self.balance(surface, balance.asset).total;
            if known != balance.total {
                if is_transfer {
                    self.shift_by_untold(surface, balance);
                    let moved = balance.total - known;
                    let correction = self.correction_of_estimates(surface, balance.asset, moved);
                    if correction != Amount::ZERO {
                        fees = None;
                        self.correct_estimates(balance.asset, correction);
                    }
                } else {
                    self.lose_beside_differences(surface, balance);
                }
                self.take_balance(surface, balance, Cause::Reconciliation);
            }
        }
        for position in &account.positions {
            let key = (position.instrument, position.position_side);
            let gain = gains.get(&key).copied().unwrap_or_default();
            self.take_outside_close(position, gain);
            // After a close, others may have opened on the other side; or own fills did that, and the venue closed
            // more than is left here.
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
        // Its positions were those of the books: it contains every fill that is booked.
        self.fees_are_in_reading(surface, is_transfer);
        if surface == Surface::Futures {
            self.end_income_question();
        }
        if !account.lags {
            let tells_trades = self.line_mut(surface).is_some_and(|line| !line.no_trades);
            self.take_entries(account, tells_trades);
        }
        self.doubt_statement(surface);
        // What it lost counts, whether or not anything is held any more.
        self.watch_losses_after_fill();
    }

    /// The entry of a position is the venue's: fills that were recovered out of their order leave
    /// another average. The venue may round it to the tick (spec 2, `ACCOUNT_UPDATE`): a difference
    /// that this explains is left alone. So is another entry of a position whose fills are `all_known` and
    /// whose entry a reading confirmed: the venue rounds to a tick that was not read yet. A fill that comes
    /// in the order of its trade ids leaves a confirmed entry confirmed.
    fn take_entries(&mut self, account: &AccountTruth, all_known: bool) {
        for told in &account.positions {
            let (id, side) = (told.instrument, told.position_side);
            if usize::from(id.0) >= self.instruments.len() || told.cost == Amount::ZERO {
                continue;
            }
            let rules = &self.instruments[usize::from(id.0)];
            let tick = rules.filters.price.map_or(0, |filter| filter.tick_size);
            let half_tick = rules.notional(tick, told.qty.0.saturating_abs()).0 / 2;
            let position = self.ledgers.account.at(id, side).position;
            let moved = told.cost - position.cost;
            let parts = told.cost.0.abs() / ENTRY_PARTS;
            let is_rounding = moved.0.abs() <= parts.max(half_tick);
            if position.qty != told.qty.0 {
                continue;
            }
            if is_rounding {
                self.confirm_entry(id, side);
            } else if !all_known || !self.is_entry_confirmed(id, side) {
                self.ledgers.account.at_mut(id, side).position.cost = told.cost;
                self.ledgers.external.at_mut(id, side).position.cost += moved;
            }
        }
    }

    /// A reading agrees with the entry as it is known now, or trades in their order led to it from one
    /// that a reading confirmed.
    pub(super) fn confirm_entry(&mut self, id: InstrumentId, side: PositionSide) {
        let known = self.known_entry(id, side);
        self.confirmed_entries.insert((id, side), known);
    }

    pub(super) fn is_entry_confirmed(&self, id: InstrumentId, side: PositionSide) -> bool {
        self.confirmed_entries.get(&(id, side)) == Some(&self.known_entry(id, side))
    }

    fn known_entry(&self, id: InstrumentId, side: PositionSide) -> ConfirmedEntry {
        let filters = &self.instruments[usize::from(id.0)].filters;
        let position = self.ledgers.account.at(id, side).position;
        ConfirmedEntry {
            qty: position.qty,
            cost: position.cost,
            tick: filters.price.map_or(0, |filter| filter.tick_size),
        }
    }

    /// Takes what of each balance is not available from a quiet reading. It moves with every order
    /// and every mark, so that it is never a difference.
    fn take_locked(&mut self, surface: Surface, account: &AccountTruth) {
        let is_quiet = |line: &mut Line| line.events == line.round.events_when_asked;
        if !self.line_mut(surface).is_some_and(is_quiet) {
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
