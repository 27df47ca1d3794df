//! Converts REST responses into the payloads that streams would have sent, for a topic that a venue
//! does not stream (`market_data` in the configuration). Strategies see no difference except
//! latency. All functions are pure; the client decides when to poll, and with which budget.
//!
//! | response | payload |
//! |---|---|
//! | ticker/bookTicker | `bookTicker`; without an update id, which is 0 |
//! | depth | the response; under the name of a depth stream it replaces the whole book |
//! | premiumIndex | `markPrice`, with the next funding rate |
//! | trades, aggTrades | `trade`, `aggTrade`, oldest first |
//! | ticker/24hr | `ticker`, `miniTicker` |
//! | klines | `kline` |
//!
//! Values are copied as the response spells them: no number is parsed and formatted again.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;
use windvane_model::Surface;

use super::{Feed, MarketStreamEvent, decode};
use crate::frame::{BookLevels, FrameError};
use crate::wire::Whole;
use crate::wire::enums::Interval;

/// The data of one symbol in a response, in the form of a stream payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The symbol, as the response or the request spells it.
    pub symbol: String,
    /// The payload, without the envelope of combined streams.
    pub text: String,
    /// The part of the payload that must change before a stream would send the next one.
    pub state: String,
    /// The trade id, if the payload is a trade.
    pub trade_id: Option<i64>,
}

/// Converts a response into payloads of `feed`: of the requested `symbol`, or of all symbols.
/// `now_ms` is the venue's time, for payloads whose response has no time.
///
/// Returns [`FrameError`] if the response is not as documented. [`Feed::TradePro`] and
/// [`Feed::ForceOrder`] have no equivalent REST response and give no payload.
pub fn payloads(
    feed: Feed,
    surface: Surface,
    symbol: &str,
    now_ms: i64,
    answer: &str,
) -> Result<Vec<Payload>, FrameError> {
    let payloads = match feed {
        Feed::BookTicker => tops(surface, answer)?,
        Feed::MarkPrice { .. } => renamed("markPriceUpdate", MARK, answer)?,
        Feed::Ticker => renamed("24hrTicker", TICKER, answer)?,
        Feed::MiniTicker => renamed("24hrMiniTicker", MINI_TICKER, answer)?,
        Feed::Depth { .. } | Feed::PartialDepth { .. } => vec![book(symbol, answer)?],
        Feed::Trade => trades("trade", "id", TRADE, symbol, answer)?,
        Feed::AggTrade => trades("aggTrade", "a", AGGREGATE, symbol, answer)?,
        Feed::Kline(interval) => klines(symbol, interval, now_ms, answer)?,
        Feed::TradePro | Feed::ForceOrder => Vec::new(),
    };
    // A payload that a consumer could not parse must be an error here.
    for payload in &payloads {
        let frame = decode(&payload.text, &mut BookLevels::default())?;
        if let MarketStreamEvent::Other(_) | MarketStreamEvent::Answer(_) = frame.event {
            let text = format!("the response is not a {feed}: {}", payload.text);
            return Err(FrameError::Json(text));
        }
    }
    Ok(payloads)
}

/// Pairs of a key of the response and a key of the payload.
type Names = &'static [(&'static str, &'static str)];

const TOP: Names = &[
    ("symbol", "s"),
    ("bidPrice", "b"),
    ("bidQty", "B"),
    ("askPrice", "a"),
    ("askQty", "A"),
];
const MARK: Names = &[
    ("time", "E"),
    ("symbol", "s"),
    ("markPrice", "p"),
    ("indexPrice", "i"),
    ("estimatedSettlePrice", "P"),
    ("lastFundingRate", "r"),
    ("nextFundingTime", "T"),
];
const TRADE: Names = &[
    ("time", "E"),
    ("id", "t"),
    ("price", "p"),
    ("qty", "q"),
    ("time", "T"),
    ("isBuyerMaker", "m"),
];
const AGGREGATE: Names = &[
    ("T", "E"),
    ("a", "a"),
    ("p", "p"),
    ("q", "q"),
    ("f", "f"),
    ("l", "l"),
    ("T", "T"),
    ("m", "m"),
];
const MINI_TICKER: Names = &[
    ("closeTime", "E"),
    ("symbol", "s"),
    ("lastPrice", "c"),
    ("openPrice", "o"),
    ("highPrice", "h"),
    ("lowPrice", "l"),
    ("volume", "v"),
    ("quoteVolume", "q"),
];
const TICKER: Names = &[
    ("closeTime", "E"),
    ("symbol", "s"),
    ("priceChange", "p"),
    ("priceChangePercent", "P"),
    ("weightedAvgPrice", "w"),
    ("prevClosePrice", "x"),
    ("lastPrice", "c"),
    ("lastQty", "Q"),
    ("bidPrice", "b"),
    ("bidQty", "B"),
    ("askPrice", "a"),
    ("askQty", "A"),
    ("openPrice", "o"),
    ("highPrice", "h"),
    ("lowPrice", "l"),
    ("volume", "v"),
    ("quoteVolume", "q"),
    ("openTime", "O"),
    ("closeTime", "C"),
    ("firstId", "F"),
    ("lastId", "L"),
    ("count", "n"),
];

