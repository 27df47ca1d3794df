//! Futures market data (docs/interface/market-data.md#futures-market-data) as data. The documents
//! list it for v1; `fundingInfo` also for v3.

use super::enums::{DEPTH_LIMITS, DEPTH_WEIGHTS, KLINE_INTERVAL};
use super::row::{by_symbol, limit, may, must, row};
use super::types::Kind::{Int, Long, String};
use super::types::{Param, Route, Source, Surface, Weight, Weight::Fixed};

const FUTURES: (Surface, Source) = (Surface::Futures, Source::Spec2);

const SYMBOL: Param = must("symbol", String);
const MAYBE_SYMBOL: &[Param] = &[may("symbol", String)];
const START_TIME: Param = may("startTime", Long);
const END_TIME: Param = may("endTime", Long);

const DEPTH: Weight = Weight::ByLimit {
    default: 500,
    steps: DEPTH_WEIGHTS,
};
/// Weights for limits from 1 to 99, to 499, to 1000, and above.
const KLINES: Weight = Weight::ByLimit {
    default: 500,
    steps: &[(99, 1), (499, 2), (1000, 5), (1500, 10)],
};

/// Klines of a symbol.
const SYMBOL_KLINES: &[Param] = &[
    SYMBOL,
    must("interval", KLINE_INTERVAL),
    START_TIME,
    END_TIME,
    limit("500", "1500"),
];
/// Klines of a pair's index.
const PAIR_KLINES: &[Param] = &[
    must("pair", String),
    must("interval", KLINE_INTERVAL),
    START_TIME,
    END_TIME,
    limit("500", "1500"),
];

pub(super) const ROUTES: &[Route] = &[
    row!(FUTURES "futures.ping", Get "/fapi" [v1] "/ping", None, Fixed(1)).answers("{}"),
    row!(FUTURES "futures.time", Get "/fapi" [v1] "/time", None, Fixed(1)).answers("{serverTime}"),
    row!(FUTURES "futures.exchange_info", Get "/fapi" [v1] "/exchangeInfo", None, Fixed(1))
        .answers("exchange information"),
    row!(FUTURES "futures.depth", Get "/fapi" [v1] "/depth", None, DEPTH)
        .takes(&[
            SYMBOL,
            may("limit", Int).values(DEPTH_LIMITS).default_value("500"),
        ])
        .answers("{lastUpdateId, E, T, bids, asks}"),
    row!(FUTURES "futures.trades", Get "/fapi" [v1] "/trades", None, Fixed(1))
        .takes(&[SYMBOL, limit("500", "1000")])
        .answers("array of {id, price, qty, quoteQty, time, isBuyerMaker}"),
    row!(FUTURES "futures.historical_trades",
        Get "/fapi" [v1] "/historicalTrades", MarketData, Fixed(20))
    .takes(&[SYMBOL, limit("500", "1000"), may("fromId", Long)])
    .answers("array of {id, price, qty, quoteQty, time, isBuyerMaker}"),
    row!(FUTURES "futures.agg_trades", Get "/fapi" [v1] "/aggTrades", None, Fixed(20))
        .takes(&[
            SYMBOL,
            may("fromId", Long),
            START_TIME,
            END_TIME,
            limit("500", "1000"),
        ])
        .answers("array of {a, p, q, f, l, T, m}"),
    row!(FUTURES "futures.klines", Get "/fapi" [v1] "/klines", None, KLINES)
        .takes(SYMBOL_KLINES)
        .answers("array of 12-element arrays"),
    row!(FUTURES "futures.index_price_klines",
        Get "/fapi" [v1] "/indexPriceKlines", None, KLINES)
    .takes(PAIR_KLINES)
    .answers("array of 12-element arrays"),
    row!(FUTURES "futures.mark_price_klines", Get "/fapi" [v1] "/markPriceKlines", None, KLINES)
        .takes(SYMBOL_KLINES)
        .answers("array of 12-element arrays"),
    row!(FUTURES "futures.premium_index", Get "/fapi" [v1] "/premiumIndex", None, Fixed(1))
        .takes(MAYBE_SYMBOL)
        .answers("Mark price, or array"),
    row!(FUTURES "futures.funding_rate", Get "/fapi" [v1] "/fundingRate", None, Fixed(1))
        .takes(&[
            may("symbol", String),
            START_TIME,
            END_TIME,
            limit("100", "1000"),
        ])
        .answers("array of Funding rate entry"),
    row!(FUTURES "futures.funding_info", Get "/fapi" [v1 v3] "/fundingInfo", None, Fixed(1))
        .takes(MAYBE_SYMBOL)
        .answers("array of Funding config entry"),
    row!(FUTURES "futures.ticker_24hr", Get "/fapi" [v1] "/ticker/24hr", None, by_symbol(1, 40))
        .takes(MAYBE_SYMBOL)
        .answers("24hr ticker, or array"),
    row!(FUTURES "futures.ticker_price", Get "/fapi" [v1] "/ticker/price", None, by_symbol(1, 2))
        .takes(MAYBE_SYMBOL)
        .answers("{symbol, price, time}, or array"),
    row!(FUTURES "futures.book_ticker",
        Get "/fapi" [v1] "/ticker/bookTicker", None, by_symbol(1, 2))
    .takes(MAYBE_SYMBOL)
    .answers("{symbol, bidPrice, bidQty, askPrice, askQty, time}, or array"),
];
