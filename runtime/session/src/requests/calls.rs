//! One call: it waits for its budget, is stamped and signed, and is given up on time.

use std::time::Duration;

use windvane_client_core::budget::{Cost, Denied, Departed, Lane};
use windvane_client_core::gateway::{Answer, Failure, Now, Unsigned, denied};
use windvane_client_core::outcome::{Lost, NotDone, Refusal, RequestError};
use windvane_engine::{Time, constant};
use windvane_protocol::adapter::EncodedCall;
use windvane_protocol::sign::{PrepareError, Prepared};

use super::{Call, CallEnded, Done, Purpose, Requests};

/// An order that could not leave within this time is not sent. The process was suspended, and the
/// dead man's switch of the order may have cancelled orders already.
const FRESH_NS: i64 = 1_000_000_000;
/// Response timeout while `on_stop` is applied, so that one dead connection does not use up the
/// time of the stop. An order without a response is queried, and a cancel without a response is
/// sent again.
const HURRIED: Duration = Duration::from_secs(3);
/// Timeout of a signature. It is also limited to one `SIGN_PART`th of the response timeout. A call
/// without a signature did not leave, so another call may be made. A heartbeat whose signature is
/// lost must not use up the time of the next heartbeat.
const SIGN_WITHIN: Duration = Duration::from_secs(3);
const SIGN_PART: i64 = 3;
/// Pause after a failed request.
pub(super) const AGAIN_NS: i64 = 2_000_000_000;

/// How long after it was passed on an order may leave, in nanoseconds.
pub(super) fn fresh_ns() -> i64 {
    constant!(LateOrder, FRESH_NS, changed: -1)
}

/// The number of a call. Each number is used once in a process.
pub type CallId = u64;

/// The result of a call.
#[derive(Clone, Debug)]
pub enum CallAnswer<'a> {
    /// A response.
    Came(Answer<'a>),
    /// The call was or may have been written, and no response will come.
    Lost(Lost),
    /// No connection was available to write it to.
    NoConnection(String),
    /// The call could not be encoded for sending.
    NotMade(RequestError),
    /// The call did not leave: it was given up, or [`Call::leave_by`] had passed by this time.
    Late(Duration),
}

/// A call that must be made.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) asked: EncodedCall,
    pub(super) lane: Lane,
    /// How long it may wait for the budget, in nanoseconds.
    pub(super) patience_ns: i64,
    /// Response timeout.
    pub(super) within: Duration,
    pub(super) leave_by: Option<Time>,
    pub(super) since: Option<Time>,
    pub(super) purpose: Purpose,
}

/// A call that waits for its budget.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) at: Time,
    /// When the call was requested.
    asked: Time,
    give_up: Time,
    wanted: Wanted,
}

/// A call that waits for its signature.
#[derive(Debug)]
pub(super) struct Signs {
    began: Time,
    by: Time,
    unsigned: Unsigned,
    cost: Cost,
    departed: Departed,
    leave_by: Option<Time>,
    since: Option<Time>,
    purpose: Purpose,
}

impl Signs {
    /// When it is given up. A call with an earlier `leave_by` is given up then.
    pub(super) fn by(&self) -> Time {
        let by = self.leave_by.map_or(self.by, |by| by.min(self.by));
        let part_ns = (self.by.0 - self.began.0) / SIGN_PART;
        by.min(self.began.plus_ns(part_ns.min(ns(SIGN_WITHIN))))
    }
}

/// A call that waits for its response.
#[derive(Debug)]
pub(super) struct Flying {
    unsigned: Unsigned,
    cost: Cost,
    departed: Departed,
    left: Time,
    /// When it is given up; `None` if that happened already.
    pub(super) by: Option<Time>,
    purpose: Purpose,
}

const fn ns(duration: Duration) -> i64 {
    let ns = duration.as_nanos();
    if ns > i64::MAX as u128 {
        i64::MAX
    } else {
        ns as i64
    }
}

impl Requests {
    /// The gateway's view of the present time.
    pub(super) fn gateway_now(&self, now: Time) -> Now {
        Now {
            ms: self.ms(now),
            local_us: now.0.div_euclid(1_000),
        }
    }

    pub(super) fn ms(&self, now: Time) -> u64 {
        u64::try_from(now.0.saturating_sub(self.origin.0) / 1_000_000).unwrap_or(0)
    }

