//! The general parser: any JSON spelling of a public frame, with keys in any order, unknown keys
//! ignored, and numbers as text or as numbers. It is slower than the scanner and defines the
//! correct result.

use serde::Deserialize;
use serde_json::value::RawValue;
use windvane_model::Surface;

use crate::frame::{
    BookLevels, BookTop, Decoded, DepthDiff, DepthSnapshot, DiffIds, FillIds, Frame, FrameError,
    MarkPrice, Trade, TradePro, shown,
};
use crate::number::Number;
use crate::stream_name::{is_partial_depth, stream_symbol};
use crate::surface;

/// Every key of every frame; the meaning of a key depends on the kind of frame.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields<'a> {
    #[serde(borrow)]
    stream: Option<&'a str>,
    #[serde(borrow)]
    data: Field<'a>,
    #[serde(borrow, rename = "e")]
    event: Field<'a>,
    #[serde(borrow, rename = "E")]
    event_ms: Field<'a>,
    #[serde(borrow, rename = "T")]
    time: Field<'a>,
    #[serde(borrow, rename = "s")]
    symbol: Field<'a>,
    #[serde(borrow, rename = "U")]
    first_id: Field<'a>,
    #[serde(borrow, rename = "u")]
    last_id: Field<'a>,
    #[serde(borrow, rename = "pu")]
    previous_id: Field<'a>,
    #[serde(borrow, rename = "b")]
    b: Field<'a>,
    #[serde(borrow, rename = "B")]
    bid_qty: Field<'a>,
    #[serde(borrow, rename = "a")]
    a: Field<'a>,
    #[serde(borrow, rename = "A")]
    ask_qty: Field<'a>,
    #[serde(borrow, rename = "t")]
    trade_id: Field<'a>,
    #[serde(borrow, rename = "p")]
    price: Field<'a>,
    #[serde(borrow, rename = "q")]
    qty: Field<'a>,
    #[serde(borrow, rename = "m")]
    maker: Field<'a>,
    #[serde(borrow, rename = "M")]
    ignored: Field<'a>,
    #[serde(borrow, rename = "X")]
    execution_type: Field<'a>,
    #[serde(borrow, rename = "i")]
    index: Field<'a>,
    #[serde(borrow, rename = "r")]
    rate: Field<'a>,
    #[serde(borrow, rename = "P")]
    settle: Field<'a>,
    #[serde(borrow, rename = "f")]
    first_fill: Field<'a>,
    #[serde(borrow, rename = "l")]
    last_fill: Field<'a>,
    #[serde(borrow, rename = "h")]
    hash: Field<'a>,
    #[serde(borrow, rename = "lastUpdateId")]
    last_update_id: Field<'a>,
    #[serde(borrow)]
    bids: Field<'a>,
    #[serde(borrow)]
    asks: Field<'a>,
    #[serde(borrow)]
    symbols: Field<'a>,
}

pub(crate) type Field<'a> = Option<&'a RawValue>;

pub(crate) fn decode<'a>(
    text: &'a [u8],
    levels: &mut BookLevels,
) -> Result<Decoded<'a>, FrameError> {
    let text = std::str::from_utf8(text).map_err(|error| FrameError::Json(error.to_string()))?;
    // The bare payload of `/ws/!markPrice@arr`.
    if text.trim_start().starts_with('[') {
        return array(text, None);
    }
    let outer: Fields<'a> = parse(text)?;
    let Some(data) = outer.data else {
        return payload(text, &outer, outer.stream, levels);
    };
    if data.get().starts_with('[') {
        return array(data.get(), outer.stream);
    }
    if !data.get().starts_with('{') {
        return Ok(Decoded {
            stream: outer.stream,
            surface: None,
            frame: Frame::Other,
        });
    }
    payload(data.get(), &parse(data.get())?, outer.stream, levels)
}

pub(crate) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, FrameError> {
    serde_json::from_str(text).map_err(|error| FrameError::Json(error.to_string()))
}

fn payload<'a>(
    text: &'a str,
    fields: &Fields<'a>,
    stream: Option<&'a str>,
    levels: &mut BookLevels,
) -> Result<Decoded<'a>, FrameError> {
    let event = fields
        .event
        .map(|event| string("event", "e", event))
        .transpose()?;
    let (surface, frame) = match event {
        Some("trade") => trade(fields, false)?,
        Some("aggTrade") => trade(fields, true)?,
        Some("tradepro") => (None, Frame::TradePro(trade_pro(fields)?)),
        Some("bookTicker") => top(fields)?,
        Some("depthUpdate") => depth(fields, stream, levels)?,
        Some("markPriceUpdate") => {
            let marks = vec![mark(fields)?];
            (Some(Surface::Futures), Frame::Marks(marks))
        }
        None if fields.last_update_id.is_some() => snapshot(fields, stream, levels)?,
        None if fields.symbols.is_some() => (None, Frame::ExchangeInfo(text)),
        None if fields.last_id.is_some() && fields.bid_qty.is_some() => top(fields)?,
        _ => (None, Frame::Other),
    };
    Ok(Decoded {
        stream,
        surface,
        frame,
    })
}

