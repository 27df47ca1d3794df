//! Cancels what rests of a run that is dead or not healthy, until nothing does: order by order, by
//! client order id, never what is not the run's.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use windvane_client_core::outcome::NotDone;
use windvane_model::{Time, planted};

use super::{WatchdogPlan, ms};
use crate::weights::WATCHDOG_LIST_MS;

/// So many listings in a row must show nothing.
const CLEAN: u32 = 2;
/// Lists may be behind by ten seconds: an order that arrived last shows that much later.
const LIST_LAG_MS: i64 = 12_000;
/// From listings that found orders to the next.
const AGAIN: Duration = Duration::from_millis(250);
/// Between listings while a late request could still arrive.
const LIST_EVERY: Duration = Duration::from_millis(WATCHDOG_LIST_MS);
/// After a failure, doubled each time from the first to the second.
const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// Cancels that are on their way at the same time.
const AT_ONCE: usize = 8;
/// While it waits for longer, it says that it lives this often.
const TELL_EVERY: Duration = Duration::from_secs(30);
/// It gives up once the venue has refused for so long, or has been away for so long.
const GIVE_UP_MS: (i64, i64) = (60 * 60_000, 24 * 60 * 60_000);
/// An order whose cancel was answered is cancelled again after this, if it is still listed: the list may
/// be behind by ten seconds.
const CANCEL_AGAIN_MS: i64 = 5_000;

/// What a sweep wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// The run is told that the watchdog acts.
    Tell,
    /// The open orders of a symbol.
    List(String),
    /// An order of a symbol is cancelled.
    Cancel(String, String),
    /// The venue's clock: most refusals are for the time.
    Clock,
    /// It is over: how many orders it found, or why it gives up.
    Ended(Result<usize, String>),
}

/// What one listing of every symbol showed.
#[derive(Debug, Default)]
struct Round {
    /// When it began.
    asked: Time,
    /// The symbol that is listed, by its place.
    symbol: usize,
    /// Own orders that are listed as open.
    listed: usize,
    /// Those of them that were cancelled now.
    cancelled: usize,
    /// Orders of the symbol that are still to be cancelled.
    due: VecDeque<String>,
    /// Questions that were refused, and their words.
    refused: Option<String>,
    /// Something is not known: wait at least so long.
    wait: Option<Duration>,
}

/// What it waits for.
#[derive(Debug, PartialEq, Eq)]
enum Waits {
    /// Answers to so many questions.
    Answers(usize),
    /// The venue's clock, after a round.
    Clock,
    /// The next round, which begins then; the run is told then that it lives.
    Pause {
        until: Time,
        tell: Time,
    },
    Over,
}

/// See the module's page.
#[derive(Debug)]
pub(super) struct Sweep {
    plan: WatchdogPlan,
    /// From then on no request of the run can arrive, and a list shows the last one that did.
    all_listed: Time,
    round: Round,
    /// Rounds in a row that showed nothing.
    clean: u32,
    retry: Duration,
    /// When the cancel of each order was answered last.
    answered: BTreeMap<String, Time>,
    /// When the last round began that was not refused, and the last one that was answered.
    taken: Time,
    heard: Time,
    waits: Waits,
    asks: VecDeque<Ask>,
}

impl Sweep {
    /// A sweep whose first round begins now.
    pub(super) fn new(now: Time, plan: WatchdogPlan) -> Self {
        Self {
            all_listed: now.plus_ms(ms(plan.absence_ms)).plus_ms(LIST_LAG_MS),
            round: Round::default(),
            clean: 0,
            retry: RETRY.0,
            answered: BTreeMap::new(),
            taken: now,
            heard: now,
            waits: Waits::Pause {
                until: now,
                tell: now,
            },
            asks: VecDeque::new(),
            plan,
        }
    }

    /// What it wants next.
    pub(super) fn poll(&mut self) -> Option<Ask> {
        self.asks.pop_front()
    }

    /// When [`Self::go_on`] is due.
    pub(super) fn due(&self) -> Option<Time> {
        match self.waits {
            Waits::Pause { until, tell } => Some(until.min(tell)),
            Waits::Answers(_) | Waits::Clock | Waits::Over => None,
        }
    }

    /// Goes on, if its pause is over.
    pub(super) fn go_on(&mut self, now: Time) {
        let Waits::Pause { until, tell } = &mut self.waits else {
            return;
        };
        if *until <= now {
            self.asks.push_back(Ask::Tell);
            self.round = Round {
                asked: now,
                ..Round::default()
            };
            self.list(now);
        } else if *tell <= now {
            *tell = after(now, TELL_EVERY);
            self.asks.push_back(Ask::Tell);
        }
    }

