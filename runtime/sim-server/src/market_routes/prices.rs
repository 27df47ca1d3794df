//! Tickers, mark prices and funding.

use windvane_model::Surface;

use super::request::{Request, Text};
use crate::json::{Json, list};
use windvane_sim_market::Symbol;
use windvane_sim_market::fixed::Fixed;
use windvane_sim_market::funding::{FUNDING_MS, Funded, Funding, INTEREST, RATE_CAP};
use windvane_sim_market::interval::HOUR_MS;
use windvane_sim_market::ticker::Ticker;

pub(super) fn ticker_24hr(request: &Request<'_>) -> Text {
    request.one_or_all(|symbol| day(request, symbol))
}

fn day(request: &Request<'_>, symbol: &Symbol) -> String {
    let ticker = Ticker::of(symbol, request.call.now.millis());
    let price = |mantissa| symbol.price(mantissa);
    let average = Fixed(ticker.weighted_average(), symbol.instrument.price_scale);
    let mut json = Json::with_capacity(640)
        .text("symbol", &symbol.instrument.symbol)
        .text("priceChange", price(ticker.change()))
        .text("priceChangePercent", Fixed(ticker.change_percent(), 3))
        .text("weightedAvgPrice", average)
        .text("prevClosePrice", price(ticker.previous_close))
        .text("lastPrice", price(ticker.last))
        .text("lastQty", symbol.qty(ticker.last_qty.into()));
    if request.surface == Surface::Spot {
        let (bid, ask) = symbol.book.top();
        json = json
            .text("bidPrice", price(bid.price))
            .text("bidQty", symbol.qty(bid.qty.into()))
            .text("askPrice", price(ask.price))
            .text("askQty", symbol.qty(ask.qty.into()));
    }
    json = json
        .text("openPrice", price(ticker.open))
        .text("highPrice", price(ticker.high))
        .text("lowPrice", price(ticker.low))
        .text("volume", symbol.qty(ticker.volume))
        .text("quoteVolume", symbol.quote(ticker.quote_volume))
        .plain("openTime", ticker.open_ms)
        .plain("closeTime", ticker.close_ms)
        .plain("firstId", ticker.first_id)
        .plain("lastId", ticker.last_id)
        .plain("count", ticker.count);
    if request.surface == Surface::Spot {
        let asset = |id| request.board.asset(id);
        json = json
            .text("baseAsset", asset(symbol.instrument.base))
            .text("quoteAsset", asset(symbol.instrument.quote));
    }
    json.end()
}

pub(super) fn ticker_price(request: &Request<'_>) -> Text {
    request.one_or_all(|symbol| {
        let traded = symbol.trades.singles().back();
        Json::new()
            .text("symbol", &symbol.instrument.symbol)
            .text("price", symbol.price(symbol.last_price()))
            .plain("time", traded.map_or(symbol.book_ms, |trade| trade.time_ms))
            .end()
    })
}

pub(super) fn book_ticker(request: &Request<'_>) -> Text {
    request.one_or_all(|symbol| {
        let (bid, ask) = symbol.book.top();
        Json::new()
            .text("symbol", &symbol.instrument.symbol)
            .text("bidPrice", symbol.price(bid.price))
            .text("bidQty", symbol.qty(bid.qty.into()))
            .text("askPrice", symbol.price(ask.price))
            .text("askQty", symbol.qty(ask.qty.into()))
            .plain("time", symbol.book_ms)
            .end()
    })
}

/// A price or rate at scale 8.
fn eight(mantissa: i64) -> Fixed {
    Fixed(i128::from(mantissa), 8)
}

pub(super) fn premium_index(request: &Request<'_>) -> Text {
    let now_ms = request.call.now.millis();
    request.one_or_all(|symbol| {
        // A recording may not have had a price yet.
        let unknown = || Funded::new(now_ms, symbol.at_mark_scale(symbol.last_price()));
        let made;
        let funded = if let Some(funded) = &symbol.funded {
            funded
        } else {
            made = unknown();
            &made
        };
        Json::new()
            .text("symbol", &symbol.instrument.symbol)
            .text("markPrice", eight(funded.mark))
            .text("indexPrice", eight(funded.index))
            .text("estimatedSettlePrice", eight(funded.index))
            .text("lastFundingRate", eight(funded.rate))
            .plain("nextFundingTime", funded.next_ms)
            .text("interestRate", eight(INTEREST))
            .plain("time", funded.time_ms)
            .end()
    })
}

pub(super) fn funding_rate(request: &Request<'_>) -> Text {
    let limit = request.limit(100, 1000)?;
    let (start, end) = request.times()?;
    let symbols: Vec<&Symbol> = match request.symbol_if_sent()? {
        Some(symbol) => vec![symbol],
        None => request.board.of(request.surface).collect(),
    };
    let mut all: Vec<(&Symbol, &Funding)> = Vec::new();
    for symbol in symbols {
        if let Some(funded) = &symbol.funded {
            let fundings = funded.select(start, end, limit);
            all.extend(fundings.map(|funding| (symbol, funding)));
        }
    }
    all.sort_by_key(|(symbol, funding)| (funding.time_ms, symbol.id));
    // As for one symbol: the first ones with a start time, otherwise the last ones.
    let skipped = match start {
        Some(_) => 0,
        None => all.len().saturating_sub(limit),
    };
    let records = all.into_iter().skip(skipped).take(limit);
    Ok(list(records.map(|(symbol, funding)| {
        Json::new()
            .text("symbol", &symbol.instrument.symbol)
            .text("fundingRate", eight(funding.rate))
            .plain("fundingTime", funding.time_ms)
            .end()
    })))
}

/// Always a list, with one entry if a symbol is requested.
pub(super) fn funding_info(request: &Request<'_>) -> Text {
    let symbols: Vec<&Symbol> = match request.symbol_if_sent()? {
        Some(symbol) => vec![symbol],
        None => request.board.of(request.surface).collect(),
    };
    Ok(list(symbols.into_iter().map(|symbol| {
        let time_ms = symbol.funded.as_ref().map_or(0, |funded| funded.time_ms);
        Json::new()
            .text("symbol", &symbol.instrument.symbol)
            .text("interestRate", eight(INTEREST))
            .plain("time", time_ms)
            .plain("fundingIntervalHours", FUNDING_MS / HOUR_MS)
            .plain("fundingFeeCap", eight(RATE_CAP).trimmed())
            .plain("fundingFeeFloor", eight(-RATE_CAP).trimmed())
            .end()
    })))
}
