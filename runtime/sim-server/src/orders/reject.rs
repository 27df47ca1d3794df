//! Orders that the matching engine rejected. Spot reports them on the user stream with status and
//! execution type `REJECTED` (docs/interface/orders.md#order-status). The events of futures lack
//! both values (docs/interface/user-stream.md#order_trade_update).
//!
//! The matching engine uses the codes of processing issues (docs/interface/errors.md#20xx). Errors
//! of the request and of filters are found before it. So is a client order id that is already used,
//! because an event with that id would seem to concern the existing order. A rejected order appears
//! in no list and no query, because these contain active, cancelled or completed orders.

use windvane_model::protocol::OrderUpdate;
use windvane_model::{
    Amount, ExecutionType, NewOrder, OrderStatus, Qty, Surface, TimeInForce, VenueOrderId,
};
use windvane_sim::{OrderEvent, OrderView, StreamEvent};

use crate::account_id::AccountId;
use crate::request::Refusal;
use crate::state::State;
use crate::user_events;

/// Code for a client order id that is already used.
const DUPLICATE: i32 = -2010;

/// Whether the refusal comes from the matching engine.
pub(super) fn by_engine(refusal: &Refusal) -> bool {
    (-2099..=-2000).contains(&refusal.code) && refusal.code != DUPLICATE
}

/// Sends the event of a spot order that the matching engine rejected.
pub(super) fn publish_rejection(
    state: &mut State,
    id: AccountId,
    new: &NewOrder,
    refusal: &Refusal,
) {
    if by_engine(refusal) && state.rules(new.terms.instrument).surface == Surface::Spot {
        let event = event(state, id, new);
        user_events::publish(state, id, StreamEvent::Order(Box::new(event)));
    }
}

/// The event of a rejected order, with an order id of its own.
pub(super) fn event(state: &mut State, id: AccountId, new: &NewOrder) -> OrderEvent {
    let now = state.now;
    let surface = state.rules(new.terms.instrument).surface;
    let venue = &mut state.account_mut(id).venue;
    let order_id = VenueOrderId(venue.newest_order_id().0 + 1);
    venue.order_ids_after(order_id);
    let NewOrder {
        client_order_id,
        terms,
    } = *new;
    let time_in_force = terms.time_in_force.unwrap_or(TimeInForce::Gtc);
    let orig_qty = terms.qty.unwrap_or(Qty(0));
    let status = OrderStatus::Rejected;
    let update = OrderUpdate {
        client_order_id,
        order_id,
        instrument: terms.instrument,
        side: terms.side,
        position_side: terms.position_side,
        order_type: terms.order_type,
        time_in_force,
        orig_qty,
        price: terms.price.unwrap_or_default(),
        stop_price: terms.stop_price.unwrap_or_default(),
        reduce_only: terms.reduce_only,
        execution: ExecutionType::Rejected,
        status,
        executed_qty: Qty(0),
        transaction_time: now,
        event_time: now,
        fill: None,
    };
    let order = OrderView {
        client_order_id,
        order_id,
        surface,
        terms,
        order_type: terms.order_type,
        time_in_force,
        status,
        qty: orig_qty,
        executed: Qty(0),
        cum_quote: Amount::ZERO,
        average_price: 0,
        activation_price: None,
        created: now,
        updated: now,
    };
    OrderEvent {
        update,
        order,
        open_notional: [Amount::ZERO; 2],
        met: None,
    }
}
