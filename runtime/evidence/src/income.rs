//! Money that moved without an event: the venue's income history shows its cause.
//!
//! An account snapshot may show another futures balance although positions agree and no own fill is
//! missing. Either the process was down, or an event was lost. A transfer moves the base of the
//! loss limits. Funding, fees and trades of outside parties are profit or loss. So the engine
//! requests the history since the account last agreed, before it takes the balance.
//! - Transfers in the history move the base; the rest of the change counts as profit or loss.
//! - A history that does not explain the change may be late: the engine requests it again for
//!   `LATE_MS`.
//! - If the venue has no history, the engine waits for the event of the change, for
//!   `EVENT_LATE_MS`.
//! - If nothing explains the change, a decrease counts as a loss, and a notice reports it. An
//!   increase moves the base. Neither hides a loss.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::effect::Adjustment;
use windvane_model::ids::{AssetId, InstrumentId, Time};
use windvane_model::names::Names;
use windvane_model::order::Surface;
use windvane_model::planted;
use windvane_model::protocol::{AccountReason, AccountUpdate, BalanceUpdate};
use windvane_model::state_report::{AccountSnapshot, Income, IncomeKind, Subject};

use crate::Evidence;
use crate::agreement::have_equal_direction;

/// At most this many booked entries are remembered.
const KNOWN_MAX: usize = 64;

/// The history may be behind the account by this much.
const LATE_MS: i64 = 12_000;

/// Each request costs much weight, which the next start may need.
pub const ASK_AGAIN_MS: i64 = 4_000;

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
pub struct Incomes {
    /// Entries that are in the books, the newest at the end.
    known: VecDeque<Known>,
    query: Option<PendingQuery>,
    /// The venue does not return its history; requested again when the next stream connects.
    refused: bool,
}

/// An entry that is in the books.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Known {
    income: Income,
    /// The entry was read from the history, and its event may still arrive.
    listed: bool,
}

/// A request for the history.
#[derive(Debug, Serialize, Deserialize)]
struct PendingQuery {
    about: Vec<Adjustment>,
    first_asked: Time,
    /// Where the next page begins.
    from: Time,
    found: Vec<Income>,
    answered: bool,
}

/// The next step for a balance that changed without a known cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncomePlan {
    /// The history is not needed, or explains nothing more.
    Take,
    /// The event of the change may still arrive.
    Wait,
    /// The history is requested now, or, `again`, once more after [`ASK_AGAIN_MS`].
    Ask {
        /// The history was read before without the entry, which the venue may list late.
        again: bool,
    },
}

/// The part of a change that the history explains.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Entries that the balance contains.
    pub entries: Vec<Income>,
    /// The sum of their transfers.
    pub transferred: Amount,
    /// The part that nothing explains, if any.
    pub left: Option<Amount>,
}

impl Incomes {
    /// A new user stream is connected. The engine may request the income history again, because the
    /// venue's earlier refusal may have been temporary.
    pub const fn stream_up(&mut self) {
        self.refused = false;
    }

    /// Plans a request for the income history before the engine takes a balance that moved without
    /// a known cause. `agreed` is when the account last agreed; `None` if the history is not needed
    /// anyway.
    pub fn plan(
        &mut self,
        evidence: &Evidence<'_>,
        agreed: Option<Time>,
        account: &AccountSnapshot,
        differences: &[Adjustment],
    ) -> IncomePlan {
        let (surface, now) = (Surface::Futures, evidence.now);
        let from = agreed.filter(|_| evidence.needs_income(surface, account));
        let Some(from) = from else {
            self.query = None;
            return IncomePlan::Take;
        };
        let known = self.query.take();
        let is_known = |known: &PendingQuery| have_equal_direction(&known.about, differences);
        let query = match known.filter(is_known) {
            Some(known) => known,
            None => PendingQuery {
                about: differences.to_vec(),
                first_asked: now,
                from,
                found: Vec::new(),
                answered: false,
            },
        };
        if self.refused {
            if now > query.first_asked.plus_ms(EVENT_LATE_MS) {
                return IncomePlan::Take;
            }
            self.query = Some(query);
            return IncomePlan::Wait;
        }
        let again = query.answered;
        self.query = Some(query);
        if again {
            let in_time = self.may_be_late(now);
            if self.is_explained(evidence, surface, account) || !in_time {
                return IncomePlan::Take;
            }
        }
        if let Some(query) = &mut self.query {
            query.from = from;
            query.found.clear();
            query.answered = false;
        }
        IncomePlan::Ask { again }
    }

    /// The account agrees or was accepted: a later change needs its own explanation.
    pub fn end_query(&mut self) {
        self.query = None;
    }

    fn may_be_late(&self, now: Time) -> bool {
        let query = self.query.as_ref();
        query.is_some_and(|query| now <= query.first_asked.plus_ms(LATE_MS))
    }

    fn is_explained(
        &self,
        evidence: &Evidence<'_>,
        surface: Surface,
        account: &AccountSnapshot,
    ) -> bool {
        let tolerance = evidence.rounding_tolerance(surface);
        let mut reported = account.balances.iter();
        reported.all(|reported| {
            let moved = evidence.unexplained_change(surface, reported);
            let entries = self.new_of(reported.asset);
            !evidence.is_unexplained_change(surface, reported)
                || transfers_of(&entries, moved, tolerance).is_some()
        })
    }

    /// The next history request.
    pub fn subject(&self) -> Subject {
        let query = self.query.as_ref();
        Subject::Income {
            from: query.map_or_else(Time::default, |query| query.from),
        }
    }

