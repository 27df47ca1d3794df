//! One call: it waits for its budget, is stamped and signed, and is given up on time.

use std::time::Duration;

use windvane_client_core::budget::{Denied, Lane};
use windvane_client_core::gateway::{Failure, denied};
use windvane_client_core::outcome::{NotDone, Refusal};
use windvane_client_core::streams::feed::PollId;
use windvane_model::{Surface, Time, constant};
use windvane_protocol::adapter::EncodedCall;
use windvane_protocol::sign::{PrepareError, Prepared};

use super::call::{Call, CallAnswer, CallEnded, CallId, Purpose};
use super::done::Done;
use super::stages::{InFlight, PendingSignature, Waiting, Wanted, ns};
use super::state::Requests;
use crate::exchange::Query;

/// An order that could not leave within this time is not sent. The process was suspended, and the
/// dead man's switch of the order may have cancelled orders already.
const FRESH_NS: i64 = 1_000_000_000;
/// Response timeout while `on_stop` is applied, so that one dead connection does not use up the
/// time of the stop. An order without a response is queried, and a cancel without a response is
/// sent again.
const HURRIED: Duration = Duration::from_secs(3);
/// Pause after a failed request.
pub(super) const AGAIN_NS: i64 = 2_000_000_000;

/// How long after it was passed on an order may leave, in nanoseconds.
pub(super) fn fresh_ns() -> i64 {
    constant!(LateOrder, FRESH_NS, changed: -1)
}

impl Requests {
    /// Sends a query for a start or a watchdog, which waits at most `patience_ms` for its budget.
    /// The result carries `number`. Returns whether the exchange has a call for it.
    pub(crate) fn send_numbered_query(
        &mut self,
        now: Time,
        query: Query<'_>,
        (lane, patience_ms): (Lane, i64),
        number: u64,
    ) -> bool {
        let Some(call) = self.exchange.encode_query(query) else {
            return false;
        };
        let call = Wanted {
            patience_ns: patience_ms * 1_000_000,
            ..self.plain_call(call, lane, Purpose::Query(number))
        };
        self.call(now, call);
        true
    }

    /// Sends a query of the session. Returns whether the exchange has a call for it.
    pub(super) fn send_query(
        &mut self,
        now: Time,
        query: Query<'_>,
        (lane, purpose): (Lane, Purpose),
    ) -> bool {
        let Some(call) = self.exchange.encode_query(query) else {
            return false;
        };
        let call = self.plain_call(call, lane, purpose);
        self.call(now, call);
        true
    }

    /// Sends a poll of public data.
    pub(crate) fn send_poll(
        &mut self,
        now: Time,
        (surface, query): (Surface, PollId),
        call: EncodedCall,
    ) {
        let purpose = Purpose::Poll(surface, query);
        let call = self.plain_call(call, Lane::Query, purpose);
        self.call(now, call);
    }

