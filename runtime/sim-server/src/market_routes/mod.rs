//! Handlers of the market data routes of both surfaces
//! (docs/interface/market-data.md#market-data). They only read the board, and the limits
//! in force.

mod bars;
mod exchange_info;
mod prices;
mod request;
mod tape;

use windvane_model::Surface;
use windvane_protocol::route;
use windvane_sim_market::Board;

use crate::json::Json;
use crate::limits::Limits;
use crate::request::{Answer, Body, Call, Refusal};
use request::Request;

/// The route's name without its surface.
fn own_name(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, own)| own)
}

/// Answers a route of this module.
pub(crate) fn handle(board: &Board, limits: &Limits, call: &Call<'_>) -> Answer {
    let surface = match call.route.surface {
        route::Surface::Spot => Surface::Spot,
        _ => Surface::Futures,
    };
    let request = Request {
        board,
        limits,
        call,
        surface,
    };
    let text = match own_name(call.route.name) {
        "ping" => "{}".to_owned(),
        "time" => Json::new().plain("serverTime", call.now_ms).end(),
        "exchange_info" => exchange_info::answer(&request),
        "depth" => tape::depth(&request)?,
        "trades" => tape::trades(&request)?,
        "historical_trades" => tape::historical_trades(&request)?,
        "agg_trades" => tape::agg_trades(&request)?,
        "klines" => bars::klines(&request)?,
        "index_price_klines" => bars::index_price_klines(&request)?,
        "mark_price_klines" => bars::mark_price_klines(&request)?,
        "premium_index" => prices::premium_index(&request)?,
        "funding_rate" => prices::funding_rate(&request)?,
        "funding_info" => prices::funding_info(&request)?,
        "ticker_24hr" => prices::ticker_24hr(&request)?,
        "ticker_price" => prices::ticker_price(&request)?,
        "book_ticker" => prices::book_ticker(&request)?,
        _ => return Err(Refusal::not_built(call.route.name)),
    };
    Ok(Body(text))
}

#[cfg(test)]
mod tests;