    /// The end of a millisecond of the budget's clock. A wait until that millisecond ends there.
    pub(super) fn time_of(&self, ms: u64) -> Time {
        let ms = i64::try_from(ms).unwrap_or(i64::MAX / 1_000_000 - 1);
        let ns = (ms + 1).saturating_mul(1_000_000);
        Time(self.origin.0.saturating_add(ns))
    }

    /// A call that the session makes for itself.
    pub(super) const fn plain_call(
        &self,
        asked: EncodedCall,
        lane: Lane,
        purpose: Purpose,
    ) -> Wanted {
        Wanted {
            asked,
            lane,
            patience_ns: 0,
            within: self.terms.request,
            leave_by: None,
            since: None,
            purpose,
        }
    }

    /// The response timeout of a request.
    pub(super) fn within(&self, is_countdown: bool, places: bool) -> Duration {
        let hurried = (self.is_hurried && !places).then_some(HURRIED);
        let countdown = is_countdown.then_some(self.terms.countdown);
        [hurried, countdown]
            .into_iter()
            .flatten()
            .fold(self.terms.request, Duration::min)
    }

    /// Makes a call: it leaves, waits for its budget, or ends at once.
    pub(super) fn call(&mut self, now: Time, wanted: Wanted) {
        let waiting = Waiting {
            at: now,
            asked: now,
            give_up: Time(now.0.saturating_add(wanted.patience_ns)),
            wanted,
        };
        self.attempt(now, waiting);
    }

    /// The next call whose wait is over.
    pub(super) fn turn(&mut self, now: Time) -> Option<Waiting> {
        let at = self.waiting.iter().position(|waiting| waiting.at <= now)?;
        Some(self.waiting.remove(at))
    }

    pub(super) fn attempt(&mut self, now: Time, waiting: Waiting) {
        let Waiting {
            asked: since,
            give_up,
            wanted,
            ..
        } = waiting;
        let (surface, lane, ms) = (wanted.asked.route.surface, wanted.lane, self.ms(now));
        let cost = self.exchange.cost(&wanted.asked);
        let departed = match self.gateway().acquire(ms, (surface, lane), &cost) {
            Ok(departed) => departed,
            Err(why) => {
                if let Some(at) = why.until_ms.map(|until_ms| self.time_of(until_ms))
                    && at <= give_up
                {
                    self.waiting.push(Waiting {
                        at,
                        asked: since,
                        give_up,
                        wanted,
                    });
                    return;
                }
                self.done
                    .push_back(Done::Waited(lane, now.0.saturating_sub(since.0)));
                let not_done = NotDone::Wait(denied(ms, why));
                return self.became(now, wanted.purpose, Err(not_done));
            }
        };
        if since < now {
            self.done
                .push_back(Done::Waited(lane, now.0.saturating_sub(since.0)));
        }
        // The call is signed after the wait, because its timestamp must be fresh.
        let local_us = self.gateway_now(now).local_us;
        let unsigned = self.exchange.unsigned(local_us, &wanted.asked);
        let prepared = self.exchange.sign(&unsigned);
        self.next_call += 1;
        let id = self.next_call;
        if prepared.is_none() {
            let unsigned = unsigned.clone();
            self.done.push_back(Done::Sign(id, unsigned));
        }
        let signs = Signs {
            began: now,
            by: Time(now.0.saturating_add(ns(wanted.within))),
            unsigned,
            cost,
            departed,
            leave_by: wanted.leave_by,
            since: wanted.since,
            purpose: wanted.purpose,
        };
        match prepared {
            Some(prepared) => self.leave(now, (id, signs), prepared),
            None => {
                self.signing.insert(id, signs);
            }
        }
    }

    /// A call was signed elsewhere, or could not be signed. A call that was given up meanwhile does
    /// not leave.
    pub(crate) fn signed(
        &mut self,
        now: Time,
        id: CallId,
        prepared: Result<Prepared, PrepareError>,
    ) {
        if let Some(signs) = self.signing.remove(&id) {
            self.leave(now, (id, signs), prepared);
        }
    }

    /// Ends calls whose signature did not arrive in time. They did not leave. Returns whether there
    /// were any.
    pub(super) fn give_up_signing(&mut self, now: Time) -> bool {
        let signing = self.signing.iter();
        let overdue = signing.filter(|(_, signs)| signs.by() <= now);
        let overdue: Vec<_> = overdue.map(|(id, _)| *id).collect();
        for id in &overdue {
            if let Some(signs) = self.signing.remove(id) {
                tracing::warn!(
                    route = signs.unsigned.asked.route.name,
                    "the signature did not arrive in time; the request was not sent"
                );
                self.not_left(now, signs);
            }
        }
        !overdue.is_empty()
    }

