//! Money that moved without an event: the venue's income history shows its cause.
//!
//! An account snapshot may show another futures balance although positions agree and no own fill is
//! missing. Either the process was down, or an event was lost. A transfer moves the base of the
//! loss limits. Funding, fees and trades of outside parties are profit or loss. So the engine
//! requests the history since the account last agreed, before it takes the balance.
//! - Transfers in the history move the base; the rest of the change counts as profit or loss.
//! - A history that does not explain the change may be late: the engine requests it again for
//!   [`LATE_MS`].
//! - If the venue has no history, the engine waits for the event of the change, for
//!   [`EVENT_LATE_MS`].
//! - If nothing explains the change, a decrease counts as a loss, and a notice reports it. An
//!   increase moves the base. Neither hides a loss.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::effect::{Adjustment, Notice};
use windvane_model::ids::{AssetId, InstrumentId, Time};
use windvane_model::order::Surface;
use windvane_model::planted;
use windvane_model::protocol::{AccountReason, AccountUpdate, BalanceUpdate};
use windvane_model::truth::{AccountTruth, Income, IncomeKind, Subject};

use super::Engine;
use super::agreement::have_equal_direction;
use super::comparison::READ_AGAIN_MS;
use super::reconcile::Step;
use super::snapshot::Names;

/// At most this many booked entries are remembered.
const KNOWN_MAX: usize = 64;
/// The history may be behind the account by this much.
const LATE_MS: i64 = 12_000;
/// Each request costs much weight, which the next start may need.
const ASK_AGAIN_MS: i64 = 4_000;
/// If the venue has no history, only the event of a transfer can explain a change. A stream may be
/// this late (docs/open-points.md, `stream-delay`).
const EVENT_LATE_MS: i64 = 10_000;
/// The times of an event and of its history entry differ by less than this.
const SAME_MS: i64 = 60_000;
/// A funding payment that an event does not state is at most one part in this many of the
/// positions' cost. The documents name a cap and a floor of the rate; comparable venues have 3
/// percent or less.
const FUNDING_PARTS: i128 = 33;

/// The state of income requests.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Incomes {
    /// Entries that are in the books, the newest at the end.
    known: VecDeque<Known>,
    question: Option<Question>,
    /// The venue does not return its history; requested again when the next stream connects.
    refused: bool,
}

/// An entry that is in the books.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Known {
    income: Income,
    /// It was read from the history, and its event may still arrive.
    listed: bool,
}

/// A request for the history.
#[derive(Debug, Serialize, Deserialize)]
struct Question {
    about: Vec<Adjustment>,
    first_asked: Time,
    /// Where the next page begins.
    from: Time,
    found: Vec<Income>,
    answered: bool,
}

impl Incomes {
    /// The venue may have refused only at that moment.
    pub(super) const fn stream_up(&mut self) {
        self.refused = false;
    }

    /// Entries of an asset that are not in the books.
    fn new_of(&self, asset: AssetId) -> Vec<Income> {
        let mut known: Vec<_> = self.known.iter().map(|known| known.income).collect();
        let found = self.question.iter().flat_map(|question| &question.found);
        let mut new = Vec::new();
        for income in found.filter(|income| income.asset == asset) {
            match known.iter().position(|known| is_same(known, income)) {
                Some(place) => {
                    known.swap_remove(place);
                }
                None => new.push(*income),
            }
        }
        new
    }

    fn remember(&mut self, income: Income, listed: bool) {
        if self.known.len() >= KNOWN_MAX {
            self.known.pop_front();
        }
        self.known.push_back(Known { income, listed });
    }
}

/// Whether an event and an entry, or two entries, are the same payment.
fn is_same(one: &Income, other: &Income) -> bool {
    let apart = one.time.0.abs_diff(other.time.0) / 1_000_000;
    (one.kind, one.asset, one.amount) == (other.kind, other.asset, other.amount)
        && apart <= SAME_MS.unsigned_abs()
}

/// The sum of the transfers, if the entries explain a change. They do if the rest of the change is
/// between the sum of all losses and the sum of all profits.
fn transfers_of(entries: &[Income], moved: Amount, tolerance: Amount) -> Option<Amount> {
    let sum = |wanted: &dyn Fn(&Income) -> bool| -> Amount {
        let wanted = entries.iter().filter(|income| wanted(income));
        wanted.map(|income| income.amount).sum()
    };
    let is_transfer = |income: &Income| income.kind == IncomeKind::Transfer;
    let transfers = sum(&is_transfer);
    let losses = sum(&|income| !is_transfer(income) && income.amount < Amount::ZERO);
    let profits = sum(&|income| !is_transfer(income) && income.amount > Amount::ZERO);
    let rest = moved - transfers;
    (rest >= losses - tolerance && rest <= profits + tolerance).then_some(transfers)
}

