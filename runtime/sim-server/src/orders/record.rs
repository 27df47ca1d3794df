//! Order objects (docs/interface/orders.md#spot-order, docs/interface/orders.md#futures-order), and
//! their fields on each route.

use serde_json::{Value, json};
use windvane_model::{OrderType, Surface, WorkingType};
use windvane_sim::OrderView;

use crate::choices::figures::average_price;
use crate::figures::{amount, percent, price, qty};
use crate::state::State;

/// The kind of response that contains an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The immediate response to a new order, with its state at acceptance
    /// (docs/interface/orders.md#place-a-futures-order).
    Acknowledged,
    /// The response to a new order or a cancel: with `cumQty`.
    Changed,
    /// The response to one order of a batch of new orders: with `cumQty`, without `closePosition`.
    Batch,
    /// Query routes and lists: with `time`.
    Listed,
    /// Lists that are public facts, in which futures orders have `origType`.
    History,
}

/// An order as a response shows it.
pub(super) fn order(state: &State, order: &OrderView, place: Place) -> Value {
    match order.surface {
        Surface::Spot => spot(state, order, place),
        Surface::Futures => futures(state, order, place),
    }
}

fn spot(state: &State, order: &OrderView, place: Place) -> Value {
    let rules = state.rules(order.terms.instrument);
    let terms = &order.terms;
    let mut record = json!({
        "symbol": rules.symbol,
        "orderId": order.order_id.0,
        "clientOrderId": order.client_order_id.as_str(),
        "price": price(rules, limit_price(order)),
        "avgPrice": average_price(&state.choices, rules, order.average_price),
        "origQty": qty(rules, order.qty.0),
        "executedQty": qty(rules, order.executed.0),
        "cumQuote": amount(order.cum_quote),
        "status": order.status.as_str(),
        "timeInForce": order.time_in_force.as_str(),
        "type": order.order_type.as_str(),
        "origType": terms.order_type.as_str(),
        "side": terms.side.as_str(),
        "stopPrice": price(rules, terms.stop_price.unwrap_or_default().0),
        "updateTime": order.updated.millis(),
    });
    match place {
        Place::Listed | Place::History => record["time"] = json!(order.created.millis()),
        _ => record["cumQty"] = json!(qty(rules, order.executed.0)),
    }
    record
}

fn futures(state: &State, order: &OrderView, place: Place) -> Value {
    let rules = state.rules(order.terms.instrument);
    let terms = &order.terms;
    let working = terms.working_type.unwrap_or(WorkingType::ContractPrice);
    let listed = matches!(place, Place::Listed | Place::History);
    let mut record = json!({
        "clientOrderId": order.client_order_id.as_str(),
        "cumQuote": amount(order.cum_quote),
        "executedQty": qty(rules, order.executed.0),
        "orderId": order.order_id.0,
        "avgPrice": average_price(&state.choices, rules, order.average_price),
        "origQty": qty(rules, order.qty.0),
        "price": price(rules, limit_price(order)),
        "reduceOnly": terms.reduce_only,
        "side": terms.side.as_str(),
        "positionSide": terms.position_side.as_str(),
        "status": order.status.as_str(),
        "stopPrice": price(rules, terms.stop_price.unwrap_or_default().0),
        "symbol": rules.symbol,
        "timeInForce": order.time_in_force.as_str(),
        "type": order.order_type.as_str(),
        "updateTime": order.updated.millis(),
        "workingType": working.as_str(),
        "priceProtect": terms.price_protect,
    });
    if place == Place::Acknowledged {
        record["status"] = json!("NEW");
        record["type"] = json!(terms.order_type.as_str());
        for figure in ["cumQuote", "executedQty", "avgPrice"] {
            record[figure] = json!("0");
        }
        record["cumQty"] = json!("0");
    } else if !listed {
        record["cumQty"] = json!(qty(rules, order.executed.0));
    }
    if place != Place::Batch {
        record["closePosition"] = json!(terms.close_position);
    }
    if listed {
        record["time"] = json!(order.created.millis());
    }
    if !listed || place == Place::History {
        record["origType"] = json!(terms.order_type.as_str());
    }
    if terms.order_type == OrderType::TrailingStopMarket {
        let activation = order.activation_price.unwrap_or_default();
        record["activatePrice"] = json!(price(rules, activation.0));
        record["priceRate"] = json!(percent(terms.callback_ppm.unwrap_or_default()));
    }
    record
}

/// `price`; 0 for an order without one.
fn limit_price(order: &OrderView) -> i64 {
    order.terms.price.unwrap_or_default().0
}
