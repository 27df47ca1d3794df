//! Orders and account of the spot surface (docs/interface/orders.md#spot-order,
//! docs/interface/account.md#spot-account).

use windvane_protocol::wire::spot::{
    AllOrders, CancelAllOrders, CancelOrder, CloseListenKey, CreateListenKey, GetAccount,
    GetCommissionRate, KeepaliveListenKey, NewOrder, OpenOrder, OpenOrders, QueryOrder, UserTrades,
};

super::methods! {
    Spot, "spot";
    /// Place order. Settle an unknown outcome with [`Self::query_order`] and the client order id;
    /// never send the order again.
    new_order(NewOrder, NewOrder::new("BTCUSDT", Side::Buy, OrderType::Limit)
        .time_in_force(TimeInForce::Gtc)
        .quantity(Decimal::new(1, 2))
        .price(60_000)
        .client_order_id("mm:1"));
    /// Cancel order.
    cancel_order(CancelOrder, CancelOrder::new("BTCUSDT").client_order_id("mm:1"));
    /// Query order.
    query_order(QueryOrder, QueryOrder::new("BTCUSDT").client_order_id("mm:1"));
    /// Query an open order.
    open_order(OpenOrder, OpenOrder::new("BTCUSDT").order_id(38));
    /// Current open orders.
    open_orders(OpenOrders, OpenOrders::new().symbol("BTCUSDT"));
    /// Cancel all open orders of a pair.
    cancel_all_orders(CancelAllOrders, CancelAllOrders::new("BTCUSDT"));
    /// Orders of the last 7 days.
    all_orders(AllOrders, AllOrders::new("BTCUSDT").limit(100));
    /// Account information.
    account(GetAccount);
    /// Account trade history.
    user_trades(UserTrades, UserTrades::new().symbol("BTCUSDT").limit(100));
    /// Own fee rates of a symbol.
    commission_rate(GetCommissionRate, GetCommissionRate::new("BTCUSDT"));
    /// Creates or extends a listen key.
    create_listen_key(CreateListenKey);
    /// Extends a listen key.
    keepalive_listen_key(KeepaliveListenKey, KeepaliveListenKey::new("pqia91ma19a5s61cv6a8"));
    /// Closes a listen key.
    close_listen_key(CloseListenKey, CloseListenKey::new("pqia91ma19a5s61cv6a8"));
}
