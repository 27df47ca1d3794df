//! Payloads of the public streams (docs/interface/market-data.md#public-streams), key by key.

use std::fmt::Write as _;

use windvane_model::protocol::Fill;
use windvane_model::{Level, Qty, Side, Surface, Time};
use windvane_sim::OrderEvent;

use crate::figures::levels;
use crate::json::{Json, Quoted, list};
use windvane_sim_market::Symbol;
use windvane_sim_market::book::Difference;
use windvane_sim_market::fixed::Fixed;
use windvane_sim_market::interval::Interval;
use windvane_sim_market::kline::Kline;
use windvane_sim_market::ticker::Ticker;
use windvane_sim_market::trades::{AggTrade, Trade};

fn event_head(kind: &str, now: Time) -> Json {
    Json::with_capacity(256)
        .text("e", kind)
        .plain("E", now.millis())
}

pub(super) fn agg_trade(now: Time, symbol: &Symbol, trade: &AggTrade) -> String {
    event_head("aggTrade", now)
        .text("s", &symbol.instrument.symbol)
        .plain("a", trade.id)
        .text("p", symbol.price(trade.price))
        .text("q", symbol.qty(trade.qty.into()))
        .plain("f", trade.first_id)
        .plain("l", trade.last_id)
        .plain("T", trade.time_ms)
        .plain("m", trade.buyer_is_maker)
        .end()
}

pub(super) fn trade(now: Time, symbol: &Symbol, trade: &Trade) -> String {
    event_head("trade", now)
        .text("s", &symbol.instrument.symbol)
        .plain("t", trade.id)
        .text("p", symbol.price(trade.price))
        .text("q", symbol.qty(trade.qty.into()))
        .plain("T", trade.time_ms)
        .plain("m", trade.buyer_is_maker)
        .end()
}

/// The hash and the addresses are derived from the trade's id. Every fourth party is hidden.
pub(super) fn trade_pro(now: Time, symbol: &Symbol, trade: &Trade) -> String {
    let mut random =
        windvane_model::random::SplitMix64::new(trade.id as u64 ^ (u64::from(symbol.id.0) << 48));
    let mut hex = |values: usize| {
        let mut text = "0x".to_owned();
        for _ in 0..values {
            // Writing to a String cannot fail.
            let _ = write!(text, "{:016x}", random.bits());
        }
        text
    };
    let hash = hex(4);
    let mut party = || {
        let digits = hex(3);
        match digits.as_bytes()[49] % 4 {
            0 => Quoted("hidden".to_owned()),
            _ => Quoted(digits[..42].to_owned()),
        }
    };
    let parties = [party(), party()];
    event_head("tradepro", now)
        .plain("T", trade.time_ms)
        .text("s", &symbol.instrument.symbol)
        .plain("t", trade.id)
        .text("p", symbol.price(trade.price))
        .text("q", symbol.qty(trade.qty.into()))
        .text("h", hash)
        .list("m", &parties)
        .end()
}

/// On spot this event has no event type and no times.
pub(super) fn book_ticker(
    now: Time,
    symbol: &Symbol,
    update_id: i64,
    (bid, ask): (Level, Level),
) -> String {
    let json = match symbol.instrument.surface {
        Surface::Spot => Json::with_capacity(160).plain("u", update_id),
        Surface::Futures => Json::with_capacity(224)
            .text("e", "bookTicker")
            .plain("u", update_id)
            .plain("E", now.millis())
            .plain("T", symbol.book_ms),
    };
    json.text("s", &symbol.instrument.symbol)
        .text("b", symbol.price(bid.price))
        .text("B", symbol.qty(bid.qty.into()))
        .text("a", symbol.price(ask.price))
        .text("A", symbol.qty(ask.qty.into()))
        .end()
}

pub(super) fn depth(now: Time, symbol: &Symbol, difference: &Difference) -> String {
    let with_previous = symbol.instrument.surface == Surface::Futures;
    depth_head(now, symbol, difference, with_previous)
        .plain("b", levels(symbol, difference.bids.iter().copied()))
        .plain("a", levels(symbol, difference.asks.iter().copied()))
        .end()
}

/// The best levels after this difference. The keys are the same on both surfaces.
pub(super) fn partial(now: Time, symbol: &Symbol, difference: &Difference, depth: u8) -> String {
    let side = |side| levels(symbol, symbol.book.levels(side).take(usize::from(depth)));
    depth_head(now, symbol, difference, true)
        .plain("b", side(Side::Buy))
        .plain("a", side(Side::Sell))
        .end()
}

fn depth_head(now: Time, symbol: &Symbol, difference: &Difference, with_previous: bool) -> Json {
    let json = event_head("depthUpdate", now)
        .plain("T", symbol.book_ms)
        .text("s", &symbol.instrument.symbol)
        .plain("U", difference.first_id)
        .plain("u", difference.last_id);
    if with_previous {
        json.plain("pu", difference.previous_id)
    } else {
        json
    }
}