type Typed<'a> = (Option<Surface>, Frame<'a>);

/// Decodes `!markPrice@arr`; other arrays (tickers) have no data for a book.
fn array<'a>(text: &'a str, stream: Option<&'a str>) -> Result<Decoded<'a>, FrameError> {
    let items: Vec<Fields<'a>> = parse(text)?;
    let mut marks = Vec::new();
    for item in &items {
        if item.event.map(RawValue::get) == Some("\"markPriceUpdate\"") {
            marks.push(mark(item)?);
        }
    }
    let is_empty = marks.is_empty();
    Ok(Decoded {
        stream,
        surface: (!is_empty).then_some(Surface::Futures),
        frame: if is_empty {
            Frame::Other
        } else {
            Frame::Marks(marks)
        },
    })
}

fn trade<'a>(fields: &Fields<'a>, aggregate: bool) -> Result<Typed<'a>, FrameError> {
    let kind = if aggregate { "aggTrade" } else { "trade" };
    let (id_field, id_name) = if aggregate {
        (fields.a, "a")
    } else {
        (fields.trade_id, "t")
    };
    let fills = fields.first_fill.zip(fields.last_fill);
    let fills = fills.filter(|_| aggregate).map(|(first, last)| {
        Ok(FillIds {
            first: integer("f", first)?,
            last: integer("l", last)?,
        })
    });
    let trade = Trade {
        symbol: string(kind, "s", need(kind, "s", fields.symbol)?)?,
        aggregate,
        event_ms: integer("E", need(kind, "E", fields.event_ms)?)?,
        trade_ms: integer("T", need(kind, "T", fields.time)?)?,
        id: integer(id_name, need(kind, id_name, id_field)?)?,
        price: number("p", need(kind, "p", fields.price)?)?,
        qty: number("q", need(kind, "q", fields.qty)?)?,
        buyer_is_maker: boolean("m", need(kind, "m", fields.maker)?)?,
        fills: fills.transpose()?,
    };
    let surface = surface::of_trade(fields.execution_type.is_some(), fields.ignored.is_some());
    Ok((surface, Frame::Trade(trade)))
}

/// `h` and `m` may be absent or `null`; the trade then has no hash and no addresses.
fn trade_pro<'a>(fields: &Fields<'a>) -> Result<TradePro<'a>, FrameError> {
    let kind = "tradepro";
    let sides: Vec<Option<&str>> = match fields.maker {
        Some(sides) => parse::<Option<_>>(sides.get())?.unwrap_or_default(),
        None => Vec::new(),
    };
    let side = |at: usize| sides.get(at).copied().flatten().and_then(shown);
    Ok(TradePro {
        symbol: string(kind, "s", need(kind, "s", fields.symbol)?)?,
        event_ms: integer("E", need(kind, "E", fields.event_ms)?)?,
        trade_ms: integer("T", need(kind, "T", fields.time)?)?,
        id: integer("t", need(kind, "t", fields.trade_id)?)?,
        price: number("p", need(kind, "p", fields.price)?)?,
        qty: number("q", need(kind, "q", fields.qty)?)?,
        hash: match fields.hash {
            Some(hash) => parse(hash.get())?,
            None => None,
        },
        taker: side(0),
        maker: side(1),
    })
}

fn top<'a>(fields: &Fields<'a>) -> Result<Typed<'a>, FrameError> {
    let kind = "bookTicker";
    let top = BookTop {
        symbol: string(kind, "s", need(kind, "s", fields.symbol)?)?,
        update_id: integer("u", need(kind, "u", fields.last_id)?)?,
        event_ms: optional_integer("E", fields.event_ms)?,
        transaction_ms: optional_integer("T", fields.time)?,
        bid_price: number("b", need(kind, "b", fields.b)?)?,
        bid_qty: number("B", need(kind, "B", fields.bid_qty)?)?,
        ask_price: number("a", need(kind, "a", fields.a)?)?,
        ask_qty: number("A", need(kind, "A", fields.ask_qty)?)?,
    };
    let surface = surface::of_top(fields.event.is_some());
    Ok((Some(surface), Frame::Top(top)))
}

