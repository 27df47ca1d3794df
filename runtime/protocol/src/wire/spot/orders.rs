//! Spot orders (spec 1): placing, cancelling, querying.

use rust_decimal::Decimal;
use windvane_model::{OrderType, Side, TimeInForce};

use crate::wire::SimpleResult;
use crate::wire::fields::{record, request};
use crate::wire::scalar::{Exact, List, Whole, Word};

record! {
    /// Order (spec 1, Order).
    Order {
        symbol: String = "symbol",
        order_id: Whole = "orderId",
        client_order_id: String = "clientOrderId",
        price: Exact = "price",
        avg_price?: Exact = "avgPrice",
        orig_qty: Exact = "origQty",
        /// In answers to placing and cancelling only.
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
        /// In answers to queries and in lists only; milliseconds.
        time?: Whole = "time",
        /// Milliseconds.
        update_time?: Whole = "updateTime",
    }
}

request! {
    /// Place order (spec 1, Place order). What else a type needs:
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
        /// What a market order to buy spends, in the quote asset.
        quote_order_qty?: Decimal = "quoteOrderQty",
        price?: Decimal = "price",
        /// At most 36 characters; made by the venue when absent.
        client_order_id?: String = "newClientOrderId",
        stop_price?: Decimal = "stopPrice",
    }
}

request! {
    /// Cancel order (spec 1, Cancel order), by one of the two ids.
    CancelOrder = "spot.cancel_order" -> Order {
        symbol: String = "symbol",
        order_id?: i64 = "orderId",
        client_order_id?: String = "origClientOrderId",
    }
}

request! {
    /// Query order (spec 1, Query order), by one of the two ids.
    QueryOrder = "spot.query_order" -> Order {
        symbol: String = "symbol",
        order_id?: i64 = "orderId",
        client_order_id?: String = "origClientOrderId",
    }
}

request! {
    /// Query an open order (spec 4, section 4), by one of the two ids.
    OpenOrder = "spot.open_order" -> Order {
        symbol: String = "symbol",
        order_id?: i64 = "orderId",
        client_order_id?: String = "origClientOrderId",
    }
}

request! {
    /// Current open orders (spec 1, Current open orders), of all pairs without `symbol`.
    OpenOrders = "spot.open_orders" -> Vec<Order> {
        symbol?: String = "symbol",
    }
}

request! {
    /// Cancel all open orders of a pair, or those of the lists (spec 1, Cancel all open orders).
    CancelAllOrders = "spot.cancel_all_orders" -> SimpleResult {
        symbol: String = "symbol",
        order_ids?: List<i64> = "orderIdList",
        client_order_ids?: List<String> = "origClientOrderIdList",
    }
}

request! {
    /// Query all orders of the last 7 days (spec 1, Query all orders).
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
