//! Market data of the spot surface (docs/interface/market-data.md#spot-market-data).

use windvane_protocol::wire::spot::{
    GetAggTrades, GetBookTicker, GetDepth, GetExchangeInfo, GetHistoricalTrades, GetKlines,
    GetPrice, GetTicker24hr, GetTime, GetTrades, Noop, Ping,
};

super::methods! {
    Spot, "spot";
    /// Cancels queued transactions by the nonce of the transaction to cancel.
    noop(Noop, Noop::new().nonce(1_748_310_859_508_867_i64));
    /// Checks that the service is reachable.
    ping(Ping);
    /// Server time.
    time(GetTime);
    /// Exchange information; the client also takes its limits into the budget.
    exchange_info(GetExchangeInfo);
    /// Order book.
    depth(GetDepth, GetDepth::new("BTCUSDT").limit(100));
    /// Recent trades.
    trades(GetTrades, GetTrades::new("BTCUSDT"));
    /// Older trades.
    historical_trades(GetHistoricalTrades, GetHistoricalTrades::new("BTCUSDT").from_id(1));
    /// Aggregated trades.
    agg_trades(GetAggTrades, GetAggTrades::new("BTCUSDT").limit(10));
    /// Klines.
    klines(GetKlines, GetKlines::new("BTCUSDT", Interval::Minute1).limit(60));
    /// Change of the last 24 hours.
    ticker_24hr(GetTicker24hr, GetTicker24hr::new().symbol("BTCUSDT"));
    /// Latest price.
    ticker_price(GetPrice, GetPrice::new().symbol("BTCUSDT"));
    /// Best bid and ask.
    book_ticker(GetBookTicker, GetBookTicker::new().symbol("BTCUSDT"));
}
