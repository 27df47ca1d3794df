//! Splits a request of the engine into calls, and makes replies of their results.

use std::time::Duration;

use windvane_client_core::budget::Lane;
use windvane_client_core::outcome::{NotDone, Wait, WaitReason};
use windvane_engine::engine::{Purpose as EnginePurpose, is_probe};
use windvane_model::live::LiveInput;
use windvane_model::state_report::Subject;
use windvane_model::{Request, Time, planted};
use windvane_protocol::adapter::{CallResult, EncodeError, EncodedCall};
use windvane_protocol::route::Surface as RouteSurface;

use super::call::Purpose;
use super::calls::fresh_ns;
use super::done::Done;
use super::pending::{CallOutcome, PendingRequest};
use super::stages::Wanted;
use super::state::Requests;
use crate::exchange::Exchange;
use crate::log_note::log_note;
use crate::surface::venue_surface;

/// How long requests that reduce risk, or read the state of orders, may wait for their budget
/// before the engine must try again.
const PATIENCE_NS: i64 = 1_000_000_000;
/// A cancel follows its order after the response to the order, or after this time without one.
const FOLLOW_MS: i64 = 1_000;
/// From this many symbols on, one list of all open orders is not more expensive than one list for
/// each symbol.
const SYMBOLS_MAX: usize = 40;
/// Below this remaining weight, the cheapest sufficient reads are used. It is twice the maximum
/// cost of the reads of one reconciliation round.
const PLENTY: u32 = 250;
/// For a start, this threshold is the weight limit divided by this number. A run that is killed
/// repeatedly starts about ten times in one interval of the limit.
const START_PARTS: u32 = 2;

impl Requests {
    /// Starts a request of the engine. `since` is the arrival of the public frame that caused it.
    /// `awaits_modes` says whether opening orders wait until the account's modes are known.
    pub(crate) fn start_request(
        &mut self,
        now: Time,
        (request, purpose): (Request, EnginePurpose),
        since: Option<Time>,
        awaits_modes: bool,
    ) {
        let lane = lane(&request, purpose);
        if matches!(request, Request::Read(_)) {
            self.modes.are_needed = awaits_modes;
        }
        let calls = match self.calls_of(now, (&request, lane)) {
            Ok(calls) => calls,
            Err(error) => return self.refuse(&request, &error),
        };
        let follows = match &request {
            Request::Cancel {
                client_order_id, ..
            } => self.placing.contains(client_order_id),
            _ => false,
        };
        if let Request::Place(order) = &request {
            self.placing.insert(order.client_order_id);
            self.last = Some(request.clone());
        }
        self.next_pending += 1;
        let number = self.next_pending;
        let pending = PendingRequest {
            request,
            lane,
            calls,
            outcomes: Vec::new(),
            handed: now,
            since,
            follow_by: follows.then(|| now.plus_ms(FOLLOW_MS)),
        };
        self.pending.insert(number, pending);
        if !follows {
            self.continue_request(now, number);
        }
    }

    /// Below this remaining weight, the cheapest sufficient reads are used.
    fn plenty(&self, now: Time, surface: RouteSurface, lane: Lane) -> u32 {
        match lane {
            Lane::Start => self.gateway().weight_limit(self.ms(now), surface) / START_PARTS,
            _ => PLENTY,
        }
    }

    /// The replacement for a read of a mode: a fresh cached response, or any cached response if
    /// little weight is left. With little weight and no cached response, the read is postponed.
    /// `None` if the venue must be asked.
    fn known_mode(&self, now: Time, call: &EncodedCall, lane: Lane) -> Option<CallOutcome> {
        let route = call.route.name;
        if !self.exchange.capabilities().modes.contains(&route) {
            return None;
        }
        let surface = call.route.surface;
        let plenty = if self.modes.are_needed {
            // The maximum cost of the reads of one reconciliation round. Opening orders wait for
            // it.
            PLENTY / 2
        } else {
            self.plenty(now, surface, lane)
        };
        let is_short = self.gateway().weight_left(self.ms(now), surface, lane) < plenty;
        match self.modes.last(now, route, is_short || lane == Lane::Close) {
            Some(text) => Some(CallOutcome::Done(text)),
            None if is_short => Some(CallOutcome::Postponed),
            None => None,
        }
    }

    fn refuse(&mut self, request: &Request, error: &EncodeError) {
        if let EncodeError::Undocumented(route) = error {
            tracing::info!(
                route,
                "the request was not sent: its route is not in the core interface \
                 (docs/interface/README.md#core-and-public-facts)"
            );
        } else {
            tracing::error!(%error, ?request, "a request could not be encoded and was not sent");
        }
        let replies = self.exchange.refuse(request, error);
        self.done.push_back(Done::Replies(replies));
    }

