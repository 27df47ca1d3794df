//! Requests for the venue's forced orders. An account snapshot or account trades showed that an
//! outside party closed a position, and no event reported whether it was the venue. A person may
//! have closed it by hand, and the configured reaction is only for forced closes.
//!
//! If a request is not answered, the engine sends one more before the close counts as one by an
//! outside party.

use serde::{Deserialize, Serialize};
use windvane_model::effect::Effect;
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::order::Surface;
use windvane_model::planted;
use windvane_model::protocol::{Outcome, Request};
use windvane_model::truth::{OpenOrder, Subject, Truth};

use super::Engine;
use super::lag::READ_LAG_MS;
use super::reconcile::OF_ANY_ROUTE;

/// Time after a failed request, time from the first request to the second, and the largest number
/// of requests.
const ASK_AGAIN_MS: i64 = 10_000;
const ASK_SECOND_MS: i64 = 4_000;
const TRIES: u32 = 10;
/// After this many requests without a response, the close counts as one by an outside party.
const AWAITED: u32 = 2;
/// How far the clocks may differ from the measured offset.
const SLACK_MS: i64 = 2_000;

/// A pending request for the forced orders of an instrument.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Question {
    /// Orders before this time, by the venue's clock, explain nothing.
    since: Time,
    sent: Time,
    waits: bool,
    tries: u32,
}

impl Question {
    /// The same request in a new process, which gets no response to the request of the old process.
    pub(super) const fn without_answer(&self) -> Self {
        Self {
            waits: false,
            ..*self
        }
    }

    fn is_overdue(&self, now: Time) -> bool {
        let is_first = self.waits && self.tries < AWAITED;
        let wait_ms = if is_first {
            ASK_SECOND_MS
        } else {
            ASK_AGAIN_MS
        };
        now > self.sent.plus_ms(wait_ms)
    }
}

impl Engine {
    /// Called at the end of a round that left nothing unexplained. If an outside party closed
    /// positions and no event reported that it was the venue, the engine requests the forced
    /// orders.
    pub(super) fn examine_outside_closes(
        &mut self,
        surface: Surface,
        asked: Time,
        is_compared: bool,
    ) {
        if surface != Surface::Futures || planted!(LiquidationIgnored) {
            return;
        }
        let offset_ns = self.clock_offset_ns(surface).unwrap_or_default();
        let agreed = Time(asked.0.saturating_add(offset_ns)).plus_ms(-SLACK_MS);
        let since = self.forced.agreed.get(&surface).copied();
        if is_compared {
            self.forced.agreed.insert(surface, agreed);
        }
        let mut moved = self.instruments_with_due_closes();
        moved.extend(self.instruments_moved_now());
        moved.extend(self.take_untold_trades());
        for id in moved {
            self.question_forced_orders(id, since);
        }
    }

    /// Requests the forced orders of an instrument since the last round that left nothing
    /// unexplained.
    pub(super) fn question_forced_orders(&mut self, id: InstrumentId, since: Option<Time>) {
        let question = Question {
            // The snapshot of that round may have been behind.
            since: since.unwrap_or_default().plus_ms(-READ_LAG_MS),
            sent: Time::default(),
            waits: false,
            tries: 0,
        };
        self.forced.asked.entry(id).or_insert(question);
        self.ask_for_forced_orders(id);
    }

    /// The venue's time of the last round that left nothing unexplained, less the tolerance of the
    /// clocks. Also of an earlier process.
    pub(super) fn agreed_at(&self, surface: Surface) -> Option<Time> {
        self.forced.agreed.get(&surface).copied()
    }

    /// Repeats requests that were not answered.
    pub(super) fn ask_again_for_forced_orders(&mut self) {
        let now = self.now;
        let overdue = |(_, question): &(&InstrumentId, &Question)| question.is_overdue(now);
        let overdue: Vec<_> = self.forced.asked.iter().filter(overdue).collect();
        let overdue: Vec<_> = overdue.into_iter().map(|(id, _)| *id).collect();
        if overdue.is_empty() {
            return;
        }
        for id in overdue {
            if let Some(question) = self.forced.asked.get_mut(&id) {
                question.waits = false;
            }
            self.ask_for_forced_orders(id);
        }
        self.settle_outside_closes(Surface::Futures);
    }

    fn ask_for_forced_orders(&mut self, instrument: InstrumentId) {
        let now = self.now;
        let Some(question) = self.forced.asked.get_mut(&instrument) else {
            return;
        };
        if question.waits {
            return;
        }
        if question.tries >= TRIES {
            self.forced.asked.remove(&instrument);
            return;
        }
        question.tries += 1;
        question.waits = true;
        question.sent = now;
        self.emit(Effect::Send {
            record: 0,
            request: Box::new(Request::Read(Subject::ForcedOrders { instrument })),
        });
    }

    /// Whether a response is still expected about forced orders of an instrument, or about an order
    /// that closed a position of it. A failed request is repeated once before the close counts as
    /// one by an outside party.
    pub(super) fn awaits_forced_orders(&self, id: InstrumentId) -> bool {
        let question = self.forced.asked.get(&id);
        question.is_some_and(|question| question.waits && question.tries <= AWAITED)
            || self.inquires_after(id)
    }

    /// Handles a response about forced orders. Outside parties closed what the forced orders do not
    /// explain.
    pub(super) fn take_forced_orders(&mut self, id: InstrumentId, outcome: &Outcome<Truth>) {
        self.report_listed_orders(id, outcome);
        self.ask_for_outside_orders(id);
        self.settle_outside_closes(Surface::Futures);
        self.review_stated_positions();
    }

    /// Reports forced orders that the venue lists and that no event reported.
    fn report_listed_orders(&mut self, id: InstrumentId, outcome: &Outcome<Truth>) {
        let Some(question) = self.forced.asked.get_mut(&id) else {
            return;
        };
        let since = question.since;
        let listed: &[OpenOrder] = match outcome {
            Outcome::Done(Truth::ForcedOrders(listed)) => {
                question.waits = false;
                listed
            }
            // The venue does not list forced orders at all.
            Outcome::Refused(refusal) if !OF_ANY_ROUTE.contains(&refusal.code) => {
                self.forced.asked.remove(&id);
                self.report_unexplained_closes(id);
                return;
            }
            // Nothing is known yet: the engine keeps waiting and asks again.
            _ => return,
        };
        let mut ask_again = false;
        for order in listed {
            let report = &order.report;
            if report.instrument == id && report.update_time >= since && report.executed_qty.0 > 0 {
                ask_again |= !self.take_forced_order(order) && !self.note_forced_trace(order);
            }
        }
        if !ask_again {
            self.forced.asked.remove(&id);
        }
    }
}