    /// A call that the session makes for itself.
    pub(super) const fn plain_call(
        &self,
        call: EncodedCall,
        lane: Lane,
        purpose: Purpose,
    ) -> Wanted {
        Wanted {
            call,
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
            requested_at: now,
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
            requested_at: since,
            give_up,
            wanted,
            ..
        } = waiting;
        let (surface, lane, ms) = (wanted.call.route.surface, wanted.lane, self.ms(now));
        let cost = self.exchange.cost(&wanted.call);
        let has_share = self.check_share(ms, (surface, lane), &wanted.purpose, &cost);
        let acquired = has_share.and_then(|()| self.gateway().acquire(ms, (surface, lane), &cost));
        let departed = match acquired {
            Ok(departed) => departed,
            Err(why) => {
                if let Some(at) = why.until_ms.map(|until_ms| self.time_of(until_ms))
                    && at <= give_up
                {
                    self.waiting.push(Waiting {
                        at,
                        requested_at: since,
                        give_up,
                        wanted,
                    });
                    return;
                }
                self.done
                    .push_back(Done::Waited(lane, now.0.saturating_sub(since.0)));
                let not_done = NotDone::Wait(denied(ms, why));
                return self.call_ended(now, wanted.purpose, Err(not_done));
            }
        };
        self.count_share(ms, surface, &wanted.purpose, &cost);
        if since < now {
            self.done
                .push_back(Done::Waited(lane, now.0.saturating_sub(since.0)));
        }
        // The call is signed after the wait, because its timestamp must be fresh.
        let local_us = self.gateway_now(now).local_us;
        let unsigned = self.exchange.unsigned(local_us, &wanted.call);
        let prepared = self.exchange.sign(&unsigned);
        self.next_call += 1;
        let id = self.next_call;
        if prepared.is_none() {
            let unsigned = unsigned.clone();
            self.done.push_back(Done::Sign(id, unsigned));
        }
        let unsigned_call = PendingSignature {
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
            Some(prepared) => self.leave(now, (id, unsigned_call), prepared),
            None => {
                self.signing.insert(id, unsigned_call);
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
        if let Some(unsigned_call) = self.signing.remove(&id) {
            self.leave(now, (id, unsigned_call), prepared);
        }
    }

    /// Ends calls whose signature did not arrive in time. They did not leave. Returns whether there
    /// were any.
    pub(super) fn give_up_signing(&mut self, now: Time) -> bool {
        let signing = self.signing.iter();
        let overdue = signing.filter(|(_, unsigned_call)| unsigned_call.by() <= now);
        let overdue: Vec<_> = overdue.map(|(id, _)| *id).collect();
        for id in &overdue {
            if let Some(unsigned_call) = self.signing.remove(id) {
                tracing::warn!(
                    route = unsigned_call.unsigned.called_route.route.name,
                    "the signature did not arrive in time; the request was not sent"
                );
                self.not_left(now, unsigned_call);
            }
        }
        !overdue.is_empty()
    }

    /// Sends a signed call, unless it is too late.
    fn leave(
        &mut self,
        now: Time,
        (id, unsigned_call): (CallId, PendingSignature),
        prepared: Result<Prepared, PrepareError>,
    ) {
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                let refusal = Refusal::NotMade(error.into());
                let not_done = NotDone::Refused(refusal);
                return self.call_ended(now, unsigned_call.purpose, Err(not_done));
            }
        };
        if unsigned_call.began < now && unsigned_call.by() < now {
            return self.not_left(now, unsigned_call);
        }
        let route = unsigned_call.unsigned.called_route.route;
        // The venue may have stopped all requests meanwhile. A request would prolong a ban.
        let ms = self.ms(now);
        if unsigned_call.began < now
            && let Some((why, left_ms)) = self.gateway().stop_of(ms, route.surface)
        {
            let until_ms = Some(ms.saturating_add(left_ms));
            let not_done = NotDone::Wait(denied(ms, Denied { why, until_ms }));
            return self.call_ended(now, unsigned_call.purpose, Err(not_done));
        }
        let in_flight = InFlight {
            unsigned: unsigned_call.unsigned,
            cost: unsigned_call.cost,
            departed: unsigned_call.departed,
            left: now,
            by: Some(unsigned_call.by),
            purpose: unsigned_call.purpose,
        };
        self.in_flight.insert(id, in_flight);
        self.done.push_back(Done::Send(Call {
            id,
            route,
            prepared,
            changes: route.changes,
            leave_by: unsigned_call.leave_by,
            since: unsigned_call.since,
        }));
    }

    /// Ends a call that did not leave because its signature came too late or not at all.
    fn not_left(&mut self, now: Time, unsigned_call: PendingSignature) {
        let waited = now.0.saturating_sub(unsigned_call.began.0).max(0);
        if let Purpose::Part(number) = unsigned_call.purpose
            && self.is_order(number)
        {
            let waited = Duration::from_nanos(waited.unsigned_abs());
            return self.not_sent_in_time((number, waited));
        }
        let why = Failure::NoConnection("no signature came in time".to_owned());
        let sent = (&unsigned_call.cost, unsigned_call.departed);
        let judged = self.exchange.judge(
            self.gateway_now(now),
            &unsigned_call.unsigned,
            sent,
            Err(why),
        );
        self.call_ended(now, unsigned_call.purpose, judged.map(|()| String::new()));
    }

    /// Gives up one overdue call. The shell is asked for the result, because it knows whether the
    /// call left.
    pub(super) fn give_up(&mut self, now: Time) -> Option<CallId> {
        let mut in_flight = self.in_flight.iter_mut();
        let overdue = in_flight.find(|(_, in_flight)| in_flight.by.is_some_and(|by| by <= now));
        let (id, in_flight) = overdue?;
        in_flight.by = None;
        Some(*id)
    }

    /// The number of the engine's request that a call belongs to.
    pub(super) fn part(&self, id: CallId) -> Option<u64> {
        match self.in_flight.get(&id)?.purpose {
            Purpose::Part(number) => Some(number),
            _ => None,
        }
    }

    /// The result of a call; `None` if the call is unknown.
    pub(super) fn classify_answer(
        &mut self,
        now: Time,
        id: CallId,
        answer: CallAnswer<'_>,
    ) -> Option<(Purpose, Result<String, NotDone>)> {
        let in_flight = self.in_flight.remove(&id)?;
        let now_of_gateway = self.gateway_now(now);
        let sent = (&in_flight.cost, in_flight.departed);
        let judge = |answer| {
            self.exchange
                .judge(now_of_gateway, &in_flight.unsigned, sent, answer)
        };
        let result = match answer {
            CallAnswer::Received(answer) => judge(Ok(answer)).map(|()| answer.text.to_owned()),
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
            surface: in_flight.unsigned.called_route.route.surface,
            outcome: match &result {
                Ok(_) => "done",
                Err(NotDone::Refused(_)) => "refused",
                Err(NotDone::Unknown(_)) => "unknown",
                Err(NotDone::Wait(_)) => "wait",
            },
            took_ns: now.0.saturating_sub(in_flight.left.0).max(0),
        }));
        Some((in_flight.purpose, result))
    }
}
