//! Post-only orders that end at once because they would have traded. The strategy quotes on an old
//! book, or nearer to the market than its speed allows. It pauses as after repeated refusals.

use windvane_model::effect::Notice;
use windvane_model::ids::OrderSeq;
use windvane_model::order::TimeInForce;
use windvane_model::order_state::OrderState;

use super::super::Engine;

impl Engine {
    /// Notes the end of an order. If it rested or filled, it ends the series.
    pub(in super::super) fn note_post_only_end(&mut self, seq: OrderSeq) {
        let now = self.now;
        let Some(order) = self.orders.known(seq) else {
            return;
        };
        let terms = &order.terms;
        let refused = matches!(order.state, OrderState::Rejected);
        if self.live.is_none() || terms.time_in_force != Some(TimeInForce::Gtx) || refused {
            return;
        }
        let party = (order.strategy, terms.instrument, terms.side);
        if self.crossings.note_end(order, now) {
            self.notices.push_back(Notice::Crossed {
                time: now,
                strategy: party.0,
                instrument: party.1,
                side: party.2,
            });
        }
    }
}