pub(super) fn kline(
    now: Time,
    symbol: &Symbol,
    interval: Interval,
    bar: &Kline,
    closed: bool,
) -> String {
    let bar = Json::with_capacity(384)
        .plain("t", bar.open_ms)
        .plain("T", bar.close_ms)
        .text("s", &symbol.instrument.symbol)
        .text("i", interval.as_str())
        .plain("f", bar.first_id)
        .plain("L", bar.last_id)
        .text("o", symbol.price(bar.open))
        .text("c", symbol.price(bar.close))
        .text("h", symbol.price(bar.high))
        .text("l", symbol.price(bar.low))
        .text("v", symbol.qty(bar.volume))
        .plain("n", bar.count)
        .plain("x", closed)
        .text("q", symbol.quote(bar.quote_volume))
        .text("V", symbol.qty(bar.taker_base))
        .text("Q", symbol.quote(bar.taker_quote))
        .end();
    event_head("kline", now)
        .text("s", &symbol.instrument.symbol)
        .plain("k", bar)
        .end()
}

pub(super) fn mini_ticker(now: Time, symbol: &Symbol, ticker: &Ticker) -> String {
    event_head("24hrMiniTicker", now)
        .text("s", &symbol.instrument.symbol)
        .text("c", symbol.price(ticker.last))
        .text("o", symbol.price(ticker.open))
        .text("h", symbol.price(ticker.high))
        .text("l", symbol.price(ticker.low))
        .text("v", symbol.qty(ticker.volume))
        .text("q", symbol.quote(ticker.quote_volume))
        .end()
}

pub(super) fn ticker(now: Time, symbol: &Symbol, ticker: &Ticker) -> String {
    let average = Fixed(ticker.weighted_average(), symbol.instrument.price_scale);
    let mut json = event_head("24hrTicker", now)
        .text("s", &symbol.instrument.symbol)
        .text("p", symbol.price(ticker.change()))
        .text("P", Fixed(ticker.change_percent(), 3))
        .text("w", average)
        .text("c", symbol.price(ticker.last))
        .text("Q", symbol.qty(ticker.last_qty.into()));
    if symbol.instrument.surface == Surface::Spot {
        let (bid, ask) = symbol.book.top();
        json = json
            .text("x", symbol.price(ticker.previous_close))
            .text("b", symbol.price(bid.price))
            .text("B", symbol.qty(bid.qty.into()))
            .text("a", symbol.price(ask.price))
            .text("A", symbol.qty(ask.qty.into()));
    }
    json.text("o", symbol.price(ticker.open))
        .text("h", symbol.price(ticker.high))
        .text("l", symbol.price(ticker.low))
        .text("v", symbol.qty(ticker.volume))
        .text("q", symbol.quote(ticker.quote_volume))
        .plain("O", ticker.open_ms)
        .plain("C", ticker.close_ms)
        .plain("F", ticker.first_id)
        .plain("L", ticker.last_id)
        .plain("n", ticker.count)
        .end()
}

/// `None` until a mark price is known.
pub(super) fn mark_price(now: Time, symbol: &Symbol) -> Option<String> {
    let funded = symbol.funded.as_ref()?;
    let eight = |mantissa: i64| Fixed(i128::from(mantissa), 8);
    let json = event_head("markPriceUpdate", now)
        .text("s", &symbol.instrument.symbol)
        .text("p", eight(funded.mark))
        .text("i", eight(funded.index))
        .text("P", eight(funded.index))
        .text("r", eight(funded.rate))
        .plain("T", funded.next_ms);
    Some(json.end())
}

pub(super) fn all_marks(now: Time, symbols: &[Symbol]) -> String {
    list(symbols.iter().filter_map(|symbol| mark_price(now, symbol)))
}

/// A fill of a liquidation.
pub(super) fn force_order(now: Time, symbol: &Symbol, event: &OrderEvent, fill: &Fill) -> String {
    let (order, update) = (&event.order, &event.update);
    let qty = |qty: Qty| symbol.qty(qty.0.into());
    let text = Json::with_capacity(256)
        .text("s", &symbol.instrument.symbol)
        .text("S", update.side)
        .text("o", order.order_type)
        .text("f", update.time_in_force)
        .text("q", qty(order.qty))
        .text("p", symbol.price(update.price.0))
        .text("ap", Fixed(order.average_price.into(), 8))
        .text("X", update.status)
        .text("l", qty(fill.qty))
        .text("z", qty(update.executed_qty))
        .plain("T", update.transaction_time.millis())
        .end();
    event_head("forceOrder", now).plain("o", text).end()
}
