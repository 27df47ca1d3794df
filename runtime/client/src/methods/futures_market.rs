//! Market data of the futures surface (docs/interface/market-data.md#futures-market-data).

use windvane_protocol::wire::futures::{
    GetAggTrades, GetBookTicker, GetDepth, GetExchangeInfo, GetFundingInfo, GetFundingRate,
    GetHistoricalTrades, GetIndexPriceKlines, GetKlines, GetMarkPriceKlines, GetPremiumIndex,
    GetPrice, GetTicker24hr, GetTime, GetTrades, Ping,
};

super::methods! {
    Futures, "futures";
    /// Checks that the service is reachable.
    ping(Ping);
    /// Server time.
    time(GetTime);
    /// Exchange information; the client also takes its limits into the budget.
    exchange_info(GetExchangeInfo);
    /// Order book.
    depth(GetDepth, GetDepth::new("BTCUSDT").limit(1000));
    /// Recent trades.
    trades(GetTrades, GetTrades::new("BTCUSDT"));
    /// Older trades.
    historical_trades(GetHistoricalTrades, GetHistoricalTrades::new("BTCUSDT").from_id(1));
    /// Aggregated trades.
    agg_trades(GetAggTrades, GetAggTrades::new("BTCUSDT").limit(10));
    /// Klines.
    klines(GetKlines, GetKlines::new("BTCUSDT", Interval::Minute1).limit(60));
    /// Klines of the index price of a pair.
    index_price_klines(GetIndexPriceKlines,
        GetIndexPriceKlines::new("BTCUSDT", Interval::Hour1));
    /// Klines of the mark price.
    mark_price_klines(GetMarkPriceKlines, GetMarkPriceKlines::new("BTCUSDT", Interval::Hour1));
    /// Mark price and funding.
    premium_index(GetPremiumIndex, GetPremiumIndex::new().symbol("BTCUSDT"));
    /// Past funding rates.
    funding_rate(GetFundingRate, GetFundingRate::new().symbol("BTCUSDT").limit(10));
    /// The configuration of funding.
    funding_info(GetFundingInfo, GetFundingInfo::new());
    /// Change of the last 24 hours.
    ticker_24hr(GetTicker24hr, GetTicker24hr::new().symbol("BTCUSDT"));
    /// Latest price.
    ticker_price(GetPrice, GetPrice::new().symbol("BTCUSDT"));
    /// Best bid and ask.
    book_ticker(GetBookTicker, GetBookTicker::new().symbol("BTCUSDT"));
}
