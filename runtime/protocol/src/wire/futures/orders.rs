//! Futures orders (docs/interface/orders.md#futures-order): placing, cancelling, querying.

use rust_decimal::Decimal;
use windvane_model::{OrderStatus, OrderType, PositionSide, Side, TimeInForce, WorkingType};

use crate::wire::SimpleResult;
use crate::wire::enums::{AutoCloseType, ResponseType};
use crate::wire::fields::{record, request};
use crate::wire::scalar::{Exact, Flag, Json, UpperFlag, Whole, Word};

record! {
    /// Futures order (docs/interface/orders.md#futures-order).
    Order {
        client_order_id: String = "clientOrderId",
        /// Not in responses to queries.
        cum_qty?: Exact = "cumQty",
        cum_quote?: Exact = "cumQuote",
        executed_qty: Exact = "executedQty",
        order_id: Whole = "orderId",
        avg_price?: Exact = "avgPrice",
        orig_qty: Exact = "origQty",
        price: Exact = "price",
        reduce_only: Flag = "reduceOnly",
        side: Word<Side> = "side",
        position_side: Word<PositionSide> = "positionSide",
        status: Word<OrderStatus> = "status",
        /// Ignore it for `TRAILING_STOP_MARKET`.
        stop_price?: Exact = "stopPrice",
        /// Not in responses to batches.
        close_position?: Flag = "closePosition",
        symbol: String = "symbol",
        /// Milliseconds; only in responses to queries and in lists.
        time?: Whole = "time",
        time_in_force: Word<TimeInForce> = "timeInForce",
        order_type: Word<OrderType> = "type",
        /// Not in responses to queries.
        orig_type?: Word<OrderType> = "origType",
        /// `TRAILING_STOP_MARKET` only.
        activate_price?: Exact = "activatePrice",
        /// `TRAILING_STOP_MARKET` only.
        price_rate?: Exact = "priceRate",
        /// Milliseconds.
        update_time?: Whole = "updateTime",
        working_type?: Word<WorkingType> = "workingType",
        price_protect?: Flag = "priceProtect",
    }
}

request! {
    /// New order (docs/interface/orders.md#place-a-futures-order). Each type has further mandatory
    /// parameters:
    ///
    /// | type | mandatory |
    /// |---|---|
    /// | `LIMIT` | `timeInForce`, `quantity`, `price` |
    /// | `MARKET` | `quantity` |
    /// | `STOP`, `TAKE_PROFIT` | `quantity`, `price`, `stopPrice` |
    /// | `STOP_MARKET`, `TAKE_PROFIT_MARKET` | `stopPrice` |
    /// | `TRAILING_STOP_MARKET` | `callbackRate` |
    ///
    /// In hedge mode `positionSide` must be sent, and `reduceOnly` must not be sent, not even as
    /// `false`.
    NewOrder = "futures.new_order" -> Order {
        symbol: String = "symbol",
        side: Side = "side",
        position_side?: PositionSide = "positionSide",
        order_type: OrderType = "type",
        time_in_force?: TimeInForce = "timeInForce",
        quantity?: Decimal = "quantity",
        /// Not allowed in hedge mode or with `closePosition`.
        reduce_only?: bool = "reduceOnly",
        price?: Decimal = "price",
        /// 1 to 36 letters, digits and `.:/_-`; the venue makes one if it is absent.
        client_order_id?: String = "newClientOrderId",
        stop_price?: Decimal = "stopPrice",
        close_position?: bool = "closePosition",
        /// `TRAILING_STOP_MARKET` only; the default is the latest price.
        activation_price?: Decimal = "activationPrice",
        /// `TRAILING_STOP_MARKET` only; percent, 0.1 to 5.
        callback_rate?: Decimal = "callbackRate",
        working_type?: WorkingType = "workingType",
        price_protect?: UpperFlag = "priceProtect",
        response_type?: ResponseType = "newOrderRespType",
    }
}

record! {
    /// Response to an order with a builder code
    /// (docs/interface/futures.md#orders-with-a-builder-code). The route is the one of
    /// [`NewOrder`], with `builder` and `feeRate`. The documents do not define the types and values
    /// inside `data`.
    BuilderOrder {
        code: Whole = "code",
        msg?: String = "msg",
        data?: BuilderOrderData = "data",
    }
}

record! {
    /// `data` of [`BuilderOrder`], as received.
    BuilderOrderData {
        order_id?: Json = "orderId",
        status?: Json = "status",
    }
}

request! {
    /// Query order (docs/interface/orders.md#query-an-order), by one of the two ids.
    QueryOrder = "futures.query_order" -> Order {
        symbol: String = "symbol",
        order_id?: i64 = "orderId",
        client_order_id?: String = "origClientOrderId",
    }
}

request! {
    /// Cancel order (docs/interface/orders.md#cancel-an-order), by one of the two ids.
    CancelOrder = "futures.cancel_order" -> Order {
        symbol: String = "symbol",
        order_id?: i64 = "orderId",
        client_order_id?: String = "origClientOrderId",
    }
}

request! {
    /// Cancel all open orders of a symbol (docs/interface/orders.md#cancel-all-open-orders).
    CancelAllOrders = "futures.cancel_all_orders" -> SimpleResult {
        symbol: String = "symbol",
    }
}

record! {
    /// The current countdown (docs/interface/futures.md#countdowncancelall). All fields are
    /// optional: an accepted request is enough evidence, so a response without them still counts.
    Countdown {
        symbol?: String = "symbol",
        /// Milliseconds.
        countdown_time?: Whole = "countdownTime",
    }
}

request! {
    /// Auto-cancel all open orders of a symbol (docs/interface/futures.md#countdowncancelall). Use
    /// it as a heartbeat: each call replaces the previous countdown.
    CountdownCancelAll = "futures.countdown_cancel_all" -> Countdown {
        symbol: String = "symbol",
        /// Milliseconds; 0 stops the timer.
        countdown_time: i64 = "countdownTime",
    }
}

request! {
    /// Query current open order (docs/interface/orders.md#query-an-open-order), by one of the two
    /// ids.
    OpenOrder = "futures.open_order" -> Order {
        symbol: String = "symbol",
        order_id?: i64 = "orderId",
        client_order_id?: String = "origClientOrderId",
    }
}

request! {
    /// Current all open orders (docs/interface/orders.md#open-orders); without `symbol` those of
    /// all symbols.
    OpenOrders = "futures.open_orders" -> Vec<Order> {
        symbol?: String = "symbol",
    }
}

request! {
    /// All orders (docs/interface/orders.md#all-orders).
    AllOrders = "futures.all_orders" -> Vec<Order> {
        symbol: String = "symbol",
        /// Orders with this id and above.
        order_id?: i64 = "orderId",
        /// Milliseconds.
        start_time?: i64 = "startTime",
        /// Milliseconds; less than 7 days after the start.
        end_time?: i64 = "endTime",
        /// At most 1000; default 500.
        limit?: i64 = "limit",
    }
}

request! {
    /// Own liquidation and ADL orders (docs/interface/futures.md#forced-orders).
    ForceOrders = "futures.force_orders" -> Vec<Order> {
        symbol?: String = "symbol",
        auto_close_type?: AutoCloseType = "autoCloseType",
        /// Milliseconds.
        start_time?: i64 = "startTime",
        /// Milliseconds.
        end_time?: i64 = "endTime",
        /// At most 100; default 50.
        limit?: i64 = "limit",
    }
}
