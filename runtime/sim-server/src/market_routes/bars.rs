//! Klines of trades, and on futures also of index and mark prices.

use windvane_model::Surface;

use super::request::{Request, Text};
use crate::json::list;
use crate::request::Refusal;
use windvane_sim_market::Symbol;
use windvane_sim_market::fixed::Fixed;
use windvane_sim_market::interval::Interval;
use windvane_sim_market::kline::{Kline, KlineTable};

pub(super) fn klines(request: &Request<'_>) -> Text {
    let symbol = request.symbol()?;
    select(request, &symbol.klines, |bar| trade_bar(symbol, bar))
}

/// The symbol is in `pair`, because for perpetual contracts the two are equal.
pub(super) fn index_price_klines(request: &Request<'_>) -> Text {
    let symbol = request.named(request.call.params.required("pair")?)?;
    select(request, &symbol.index_klines, price_bar)
}

pub(super) fn mark_price_klines(request: &Request<'_>) -> Text {
    let symbol = request.symbol()?;
    select(request, &symbol.mark_klines, price_bar)
}

fn select(request: &Request<'_>, table: &KlineTable, record: impl Fn(&Kline) -> String) -> Text {
    let word = request.call.params.required("interval")?;
    let interval = Interval::from_text(word);
    let interval = interval.ok_or_else(|| Refusal::new(-1120, "Invalid interval."))?;
    let limit = request.limit(500, 1500)?;
    let (start, end) = request.times()?;
    let bars = table.of(interval).select(start, end, limit);
    Ok(list(bars.map(record)))
}

/// Eleven items on spot; on futures a twelfth, which clients ignore.
fn trade_bar(symbol: &Symbol, bar: &Kline) -> String {
    let last = match symbol.instrument.surface {
        Surface::Spot => "",
        Surface::Futures => ",\"0\"",
    };
    format!(
        "[{},\"{}\",\"{}\",\"{}\",\"{}\",\"{}\",{},\"{}\",{},\"{}\",\"{}\"{last}]",
        bar.open_ms,
        symbol.price(bar.open),
        symbol.price(bar.high),
        symbol.price(bar.low),
        symbol.price(bar.close),
        symbol.qty(bar.volume),
        bar.close_ms,
        symbol.quote(bar.quote_volume),
        bar.count,
        symbol.qty(bar.taker_base),
        symbol.quote(bar.taker_quote),
    )
}

/// Volumes are placeholders. The ninth item is the number of data points.
fn price_bar(bar: &Kline) -> String {
    let price = |mantissa: i64| Fixed(i128::from(mantissa), 8);
    format!(
        "[{},\"{}\",\"{}\",\"{}\",\"{}\",\"0\",{},\"0\",{},\"0\",\"0\",\"0\"]",
        bar.open_ms,
        price(bar.open),
        price(bar.high),
        price(bar.low),
        price(bar.close),
        bar.close_ms,
        bar.count,
    )
}
