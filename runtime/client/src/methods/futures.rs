//! Orders, account and positions of the futures surface (docs/interface/orders.md#futures-order,
//! docs/interface/futures.md#futures, docs/interface/account.md#futures-account-routes).

use windvane_protocol::wire::futures::{
    AllOrders, BatchOrders, CancelAllOrders, CancelBatchOrders, CancelOrder, ChangeLeverage,
    ChangeMarginType, ChangeMultiAssetsMode, ChangePositionMargin, ChangePositionMode,
    CloseListenKey, CountdownCancelAll, CreateListenKey, ForceOrders, GetAccount, GetAdlQuantile,
    GetBalance, GetCommissionRate, GetEarlierAccount, GetIncome, GetLeverageBracket,
    GetMultiAssetsMode, GetPositionMode, GetPositionRisk, GetRemainingOpenableNotional,
    KeepaliveListenKey, NewOrder, OpenOrder, OpenOrders, PositionMarginHistory, QueryOrder,
    UserTrades,
};

super::methods! {
    Futures, "futures";
    /// Change position mode, for every symbol.
    change_position_mode(ChangePositionMode, ChangePositionMode::new(true));
    /// Get current position mode.
    position_mode(GetPositionMode);
    /// Change multi-assets mode.
    change_multi_assets_mode(ChangeMultiAssetsMode, ChangeMultiAssetsMode::new(false));
    /// Get current multi-assets mode.
    multi_assets_mode(GetMultiAssetsMode);
    /// New order. Settle an unknown outcome with [`Self::query_order`] and the client order id;
    /// never send the order again.
    new_order(NewOrder, NewOrder::new("BTCUSDT", Side::Buy, OrderType::Limit)
        .time_in_force(TimeInForce::Gtx)
        .quantity(Decimal::new(1, 2))
        .price(60_000)
        .client_order_id("mm:1"));
    /// Place multiple orders; each entry of the response is an order or an error.
    batch_orders(BatchOrders, BatchOrders::new(vec![
        BatchOrder::new("BTCUSDT", Side::Buy, OrderType::Market, Decimal::new(1, 2)),
    ]));
    /// Query order.
    query_order(QueryOrder, QueryOrder::new("BTCUSDT").client_order_id("mm:1"));
    /// Cancel order.
    cancel_order(CancelOrder, CancelOrder::new("BTCUSDT").client_order_id("mm:1"));
    /// Cancel all open orders of a symbol.
    cancel_all_orders(CancelAllOrders, CancelAllOrders::new("BTCUSDT"));
    /// Cancel multiple orders; each entry of the response is an order or an error.
    cancel_batch_orders(CancelBatchOrders,
        CancelBatchOrders::new("BTCUSDT").order_ids(vec![1, 2]));
    /// Auto-cancel all open orders of a symbol, unless it is called again in time.
    countdown_cancel_all(CountdownCancelAll, CountdownCancelAll::new("BTCUSDT", 30_000));
    /// Query current open order.
    open_order(OpenOrder, OpenOrder::new("BTCUSDT").client_order_id("mm:1"));
    /// Current all open orders.
    open_orders(OpenOrders, OpenOrders::new().symbol("BTCUSDT"));
    /// All orders.
    all_orders(AllOrders, AllOrders::new("BTCUSDT").limit(100));
    /// Account balance.
    balance(GetBalance);
    /// Account information.
    account(GetAccount);
    /// Account information of v3 under its earlier name.
    earlier_account(GetEarlierAccount);
    /// Change initial leverage.
    change_leverage(ChangeLeverage, ChangeLeverage::new("BTCUSDT", 20));
    /// Change margin type.
    change_margin_type(ChangeMarginType, ChangeMarginType::new("BTCUSDT", MarginType::Crossed));
    /// Adds margin to an isolated position, or removes it.
    change_position_margin(ChangePositionMargin, ChangePositionMargin::new("BTCUSDT", 100, 1));
    /// History of changes of position margin.
    position_margin_history(PositionMarginHistory, PositionMarginHistory::new("BTCUSDT"));
    /// Positions with their risk.
    position_risk(GetPositionRisk, GetPositionRisk::new().symbol("BTCUSDT"));
    /// List of the account's trades.
    user_trades(UserTrades, UserTrades::new("BTCUSDT").limit(100));
    /// Income history.
    income(GetIncome, GetIncome::new().income_type(IncomeType::FundingFee));
    /// Notional and leverage brackets.
    leverage_bracket(GetLeverageBracket, GetLeverageBracket::new().symbol("BTCUSDT"));
    /// Quantiles of auto-deleveraging.
    adl_quantile(GetAdlQuantile, GetAdlQuantile::new().symbol("BTCUSDT"));
    /// Own liquidation and ADL orders.
    force_orders(ForceOrders, ForceOrders::new().auto_close_type(AutoCloseType::Liquidation));
    /// Own fee rates of a symbol.
    commission_rate(GetCommissionRate, GetCommissionRate::new("BTCUSDT"));
    /// Notional that may still be opened at a leverage.
    remaining_openable_notional(GetRemainingOpenableNotional,
        GetRemainingOpenableNotional::new("BTCUSDT", 20));
    /// Creates or extends a listen key.
    create_listen_key(CreateListenKey);
    /// Extends the listen key.
    keepalive_listen_key(KeepaliveListenKey);
    /// Closes the listen key.
    close_listen_key(CloseListenKey);
}
