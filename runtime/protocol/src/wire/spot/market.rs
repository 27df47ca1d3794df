//! Market data of the spot surface (docs/interface/market-data.md#spot-market-data).

use crate::wire::common::{Empty, ServerTime, SimpleResult};
use crate::wire::enums::Interval;
use crate::wire::exchange::ExchangeInfo;
use crate::wire::fields::{record, request};
use crate::wire::market::{AggTrade, BookTicker, Depth, Kline, PriceTicker};
use crate::wire::scalar::{Exact, Flag, OneOrMany, Whole};

request! {
    /// Cancels transactions that are queued and not yet completed on chain; success is not
    /// guaranteed.
    Noop = "spot.noop" -> SimpleResult {
        /// The nonce of the transaction to cancel.
        nonce?: i64 = "nonce",
    }
}

request! {
    /// Checks that the service is reachable.
    Ping = "spot.ping" -> Empty {}
}

request! {
    /// Server time.
    GetTime = "spot.time" -> ServerTime {}
}

request! {
    /// Exchange information.
    GetExchangeInfo = "spot.exchange_info" -> ExchangeInfo {}
}

request! {
    /// Order book.
    GetDepth = "spot.depth" -> Depth {
        symbol: String = "symbol",
        /// 5, 10, 20, 50, 100, 500 or 1000; default 100.
        limit?: i64 = "limit",
    }
}

record! {
    /// Public trade.
    MarketTrade {
        id: Whole = "id",
        price: Exact = "price",
        qty: Exact = "qty",
        base_qty?: Exact = "baseQty",
        /// Milliseconds.
        time: Whole = "time",
        is_buyer_maker: Flag = "isBuyerMaker",
    }
}

request! {
    /// Recent trades.
    GetTrades = "spot.trades" -> Vec<MarketTrade> {
        symbol: String = "symbol",
        /// At most 1000; default 500.
        limit?: i64 = "limit",
    }
}

request! {
    /// Older trades; without `fromId` the most recent ones.
    GetHistoricalTrades = "spot.historical_trades" -> Vec<MarketTrade> {
        symbol: String = "symbol",
        /// At most 1000; default 500.
        limit?: i64 = "limit",
        from_id?: i64 = "fromId",
    }
}

request! {
    /// Aggregated trades; the time range must be shorter than one hour.
    GetAggTrades = "spot.agg_trades" -> Vec<AggTrade> {
        symbol: String = "symbol",
        from_id?: i64 = "fromId",
        /// Milliseconds.
        start_time?: i64 = "startTime",
        /// Milliseconds.
        end_time?: i64 = "endTime",
        /// At most 1000; default 500.
        limit?: i64 = "limit",
    }
}

request! {
    /// Klines; without times the most recent ones.
    GetKlines = "spot.klines" -> Vec<Kline> {
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
    /// Change of the last 24 hours.
    Ticker24hr {
        symbol: String = "symbol",
        price_change: Exact = "priceChange",
        price_change_percent: Exact = "priceChangePercent",
        weighted_avg_price: Exact = "weightedAvgPrice",
        prev_close_price?: Exact = "prevClosePrice",
        last_price: Exact = "lastPrice",
        last_qty?: Exact = "lastQty",
        bid_price?: Exact = "bidPrice",
        bid_qty?: Exact = "bidQty",
        ask_price?: Exact = "askPrice",
        ask_qty?: Exact = "askQty",
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
        base_asset?: String = "baseAsset",
        quote_asset?: String = "quoteAsset",
    }
}

request! {
    /// Change of the last 24 hours: an object for one symbol, otherwise an array.
    GetTicker24hr = "spot.ticker_24hr" -> OneOrMany<Ticker24hr> {
        symbol?: String = "symbol",
    }
}

request! {
    /// Latest price: an object for one symbol, otherwise an array.
    GetPrice = "spot.ticker_price" -> OneOrMany<PriceTicker> {
        symbol?: String = "symbol",
    }
}

request! {
    /// Best bid and ask: an object for one symbol, otherwise an array.
    GetBookTicker = "spot.book_ticker" -> OneOrMany<BookTicker> {
        symbol?: String = "symbol",
    }
}