/// A record of a response, with its values as received.
type Record<'a> = BTreeMap<String, &'a RawValue>;

/// One record or an array of them.
fn records(answer: &str) -> Result<Vec<Record<'_>>, FrameError> {
    if answer.trim_start().starts_with('[') {
        read(answer)
    } else {
        Ok(vec![read(answer)?])
    }
}

fn read<'a, T: Deserialize<'a>>(answer: &'a str) -> Result<T, FrameError> {
    serde_json::from_str(answer).map_err(|error| FrameError::Json(error.to_string()))
}

/// The members of a payload: `,"key":value` for every name that the record has.
fn members(record: &Record<'_>, names: Names) -> String {
    let mut members = String::new();
    for (name, key) in names {
        if let Some(value) = record.get(*name) {
            // Writing to a string cannot fail.
            let _ = write!(members, ",\"{key}\":{value}");
        }
    }
    members
}

fn symbol_of(record: &Record<'_>) -> Result<String, FrameError> {
    let (kind, field) = ("answer", "symbol");
    let symbol = record.get(field);
    let symbol = symbol.ok_or(FrameError::Missing { kind, field })?;
    read(symbol.get())
}

fn renamed(event: &str, names: Names, answer: &str) -> Result<Vec<Payload>, FrameError> {
    let payload = |record: &Record<'_>| {
        let text = format!("{{\"e\":\"{event}\"{}}}", members(record, names));
        Ok(Payload {
            symbol: symbol_of(record)?,
            state: text.clone(),
            text,
            trade_id: None,
        })
    };
    records(answer)?.iter().map(payload).collect()
}

/// The stream sends a top when price or quantity have changed. The response has only its own time,
/// so the time is not in the state.
fn tops(surface: Surface, answer: &str) -> Result<Vec<Payload>, FrameError> {
    let payload = |record: &Record<'_>| {
        let state = members(record, TOP);
        let text = match surface {
            Surface::Spot => format!("{{\"u\":0{state}}}"),
            Surface::Futures => {
                let times = members(record, &[("time", "E"), ("time", "T")]);
                format!("{{\"e\":\"bookTicker\",\"u\":0{times}{state}}}")
            }
        };
        Ok(Payload {
            symbol: symbol_of(record)?,
            text,
            state,
            trade_id: None,
        })
    };
    records(answer)?.iter().map(payload).collect()
}

fn book(symbol: &str, answer: &str) -> Result<Payload, FrameError> {
    let record: Record<'_> = read(answer)?;
    Ok(Payload {
        symbol: symbol.to_owned(),
        text: answer.trim().to_owned(),
        state: members(&record, &[("bids", "b"), ("asks", "a")]),
        trade_id: None,
    })
}

fn trades(
    event: &str,
    id: &'static str,
    names: Names,
    symbol: &str,
    answer: &str,
) -> Result<Vec<Payload>, FrameError> {
    let quoted = serde_json::Value::from(symbol);
    let payload = |record: &Record<'_>| {
        let found = record.get(id).ok_or(FrameError::Missing {
            kind: "trades",
            field: id,
        })?;
        let trade_id: Whole = read(found.get())?;
        let members = members(record, names);
        let text = format!("{{\"e\":\"{event}\",\"s\":{quoted}{members}}}");
        Ok(Payload {
            symbol: symbol.to_owned(),
            state: text.clone(),
            text,
            trade_id: Some(trade_id.0),
        })
    };
    let mut payloads: Vec<Payload> = records(answer)?
        .iter()
        .map(payload)
        .collect::<Result<_, _>>()?;
    payloads.sort_by_key(|payload| payload.trade_id);
    Ok(payloads)
}

/// Keys of a kline in the order of a response's entries (docs/interface/market-data.md#klines).
const KLINE: [&str; 11] = ["t", "o", "h", "l", "c", "v", "T", "q", "n", "V", "Q"];

fn klines(
    symbol: &str,
    interval: Interval,
    now_ms: i64,
    answer: &str,
) -> Result<Vec<Payload>, FrameError> {
    let quoted = serde_json::Value::from(symbol);
    let rows: Vec<Vec<&RawValue>> = read(answer)?;
    let payload = |row: &Vec<&RawValue>| {
        let mut state = format!("\"s\":{quoted},\"i\":\"{interval}\"");
        for (key, value) in KLINE.iter().zip(row) {
            // Writing to a string cannot fail.
            let _ = write!(state, ",\"{key}\":{value}");
        }
        let close_ms: Whole = match row.get(6) {
            Some(value) => read(value.get())?,
            None => return Err(FrameError::Json("klines: a row without close time".into())),
        };
        let is_closed = close_ms.0 < now_ms;
        let _ = write!(state, ",\"x\":{is_closed}");
        Ok(Payload {
            symbol: symbol.to_owned(),
            text: format!("{{\"e\":\"kline\",\"E\":{now_ms},\"s\":{quoted},\"k\":{{{state}}}}}"),
            state,
            trade_id: None,
        })
    };
    rows.iter().map(payload).collect()
}
