//! Facts about an order's parameters that the rows of the table cannot hold: the parameters of each
//! order of a batch, and the parameters that each order type makes mandatory
//! (docs/interface/orders.md#place-a-spot-order, docs/interface/orders.md#place-a-futures-order).
//! Data only.

use super::enums::{FUTURES_ORDER_TYPE, POSITION_SIDE, SIDE, TIME_IN_FORCE, WORKING_TYPE};
use super::row::{may, must};
use super::types::Kind::{Boolean, Decimal, Enum, String};
use super::types::{Param, Surface};

/// The parameters of each object in `batchOrders` (docs/interface/orders.md#place-several-orders).
pub const BATCH_ORDER: &[Param] = &[
    must("symbol", String),
    must("side", SIDE),
    may("positionSide", POSITION_SIDE),
    must("type", FUTURES_ORDER_TYPE),
    may("timeInForce", TIME_IN_FORCE),
    must("quantity", Decimal).not_negative(),
    may("reduceOnly", Boolean).default_value("false"),
    may("price", Decimal).not_negative(),
    may("newClientOrderId", String).client_order_id(),
    may("stopPrice", Decimal).not_negative(),
    may("activationPrice", Decimal).not_negative(),
    may("callbackRate", Decimal).range("0.1", "4"),
    may("workingType", WORKING_TYPE).default_value("CONTRACT_PRICE"),
    may("priceProtect", Boolean).default_value("FALSE"),
    may("newOrderRespType", Enum(&["ACK", "RESULT"])).default_value("ACK"),
];

/// The parameters that an order of this type needs in addition to the required parameters of its
/// route. One name of each entry is enough. Empty for a type that the documents do not list.
pub fn mandatory(surface: Surface, order_type: &str) -> &'static [&'static [&'static str]] {
    match (surface, order_type) {
        (_, "LIMIT") => &[&["timeInForce"], &["quantity"], &["price"]],
        (Surface::Spot, "MARKET") => &[&["quantity", "quoteOrderQty"]],
        (_, "MARKET") => &[&["quantity"]],
        (_, "STOP" | "TAKE_PROFIT") => &[&["quantity"], &["price"], &["stopPrice"]],
        (Surface::Spot, "STOP_MARKET" | "TAKE_PROFIT_MARKET") => &[&["quantity"], &["stopPrice"]],
        (_, "STOP_MARKET" | "TAKE_PROFIT_MARKET") => &[&["stopPrice"]],
        (_, "TRAILING_STOP_MARKET") => &[&["callbackRate"]],
        _ => &[],
    }
}