impl Engine {
    /// Requests the income history before the engine takes a balance that moved without a known
    /// cause. Returns whether the round waits for the response.
    pub(super) fn ask_for_income(
        &mut self,
        surface: Surface,
        account: &AccountTruth,
        differences: &[Adjustment],
    ) -> bool {
        if surface != Surface::Futures {
            // A running request is about futures.
            return false;
        }
        let now = self.now;
        let Some(from) = self.income_from(surface, account) else {
            self.incomes.question = None;
            return false;
        };
        let known = self.incomes.question.take();
        let is_known = |known: &Question| have_equal_direction(&known.about, differences);
        let question = match known.filter(is_known) {
            Some(known) => known,
            None => Question {
                about: differences.to_vec(),
                first_asked: now,
                from,
                found: Vec::new(),
                answered: false,
            },
        };
        if self.incomes.refused {
            if now > question.first_asked.plus_ms(EVENT_LATE_MS) {
                return false;
            }
            self.incomes.question = Some(question);
            self.later(surface, READ_AGAIN_MS);
            return true;
        }
        let again = question.answered;
        self.incomes.question = Some(question);
        if again {
            let in_time = self.may_be_late();
            if self.is_explained(surface, account) || !in_time {
                return false;
            }
        }
        if let Some(question) = &mut self.incomes.question {
            question.from = from;
            question.found.clear();
            question.answered = false;
        }
        if let Some(line) = self.line_mut(surface) {
            line.round.step = Step::Income;
        }
        if again {
            self.later(surface, ASK_AGAIN_MS);
        } else {
            self.ask_next(surface);
        }
        true
    }

    /// The account agrees or was accepted: a later change needs its own explanation.
    pub(super) fn end_income_question(&mut self) {
        self.incomes.question = None;
    }

    fn may_be_late(&self) -> bool {
        let question = self.incomes.question.as_ref();
        question.is_some_and(|question| self.now <= question.first_asked.plus_ms(LATE_MS))
    }

    /// The start time of the history request; `None` if the history is not needed.
    fn income_from(&self, surface: Surface, account: &AccountTruth) -> Option<Time> {
        let asks = surface == Surface::Futures
            && self.live.is_some()
            && self.start_equity.is_some()
            && !planted!(FundingIsTransfer)
            && self.positions_agree(&account.positions)
            && !self.misses_fill(surface);
        let mut told = account.balances.iter();
        let from = self.agreed_at(surface)?;
        (asks && told.any(|told| self.is_untold(surface, told))).then_some(from)
    }

    fn is_explained(&self, surface: Surface, account: &AccountTruth) -> bool {
        let tolerance = self.unseen(surface);
        let mut told = account.balances.iter();
        told.all(|told| {
            let moved = self.untold_change(surface, told);
            let entries = self.incomes.new_of(told.asset);
            !self.is_untold(surface, told) || transfers_of(&entries, moved, tolerance).is_some()
        })
    }

    /// The next history request.
    pub(super) fn income_subject(&self) -> Subject {
        let question = self.incomes.question.as_ref();
        Subject::Income {
            from: question.map_or_else(Time::default, |question| question.from),
        }
    }

    pub(super) fn take_income(&mut self, surface: Surface, entries: &[Income], more: bool) {
        let Some(question) = &mut self.incomes.question else {
            // Only the round waits for this response.
            self.compare_again(surface);
            self.ask_next(surface);
            return;
        };
        question.found.extend(entries);
        let last = entries.iter().map(|income| income.time).max();
        if let Some(last) = last.filter(|last| more && *last >= question.from) {
            question.from = last.plus_ms(1);
        } else {
            question.answered = true;
            self.compare_again(surface);
        }
        self.ask_next(surface);
    }

    /// Handles a missing history. If requests fail for too long, the engine gives up, because the
    /// account must be accepted.
    pub(super) fn miss_income(&mut self, surface: Surface, no_route: bool) {
        if no_route || !self.may_be_late() {
            self.incomes.refused = true;
            self.compare_again(surface);
        }
    }

    fn compare_again(&mut self, surface: Surface) {
        if let Some(line) = self.line_mut(surface) {
            line.round.step = Step::Account;
        }
    }

    /// The part of a change without an event that moves the base of the loss limits.
    pub(super) fn transferred(
        &mut self,
        surface: Surface,
        asset: AssetId,
        moved: Amount,
    ) -> Amount {
        let question = self.incomes.question.as_ref();
        if !question.is_some_and(|question| question.answered) {
            return self.unexplained(surface, asset, moved);
        }
        let entries = self.incomes.new_of(asset);
        if let Some(transfers) = transfers_of(&entries, moved, self.unseen(surface)) {
            for income in entries {
                self.take_entry(income);
            }
            return transfers;
        }
        let is_transfer = |income: &&Income| income.kind == IncomeKind::Transfer;
        let transfers: Vec<_> = entries.iter().filter(is_transfer).copied().collect();
        let sum: Amount = transfers.iter().map(|income| income.amount).sum();
        let is_part = sum.0.signum() == moved.0.signum() && sum.abs() <= moved.abs();
        if !is_part {
            return self.unexplained(surface, asset, moved);
        }
        for income in transfers {
            self.take_entry(income);
        }
        sum + self.unexplained(surface, asset, moved - sum)
    }