/// A depth frame has `b` and `a`, or in some spellings `bids` and `asks`.
fn depth<'a>(
    fields: &Fields<'a>,
    stream: Option<&'a str>,
    levels: &mut BookLevels,
) -> Result<Typed<'a>, FrameError> {
    let kind = "depthUpdate";
    book("b", need(kind, "b", fields.b.or(fields.bids))?, levels)?;
    levels.end_bids();
    book("a", need(kind, "a", fields.a.or(fields.asks))?, levels)?;
    let symbol = string(kind, "s", need(kind, "s", fields.symbol)?)?;
    let event_ms = integer("E", need(kind, "E", fields.event_ms)?)?;
    let transaction_ms = optional_integer("T", fields.time)?;
    let last = integer("u", need(kind, "u", fields.last_id)?)?;
    let previous = fields.previous_id.map(|id| integer("pu", id)).transpose()?;
    let surface = surface::of_depth(previous.is_some(), fields.time.is_some());
    let frame = if is_partial_depth(stream) {
        Frame::Snapshot(DepthSnapshot {
            symbol: Some(symbol),
            last_update_id: last,
            event_ms,
            transaction_ms,
            partial: true,
        })
    } else {
        Frame::Depth(DepthDiff {
            symbol,
            event_ms,
            transaction_ms,
            ids: DiffIds {
                first: integer("U", need(kind, "U", fields.first_id)?)?,
                last,
                previous,
            },
        })
    };
    Ok((Some(surface), frame))
}

fn snapshot<'a>(
    fields: &Fields<'a>,
    stream: Option<&'a str>,
    levels: &mut BookLevels,
) -> Result<Typed<'a>, FrameError> {
    let kind = "depth snapshot";
    book("bids", need(kind, "bids", fields.bids)?, levels)?;
    levels.end_bids();
    book("asks", need(kind, "asks", fields.asks)?, levels)?;
    let symbol = fields
        .symbol
        .map(|symbol| string(kind, "s", symbol))
        .transpose()?;
    let snapshot = DepthSnapshot {
        symbol: symbol.or_else(|| stream_symbol(stream)),
        last_update_id: integer(
            "lastUpdateId",
            need(kind, "lastUpdateId", fields.last_update_id)?,
        )?,
        event_ms: optional_integer("E", fields.event_ms)?,
        transaction_ms: optional_integer("T", fields.time)?,
        partial: is_partial_depth(stream),
    };
    let surface = surface::of_snapshot(fields.time.is_some());
    Ok((surface, Frame::Snapshot(snapshot)))
}

fn mark<'a>(fields: &Fields<'a>) -> Result<MarkPrice<'a>, FrameError> {
    let kind = "markPriceUpdate";
    Ok(MarkPrice {
        symbol: string(kind, "s", need(kind, "s", fields.symbol)?)?,
        event_ms: integer("E", need(kind, "E", fields.event_ms)?)?,
        mark: number("p", need(kind, "p", fields.price)?)?,
        index: optional_number("i", fields.index)?,
        settle: optional_number("P", fields.settle)?,
        funding_rate: optional_number("r", fields.rate)?,
        next_funding_ms: optional_integer("T", fields.time)?,
    })
}

pub(crate) fn book(
    field: &'static str,
    raw: &RawValue,
    levels: &mut BookLevels,
) -> Result<(), FrameError> {
    let rows: Vec<Vec<&RawValue>> = parse(raw.get())?;
    for row in rows {
        let [price, qty, ..] = row[..] else {
            return Err(FrameError::Json(format!(
                "field {field:?}: a level needs a price and a quantity"
            )));
        };
        levels
            .push(number(field, price)?, number(field, qty)?)
            .map_err(|error| FrameError::Number { field, error })?;
    }
    Ok(())
}

pub(crate) fn need<'a>(
    kind: &'static str,
    field: &'static str,
    value: Field<'a>,
) -> Result<&'a RawValue, FrameError> {
    value.ok_or(FrameError::Missing { kind, field })
}

pub(crate) fn string<'a>(
    kind: &str,
    field: &str,
    raw: &'a RawValue,
) -> Result<&'a str, FrameError> {
    serde_json::from_str(raw.get())
        .map_err(|error| FrameError::Json(format!("field {field:?} of {kind}: {error}")))
}

/// The text of a number: the digits themselves, or the text between the quotes.
fn digits(raw: &RawValue) -> &[u8] {
    let text = raw.get();
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(text).as_bytes()
}

pub(crate) fn number(field: &'static str, raw: &RawValue) -> Result<Number, FrameError> {
    Number::parse(digits(raw)).map_err(|error| FrameError::Number { field, error })
}

/// Empty text counts as absent, such as the funding rate of a symbol without funding.
pub(crate) fn optional_number(
    field: &'static str,
    raw: Field<'_>,
) -> Result<Option<Number>, FrameError> {
    raw.filter(|raw| !digits(raw).is_empty())
        .map(|raw| number(field, raw))
        .transpose()
}

pub(crate) fn integer(field: &'static str, raw: &RawValue) -> Result<i64, FrameError> {
    number(field, raw)?
        .at(0)
        .map_err(|error| FrameError::Number { field, error })
}

pub(crate) fn optional_integer(field: &'static str, raw: Field<'_>) -> Result<i64, FrameError> {
    raw.map_or(Ok(0), |raw| integer(field, raw))
}

pub(crate) fn boolean(field: &'static str, raw: &RawValue) -> Result<bool, FrameError> {
    match digits(raw) {
        b"true" => Ok(true),
        b"false" => Ok(false),
        _ => Err(FrameError::Json(format!(
            "field {field:?} is neither true nor false"
        ))),
    }
}
