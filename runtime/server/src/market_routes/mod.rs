//! Handlers of the market data routes.

use crate::http::{Answer, Call, Refusal};
use crate::state::State;

/// The routes of this room, whatever their surface.
const NAMES: &[&str] = &[
    "ping",
    "time",
    "exchange_info",
    "depth",
    "trades",
    "historical_trades",
    "agg_trades",
    "klines",
    "index_price_klines",
    "mark_price_klines",
    "premium_index",
    "funding_rate",
    "funding_info",
    "ticker_24hr",
    "ticker_price",
    "book_ticker",
];

/// Is a route of this room.
pub(crate) fn owns(name: &str) -> bool {
    let own = name.split_once('.').map(|(_, own)| own);
    own.is_some_and(|own| NAMES.contains(&own))
}

/// Answers a route of this family.
pub(crate) fn handle(_state: &mut State, call: &Call<'_>) -> Answer {
    Err(Refusal::not_built(call.route.name))
}
