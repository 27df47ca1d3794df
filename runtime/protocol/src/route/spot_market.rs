//! Spot market data (docs/interface/market-data.md#spot-market-data) as data. The documents list it
//! only for v3.

use super::enums::{DEPTH_LIMITS, DEPTH_WEIGHTS, KLINE_INTERVAL};
use super::row::{at, by_symbol, limit, may, must, row};
use super::types::Kind::{Int, Long, String};
use super::types::{Param, Route, Scheme, Source, Surface, Weight, Weight::Fixed};

const SPOT: (Surface, Source) = (Surface::Spot, Source::Spec1);

const SYMBOL: Param = must("symbol", String);
const MAYBE_SYMBOL: &[Param] = &[may("symbol", String)];

const DEPTH: Weight = Weight::ByLimit {
    default: 100,
    steps: DEPTH_WEIGHTS,
};

pub(super) const ROUTES: &[Route] = &[
    // The route has no label, but it cancels transactions of an account, which it identifies by
    // their nonce. So it is signed like every other v3 request
    // (docs/interface/conventions.md#signing-with-a-wallet).
    row!(SPOT "spot.noop", Post [
            at!("/api" v3 "/noop" None).scheme(Scheme::Message),
        ], None, Fixed(1))
    .takes(&[may("nonce", Long)])
    .answers("{code, msg}")
    .changes(),
    row!(SPOT "spot.ping", Get "/api" [v3] "/ping", None, Fixed(1)).answers("{}"),
    row!(SPOT "spot.time", Get "/api" [v3] "/time", None, Fixed(1)).answers("{serverTime}"),
    row!(SPOT "spot.exchange_info", Get "/api" [v3] "/exchangeInfo", None, Fixed(1))
        .answers("exchange information"),
    row!(SPOT "spot.depth", Get "/api" [v3] "/depth", None, DEPTH)
        .takes(&[
            SYMBOL,
            may("limit", Int).values(DEPTH_LIMITS).default_value("100"),
        ])
        .answers("{lastUpdateId, E, T, bids, asks}"),
    row!(SPOT "spot.trades", Get "/api" [v3] "/trades", None, Fixed(1))
        .takes(&[SYMBOL, limit("500", "1000")])
        .answers("array of {id, price, qty, baseQty, time, isBuyerMaker}"),
    row!(SPOT "spot.historical_trades", Get "/api" [v3] "/historicalTrades", MarketData, Fixed(20))
        .takes(&[SYMBOL, limit("500", "1000"), may("fromId", Long)])
        .answers("array of {id, price, qty, baseQty, time, isBuyerMaker}"),
    row!(SPOT "spot.agg_trades", Get "/api" [v3] "/aggTrades", None, Fixed(20))
        .takes(&[
            SYMBOL,
            may("fromId", Long),
            may("startTime", Long),
            may("endTime", Long),
            limit("500", "1000"),
        ])
        .answers("array of {a, p, q, f, l, T, m}"),
    row!(SPOT "spot.klines", Get "/api" [v3] "/klines", None, Weight::NotShown)
        .takes(&[
            SYMBOL,
            must("interval", KLINE_INTERVAL),
            may("startTime", Long),
            may("endTime", Long),
            limit("500", "1500"),
        ])
        .answers("array of arrays"),
    row!(SPOT "spot.ticker_24hr", Get "/api" [v3] "/ticker/24hr", None, by_symbol(1, 40))
        .takes(MAYBE_SYMBOL)
        .answers("24hr ticker, or array"),
    row!(SPOT "spot.ticker_price", Get "/api" [v3] "/ticker/price", None, by_symbol(1, 2))
        .takes(MAYBE_SYMBOL)
        .answers("{symbol, price, time}, or array"),
    row!(SPOT "spot.book_ticker", Get "/api" [v3] "/ticker/bookTicker", None, by_symbol(1, 2))
        .takes(MAYBE_SYMBOL)
        .answers("{symbol, bidPrice, bidQty, askPrice, askQty, time}, or array"),
    row!(SPOT "spot.commission_rate", Get "/api" [v3] "/commissionRate", None, Fixed(20))
        .takes(&[SYMBOL])
        .answers("Symbol fees {symbol, makerCommissionRate, takerCommissionRate}"),
];