    /// Sends a signed call, unless it is too late.
    fn leave(
        &mut self,
        now: Time,
        (id, signs): (CallId, Signs),
        prepared: Result<Prepared, PrepareError>,
    ) {
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                let refusal = Refusal::NotMade(error.into());
                let not_done = NotDone::Refused(refusal);
                return self.became(now, signs.purpose, Err(not_done));
            }
        };
        if signs.began < now && signs.by() < now {
            return self.not_left(now, signs);
        }
        let route = signs.unsigned.asked.route;
        // The venue may have stopped all requests meanwhile. A request would prolong a ban.
        let ms = self.ms(now);
        if signs.began < now
            && let Some((why, left_ms)) = self.gateway().stop_of(ms, route.surface)
        {
            let until_ms = Some(ms.saturating_add(left_ms));
            let not_done = NotDone::Wait(denied(ms, Denied { why, until_ms }));
            return self.became(now, signs.purpose, Err(not_done));
        }
        let flying = Flying {
            unsigned: signs.unsigned,
            cost: signs.cost,
            departed: signs.departed,
            left: now,
            by: Some(signs.by),
            purpose: signs.purpose,
        };
        self.flying.insert(id, flying);
        self.done.push_back(Done::Send(Call {
            id,
            route,
            prepared,
            changes: route.changes,
            leave_by: signs.leave_by,
            since: signs.since,
        }));
    }

    /// Ends a call that did not leave because its signature came too late or not at all.
    fn not_left(&mut self, now: Time, signs: Signs) {
        let waited = now.0.saturating_sub(signs.began.0).max(0);
        if let Purpose::Part(number) = signs.purpose
            && self.is_order(number)
        {
            let waited = Duration::from_nanos(waited.unsigned_abs());
            return self.not_sent_in_time((number, waited));
        }
        let why = Failure::NoConnection("no signature came in time".to_owned());
        let sent = (&signs.cost, signs.departed);
        let judged = self
            .exchange
            .judge(self.gateway_now(now), &signs.unsigned, sent, Err(why));
        self.became(now, signs.purpose, judged.map(|()| String::new()));
    }

    /// Gives up one overdue call. The shell is asked for the result, because it knows whether the
    /// call left.
    pub(super) fn give_up(&mut self, now: Time) -> Option<CallId> {
        let mut flying = self.flying.iter_mut();
        let overdue = flying.find(|(_, flying)| flying.by.is_some_and(|by| by <= now));
        let (id, flying) = overdue?;
        flying.by = None;
        Some(*id)
    }

    /// The number of the engine's request that a call belongs to.
    pub(super) fn part(&self, id: CallId) -> Option<u64> {
        match self.flying.get(&id)?.purpose {
            Purpose::Part(number) => Some(number),
            _ => None,
        }
    }

    /// The result of a call; `None` if the call is unknown.
    pub(super) fn hear(
        &mut self,
        now: Time,
        id: CallId,
        answer: CallAnswer<'_>,
    ) -> Option<(Purpose, Result<String, NotDone>)> {
        let flying = self.flying.remove(&id)?;
        let now_of_gateway = self.gateway_now(now);
        let sent = (&flying.cost, flying.departed);
        let judge = |answer| {
            self.exchange
                .judge(now_of_gateway, &flying.unsigned, sent, answer)
        };
        let became = match answer {
            CallAnswer::Came(answer) => judge(Ok(answer)).map(|()| answer.text.to_owned()),
            CallAnswer::Lost(lost) => judge(Err(Failure::Lost(lost))).map(|()| String::new()),
            CallAnswer::NoConnection(why) => {
                judge(Err(Failure::NoConnection(why))).map(|()| String::new())
            }
            CallAnswer::NotMade(why) => judge(Err(Failure::NotMade(why))).map(|()| String::new()),
            CallAnswer::Late(_) => {
                let why = "it did not leave in time".to_owned();
                judge(Err(Failure::NoConnection(why))).map(|()| String::new())
            }
        };
        self.done.push_back(Done::Ended(CallEnded {
            surface: flying.unsigned.asked.route.surface,
            outcome: match &became {
                Ok(_) => "done",
                Err(NotDone::Refused(_)) => "refused",
                Err(NotDone::Unknown(_)) => "unknown",
                Err(NotDone::Wait(_)) => "wait",
            },
            took_ns: now.0.saturating_sub(flying.left.0).max(0),
        }));
        Some((flying.purpose, became))
    }
}
