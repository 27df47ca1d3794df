//! Facts about an order's parameters that the rows of the table cannot hold: the order types of
//! each surface, the parameters that each type makes mandatory, and the parameters of each order of
//! a batch (docs/interface/orders.md#place-a-spot-order,
//! docs/interface/orders.md#place-a-futures-order). Data only.

use windvane_model::OrderType;

use super::enums::{POSITION_SIDE, SIDE, TIME_IN_FORCE, WORKING_TYPE};
use super::row::{may, must};
use super::types::Kind::{self, Boolean, Decimal, Enum, String};
use super::types::{Param, Surface};

pub(super) const SPOT_ORDER_TYPE: Kind = Enum(&[
    "LIMIT",
    "MARKET",
    "STOP",
    "TAKE_PROFIT",
    "STOP_MARKET",
    "TAKE_PROFIT_MARKET",
]);
pub(super) const FUTURES_ORDER_TYPE: Kind = Enum(&[
    "LIMIT",
    "MARKET",
    "STOP",
    "STOP_MARKET",
    "TAKE_PROFIT",
    "TAKE_PROFIT_MARKET",
    "TRAILING_STOP_MARKET",
]);

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
    use OrderType as T;
    let Some(order_type) = OrderType::from_text(order_type) else {
        return &[];
    };
    match (surface, order_type) {
        (_, T::Limit) => &[&["timeInForce"], &["quantity"], &["price"]],
        (Surface::Spot, T::Market) => &[&["quantity", "quoteOrderQty"]],
        (_, T::Market) => &[&["quantity"]],
        (_, T::Stop | T::TakeProfit) => &[&["quantity"], &["price"], &["stopPrice"]],
        (Surface::Spot, T::StopMarket | T::TakeProfitMarket) => &[&["quantity"], &["stopPrice"]],
        (_, T::StopMarket | T::TakeProfitMarket) => &[&["stopPrice"]],
        (_, T::TrailingStopMarket) => &[&["callbackRate"]],
        // Only the venue creates these.
        (_, T::Liquidation) => &[],
    }
}
