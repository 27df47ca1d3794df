//! Queries for outside orders whose trades closed a position, and what follows from the responses
//! (`windvane_evidence::outside_orders`).

use windvane_evidence::outside_orders::OutsideOrderAnswer;
use windvane_model::effect::Effect;
use windvane_model::ids::{InstrumentId, VenueOrderId};
use windvane_model::order::Surface;
use windvane_model::protocol::{Outcome, Request};
use windvane_model::state_report::{StateReport, Subject};

use super::Engine;

impl Engine {
    /// Queries the outside orders whose trades are listed, except those that are known to be
    /// forced.
    pub(super) fn ask_for_outside_orders(&mut self, id: InstrumentId) {
        for order_id in self.outside_orders.ask(id, &self.forced, self.now) {
            let subject = Subject::OutsideOrder {
                instrument: id,
                order_id,
            };
            self.emit(Effect::Send {
                record: 0,
                request: Box::new(Request::Read(subject)),
            });
        }
    }

    /// Repeats queries for outside orders that were not answered.
    pub(super) fn ask_again_for_outside_orders(&mut self) {
        for id in self.outside_orders.overdue(self.now) {
            self.ask_for_outside_orders(id);
        }
    }

    /// Takes the response about an outside order. A forced close is settled with the figures of its
    /// order. Any other order is a close by hand.
    pub(super) fn take_outside_order(
        &mut self,
        instrument: InstrumentId,
        order_id: VenueOrderId,
        outcome: &Outcome<StateReport>,
    ) {
        let key = (instrument, order_id);
        let answer = self.outside_orders.take_answer(key, outcome, self.now);
        let Some((position_side, found)) = answer else {
            return;
        };
        match found {
            OutsideOrderAnswer::Forced(order) => {
                self.take_forced_order(order);
            }
            OutsideOrderAnswer::ByHand => self.explain_close_by_hand(key),
            OutsideOrderAnswer::Unknown(made) => self.report_unknown_order(key, made),
        }
        if !self.outside_orders.queries_outside_order(instrument) {
            self.stated_closes.remove(&(instrument, position_side));
        }
        self.settle_outside_closes(Surface::Futures);
        self.review_stated_positions();
    }
}
