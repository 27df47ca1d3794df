//! REST answers as the frames that streams would have sent, for a venue that shows no other
//! public stream than `tradepro` (`market_data = "documented"`): strategies see no difference but
//! latency. Pure functions of the answer; when to poll, and within which budget, is the client's.
//!
//! | answer | instead of the stream |
//! |---|---|
//! | depth | `depth<levels>`: each answer replaces the book ([`book`]), and its first levels are the top ([`top_of`]) |
//! | ticker/bookTicker | `bookTicker` ([`tops`]) |
//! | premiumIndex | `markPrice`, one or all ([`marks`]) |
//! | trades, aggTrades | `trade`, `aggTrade`; also to fill the hole after a reconnect ([`trades`], [`aggregates`]) |
//! | ticker/24hr | `ticker` ([`tickers`]) |
//! | fundingRate | none: the rates that were paid ([`funding_payments`]); the one to come is in `markPrice` |

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Ticker;
use crate::frame::{
    BookLevels, BookTop, DepthSnapshot, FillIds, Frame, FrameError, MarkPrice, Trade,
};
use crate::general::{
    Field, boolean, integer, need, number, optional_integer, optional_number, parse, string,
};
use crate::keyed::keyed;
use crate::number::Number;
use crate::wire::{Exact, Whole};

/// A depth answer as a frame of a partial depth stream: it replaces the book of `symbol`. The
/// levels go into `levels`, best first as the venue sends them.
pub fn book<'a>(
    symbol: &'a str,
    text: &'a str,
    levels: &mut BookLevels,
) -> Result<DepthSnapshot<'a>, FrameError> {
    match crate::decode(text.as_bytes(), levels)?.frame {
        Frame::Snapshot(snapshot) => Ok(DepthSnapshot {
            symbol: Some(symbol),
            partial: true,
            ..snapshot
        }),
        _ => Err(FrameError::Missing {
            kind: "depth",
            field: "lastUpdateId",
        }),
    }
}

/// The best levels of a depth answer as a `bookTicker` frame; `None` while a side is empty.
pub fn top_of<'a>(snapshot: &DepthSnapshot<'a>, levels: &BookLevels) -> Option<BookTop<'a>> {
    let bid = levels.bids().iter().max_by_key(|level| level.price)?;
    let ask = levels.asks().iter().min_by_key(|level| level.price)?;
    let price = |mantissa| Number {
        mantissa,
        scale: levels.price_scale(),
    };
    let qty = |mantissa| Number {
        mantissa,
        scale: levels.qty_scale(),
    };
    Some(BookTop {
        symbol: snapshot.symbol?,
        update_id: snapshot.last_update_id,
        event_ms: snapshot.event_ms,
        transaction_ms: snapshot.transaction_ms,
        bid_price: price(bid.price),
        bid_qty: qty(bid.qty),
        ask_price: price(ask.price),
        ask_qty: qty(ask.qty),
    })
}

/// Every key of the answers that become hot frames.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(borrow, default)]
    symbol: Field<'a>,
    #[serde(borrow, default)]
    time: Field<'a>,
    #[serde(borrow, default)]
    bid_price: Field<'a>,
    #[serde(borrow, default)]
    bid_qty: Field<'a>,
    #[serde(borrow, default)]
    ask_price: Field<'a>,
    #[serde(borrow, default)]
    ask_qty: Field<'a>,
    #[serde(borrow, default)]
    mark_price: Field<'a>,
    #[serde(borrow, default)]
    index_price: Field<'a>,
    #[serde(borrow, default)]
    estimated_settle_price: Field<'a>,
    #[serde(borrow, default)]
    last_funding_rate: Field<'a>,
    #[serde(borrow, default)]
    next_funding_time: Field<'a>,
    #[serde(borrow, default)]
    id: Field<'a>,
    #[serde(borrow, default)]
    price: Field<'a>,
    #[serde(borrow, default)]
    qty: Field<'a>,
    #[serde(borrow, default)]
    is_buyer_maker: Field<'a>,
}

/// One record or an array of them, each made into a frame.
fn each<'a, E: Deserialize<'a>, T>(
    text: &'a str,
    make: impl Fn(&E) -> Result<T, FrameError>,
) -> Result<Vec<T>, FrameError> {
    if text.trim_start().starts_with('[') {
        let entries: Vec<E> = parse(text)?;
        return entries.iter().map(make).collect();
    }
    Ok(vec![make(&parse(text)?)?])
}

/// A `ticker/bookTicker` answer, of one symbol or of all, as `bookTicker` frames. The answer has
/// no update id: it is 0, and `time` stands for both times.
pub fn tops(text: &str) -> Result<Vec<BookTop<'_>>, FrameError> {
    let kind = "ticker/bookTicker";
    each(text, |entry: &Entry<'_>| {
        let time = optional_integer("time", entry.time)?;
        Ok(BookTop {
            symbol: string(kind, "symbol", need(kind, "symbol", entry.symbol)?)?,
            update_id: 0,
            event_ms: time,
            transaction_ms: time,
            bid_price: number("bidPrice", need(kind, "bidPrice", entry.bid_price)?)?,
            bid_qty: number("bidQty", need(kind, "bidQty", entry.bid_qty)?)?,
            ask_price: number("askPrice", need(kind, "askPrice", entry.ask_price)?)?,
            ask_qty: number("askQty", need(kind, "askQty", entry.ask_qty)?)?,
        })
    })
}