    /// Handles a change that neither an event nor the history explains. A decrease counts as a
    /// loss. An increase may be a deposit and moves the base, except for profit that positions on
    /// unconfigured symbols realized. Returns the part that moves the base.
    fn unexplained(&mut self, surface: Surface, asset: AssetId, moved: Amount) -> Amount {
        if planted!(FundingIsTransfer) {
            return moved;
        }
        let moved = if self.is_outside_equity(surface, asset) {
            moved
        } else {
            moved - self.take_realized_elsewhere(moved)
        };
        if moved == Amount::ZERO {
            return moved;
        }
        self.notices.push_back(Notice::Unexplained {
            time: self.now,
            surface,
            asset,
            amount: moved,
        });
        moved.max(Amount::ZERO)
    }

    /// Books a history entry without an event: the balance that is accepted now contains it.
    fn take_entry(&mut self, income: Income) {
        self.incomes.remember(income, true);
        if let (IncomeKind::Funding, Some(instrument)) = (income.kind, income.instrument) {
            self.book_funding_of(instrument, income.asset, income.amount);
        }
    }

    /// Notes a payment that an event reported. Returns whether the history reported it before.
    pub(super) fn note_income(&mut self, update: &AccountUpdate, balance: &BalanceUpdate) -> bool {
        let Some(income) = self.income_of(update, balance) else {
            return false;
        };
        let mut known = self.incomes.known.iter_mut();
        let listed = known.find(|known| known.listed && is_same(&known.income, &income));
        if let Some(known) = listed {
            known.listed = false;
            return true;
        }
        self.incomes.remember(income, false);
        false
    }

    /// The payment of an event as a history entry; `None` if the event is about a fill.
    fn income_of(&self, update: &AccountUpdate, balance: &BalanceUpdate) -> Option<Income> {
        Some(Income {
            kind: self.income_kind(update)?,
            instrument: None,
            asset: balance.asset,
            amount: balance.change,
            time: update.transaction_time,
        })
    }

    /// The kind of payment that a futures account event reports; `None` if the event is about a
    /// fill.
    pub(super) fn income_kind(&self, update: &AccountUpdate) -> Option<IncomeKind> {
        let kind = match update.reason {
            AccountReason::Other => IncomeKind::Transfer,
            AccountReason::FundingFee => IncomeKind::Funding,
            AccountReason::Charge | AccountReason::InsuranceClear => IncomeKind::Other,
            AccountReason::Order => return None,
        };
        (self.live.is_some() && update.surface == Surface::Futures).then_some(kind)
    }

    /// The payment of a funding event that states none. `bc` is the change apart from profit and
    /// commission (spec 2, `ACCOUNT_UPDATE`), and the documents do not say whether funding is
    /// profit. Then the change of the balance is the payment, unless something else is in flight.
    pub(super) fn unstated_funding(
        &self,
        update: &AccountUpdate,
        balance: &BalanceUpdate,
    ) -> Amount {
        let surface = update.surface;
        let line = self.live.as_ref().and_then(|live| live.lines.get(&surface));
        let Some(line) = line else {
            return Amount::ZERO;
        };
        let known = self.balance(surface, balance.asset).total;
        let moved = balance.total - known;
        let at = update.event_time;
        let is_old = (at != Time::default() && line.newest.has_newer(balance.asset, at))
            || line.past.had(self.now, balance.asset, balance.total);
        let funds = update.reason == AccountReason::FundingFee
            && surface == Surface::Futures
            && line.told.is_none()
            && !is_old
            && !self.misses_fill(surface)
            && !planted!(FundingIsTransfer);
        let costs = self.cost_of_positions(surface);
        if funds && moved.abs().0.saturating_mul(FUNDING_PARTS) <= costs.0 {
            moved
        } else {
            Amount::ZERO
        }
    }

    /// Takes over the state of an earlier process.
    pub(super) fn inherit_incomes(&mut self, from: &Self, names: &Names) {
        for known in &from.incomes.known {
            let income = known.income;
            if let Some(asset) = names.assets.get(&income.asset) {
                let instrument = |id: InstrumentId| names.instruments.get(&id).copied();
                let income = Income {
                    asset: *asset,
                    instrument: income.instrument.and_then(instrument),
                    ..income
                };
                self.incomes.remember(income, known.listed);
            }
        }
    }
}