    /// Lists the next symbol, or ends the round.
    fn list(&mut self, now: Time) {
        match self.plan.symbols.get(self.round.symbol) {
            Some(symbol) => {
                self.asks.push_back(Ask::List(symbol.clone()));
                self.waits = Waits::Answers(1);
            }
            None => self.end_round(now),
        }
    }

    /// Client order ids of a symbol whose orders have not ended, or why they are not known.
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
                    "the list cannot be read; it is asked for again"
                );
                self.round.wait = self.round.wait.max(Some(Duration::ZERO));
            }
            Err(not_done) => self.failed(&not_done, symbol),
        }
        self.waits = Waits::Answers(0);
        self.cancel(now);
    }

    /// Whether an order that is listed is to be cancelled now.
    fn is_due(&self, id: &str, now: Time) -> bool {
        let answered = self.answered.get(id);
        answered.is_none_or(|answered| now >= answered.plus_ms(CANCEL_AGAIN_MS))
    }

    /// Cancels some more, or goes on with the next symbol.
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
            self.asks.push_back(Ask::Cancel(symbol.clone(), id));
            under_way += 1;
        }
        self.waits = Waits::Answers(under_way);
        if under_way == 0 {
            self.round.symbol += 1;
            self.list(now);
        }
    }

    /// What became of a cancel.
    pub(super) fn cancelled(&mut self, now: Time, id: String, became: Result<(), NotDone>) {
        match became {
            Ok(()) => drop(self.answered.insert(id, now)),
            Err(not_done) => self.failed(&not_done, &id),
        }
        if let Waits::Answers(under_way) = &mut self.waits {
            *under_way = under_way.saturating_sub(1);
        }
        self.cancel(now);
    }

    fn failed(&mut self, not_done: &NotDone, of: &str) {
        tracing::warn!(of, %not_done, "asked again");
        match not_done {
            NotDone::Refused(_) => self.round.refused = Some(not_done.to_string()),
            NotDone::Unknown(_) => self.round.wait = self.round.wait.max(Some(Duration::ZERO)),
            NotDone::Wait(wait) => {
                // The longest duration stands for never.
                let after = Some(wait.after).filter(|after| *after < Duration::MAX);
                let wait = Some(after.unwrap_or(RETRY.1));
                self.round.wait = self.round.wait.max(wait);
            }
        }
    }

    fn end_round(&mut self, now: Time) {
        if let Some(words) = &self.round.refused {
            tracing::error!(words, "the venue refuses to list or to cancel");
            self.asks.push_back(Ask::Clock);
            self.waits = Waits::Clock;
        } else {
            self.taken = self.round.asked;
            self.judge_round(now);
        }
    }

    /// The clock was read after a refusal, or was not.
    pub(super) fn clock_was_read(&mut self, now: Time) {
        if self.waits == Waits::Clock {
            self.judge_round(now);
        }
    }

    /// Ends the sweep, or pauses before the next round.
    fn judge_round(&mut self, now: Time) {
        if self.round.refused.is_some() || self.round.wait.is_some() {
            let is_tired =
                now > self.taken.plus_ms(GIVE_UP_MS.0) || now > self.heard.plus_ms(GIVE_UP_MS.1);
            if is_tired {
                let away = || "the venue is away".to_owned();
                let why = self.round.refused.take().unwrap_or_else(away);
                return self.end(Err(why));
            }
            self.clean = 0;
            let wait = self.round.wait.unwrap_or_default().max(self.retry);
            self.retry = (self.retry * 2).min(RETRY.1);
            return self.pause(now, wait);
        }
        (self.heard, self.retry) = (self.round.asked, RETRY.0);
        self.clean = if self.round.listed == 0 {
            self.clean + 1
        } else {
            0
        };
        let is_clean = self.clean >= CLEAN && self.round.asked >= self.all_listed;
        if is_clean || self.clean >= 1 && planted!(WatchdogSweepsOnce) {
            return self.end(Ok(self.answered.len()));
        }
        let left_ns = self.all_listed.0.saturating_sub(now.0).max(0);
        let pause = match self.clean {
            // What is listed was cancelled before: the list is behind.
            0 if self.round.cancelled == 0 => LIST_EVERY,
            ..CLEAN => AGAIN,
            _ => LIST_EVERY.min(Duration::from_nanos(left_ns.unsigned_abs())),
        };
        self.pause(now, pause);
    }

    fn pause(&mut self, now: Time, pause: Duration) {
        self.waits = Waits::Pause {
            until: after(now, pause),
            tell: after(now, TELL_EVERY),
        };
    }

    fn end(&mut self, end: Result<usize, String>) {
        self.waits = Waits::Over;
        self.asks.push_back(Ask::Ended(end));
    }
}

/// The time after a pause.
pub(super) fn after(now: Time, pause: Duration) -> Time {
    let ns = i64::try_from(pause.as_nanos()).unwrap_or(i64::MAX);
    Time(now.0.saturating_add(ns))
}