    /// The calls of a request. If little weight is left, or a close waits for them, open orders are
    /// listed only for the configured symbols.
    fn calls_of(
        &self,
        now: Time,
        (request, lane): (&Request, Lane),
    ) -> Result<Vec<EncodedCall>, EncodeError> {
        if let Request::Read(Subject::OpenOrders { surface }) = request {
            let of = venue_surface(*surface);
            let left = self.gateway().weight_left(self.ms(now), of, lane);
            let is_short = left < self.plenty(now, of, lane);
            let few = self.exchange.names().symbols(*surface).count() < SYMBOLS_MAX;
            if few && (is_short || lane == Lane::Close) {
                return self.exchange.open_orders_by_symbol(*surface);
            }
        }
        self.exchange.encode_request(request)
    }

    /// Makes the next call of a request, or finishes the request after the last one.
    fn continue_request(&mut self, now: Time, number: u64) {
        loop {
            let Some(pending) = self.pending.get(&number) else {
                return;
            };
            let Some(call) = pending.calls.get(pending.outcomes.len()) else {
                return self.finish_request(now, number);
            };
            let is_reading = matches!(pending.request, Request::Read(_));
            // Only reads may use cached responses.
            let known = self.known_mode(now, call, pending.lane);
            if let Some(known) = known.filter(|_| is_reading) {
                if let Some(pending) = self.pending.get_mut(&number) {
                    pending.outcomes.push(known);
                }
                continue;
            }
            let wanted = self.wanted(number, pending, call);
            return self.call(now, wanted);
        }
    }

    fn wanted(&self, number: u64, pending: &PendingRequest, call: &EncodedCall) -> Wanted {
        let request = &pending.request;
        let places = matches!(request, Request::Place(_) | Request::PlaceBatch(_))
            || pending.lane == Lane::Place;
        let is_order = matches!(request, Request::Place(_));
        let is_countdown = matches!(request, Request::Countdown { .. });
        Wanted {
            call: call.clone(),
            lane: pending.lane,
            patience_ns: if places { 0 } else { PATIENCE_NS },
            within: self.within(is_countdown, places),
            leave_by: (is_order && !planted!(LateOrderSent))
                .then(|| pending.handed.plus_ns(fresh_ns())),
            since: pending.since.filter(|_| is_order),
            purpose: Purpose::Part(number),
        }
    }

    /// The result of one call of a request.
    pub(super) fn part_ended(&mut self, now: Time, number: u64, result: Result<String, NotDone>) {
        let Some(pending) = self.pending.get_mut(&number) else {
            return;
        };
        let Some(call) = pending.calls.get(pending.outcomes.len()) else {
            return;
        };
        let route = call.route;
        self.account
            .note_result(route, &result, &mut *self.exchange);
        match result {
            Ok(text) => {
                if matches!(pending.request, Request::Read(_)) {
                    let modes = self.exchange.capabilities().modes;
                    self.modes.keep(now, (route.name, &text), modes);
                }
                pending.outcomes.push(CallOutcome::Done(text));
            }
            Err(not_done) => {
                let request = &pending.request;
                if is_passed_test(&*self.exchange, request, &not_done) {
                    tracing::debug!(
                        route = route.name,
                        "the test cancel was refused as expected: the API key may trade"
                    );
                } else if matches!(request, Request::Place(_)) {
                    // Orders have a log line of their own, which counts repetitions.
                    tracing::debug!(route = route.name, %not_done, ?request, "the request was not completed");
                } else {
                    tracing::info!(route = route.name, %not_done, ?request, "the request was not completed");
                }
                let wait = match &not_done {
                    NotDone::Wait(Wait { why, .. }) => Some(why.clone()),
                    _ => None,
                };
                pending.outcomes.push(CallOutcome::Not(not_done));
                if let Some(why) = wait {
                    self.report_wait(now, route.surface, &why);
                }
            }
        }
        self.continue_request(now, number);
    }

    /// Whether a request places one order. Other requests that did not leave count as failed. They
    /// must not count as refused: a refused read would mean that the venue does not serve the
    /// route.
    pub(super) fn is_order(&self, number: u64) -> bool {
        let pending = self.pending.get(&number);
        pending.is_some_and(|one| matches!(one.request, Request::Place(_)))
    }

    /// The shell did not send an order, because it had waited too long.
    pub(super) fn not_sent_in_time(&mut self, (number, waited): (u64, Duration)) {
        let Some(pending) = self.pending.remove(&number) else {
            return;
        };
        let late = EncodeError::Late(waited);
        self.refuse(&pending.request, &late);
        let Request::Place(order) = &pending.request else {
            return;
        };
        let id = order.client_order_id;
        self.placing.remove(&id);
        // The order does not exist, so there is nothing to cancel.
        let waiting = self.pending.iter().filter(|(_, one)| one.follows(&id));
        let waiting: Vec<_> = waiting.map(|(number, _)| *number).collect();
        for number in waiting {
            if let Some(cancel) = self.pending.remove(&number) {
                self.refuse(&cancel.request, &late);
            }
        }
    }

