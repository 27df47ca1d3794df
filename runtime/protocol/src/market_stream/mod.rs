//! The public market streams as types (docs/interface/market-data.md#public-streams): topics,
//! commands, events. [`polling`] makes the same events from REST responses. No connection, no
//! subscription state.
//!
//! [`crate::decode`] decodes the frequent frames (trades, books, marks). This module decodes the
//! frames that it returns as [`Frame::Other`].

mod command;
pub mod polling;
mod records;
mod topic;

use serde::Deserialize;
use serde_json::value::RawValue;
use windvane_model::Surface;

pub use command::{Command, CommandAnswer};
pub use records::{ForceOrder, ForceOrderEvent, Kline, KlineEvent, MiniTicker, Ticker};
pub use topic::{Feed, Levels, Topic, TopicError};

use crate::frame::{
    BookLevels, BookTop, DepthDiff, DepthSnapshot, Frame, FrameError, MarkPrice, Trade, TradePro,
};

/// A frame of a public stream.
#[derive(Clone, Debug, PartialEq)]
pub struct MarketStreamFrame<'a> {
    /// `stream` of a combined stream's envelope.
    pub stream: Option<&'a str>,
    /// The surface, where the frame's keys identify it.
    pub surface: Option<Surface>,
    /// The decoded content.
    pub event: MarketStreamEvent<'a>,
}

/// The content of a frame of a public stream.
#[derive(Clone, Debug, PartialEq)]
pub enum MarketStreamEvent<'a> {
    /// `trade` or `aggTrade`.
    Trade(Trade<'a>),
    /// `tradepro`.
    TradePro(TradePro<'a>),
    /// `bookTicker`.
    Top(BookTop<'a>),
    /// `depth`: a difference; its levels are in the [`BookLevels`] that was passed to the decoder.
    Depth(DepthDiff<'a>),
    /// `depth5`, `depth10`, `depth20`: the first levels, in the [`BookLevels`] too.
    Snapshot(DepthSnapshot<'a>),
    /// `markPrice`, of one symbol or of all.
    Marks(Vec<MarkPrice<'a>>),
    /// `kline_<interval>`.
    Kline(Box<KlineEvent>),
    /// `miniTicker`.
    MiniTicker(Box<MiniTicker>),
    /// `ticker`.
    Ticker(Box<Ticker>),
    /// `forceOrder`.
    ForceOrder(Box<ForceOrderEvent>),
    /// The response to a command.
    Answer(CommandAnswer),
    /// A frame that the documents do not list: its payload as received.
    Other(&'a str),
}

impl MarketStreamEvent<'_> {
    /// The symbol; `None` if the payload has none or several.
    pub fn symbol(&self) -> Option<&str> {
        Some(match self {
            Self::Trade(trade) => trade.symbol,
            Self::TradePro(trade) => trade.symbol,
            Self::Top(top) => top.symbol,
            Self::Depth(diff) => diff.symbol,
            Self::Snapshot(snapshot) => snapshot.symbol?,
            Self::Marks(marks) => match marks.as_slice() {
                [mark] => mark.symbol,
                _ => return None,
            },
            Self::Kline(event) => &event.symbol,
            Self::MiniTicker(ticker) => &ticker.symbol,
            Self::Ticker(ticker) => &ticker.symbol,
            Self::ForceOrder(event) => &event.order.symbol,
            Self::Answer(_) | Self::Other(_) => return None,
        })
    }
}

/// Decodes one frame: `{stream, data}` of a combined stream, or the bare payload of `/ws/`. The
/// levels of a depth frame go into `levels`.
///
/// The bare payload of a futures partial depth stream looks like a difference and is decoded as
/// one. Only the connection's path distinguishes them.
#[inline]
pub fn decode<'a>(
    text: &'a str,
    levels: &mut BookLevels,
) -> Result<MarketStreamFrame<'a>, FrameError> {
    let decoded = crate::decode(text.as_bytes(), levels)?;
    let event = match decoded.frame {
        Frame::Trade(trade) => MarketStreamEvent::Trade(trade),
        Frame::TradePro(trade) => MarketStreamEvent::TradePro(trade),
        Frame::Top(top) => MarketStreamEvent::Top(top),
        Frame::Depth(diff) => MarketStreamEvent::Depth(diff),
        Frame::Snapshot(snapshot) => MarketStreamEvent::Snapshot(snapshot),
        Frame::Marks(marks) => MarketStreamEvent::Marks(marks),
        Frame::ExchangeInfo(_) | Frame::Other => second_look(text)?,
    };
    Ok(MarketStreamFrame {
        stream: decoded.stream,
        surface: decoded.surface,
        event,
    })
}

#[derive(Deserialize)]
struct Outer<'a> {
    #[serde(borrow, rename = "e", default)]
    event: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stream: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

fn second_look(text: &str) -> Result<MarketStreamEvent<'_>, FrameError> {
    if text.trim_start().starts_with('[') {
        return Ok(MarketStreamEvent::Other(text));
    }
    let mut outer: Outer<'_> = typed("frame", text)?;
    let mut payload = text;
    if let (Some(data), true) = (outer.data, outer.stream.is_some()) {
        payload = data.get();
        if !payload.starts_with('{') {
            return Ok(MarketStreamEvent::Other(payload));
        }
        outer = typed("frame", payload)?;
    }
    Ok(match outer.event.map(RawValue::get) {
        Some("\"kline\"") => MarketStreamEvent::Kline(typed("kline", payload)?),
        Some("\"24hrMiniTicker\"" | "\"miniTicker\"") => {
            MarketStreamEvent::MiniTicker(typed("miniTicker", payload)?)
        }
        Some("\"24hrTicker\"" | "\"ticker\"") => {
            MarketStreamEvent::Ticker(typed("ticker", payload)?)
        }
        Some("\"forceOrder\"") => MarketStreamEvent::ForceOrder(typed("forceOrder", payload)?),
        Some(_) => MarketStreamEvent::Other(payload),
        None => command::answer(payload)
            .map_or(MarketStreamEvent::Other(payload), MarketStreamEvent::Answer),
    })
}

fn typed<'a, T: Deserialize<'a>>(kind: &str, text: &'a str) -> Result<T, FrameError> {
    serde_json::from_str(text).map_err(|error| FrameError::Json(format!("{kind}: {error}")))
}
