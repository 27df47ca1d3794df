//! A conditional order that triggers may expire at the venue and continue there as an order with a
//! new id under the same client order id (`trigger-events` of `docs/open-points.md`). In the engine
//! it is one order: an event that ends the old id does not end it. Venue order ids rise: the list
//! of all orders is requested from an id on (docs/interface/orders.md#all-orders).

use windvane_model::ids::{OrderSeq, VenueOrderId};
use windvane_model::orders::Order;
use windvane_model::protocol::OrderUpdate;

use super::Engine;

impl Engine {
    /// Whether a report of the venue without a fill is about the order that triggered, while the
    /// order that continues in its place is known.
    pub(super) fn concerns_triggered_order(
        &self,
        seq: OrderSeq,
        id: VenueOrderId,
        executed: i64,
    ) -> bool {
        let order = self.orders.known(seq).filter(|order| may_continue(order));
        let present = order.and_then(|order| order.venue_order_id);
        executed == 0 && present.is_some_and(|present| id < present)
    }
}

/// Whether an event shows the order that continues in place of one that triggered and expired.
pub(super) fn shows_successor(order: &Order, update: &OrderUpdate) -> bool {
    let is_new = |id: VenueOrderId| update.order_id > id;
    let is_older = |over| update.transaction_time < over;
    may_continue(order)
        && order.venue_order_id.is_some_and(is_new)
        && !order.reported_final.is_some_and(is_older)
}

fn may_continue(order: &Order) -> bool {
    order.terms.order_type.is_conditional()
}