/// A `premiumIndex` answer, of one symbol or of all, as `markPrice` frames.
pub fn marks(text: &str) -> Result<Vec<MarkPrice<'_>>, FrameError> {
    let kind = "premiumIndex";
    each(text, |entry: &Entry<'_>| {
        Ok(MarkPrice {
            symbol: string(kind, "symbol", need(kind, "symbol", entry.symbol)?)?,
            event_ms: integer("time", need(kind, "time", entry.time)?)?,
            mark: number("markPrice", need(kind, "markPrice", entry.mark_price)?)?,
            index: optional_number("indexPrice", entry.index_price)?,
            settle: optional_number("estimatedSettlePrice", entry.estimated_settle_price)?,
            funding_rate: optional_number("lastFundingRate", entry.last_funding_rate)?,
            next_funding_ms: optional_integer("nextFundingTime", entry.next_funding_time)?,
        })
    })
}

/// A `trades` or `historicalTrades` answer as `trade` frames, the oldest first. `isBuyerMaker`
/// tells the side that `tradepro` does not.
pub fn trades<'a>(symbol: &'a str, text: &'a str) -> Result<Vec<Trade<'a>>, FrameError> {
    let kind = "trades";
    each(text, |entry: &Entry<'_>| {
        let time = integer("time", need(kind, "time", entry.time)?)?;
        let maker = need(kind, "isBuyerMaker", entry.is_buyer_maker)?;
        Ok(Trade {
            symbol,
            aggregate: false,
            event_ms: time,
            trade_ms: time,
            id: integer("id", need(kind, "id", entry.id)?)?,
            price: number("price", need(kind, "price", entry.price)?)?,
            qty: number("qty", need(kind, "qty", entry.qty)?)?,
            buyer_is_maker: boolean("isBuyerMaker", maker)?,
            fills: None,
        })
    })
}

#[derive(Deserialize)]
#[allow(
    non_snake_case,
    reason = "the wire's own keys, two of which differ only in case"
)]
struct Aggregate<'a> {
    #[serde(borrow)]
    a: &'a RawValue,
    #[serde(borrow)]
    p: &'a RawValue,
    #[serde(borrow)]
    q: &'a RawValue,
    #[serde(borrow)]
    f: &'a RawValue,
    #[serde(borrow)]
    l: &'a RawValue,
    #[serde(borrow)]
    T: &'a RawValue,
    #[serde(borrow)]
    m: &'a RawValue,
}

/// An `aggTrades` answer as `aggTrade` frames, the oldest first.
pub fn aggregates<'a>(symbol: &'a str, text: &'a str) -> Result<Vec<Trade<'a>>, FrameError> {
    each(text, |entry: &Aggregate<'_>| {
        let time = integer("T", entry.T)?;
        Ok(Trade {
            symbol,
            aggregate: true,
            event_ms: time,
            trade_ms: time,
            id: integer("a", entry.a)?,
            price: number("p", entry.p)?,
            qty: number("q", entry.q)?,
            buyer_is_maker: boolean("m", entry.m)?,
            fills: Some(FillIds {
                first: integer("f", entry.f)?,
                last: integer("l", entry.l)?,
            }),
        })
    })
}

keyed! {
    /// A `ticker/24hr` record (spec 1 and 2, Market data).
    Ticker24h {
        symbol: String = "symbol",
        change: Exact = "priceChange",
        change_percent: Exact = "priceChangePercent",
        average: Option<Exact> = "weightedAvgPrice",
        previous_close: Option<Exact> = "prevClosePrice",
        last_price: Exact = "lastPrice",
        last_qty: Option<Exact> = "lastQty",
        bid_price: Option<Exact> = "bidPrice",
        bid_qty: Option<Exact> = "bidQty",
        ask_price: Option<Exact> = "askPrice",
        ask_qty: Option<Exact> = "askQty",
        open: Exact = "openPrice",
        high: Exact = "highPrice",
        low: Exact = "lowPrice",
        volume: Exact = "volume",
        quote_volume: Exact = "quoteVolume",
        open_ms: Option<Whole> = "openTime",
        close_ms: Whole = "closeTime",
        first_trade_id: Option<Whole> = "firstId",
        last_trade_id: Option<Whole> = "lastId",
        trades: Option<Whole> = "count",
    }

    /// A funding rate that was paid (spec 2, Other records).
    FundingPayment {
        symbol: String = "symbol",
        rate: Exact = "fundingRate",
        /// Milliseconds.
        time_ms: Whole = "fundingTime",
    }
}

/// A `ticker/24hr` answer, of one symbol or of all, as `ticker` frames; the event time is
/// `closeTime`.
pub fn tickers(text: &str) -> Result<Vec<Ticker>, FrameError> {
    each(text, |ticker: &Ticker24h| Ok(ticker.clone().into()))
}

impl From<Ticker24h> for Ticker {
    fn from(ticker: Ticker24h) -> Self {
        Self {
            event_ms: ticker.close_ms,
            symbol: ticker.symbol,
            change: ticker.change,
            change_percent: ticker.change_percent,
            average: ticker.average,
            previous_close: ticker.previous_close,
            last_price: ticker.last_price,
            last_qty: ticker.last_qty,
            bid_price: ticker.bid_price,
            bid_qty: ticker.bid_qty,
            ask_price: ticker.ask_price,
            ask_qty: ticker.ask_qty,
            open: ticker.open,
            high: ticker.high,
            low: ticker.low,
            volume: ticker.volume,
            quote_volume: ticker.quote_volume,
            open_ms: ticker.open_ms,
            close_ms: Some(ticker.close_ms),
            first_trade_id: ticker.first_trade_id,
            last_trade_id: ticker.last_trade_id,
            trades: ticker.trades,
        }
    }
}

/// A `fundingRate` answer: what was paid, the oldest first.
pub fn funding_payments(text: &str) -> Result<Vec<FundingPayment>, FrameError> {
    each(text, |payment: &FundingPayment| Ok(payment.clone()))
}
