//! Spot orders (docs/interface/orders.md#spot-order): placing, cancelling, querying.

use rust_decimal::Decimal;
use windvane_model::{OrderType, Side, TimeInForce};

use crate::wire::SimpleResult;
use crate::wire::fields::{record, request};
use crate::wire::scalar::{Exact, List, Whole, Word};

record! {
    /// Order (docs/interface/orders.md#spot-order).
    Order {
        symbol: String = "symbol",
        order_id: Whole = "orderId",
        client_order_id: String = "clientOrderId",
        price: Exact = "price",
        avg_price?: Exact = "avgPrice",
        orig_qty: Exact = "origQty",
        /// Only in responses to placing and cancelling.
        cum_qty?: Exact = "cumQty",
        executed_qty: Exact = "executedQty",
        cum_quote?: Exact = "cumQuote",
        status: Word<windvane_model::OrderStatus> = "status",
        time_in_force: Word<TimeInForce> = "timeInForce",
        order_type: Word<OrderType> = "type",
        orig_type?: Word<OrderType> = "origType",
        side: Word<Side> = "side",
        /// 0 when unused.
        stop_price?: Exact = "stopPrice",
        /// Milliseconds; only in responses to queries and in lists.
        time?: Whole = "time",
        /// Milliseconds.
        update_time?: Whole = "updateTime",
    }
}

request! {
    /// Place order (docs/interface/orders.md#place-a-spot-order). Each type has further mandatory
    /// parameters:
    ///
    /// | type | mandatory |
    /// |---|---|
    /// | `LIMIT` | `timeInForce`, `quantity`, `price` |
    /// | `MARKET` | `quantity` to sell, `quoteOrderQty` to buy |
    /// | `STOP`, `TAKE_PROFIT` | `quantity`, `price`, `stopPrice` |
    /// | `STOP_MARKET`, `TAKE_PROFIT_MARKET` | `quantity`, `stopPrice` |
    NewOrder = "spot.new_order" -> Order {
        symbol: String = "symbol",
        side: Side = "side",
        order_type: OrderType = "type",
        time_in_force?: TimeInForce = "timeInForce",
        quantity?: Decimal = "quantity",
        /// The amount of the quote asset that a market buy order spends.
        quote_order_qty?: Decimal = "quoteOrderQty",
        price?: Decimal = "price",
        /// At most 36 characters; the venue makes one if it is absent.
        client_order_id?: String = "newClientOrderId",
        stop_price?: Decimal = "stopPrice",
    }
}

request! {
    /// Cancel order (docs/interface/orders.md#cancel-an-order), by one of the two ids.
    CancelOrder = "spot.cancel_order" -> Order {
        symbol: String = "symbol",
        order_id?: i64 = "orderId",
        client_order_id?: String = "origClientOrderId",
    }
}

request! {
    /// Query order (docs/interface/orders.md#query-an-order), by one of the two ids.
    QueryOrder = "spot.query_order" -> Order {
        symbol: String = "symbol",
        order_id?: i64 = "orderId",
        client_order_id?: String = "origClientOrderId",
    }
}

request! {
    /// Query an open order (docs/interface/orders.md#query-an-open-order), by one of the two ids.
    OpenOrder = "spot.open_order" -> Order {
        symbol: String = "symbol",
        order_id?: i64 = "orderId",
        client_order_id?: String = "origClientOrderId",
    }
}

request! {
    /// Current open orders (docs/interface/orders.md#open-orders); without `symbol` those of all
    /// pairs.
    OpenOrders = "spot.open_orders" -> Vec<Order> {
        symbol?: String = "symbol",
    }
}

request! {
    /// Cancel all open orders of a pair, or only those in the lists of ids
    /// (docs/interface/orders.md#cancel-all-open-orders).
    CancelAllOrders = "spot.cancel_all_orders" -> SimpleResult {
        symbol: String = "symbol",
        order_ids?: List<i64> = "orderIdList",
        client_order_ids?: List<String> = "origClientOrderIdList",
    }
}

request! {
    /// Query all orders of the last 7 days (docs/interface/orders.md#all-orders).
    AllOrders = "spot.all_orders" -> Vec<Order> {
        symbol: String = "symbol",
        order_id?: i64 = "orderId",
        /// Milliseconds.
        start_time?: i64 = "startTime",
        /// Milliseconds; at most 7 days after the start.
        end_time?: i64 = "endTime",
        /// At most 1000; default 500.
        limit?: i64 = "limit",
    }
}