    /// Takes a page of the history. Returns whether it was the last one.
    pub fn take_page(&mut self, entries: &[Income], more: bool) -> bool {
        let Some(query) = &mut self.query else {
            // Only the reconciliation round waits for this response.
            return true;
        };
        query.found.extend(entries);
        let last = entries.iter().map(|income| income.time).max();
        if let Some(last) = last.filter(|last| more && *last >= query.from) {
            query.from = last.plus_ms(1);
            return false;
        }
        query.answered = true;
        true
    }

    /// Handles a missing history. If requests fail for too long, the engine stops asking and takes
    /// the balance without a cause, because the account must be accepted. Returns whether it does.
    pub fn note_missing_history(&mut self, no_route: bool, now: Time) -> bool {
        let gives_up = no_route || !self.may_be_late(now);
        self.refused |= gives_up;
        gives_up
    }

    /// Explains a change without an event by the history.
    pub fn explain(&self, asset: AssetId, moved: Amount, tolerance: Amount) -> Explained {
        let query = self.query.as_ref();
        let nothing = Explained {
            entries: Vec::new(),
            transferred: Amount::ZERO,
            left: Some(moved),
        };
        if !query.is_some_and(|query| query.answered) {
            return nothing;
        }
        let entries = self.new_of(asset);
        if let Some(transferred) = transfers_of(&entries, moved, tolerance) {
            return Explained {
                entries,
                transferred,
                left: None,
            };
        }
        let is_transfer = |income: &&Income| income.kind == IncomeKind::Transfer;
        let transfers: Vec<_> = entries.iter().filter(is_transfer).copied().collect();
        let sum: Amount = transfers.iter().map(|income| income.amount).sum();
        let is_part = sum.0.signum() == moved.0.signum() && sum.abs() <= moved.abs();
        if !is_part {
            return nothing;
        }
        Explained {
            entries: transfers,
            transferred: sum,
            left: Some(moved - sum),
        }
    }

    /// Notes a payment that an event reported. Returns whether the history reported it before.
    pub fn note(&mut self, income: Income) -> bool {
        let mut known = self.known.iter_mut();
        let listed = known.find(|known| known.listed && is_same(&known.income, &income));
        if let Some(known) = listed {
            known.listed = false;
            return true;
        }
        self.remember(income, false);
        false
    }

    /// Entries of an asset that are not in the books.
    fn new_of(&self, asset: AssetId) -> Vec<Income> {
        let mut known: Vec<_> = self.known.iter().map(|known| known.income).collect();
        let found = self.query.iter().flat_map(|query| &query.found);
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

    /// Remembers an entry that is in the books now. `listed` means that it was read from the
    /// history, and its event may still arrive.
    pub fn remember(&mut self, income: Income, listed: bool) {
        if self.known.len() >= KNOWN_MAX {
            self.known.pop_front();
        }
        self.known.push_back(Known { income, listed });
    }

    /// Takes over the state of an earlier process.
    pub fn inherit(&mut self, old: &Self, names: &Names) {
        for known in &old.known {
            let income = known.income;
            if let Some(asset) = names.assets.get(&income.asset) {
                let instrument = |id: InstrumentId| names.instruments.get(&id).copied();
                let income = Income {
                    asset: *asset,
                    instrument: income.instrument.and_then(instrument),
                    ..income
                };
                self.remember(income, known.listed);
            }
        }
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

impl Evidence<'_> {
    /// The kind of payment that a futures account event reports; `None` if the event is about a
    /// fill.
    pub(crate) fn income_kind(&self, update: &AccountUpdate) -> Option<IncomeKind> {
        let kind = match update.reason {
            AccountReason::Other => IncomeKind::Transfer,
            AccountReason::FundingFee => IncomeKind::Funding,
            AccountReason::Charge | AccountReason::InsuranceClear => IncomeKind::Other,
            AccountReason::Order => return None,
        };
        (self.live.is_some() && update.surface == Surface::Futures).then_some(kind)
    }

    /// The payment of a funding event that states none. `bc` is the change apart from profit and
    /// commission (docs/interface/user-stream.md#account_update), and the documents do not say
    /// whether funding is profit. Then the change of the balance is the payment, unless something
    /// else is in flight.
    pub fn implied_funding(&self, update: &AccountUpdate, balance: &BalanceUpdate) -> Amount {
        let surface = update.surface;
        let connection = self.connection(surface);
        let Some(connection) = connection else {
            return Amount::ZERO;
        };
        let known = self.balance(surface, balance.asset).total;
        let moved = balance.total - known;
        let at = update.event_time;
        let is_old = (at != Time::default()
            && connection.newest_events.has_newer(balance.asset, at))
            || connection
                .history
                .had_balance(self.now, balance.asset, balance.total);
        let funds = update.reason == AccountReason::FundingFee
            && surface == Surface::Futures
            && connection.pending_event.is_none()
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

    /// The payment of an event as a history entry; `None` if the event is about a fill.
    pub fn income_of(&self, update: &AccountUpdate, balance: &BalanceUpdate) -> Option<Income> {
        Some(Income {
            kind: self.income_kind(update)?,
            instrument: None,
            asset: balance.asset,
            amount: balance.change,
            time: update.transaction_time,
        })
    }

    /// Whether the history must explain an account snapshot.
    fn needs_income(&self, surface: Surface, account: &AccountSnapshot) -> bool {
        let asks = self.live.is_some()
            && !planted!(FundingIsTransfer)
            && self.positions_agree(&account.positions)
            && !self.misses_fill(surface);
        let mut reported = account.balances.iter();
        asks && reported.any(|reported| self.is_unexplained_change(surface, reported))
    }
}
