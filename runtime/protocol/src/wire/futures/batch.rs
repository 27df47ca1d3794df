//! Several futures orders in one request (docs/interface/orders.md#place-several-orders): each
//! entry of the response is an order or an error of its own.

use std::fmt;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use windvane_model::{OrderType, PositionSide, Side, TimeInForce, WorkingType};

use super::Order;
use crate::error::VenueError;
use crate::wire::enums::ResponseType;
use crate::wire::fields::{parameters, request};
use crate::wire::scalar::{List, UpperFlag};

/// One entry of a batch response, which has HTTP status 200 in both cases
/// (docs/interface/README.md#9-batch-answers).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchEntry(pub Result<Order, VenueError>);

impl<'de> Deserialize<'de> for BatchEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Marks<'a> {
            #[serde(borrow)]
            order_id: Option<&'a RawValue>,
            #[serde(borrow)]
            code: Option<&'a RawValue>,
        }
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        let entry = serde_json::from_str::<Marks<'_>>(raw).and_then(|marks| {
            if marks.code.is_some() && marks.order_id.is_none() {
                serde_json::from_str(raw).map(Err)
            } else {
                serde_json::from_str(raw).map(Ok)
            }
        });
        entry.map(Self).map_err(serde::de::Error::custom)
    }
}

impl Serialize for BatchEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(order) => order.serialize(serializer),
            Err(error) => error.serialize(serializer),
        }
    }
}

parameters! {
    /// One order of a batch (docs/interface/orders.md#place-several-orders): the parameters of
    /// [`NewOrder`](super::NewOrder) without `closePosition`.
    BatchOrder {
        symbol: String = "symbol",
        side: Side = "side",
        position_side?: PositionSide = "positionSide",
        order_type: OrderType = "type",
        time_in_force?: TimeInForce = "timeInForce",
        quantity: Decimal = "quantity",
        /// Not allowed in hedge mode.
        reduce_only?: bool = "reduceOnly",
        price?: Decimal = "price",
        /// 1 to 36 letters, digits and `.:/_-`; the venue makes one if it is absent.
        client_order_id?: String = "newClientOrderId",
        stop_price?: Decimal = "stopPrice",
        activation_price?: Decimal = "activationPrice",
        /// Percent, 0.1 to 4.
        callback_rate?: Decimal = "callbackRate",
        working_type?: WorkingType = "workingType",
        price_protect?: UpperFlag = "priceProtect",
        response_type?: ResponseType = "newOrderRespType",
    }
}

/// The orders of a batch, sent as a compact JSON list of objects. All their values are text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orders(pub Vec<BatchOrder>);

impl From<Vec<BatchOrder>> for Orders {
    fn from(orders: Vec<BatchOrder>) -> Self {
        Self(orders)
    }
}

impl fmt::Display for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        f.write_str("[")?;
        for (index, order) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "{" } else { ",{" })?;
            for (index, (name, value)) in order.parameters().iter().enumerate() {
                let comma = if index == 0 { "" } else { "," };
                write!(f, "{comma}{}:{}", quoted(name), quoted(value))?;
            }
            f.write_str("}")?;
        }
        f.write_str("]")
    }
}

request! {
    /// Place multiple orders (docs/interface/orders.md#place-several-orders), at most 5. The
    /// response has the same order.
    BatchOrders = "futures.batch_orders" -> Vec<BatchEntry> {
        orders: Orders = "batchOrders",
    }
}

request! {
    /// Cancel multiple orders of a symbol (docs/interface/orders.md#cancel-several-orders), by one
    /// of the two lists, at most 10 ids.
    CancelBatchOrders = "futures.cancel_batch_orders" -> Vec<BatchEntry> {
        symbol: String = "symbol",
        order_ids?: List<i64> = "orderIdList",
        client_order_ids?: List<String> = "origClientOrderIdList",
    }
}
