//! Book and trades: depth, trades, historicalTrades, aggTrades.

use windvane_model::{Side, Surface};

use super::request::{Request, Text};
use crate::figures::levels;
use crate::json::{Json, Quoted, list};
use crate::request::Refusal;
use windvane_sim_market::Symbol;
use windvane_sim_market::interval::HOUR_MS;
use windvane_sim_market::trades::{AggTrade, Trade};

/// The permitted limits of `depth` (docs/interface/market-data.md#order-book).
const DEPTH_LIMITS: [i64; 7] = [5, 10, 20, 50, 100, 500, 1000];

pub(super) fn depth(request: &Request<'_>) -> Text {
    let symbol = request.symbol()?;
    let default = match request.surface {
        Surface::Spot => 100,
        Surface::Futures => 500,
    };
    let limit = request.call.params.integer("limit")?.unwrap_or(default);
    if !DEPTH_LIMITS.contains(&limit) {
        let msg = format!("{limit} is not valid depth limit.");
        return Err(Refusal::new(-4021, msg));
    }
    let side = |side| levels(symbol, symbol.book.levels(side).take(limit as usize));
    Ok(Json::with_capacity(64 * limit as usize)
        .plain("lastUpdateId", symbol.book.update_id())
        .plain("E", request.call.now_ms)
        .plain("T", symbol.book_ms)
        .plain("bids", side(Side::Buy))
        .plain("asks", side(Side::Sell))
        .end())
}

pub(super) fn trades(request: &Request<'_>) -> Text {
    let symbol = request.symbol()?;
    let limit = request.limit(500, 1000)?;
    let trades = symbol.trades.since(None, limit);
    Ok(list(trades.map(|trade| record(symbol, trade))))
}

pub(super) fn historical_trades(request: &Request<'_>) -> Text {
    let symbol = request.symbol()?;
    let limit = request.limit(500, 1000)?;
    let from_id = request.call.params.integer("fromId")?;
    let trades = symbol.trades.since(from_id, limit);
    Ok(list(trades.map(|trade| record(symbol, trade))))
}

/// Spot has the base quantity in addition to the quantity; futures have the quote quantity
/// (docs/interface/market-data.md#trades).
fn record(symbol: &Symbol, trade: &Trade) -> String {
    let qty = symbol.qty(trade.qty.into());
    let json = Json::with_capacity(160)
        .plain("id", trade.id)
        .text("price", symbol.price(trade.price))
        .text("qty", qty);
    let json = match symbol.instrument.surface {
        Surface::Spot => json.text("baseQty", qty),
        Surface::Futures => {
            let quote = i128::from(trade.price) * i128::from(trade.qty);
            json.text("quoteQty", symbol.quote(quote))
        }
    };
    json.plain("time", trade.time_ms)
        .plain("isBuyerMaker", trade.buyer_is_maker)
        .end()
}

pub(super) fn agg_trades(request: &Request<'_>) -> Text {
    let symbol = request.symbol()?;
    let limit = request.limit(500, 1000)?;
    let from_id = request.call.params.integer("fromId")?;
    let (start, end) = request.times()?;
    if let (Some(start), Some(end)) = (start, end)
        && end.saturating_sub(start) >= HOUR_MS
    {
        let msg = "More than 1 hours between startTime and endTime.";
        return Err(Refusal::new(-1127, msg));
    }
    let aggregates = symbol.trades.select_aggregates(from_id, start, end, limit);
    Ok(list(
        aggregates.map(|aggregate| aggregate_record(symbol, aggregate)),
    ))
}

fn aggregate_record(symbol: &Symbol, aggregate: &AggTrade) -> String {
    Json::with_capacity(128)
        .plain("a", aggregate.id)
        .plain("p", Quoted(symbol.price(aggregate.price)))
        .plain("q", Quoted(symbol.qty(aggregate.qty.into())))
        .plain("f", aggregate.first_id)
        .plain("l", aggregate.last_id)
        .plain("T", aggregate.time_ms)
        .plain("m", aggregate.buyer_is_maker)
        .end()
}
