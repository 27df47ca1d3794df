//! Market data of the futures surface (docs/interface/market-data.md#futures-market-data).

use crate::wire::common::{Empty, ServerTime};
use crate::wire::enums::Interval;
use crate::wire::exchange::ExchangeInfo;
use crate::wire::fields::{record, request};
use crate::wire::market::{AggTrade, BookTicker, Depth, Kline, PriceKline, PriceTicker};
use crate::wire::scalar::{Exact, Flag, OneOrMany, Whole};

request! {
    /// Checks that the service is reachable.
    Ping = "futures.ping" -> Empty {}
}

request! {
    /// Server time.
    GetTime = "futures.time" -> ServerTime {}
}

request! {
    /// Exchange information.
    GetExchangeInfo = "futures.exchange_info" -> ExchangeInfo {}
}

request! {
    /// Order book.
    GetDepth = "futures.depth" -> Depth {
        symbol: String = "symbol",
        /// 5, 10, 20, 50, 100, 500 or 1000; default 500.
        limit?: i64 = "limit",
    }
}

record! {
    /// Public trade.
    MarketTrade {
        id: Whole = "id",
        price: Exact = "price",
        qty: Exact = "qty",
        quote_qty?: Exact = "quoteQty",
        /// Milliseconds.
        time: Whole = "time",
        is_buyer_maker: Flag = "isBuyerMaker",
    }
}

request! {
    /// Recent trades, without those of the insurance fund and of ADL.
    GetTrades = "futures.trades" -> Vec<MarketTrade> {
        symbol: String = "symbol",
        /// At most 1000; default 500.
        limit?: i64 = "limit",
    }
}

request! {
    /// Older trades; without `fromId` the most recent ones.
    GetHistoricalTrades = "futures.historical_trades" -> Vec<MarketTrade> {
        symbol: String = "symbol",
        /// At most 1000; default 500.
        limit?: i64 = "limit",
        from_id?: i64 = "fromId",
    }
}

request! {
    /// Aggregated trades; the time range must be shorter than one hour.
    GetAggTrades = "futures.agg_trades" -> Vec<AggTrade> {
        symbol: String = "symbol",
        from_id?: i64 = "fromId",
        /// Milliseconds, included.
        start_time?: i64 = "startTime",
        /// Milliseconds, included.
        end_time?: i64 = "endTime",
        /// At most 1000; default 500.
        limit?: i64 = "limit",
    }
}

request! {
    /// Klines; without times the most recent ones.
    GetKlines = "futures.klines" -> Vec<Kline> {
        symbol: String = "symbol",
        interval: Interval = "interval",
        /// Milliseconds.
        start_time?: i64 = "startTime",
        /// Milliseconds.
        end_time?: i64 = "endTime",
        /// At most 1500; default 500.
        limit?: i64 = "limit",
    }
}

request! {
    /// Klines of the index price of a pair.
    GetIndexPriceKlines = "futures.index_price_klines" -> Vec<PriceKline> {
        pair: String = "pair",
        interval: Interval = "interval",
        /// Milliseconds.
        start_time?: i64 = "startTime",
        /// Milliseconds.
        end_time?: i64 = "endTime",
        /// At most 1500; default 500.
        limit?: i64 = "limit",
    }
}

request! {
    /// Klines of the mark price of a symbol.
    GetMarkPriceKlines = "futures.mark_price_klines" -> Vec<PriceKline> {
        symbol: String = "symbol",
        interval: Interval = "interval",
        /// Milliseconds.
        start_time?: i64 = "startTime",
        /// Milliseconds.
        end_time?: i64 = "endTime",
        /// At most 1500; default 500.
        limit?: i64 = "limit",
    }
}

record! {
    /// Mark price (docs/interface/market-data.md#mark-price-and-funding).
    MarkPrice {
        symbol: String = "symbol",
        mark_price: Exact = "markPrice",
        index_price: Exact = "indexPrice",
        /// Only useful in the last hour before settlement.
        estimated_settle_price?: Exact = "estimatedSettlePrice",
        last_funding_rate: Exact = "lastFundingRate",
        /// Milliseconds.
        next_funding_time: Whole = "nextFundingTime",
        interest_rate?: Exact = "interestRate",
        /// Milliseconds.
        time?: Whole = "time",
    }
}

request! {
    /// Mark price and funding: an object for one symbol, otherwise an array.
    GetPremiumIndex = "futures.premium_index" -> OneOrMany<MarkPrice> {
        symbol?: String = "symbol",
    }
}

record! {
    /// Funding rate entry (docs/interface/market-data.md#mark-price-and-funding).
    FundingRate {
        symbol: String = "symbol",
        funding_rate: Exact = "fundingRate",
        /// Milliseconds.
        funding_time: Whole = "fundingTime",
    }
}

request! {
    /// Past funding rates, ascending; both times are included.
    GetFundingRate = "futures.funding_rate" -> Vec<FundingRate> {
        symbol?: String = "symbol",
        /// Milliseconds.
        start_time?: i64 = "startTime",
        /// Milliseconds.
        end_time?: i64 = "endTime",
        /// At most 1000; default 100.
        limit?: i64 = "limit",
    }
}

record! {
    /// Funding config entry (docs/interface/market-data.md#mark-price-and-funding).
    FundingInfo {
        symbol: String = "symbol",
        interest_rate?: Exact = "interestRate",
        /// Milliseconds.
        time?: Whole = "time",
        funding_interval_hours: Whole = "fundingIntervalHours",
        funding_fee_cap?: Exact = "fundingFeeCap",
        funding_fee_floor?: Exact = "fundingFeeFloor",
    }
}

request! {
    /// The configuration of funding.
    GetFundingInfo = "futures.funding_info" -> Vec<FundingInfo> {
        symbol?: String = "symbol",
    }
}

record! {
    /// Change of the last 24 hours (docs/interface/market-data.md#tickers).
    Ticker24hr {
        symbol: String = "symbol",
        price_change: Exact = "priceChange",
        price_change_percent: Exact = "priceChangePercent",
        weighted_avg_price: Exact = "weightedAvgPrice",
        prev_close_price?: Exact = "prevClosePrice",
        last_price: Exact = "lastPrice",
        last_qty?: Exact = "lastQty",
        open_price: Exact = "openPrice",
        high_price: Exact = "highPrice",
        low_price: Exact = "lowPrice",
        volume: Exact = "volume",
        quote_volume: Exact = "quoteVolume",
        /// Milliseconds.
        open_time: Whole = "openTime",
        /// Milliseconds.
        close_time: Whole = "closeTime",
        first_id?: Whole = "firstId",
        last_id?: Whole = "lastId",
        count?: Whole = "count",
    }
}

request! {
    /// Change of the last 24 hours: an object for one symbol, otherwise an array.
    GetTicker24hr = "futures.ticker_24hr" -> OneOrMany<Ticker24hr> {
        symbol?: String = "symbol",
    }
}

request! {
    /// Latest price: an object for one symbol, otherwise an array.
    GetPrice = "futures.ticker_price" -> OneOrMany<PriceTicker> {
        symbol?: String = "symbol",
    }
}

request! {
    /// Best bid and ask: an object for one symbol, otherwise an array.
    GetBookTicker = "futures.book_ticker" -> OneOrMany<BookTicker> {
        symbol?: String = "symbol",
    }
}
