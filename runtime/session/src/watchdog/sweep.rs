//! Cancels the resting orders of a run that is dead or sends no heartbeats, until none is left. It
//! cancels order by order, by client order id, and only orders of the run.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use windvane_client_core::outcome::NotDone;
use windvane_model::{Time, planted};

use super::plan::WatchdogPlan;
use super::time::{after, ms};
use crate::weights::WATCHDOG_LIST_MS;

/// This many empty lists in a row end a sweep.
const CLEAN: u32 = 2;
/// Lists may be ten seconds behind, so the last order to arrive appears that much later.
const LIST_LAG_MS: i64 = 12_000;
/// Pause after lists that contained orders.
const AGAIN: Duration = Duration::from_millis(250);
/// Pause between lists while a late request could still arrive.
const LIST_EVERY: Duration = Duration::from_millis(WATCHDOG_LIST_MS);
/// Pause after a failure. It doubles each time, from the first value to the second.
const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// Maximum number of cancels in flight.
const AT_ONCE: usize = 8;
/// Interval of the reports to the run during a longer wait.
const REPORT_EVERY: Duration = Duration::from_secs(30);
/// A sweep stops before it is finished if the venue refuses for the first time span, or does not
/// respond for the second.
const GIVE_UP_MS: (i64, i64) = (60 * 60_000, 24 * 60 * 60_000);
/// An order that is still listed this long after its cancel was acknowledged is cancelled again.
/// The list may be ten seconds behind.
const CANCEL_AGAIN_MS: i64 = 5_000;

/// Work that a sweep requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SweepStep {
    /// Report to the run that the watchdog acts.
    Report,
    /// List the open orders of a symbol.
    List(String),
    /// Cancel an order of a symbol.
    Cancel(String, String),
    /// Read the venue's clock: most refusals are about the timestamp.
    Clock,
    /// The sweep is over: the number of orders that it cancelled, or why it stopped before it was
    /// finished.
    Ended(Result<usize, String>),
}

/// One round of a sweep: it lists the open orders of every symbol once.
#[derive(Debug, Default)]
struct Round {
    /// When it began.
    began: Time,
    /// Index of the symbol that is being listed.
    symbol: usize,
    /// Own orders that are listed as open.
    listed: usize,
    /// Orders among them whose cancel was sent in this round.
    cancelled: usize,
    /// Orders of the symbol that must still be cancelled.
    due: VecDeque<String>,
    /// The reason of the last refused request.
    refused: Option<String>,
    /// Something is unknown: wait at least this long.
    wait: Option<Duration>,
}

/// The event that a sweep waits for.
#[derive(Debug, PartialEq, Eq)]
enum Waits {
    /// Responses to this many requests.
    Answers(usize),
    /// The venue's clock, after every symbol was listed.
    Clock,
    /// The next round, at `until`. The run gets a report at `report_at`.
    Pause {
        until: Time,
        report_at: Time,
    },
    Over,
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Sweep {
    plan: WatchdogPlan,
    /// From this time on no request of the run can arrive, and a list contains the last one that
    /// did.
    all_listed: Time,
    round: Round,
    /// Rounds in a row in which no own order was listed.
    clean: u32,
    retry: Duration,
    /// When the last cancel of each order was acknowledged.
    cancelled_at: BTreeMap<String, Time>,
    /// Start of the last round without a refusal, and of the last round with all responses.
    accepted_at: Time,
    answered_at: Time,
    waits: Waits,
    steps: VecDeque<SweepStep>,
}

impl Sweep {
    /// A sweep whose first round begins now.
    pub(super) fn new(now: Time, plan: WatchdogPlan) -> Self {
        Self {
            all_listed: now.plus_ms(ms(plan.absence_ms)).plus_ms(LIST_LAG_MS),
            round: Round::default(),
            clean: 0,
            retry: RETRY.0,
            cancelled_at: BTreeMap::new(),
            accepted_at: now,
            answered_at: now,
            waits: Waits::Pause {
                until: now,
                report_at: now,
            },
            steps: VecDeque::new(),
            plan,
        }
    }

    /// The next work that it requests.
    pub(super) fn poll(&mut self) -> Option<SweepStep> {
        self.steps.pop_front()
    }

    /// When [`Self::advance`] is due.
    pub(super) fn due(&self) -> Option<Time> {
        match self.waits {
            Waits::Pause { until, report_at } => Some(until.min(report_at)),
            Waits::Answers(_) | Waits::Clock | Waits::Over => None,
        }
    }

    /// Continues if the pause is over.
    pub(super) fn advance(&mut self, now: Time) {
        let Waits::Pause { until, report_at } = &mut self.waits else {
            return;
        };
        if *until <= now {
            self.steps.push_back(SweepStep::Report);
            self.round = Round {
                began: now,
                ..Round::default()
            };
            self.list(now);
        } else if *report_at <= now {
            *report_at = after(now, REPORT_EVERY);
            self.steps.push_back(SweepStep::Report);
        }
    }

    /// Lists the next symbol, or ends the round.
    fn list(&mut self, now: Time) {
        match self.plan.symbols.get(self.round.symbol) {
            Some(symbol) => {
                self.steps.push_back(SweepStep::List(symbol.clone()));
                self.waits = Waits::Answers(1);
            }
            None => self.end_round(now),
        }
    }

