//! The connection of one surface: its user stream, the venue's clock, the round of requests about
//! the account, and what the venue stated last.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::effect::Adjustment;
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::state_report::{AccountSnapshot, Subject};

use crate::account_history::{AccountHistory, NewestEvents};

/// A user stream that is silent for this long is not trusted: no response to a PING, no event.
/// PINGs leave every ten seconds. The connection itself ends if one is not answered within ten
/// seconds (docs/promises.md#4-dead-mans-switch).
const SILENCE_MS: i64 = 15_000;

/// A clock reading older than this may have drifted.
const CLOCK_MS: i64 = 600_000;

/// The state of one surface's connection.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Connection {
    /// The user stream is connected.
    pub stream_up: bool,
    /// When the stream last showed that it is alive.
    alive: Time,
    clock: Option<ClockReading>,
    /// Number of user events so far.
    pub events: u64,
    /// The running round of reconciliation.
    pub round: Round,
    /// Requests of abandoned rounds that may still be answered, with the time when they were sent.
    pub abandoned_requests: Vec<(Subject, Time)>,
    /// When the last reconciliation round that left nothing unexplained requested open orders.
    /// `None` if no such round ended since the stream connected.
    pub last_clean_round: Option<Time>,
    /// The venue refused to list the account's trades since the stream connected.
    pub no_trades: bool,
    /// An account event after a fill that the booked fills do not explain yet, with the time since
    /// when.
    pub pending_event: Option<(AccountSnapshot, Time)>,
    /// `E` of the newest account event of each balance and position.
    pub newest_events: NewestEvents,
    /// The value of the last fill: the venue's rounding is at most a small fraction of it.
    pub fill_value: Amount,
    /// Earlier states of the account. A venue's source that lags may still report one of them.
    pub history: AccountHistory,
    /// The venue's time up to which the last accepted snapshot contains every fill.
    pub reconciled_until: Option<Time>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ClockReading {
    offset_ns: i64,
    error_ns: i64,
    read: Time,
}

/// Pause after a failed request, doubled with each failure up to the second bound.
pub const RETRY_MS: (i64, i64) = (500, 8_000);

/// A request without a response for this long is sent again.
const ANSWER_MS: i64 = 30_000;

/// Refusals that do not depend on the route (docs/interface/errors.md#10xx): server, time and key
/// errors.
pub const OF_ANY_ROUTE: [i32; 10] = [
    -1000, -1001, -1002, -1003, -1006, -1007, -1021, -1022, -2014, -2015,
];

/// The progress of a reconciliation round.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Round {
    /// The present step.
    pub step: RoundStep,
    /// The request that waits for its response, and when it was sent.
    asked: Option<(Subject, Time)>,
    /// When open orders were requested; `None` if the round is about missing trades only.
    pub orders_asked: Option<Time>,
    failures: u32,
    /// Number of snapshots so far.
    pub snapshots_read: u32,
    /// The differences of the last snapshot, and the number of user events when its response
    /// arrived.
    pub last_differences: Option<(Vec<Adjustment>, u64)>,
    /// Number of user events when the last request was sent.
    pub events_when_asked: u64,
    /// When the last request was sent.
    pub asked_at: Time,
    /// The difference that was known when the engine read the account's trades, or the open orders
    /// where the venue lists no trades. They do not explain it.
    pub searched_trades_for: Option<Vec<Adjustment>>,
}

impl Round {
    /// A round that reads only the missing trades of one instrument.
    pub fn of_trades(instrument: InstrumentId) -> Self {
        Self {
            step: RoundStep::Trades(VecDeque::from([instrument])),
            ..Self::default()
        }
    }

    /// A round that reads only the account.
    pub fn of_account() -> Self {
        Self::of_step(RoundStep::Account)
    }

    /// A round that begins with this step.
    pub fn of_step(step: RoundStep) -> Self {
        Self {
            step,
            ..Self::default()
        }
    }

    /// Whether trades are read for commissions only.
    pub const fn is_of_fees(&self) -> bool {
        matches!(self.step, RoundStep::Fees(_)) && self.searched_trades_for.is_none()
    }

    /// When the pending request was sent.
    pub fn asked_since(&self) -> Option<Time> {
        self.asked.map(|(_, at)| at)
    }

    /// How often the present request failed in a row.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether the round must read the account and has not requested it yet.
    pub const fn waits_for_snapshot(&self) -> bool {
        matches!(self.step, RoundStep::Account) && self.asked.is_none()
    }

