//! One call: it waits for its share of the budget, is stamped and signed, and is given up in time.

use std::time::Duration;

use windvane_client_core::budget::{Cost, Denied, Departed, Lane};
use windvane_client_core::gateway::{Answer, Failure, Now, Unsigned, denied};
use windvane_client_core::outcome::{Lost, NotDone, Refusal, RequestError};
use windvane_model::{Time, constant};
use windvane_protocol::sign::{PrepareError, Prepared};
use windvane_protocol::speak::Asked;

use super::{Call, CallEnded, Done, Purpose, Requests};

/// An order that could not leave within this does not: the process was stopped, and the dead man's
/// switch that covered it may have acted.
const FRESH_NS: i64 = 1_000_000_000;
/// While `on_stop` is applied an answer is waited for so long: a connection that died must not cost
/// all of its time. What has no answer is asked for and, being a cancel, sent again.
const HURRIED: Duration = Duration::from_secs(3);
/// A signature is waited for so long, and for no more than this part of the time of the answer. A call
/// without one did not leave, so that another may: a heartbeat whose signature is lost must not use up
/// the time of the next.
const SIGN_WITHIN: Duration = Duration::from_secs(3);
const SIGN_PART: i64 = 3;
/// After a question that failed.
pub(super) const AGAIN_NS: i64 = 2_000_000_000;

/// How long after it was handed over an order may leave, nanoseconds.
pub(super) fn fresh_ns() -> i64 {
    constant!(LateOrder, FRESH_NS, changed: -1)
}

/// The number of a call. It is used once in a process.
pub type CallId = u64;

/// What came back of a call.
#[derive(Clone, Debug)]
pub enum CallAnswer<'a> {
    /// An answer.
    Came(Answer<'a>),
    /// It was written, or may have been, and no answer will come.
    Lost(Lost),
    /// There was no connection to write it to.
    NoConnection(String),
    /// It could not be written.
    NotMade(RequestError),
    /// It did not leave: [`Call::leave_by`] was over for so long, or it was given up before.
    Late(Duration),
}

/// A call that is to be made.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) asked: Asked,
    pub(super) lane: Lane,
    /// It waits so long for the budget, nanoseconds.
    pub(super) patience_ns: i64,
    /// Its answer is waited for so long.
    pub(super) within: Duration,
    pub(super) leave_by: Option<Time>,
    pub(super) since: Option<Time>,
    pub(super) purpose: Purpose,
}

/// A call that waits for its share of the budget.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) at: Time,
    /// When it was to be made.
    asked: Time,
    give_up: Time,
    wanted: Wanted,
}

/// A call whose signature is waited for.
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
    /// When it is given up: one that must not leave later needs no signature later.
    pub(super) fn by(&self) -> Time {
        let by = self.leave_by.map_or(self.by, |by| by.min(self.by));
        let part_ns = (self.by.0 - self.began.0) / SIGN_PART;
        by.min(self.began.plus_ns(part_ns.min(ns(SIGN_WITHIN))))
    }
}

/// A call whose answer is waited for.
#[derive(Debug)]
pub(super) struct Flying {
    unsigned: Unsigned,
    cost: Cost,
    departed: Departed,
    left: Time,
    /// When it is given up; `None` once it was.
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
    /// The clocks of the gateway.
    pub(super) fn gateway_now(&self, now: Time) -> Now {
        Now {
            ms: self.ms(now),
            local_us: now.0.div_euclid(1_000),
        }
    }

    pub(super) fn ms(&self, now: Time) -> u64 {
        u64::try_from(now.0.saturating_sub(self.origin.0) / 1_000_000).unwrap_or(0)
    }

    /// The end of a millisecond of the budgets: it is over when all of it is.
    pub(super) fn time_of(&self, ms: u64) -> Time {
        let ms = i64::try_from(ms).unwrap_or(i64::MAX / 1_000_000 - 1);
        let ns = (ms + 1).saturating_mul(1_000_000);
        Time(self.origin.0.saturating_add(ns))
    }

    /// A call of the session's own.
    pub(super) const fn plain_call(&self, asked: Asked, lane: Lane, purpose: Purpose) -> Wanted {
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

    /// How long the answer to a request is waited for.
    pub(super) fn within(&self, is_countdown: bool, places: bool) -> Duration {
        let hurried = (self.is_hurried && !places).then_some(HURRIED);
        let countdown = is_countdown.then_some(self.terms.countdown);
        [hurried, countdown]
            .into_iter()
            .flatten()
            .fold(self.terms.request, Duration::min)
    }

    /// Makes a call: it leaves, waits for the budget, or ends at once.
    pub(super) fn call(&mut self, now: Time, wanted: Wanted) {
        let waiting = Waiting {
            at: now,
            asked: now,
            give_up: Time(now.0.saturating_add(wanted.patience_ns)),
            wanted,
        };
        self.attempt(now, waiting);
    }

    /// A call that waited and whose turn has come.
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
        // Signed after waiting: a timestamp must be fresh.
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

    /// A call was signed elsewhere, or could not be. One that was given up meanwhile does not leave.
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

    /// Calls whose signature did not come in time. They did not leave; whether there were any.
    pub(super) fn give_up_signing(&mut self, now: Time) -> bool {
        let signing = self.signing.iter();
        let overdue = signing.filter(|(_, signs)| signs.by() <= now);
        let overdue: Vec<_> = overdue.map(|(id, _)| *id).collect();
        for id in &overdue {
            if let Some(signs) = self.signing.remove(id) {
                tracing::warn!(
                    route = signs.unsigned.asked.route.name,
                    "no signature came in time: it was not sent"
                );
                self.not_left(now, signs);
            }
        }
        !overdue.is_empty()
    }

    /// A call that is signed leaves, unless its time is over.
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
        // The venue may have told meanwhile that it takes nothing: a request would prolong a ban.
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

    /// A call did not leave, for its signature came too late or not at all.
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

    /// A call whose time is over. The shell is asked what became of it: it knows whether it left.
    pub(super) fn give_up(&mut self, now: Time) -> Option<CallId> {
        let mut flying = self.flying.iter_mut();
        let overdue = flying.find(|(_, flying)| flying.by.is_some_and(|by| by <= now));
        let (id, flying) = overdue?;
        flying.by = None;
        Some(*id)
    }

    /// The request of the engine that a call is a part of.
    pub(super) fn part(&self, id: CallId) -> Option<u64> {
        match self.flying.get(&id)?.purpose {
            Purpose::Part(number) => Some(number),
            _ => None,
        }
    }

    /// What a call became by its answer; `None` where it was given up before.
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