    /// The client order ids of the open orders of a symbol, or why they are unknown.
    pub(super) fn listed(
        &mut self,
        now: Time,
        symbol: &str,
        listed: Result<Result<Vec<String>, String>, NotDone>,
    ) {
        match listed {
            Ok(Ok(ids)) => {
                let own: Vec<_> = ids.into_iter().filter(|id| self.plan.is_own(id)).collect();
                self.round.listed += own.len();
                let due = own.into_iter().filter(|id| self.is_due(id, now));
                let due: VecDeque<_> = due.collect();
                self.round.cancelled += due.len();
                self.round.due = due;
            }
            Ok(Err(error)) => {
                tracing::warn!(
                    symbol,
                    error,
                    "the list of open orders cannot be read; it is requested again"
                );
                self.round.wait = self.round.wait.max(Some(Duration::ZERO));
            }
            Err(not_done) => self.failed(&not_done, symbol),
        }
        self.waits = Waits::Answers(0);
        self.cancel(now);
    }

    /// Whether a listed order must be cancelled now.
    fn is_due(&self, id: &str, now: Time) -> bool {
        let cancelled_at = self.cancelled_at.get(id);
        cancelled_at.is_none_or(|cancelled_at| now >= cancelled_at.plus_ms(CANCEL_AGAIN_MS))
    }

    /// Sends more cancels, or continues with the next symbol.
    fn cancel(&mut self, now: Time) {
        let Waits::Answers(mut under_way) = self.waits else {
            return;
        };
        let Some(symbol) = self.plan.symbols.get(self.round.symbol) else {
            return;
        };
        while under_way < AT_ONCE
            && let Some(id) = self.round.due.pop_front()
        {
            self.steps.push_back(SweepStep::Cancel(symbol.clone(), id));
            under_way += 1;
        }
        self.waits = Waits::Answers(under_way);
        if under_way == 0 {
            self.round.symbol += 1;
            self.list(now);
        }
    }

    /// The result of a cancel.
    pub(super) fn cancelled(&mut self, now: Time, id: String, result: Result<(), NotDone>) {
        match result {
            Ok(()) => drop(self.cancelled_at.insert(id, now)),
            Err(not_done) => self.failed(&not_done, &id),
        }
        if let Waits::Answers(under_way) = &mut self.waits {
            *under_way = under_way.saturating_sub(1);
        }
        self.cancel(now);
    }

    fn failed(&mut self, not_done: &NotDone, of: &str) {
        tracing::warn!(of, %not_done, "the request failed; it is repeated");
        match not_done {
            NotDone::Refused(_) => self.round.refused = Some(not_done.to_string()),
            NotDone::Unknown(_) => self.round.wait = self.round.wait.max(Some(Duration::ZERO)),
            NotDone::Wait(wait) => {
                // The maximum duration means "never".
                let after = Some(wait.after).filter(|after| *after < Duration::MAX);
                let wait = Some(after.unwrap_or(RETRY.1));
                self.round.wait = self.round.wait.max(wait);
            }
        }
    }

    fn end_round(&mut self, now: Time) {
        if let Some(reason) = &self.round.refused {
            tracing::error!(
                words = reason,
                "the venue refuses to list or to cancel orders"
            );
            self.steps.push_back(SweepStep::Clock);
            self.waits = Waits::Clock;
        } else {
            self.accepted_at = self.round.began;
            self.judge_round(now);
        }
    }

    /// The clock read after a refusal ended, with or without success.
    pub(super) fn clock_was_read(&mut self, now: Time) {
        if self.waits == Waits::Clock {
            self.judge_round(now);
        }
    }

    /// Ends the sweep, or pauses before the next round.
    fn judge_round(&mut self, now: Time) {
        if self.round.refused.is_some() || self.round.wait.is_some() {
            let is_tired = now > self.accepted_at.plus_ms(GIVE_UP_MS.0)
                || now > self.answered_at.plus_ms(GIVE_UP_MS.1);
            if is_tired {
                let away = || "the venue does not respond".to_owned();
                let why = self.round.refused.take().unwrap_or_else(away);
                return self.end(Err(why));
            }
            self.clean = 0;
            let wait = self.round.wait.unwrap_or_default().max(self.retry);
            self.retry = (self.retry * 2).min(RETRY.1);
            return self.pause(now, wait);
        }
        (self.answered_at, self.retry) = (self.round.began, RETRY.0);
        self.clean = if self.round.listed == 0 {
            self.clean + 1
        } else {
            0
        };
        let is_clean = self.clean >= CLEAN && self.round.began >= self.all_listed;
        if is_clean || self.clean >= 1 && planted!(WatchdogSweepsOnce) {
            return self.end(Ok(self.cancelled_at.len()));
        }
        let left_ns = self.all_listed.0.saturating_sub(now.0).max(0);
        let pause = match self.clean {
            // The listed orders were cancelled before, so the list shows an older state.
            0 if self.round.cancelled == 0 => LIST_EVERY,
            ..CLEAN => AGAIN,
            _ => LIST_EVERY.min(Duration::from_nanos(left_ns.unsigned_abs())),
        };
        self.pause(now, pause);
    }

    fn pause(&mut self, now: Time, pause: Duration) {
        self.waits = Waits::Pause {
            until: after(now, pause),
            report_at: after(now, REPORT_EVERY),
        };
    }

    fn end(&mut self, end: Result<usize, String>) {
        self.waits = Waits::Over;
        self.steps.push_back(SweepStep::Ended(end));
    }
}