    /// Whether no round runs.
    pub const fn is_idle(&self) -> bool {
        matches!(self.step, RoundStep::Idle)
    }

    /// Whether a request waits for its response.
    pub const fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// The present request succeeded.
    pub const fn succeed(&mut self) {
        self.failures = 0;
    }

    /// The present request failed. Returns the pause before the next one, in milliseconds.
    pub fn fail(&mut self) -> i64 {
        let wait_ms = (RETRY_MS.0 << self.failures.min(4)).min(RETRY_MS.1);
        self.failures += 1;
        wait_ms
    }
}

/// The step of a reconciliation round.
#[derive(Debug, Default, Serialize, Deserialize)]
pub enum RoundStep {
    #[default]
    /// No round runs.
    Idle,
    /// Open orders.
    Orders,
    /// The list of the account's trades, for these instruments.
    Trades(VecDeque<InstrumentId>),
    /// The account.
    Account,
    /// The income history.
    Income,
    /// The list of the account's trades again, for these instruments: they have fills whose
    /// commission is not known.
    Fees(VecDeque<InstrumentId>),
}

/// To which round a response belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseMatch {
    /// To an abandoned reconciliation round.
    AbandonedRound,
    /// To no reconciliation round: none requested it, or its response came already.
    NotRequested,
    /// To the running reconciliation round.
    RunningRound,
}

impl Connection {
    /// Ends the running round without a result. Its request may still be answered.
    pub fn give_up_round(&mut self) {
        let round = std::mem::take(&mut self.round);
        self.abandoned_requests.extend(round.asked);
    }

    /// The stream showed that it is alive.
    pub const fn note_alive(&mut self, now: Time) {
        self.alive = now;
    }

    /// Whether the stream answered no PING and delivered no event for too long.
    pub fn is_silent(&self, now: Time) -> bool {
        now > self.alive.plus_ms(SILENCE_MS)
    }

    /// The venue's clock was read: offset and error in nanoseconds.
    pub const fn read_clock(&mut self, offset_ns: i64, error_ns: i64, read: Time) {
        self.clock = Some(ClockReading {
            offset_ns,
            error_ns,
            read,
        });
    }

    /// The reading of the venue's clock is wrong.
    pub const fn forget_clock(&mut self) {
        self.clock = None;
    }

    /// Offset and error of the venue's clock in nanoseconds; `None` before it was read.
    pub fn clock(&self) -> Option<(i64, i64)> {
        let clock = self.clock?;
        Some((clock.offset_ns, clock.error_ns))
    }

    /// Whether the venue's clock was not read recently.
    pub fn is_clock_old(&self, now: Time) -> bool {
        self.clock
            .is_none_or(|clock| now > clock.read.plus_ms(CLOCK_MS))
    }

    /// Drops requests that were not answered at all. Returns whether to ask again.
    pub fn drop_overdue(&mut self, now: Time) -> bool {
        let overdue = |(_, at): &(Subject, Time)| now > at.plus_ms(ANSWER_MS);
        if self.round.asked.as_ref().is_some_and(overdue) {
            self.round.asked = None;
            return true;
        }
        let before = self.abandoned_requests.len();
        self.abandoned_requests.retain(|query| !overdue(query));
        self.abandoned_requests.len() < before
    }

    /// Notes that a request of the running reconciliation round is sent. Returns whether it may be:
    /// a response does not name the request that it answers, if two requests are equal.
    pub fn ask(&mut self, subject: Subject, now: Time) -> bool {
        if self
            .abandoned_requests
            .iter()
            .any(|(asked, _)| *asked == subject)
        {
            return false;
        }
        if matches!(subject, Subject::OpenOrders { .. }) {
            self.round.orders_asked = Some(now);
        }
        self.round.asked = Some((subject, now));
        self.round.events_when_asked = self.events;
        self.round.asked_at = now;
        true
    }

    /// Notes a response, and returns to which reconciliation round it belongs.
    pub fn take_answer(&mut self, subject: &Subject) -> ResponseMatch {
        // A response to an abandoned round says nothing about this one.
        let of_earlier = self
            .abandoned_requests
            .iter()
            .position(|(asked, _)| asked == subject);
        if let Some(place) = of_earlier {
            self.abandoned_requests.remove(place);
            return ResponseMatch::AbandonedRound;
        }
        if self.round.asked.is_none_or(|(asked, _)| asked != *subject) {
            return ResponseMatch::NotRequested;
        }
        self.round.asked = None;
        ResponseMatch::RunningRound
    }
}
