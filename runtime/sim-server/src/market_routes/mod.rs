//! Handlers of the market data routes of both surfaces (docs/interface/market-data.md). They only
//! read the board.

mod bars;
mod exchange_info;
mod prices;
mod tape;

pub(crate) use tape::levels;

use windvane_model::Surface;
use windvane_protocol::route;

use crate::json::Json;
use crate::request::{Answer, Body, Call, Refusal};
use crate::state::State;
use windvane_sim_market::Symbol;

/// The route's name without its surface.
fn own_name(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, own)| own)
}

/// Answers a route of this module.
pub(crate) fn handle(state: &mut State, call: &Call<'_>) -> Answer {
    let surface = match call.route.surface {
        route::Surface::Spot => Surface::Spot,
        _ => Surface::Futures,
    };
    let request = Request {
        state,
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

/// A request to this module, and the parameter rules that its routes share.
struct Request<'a> {
    state: &'a State,
    call: &'a Call<'a>,
    surface: Surface,
}

impl Request<'_> {
    /// The symbol, which is required (-1102, -1121).
    fn symbol(&self) -> Result<&Symbol, Refusal> {
        self.named(self.call.params.required("symbol")?)
    }

    /// The symbol, which is optional (-1121).
    fn symbol_if_sent(&self) -> Result<Option<&Symbol>, Refusal> {
        let name = self.call.params.get("symbol");
        name.map(|name| self.named(name)).transpose()
    }

    fn named(&self, name: &str) -> Result<&Symbol, Refusal> {
        let found = self.state.board.find(self.surface, name);
        found.ok_or_else(|| Refusal::new(-1121, "Invalid symbol."))
    }

    /// `limit`: from 1 to its maximum (-1130).
    fn limit(&self, default: usize, max: usize) -> Result<usize, Refusal> {
        let Some(limit) = self.call.params.integer("limit")? else {
            return Ok(default);
        };
        let limit = usize::try_from(limit).ok();
        limit
            .filter(|limit| (1..=max).contains(limit))
            .ok_or_else(|| {
                let msg = format!("Data sent for parameter 'limit' is not valid: 1 to {max}.");
                Refusal::new(-1130, msg)
            })
    }

    /// `startTime` and `endTime`. The start must not be after the end (-1023).
    fn times(&self) -> Result<(Option<i64>, Option<i64>), Refusal> {
        let start = self.call.params.integer("startTime")?;
        let end = self.call.params.integer("endTime")?;
        match (start, end) {
            (Some(start), Some(end)) if start > end => {
                Err(Refusal::new(-1023, "Start time is greater than end time."))
            }
            _ => Ok((start, end)),
        }
    }

    /// The record of the requested symbol, or a list of all symbols' records.
    fn one_or_all(&self, record: impl Fn(&Symbol) -> String) -> Text {
        Ok(match self.symbol_if_sent()? {
            Some(symbol) => record(symbol),
            None => crate::json::list(self.state.board.of(self.surface).map(record)),
        })
    }
}

/// The text of a body.
type Text = Result<String, Refusal>;

#[cfg(test)]
mod tests;
