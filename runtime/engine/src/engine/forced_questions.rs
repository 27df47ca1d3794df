//! Questions for the forced orders of the venue. Readings or account trades showed that somebody closed a
//! position, and no event said that it was the venue. A person may have closed it by hand, and the reaction is
//! for forced closes alone.
//!
//! A question without an answer is asked once more before the close counts as one by others.

use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::ids::{InstrumentId, Time};
use crate::order::Surface;
use crate::planted;
use crate::protocol::{Outcome, Request};
use crate::truth::{OpenOrder, Subject, Truth};

use super::Engine;
use super::lag::READ_LAG_MS;
use super::reconcile::OF_ANY_ROUTE;

/// From a question that failed to the next, from the first one to the second, and how often it is asked.
const ASK_AGAIN_MS: i64 = 10_000;
const ASK_SECOND_MS: i64 = 4_000;
const TRIES: u32 = 10;
/// So many questions in a row without an answer are waited for: then the close counts as one by others.
const AWAITED: u32 = 2;
/// The clocks may differ by so much from what was measured.
const SLACK_MS: i64 = 2_000;

/// A question for the forced orders of an instrument.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Question {
    /// Orders from before this, the venue's time, explain nothing.
    since: Time,
    sent: Time,
    waits: bool,
    tries: u32,
}

impl Question {
    /// The same in another process, which gets no answer to what this one sent.
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
    /// At the end of a round that left nothing unexplained: somebody closed positions, and no event
    /// said that it was the venue. The venue is asked.
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

    /// Asks for the forced orders of an instrument since a round that left nothing unexplained.
    pub(super) fn question_forced_orders(&mut self, id: InstrumentId, since: Option<Time>) {
        let question = Question {
            // That round may have been behind.
            since: since.unwrap_or_default().plus_ms(-READ_LAG_MS),
            sent: Time::default(),
            waits: false,
            tries: 0,
        };
        self.forced.asked.entry(id).or_insert(question);
        self.ask_for_forced_orders(id);
    }

    /// The venue's time of the last round that left nothing unexplained, less what the clocks may
    /// differ by; also of an earlier process.
    pub(super) fn agreed_at(&self, surface: Surface) -> Option<Time> {
        self.forced.agreed.get(&surface).copied()
    }

    /// Asks again what was not answered.
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

    /// Whether an answer about forced orders of an instrument, or about an order that closed a position of it,
    /// is still to come. A question that fails is asked once more before the close counts as one by others.
    pub(super) fn awaits_forced_orders(&self, id: InstrumentId) -> bool {
        let question = self.forced.asked.get(&id);
        question.is_some_and(|question| question.waits && question.tries <= AWAITED)
            || self.inquires_after(id)
    }

    /// Takes the answer about forced orders; what they do not explain was closed by others.
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
            // The venue does not tell them at all.
            Outcome::Refused(refusal) if !OF_ANY_ROUTE.contains(&refusal.code) => {
                self.forced.asked.remove(&id);
                self.report_unexplained_closes(id);
                return;
            }
            // Nothing is known: it waits on, and is asked again.
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