    fn finish_request(&mut self, now: Time, number: u64) {
        let Some(pending) = self.pending.remove(&number) else {
            return;
        };
        let PendingRequest {
            request,
            calls,
            outcomes,
            ..
        } = pending;
        let modes = self.exchange.capabilities().modes;
        let is_pending = |(call, outcome): (&EncodedCall, &CallOutcome)| {
            modes.contains(&call.route.name) && outcome.is_pending()
        };
        if matches!(request, Request::Read(_)) && calls.iter().zip(&outcomes).any(is_pending) {
            self.done.push_back(Done::Live(LiveInput::ModesPending));
        }
        let texts: Vec<String> = outcomes.iter().map(outcome_text).collect();
        let results: Vec<CallResult<'_>> = outcomes
            .iter()
            .zip(&texts)
            .map(|(outcome, text)| call_result(outcome, text))
            .collect();
        let decoded = self.exchange.decode_reply(&request, &results);
        for note in &decoded.notes {
            if self.elsewhere.is_news(note) {
                log_note(note, "in an answer");
            }
        }
        self.done.push_back(Done::Replies(decoded.items));
        self.placed(now, &request);
    }

    /// The response to an order came: cancels that waited for it may leave.
    fn placed(&mut self, now: Time, request: &Request) {
        let Request::Place(order) = request else {
            return;
        };
        let id = order.client_order_id;
        self.placing.remove(&id);
        self.release_following(now, |pending| pending.follows(&id));
    }

    /// Releases cancels that waited long enough.
    pub(super) fn follow_overdue(&mut self, now: Time) {
        let due = |pending: &PendingRequest| pending.follow_by.is_some_and(|by| by <= now);
        self.release_following(now, due);
    }

    fn release_following(&mut self, now: Time, which: impl Fn(&PendingRequest) -> bool) {
        let all = self.pending.iter();
        let numbers: Vec<_> = all.filter(|(_, one)| which(one)).map(|(n, _)| *n).collect();
        for number in numbers {
            if let Some(pending) = self.pending.get_mut(&number) {
                pending.follow_by = None;
            }
            self.continue_request(now, number);
        }
    }
}

fn outcome_text(outcome: &CallOutcome) -> String {
    match outcome {
        CallOutcome::Done(_) | CallOutcome::Postponed => String::new(),
        CallOutcome::Not(not_done) => not_done.to_string(),
    }
}

fn call_result<'a>(outcome: &'a CallOutcome, text: &'a str) -> CallResult<'a> {
    match outcome {
        CallOutcome::Done(text) => CallResult::Done(text),
        CallOutcome::Not(NotDone::Refused(refusal)) => CallResult::Refused {
            code: refusal.code(),
            // The engine searches this text for the word "balance", and our own advice contains
            // that word too. So the venue's text alone is passed on.
            msg: refusal.msg().unwrap_or(text),
        },
        CallOutcome::Postponed | CallOutcome::Not(NotDone::Unknown(_)) => CallResult::Unknown,
        CallOutcome::Not(NotDone::Wait(wait)) => match &wait.why {
            WaitReason::Budget(_) | WaitReason::NoConnection(_) => {
                CallResult::NotSent { msg: text }
            }
            WaitReason::Venue(pause) => CallResult::Wait {
                code: pause.complaint.error.as_ref().map(|error| error.code),
                msg: text,
            },
            WaitReason::NoAnswer(_) | WaitReason::Busy(_) => CallResult::Wait {
                code: None,
                msg: text,
            },
        },
    }
}

/// Whether this is the expected refusal of a cancel that only tests whether the API key may trade.
fn is_passed_test(exchange: &dyn Exchange, request: &Request, not_done: &NotDone) -> bool {
    let Request::Cancel {
        client_order_id, ..
    } = request
    else {
        return false;
    };
    is_probe(client_order_id) && exchange.is_nothing_to_cancel(not_done)
}

/// The lane of a request. The cancel lane passes even if our own weight count is used up.
pub fn lane(request: &Request, purpose: EnginePurpose) -> Lane {
    match (request, purpose) {
        (Request::Cancel { .. } | Request::CancelAll { .. }, _) if planted!(LaneStarved) => {
            Lane::Place
        }
        (Request::Place(_), _) if planted!(ReserveIgnored) => Lane::Close,
        (Request::Cancel { .. } | Request::CancelBatch { .. } | Request::CancelAll { .. }, _) => {
            Lane::Cancel
        }
        // It only disarms a countdown that no order needs any more, so it is not urgent.
        (
            Request::Countdown {
                countdown_ms: 0, ..
            },
            EnginePurpose::Ordinary,
        ) => Lane::Place,
        (Request::Countdown { .. }, _) => Lane::Heartbeat,
        (_, EnginePurpose::Close) => Lane::Close,
        (Request::Query { .. } | Request::Read(_), EnginePurpose::Start) => Lane::Start,
        (Request::Query { .. } | Request::Read(_), EnginePurpose::Ordinary) => Lane::Reconcile,
        (
            Request::Place(_)
            | Request::PlaceBatch(_)
            | Request::SetPositionMode { .. }
            | Request::SetLeverage { .. },
            _,
        ) => Lane::Place,
    }
}

#[cfg(test)]
mod tests;
