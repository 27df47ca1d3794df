//! The newest orders of each instrument (spec 1, Query all orders; spec 2, All orders), read if the
//! venue serves no account trades. Like account trades (`recent_orders`), they reveal an instance
//! whose orders fill at once.
//!
//! The account is read first. Startup waits for the responses. The engine requests one instrument
//! after the other, once for each user stream and once at the end of a watch, because each request
//! weighs 5. If the venue refuses one, the engine sends no more, and notifies people that another
//! instance may be unseen.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_evidence::line::OF_ANY_ROUTE;
use windvane_model::effect::{Effect, Notice};
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::order::Surface;
use windvane_model::protocol::{Outcome, Request};
use windvane_model::truth::{Subject, TradedOrder, Truth};

use super::Engine;
use super::recent_orders::{Question, RECENT_MS};

/// The state of requests for the newest orders.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct NewestOrders {
    questions: BTreeMap<InstrumentId, Question>,
    /// Surfaces where the venue refuses to list orders, on the present user stream.
    refused: BTreeSet<Surface>,
    /// Surfaces for which people were notified that another instance may be unseen.
    told: BTreeSet<Surface>,
}

impl Engine {
    /// Allows the requests again: the venue may have refused only at that moment.
    pub(super) fn list_orders_again(&mut self, surface: Surface) {
        self.newest_orders.refused.remove(&surface);
    }

    /// Plans requests for the newest orders, because the venue serves no account trades. They are
    /// sent once the account is read.
    pub(super) fn list_orders_for_trades(&mut self, surface: Surface) {
        if self.newest_orders.refused.contains(&surface) {
            return;
        }
        for instrument in self.instruments_of(surface) {
            let question = Question::new(self.now);
            self.newest_orders.questions.insert(instrument, question);
        }
    }

    /// Whether lists of orders that may show another instance were not answered yet.
    pub(super) fn awaits_newest_orders(&self) -> bool {
        !self.newest_orders.questions.is_empty()
    }

    /// Requests the orders of the next instrument of each surface.
    pub(super) fn ask_for_newest_orders(&mut self) {
        let now = self.now;
        for surface in Surface::ALL.iter().copied() {
            let Some(instrument) = self.next_newest_orders(surface) else {
                continue;
            };
            let held_back = self.venue_wait(surface).is_some();
            let Some(question) = self.newest_orders.questions.get_mut(&instrument) else {
                continue;
            };
            if held_back || !question.is_due(now) {
                continue;
            }
            question.note_sent(now);
            self.emit(Effect::Send {
                record: 0,
                request: Box::new(Request::Read(Subject::NewestOrders { instrument })),
            });
        }
    }

    fn next_newest_orders(&self, surface: Surface) -> Option<InstrumentId> {
        let mut asked = self.newest_orders.questions.keys().copied();
        asked.find(|id| self.surface_of(*id) == surface)
    }

    /// Gives up lists that get no response: startup must end even if the route fails.
    pub(super) fn give_up_newest_orders(&mut self) {
        for surface in Surface::ALL.iter().copied() {
            let next = self.next_newest_orders(surface);
            let question = next.and_then(|id| self.newest_orders.questions.get(&id));
            let is_over = question.is_some_and(|question| question.is_over(self.now));
            if is_over && self.venue_wait(surface).is_none() {
                self.end_newest_orders(surface);
            }
        }
    }

    /// Takes the response about the newest orders of an instrument.
    pub(super) fn take_newest_orders(
        &mut self,
        instrument: InstrumentId,
        outcome: &Outcome<Truth>,
    ) {
        let surface = self.surface_of(instrument);
        let Some(question) = self.newest_orders.questions.get_mut(&instrument) else {
            return;
        };
        question.note_answer();
        match outcome {
            Outcome::Done(Truth::NewestOrders(orders)) => {
                self.newest_orders.questions.remove(&instrument);
                self.judge_newest_orders(surface, orders);
                self.ask_for_newest_orders();
            }
            Outcome::Refused(refusal) if !OF_ANY_ROUTE.contains(&refusal.code) => {
                self.end_newest_orders(surface);
            }
            _ => return,
        }
        self.finish_instance_watch();
        self.update_state();
    }

    fn judge_newest_orders(&mut self, surface: Surface, orders: &[TradedOrder]) {
        let offset_ns = self.clock_offset_ns(surface).unwrap_or_default();
        let oldest = self.now.plus_ns(offset_ns).plus_ms(-RECENT_MS);
        let is_recent =
            |order: &&TradedOrder| order.placed == Time::default() || order.placed >= oldest;
        for order in orders.iter().filter(is_recent) {
            self.judge_traded_order(surface, order);
        }
    }

    /// Handles a venue that does not list the orders of a surface.
    fn end_newest_orders(&mut self, surface: Surface) {
        let instruments = &self.instruments;
        let of_other = |id: &InstrumentId| instruments[usize::from(id.0)].surface != surface;
        (self.newest_orders.questions).retain(|id, _| of_other(id));
        self.newest_orders.refused.insert(surface);
        if self.newest_orders.told.insert(surface) {
            let time = self.now;
            let notice = Notice::InstancesUnseen { time, surface };
            self.notices.push_back(notice);
        }
    }
}
