//! One call: it waits for its share of the budget, is stamped and signed, and is given up in time.

use std::time::Duration;

use windvane_client_core::Asked as AskedRoute;
use windvane_client_core::budget::{Cost, Departed, Lane};
use windvane_client_core::gateway::{Answer, Failure, Now, denied};
use windvane_client_core::outcome::{Lost, NotDone, Refusal, RequestError};
use windvane_engine::{Time, constant};
use windvane_venue::route::Route;
use windvane_venue::speak::Speaker;
use windvane_venue::wire::Parameters;

use super::{Call, CallEnded, Done, Purpose, Requests};

/// An order that could not leave within this does not: the process was stopped, and the dead man's
/// switch that covered it may have acted.
const FRESH_NS: i64 = 1_000_000_000;
/// While `on_stop` is applied an answer is waited for so long: a connection that died must not cost
/// all of its time. What has no answer is asked for and, being a cancel, sent again.
const HURRIED: Duration = Duration::from_secs(3);
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
    pub(super) route: &'static Route,
    pub(super) parameters: Parameters,
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

/// A call whose answer is waited for.
#[derive(Debug)]
pub(super) struct Flying {
    asked: AskedRoute,
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
    pub(super) const fn plain_call(
        &self,
        route: &'static Route,
        parameters: Parameters,
        lane: Lane,
        purpose: Purpose,
    ) -> Wanted {
        Wanted {
            route,
            parameters,
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
    pub(super) fn call(&mut self, now: Time, wanted: Wanted, speaker: &Speaker) {
        let waiting = Waiting {
            at: now,
            asked: now,
            give_up: Time(now.0.saturating_add(wanted.patience_ns)),
            wanted,
        };
        self.attempt(now, waiting, speaker);
    }

    /// A call that waited and whose turn has come.
    pub(super) fn turn(&mut self, now: Time) -> Option<Waiting> {
        let at = self.waiting.iter().position(|waiting| waiting.at <= now)?;
        Some(self.waiting.remove(at))
    }

    pub(super) fn attempt(&mut self, now: Time, waiting: Waiting, speaker: &Speaker) {
        let Waiting {
            asked: since,
            give_up,
            wanted,
            ..
        } = waiting;
        let (surface, lane, ms) = (wanted.route.surface, wanted.lane, self.ms(now));
        let cost = Cost::of(wanted.route, &wanted.parameters);
        let departed = match self.gateway.acquire(ms, (surface, lane), &cost) {
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
                return self.became(now, wanted.purpose, Err(not_done), speaker);
            }
        };
        if since < now {
            self.done
                .push_back(Done::Waited(lane, now.0.saturating_sub(since.0)));
        }
        // Signed after waiting: a timestamp must be fresh.
        let local_us = self.gateway_now(now).local_us;
        let version = self.gateway.identity().version(wanted.route);
        let asked = AskedRoute {
            route: wanted.route,
            version,
        };
        let route = (wanted.route, version);
        let prepared = self
            .gateway
            .prepare(local_us, route, &wanted.parameters, None);
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                let refusal = Refusal::NotMade(error.into());
                let not_done = NotDone::Refused(refusal);
                return self.became(now, wanted.purpose, Err(not_done), speaker);
            }
        };
        self.next_call += 1;
        let id = self.next_call;
        let flying = Flying {
            asked,
            cost,
            departed,
            left: now,
            by: Some(Time(now.0.saturating_add(ns(wanted.within)))),
            purpose: wanted.purpose,
        };
        self.flying.insert(id, flying);
        self.done.push_back(Done::Send(Call {
            id,
            route: wanted.route,
            prepared,
            changes: wanted.route.changes,
            leave_by: wanted.leave_by,
            since: wanted.since,
        }));
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
            self.gateway
                .judge(now_of_gateway, flying.asked, sent, answer)
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
            surface: flying.asked.route.surface,
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
