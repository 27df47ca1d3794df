//! The public market streams as types (spec 4, section 5; `tradepro` of spec 1 and 2): topics,
//! commands, events; and the same events from REST answers ([`polling`]). No connection, no
//! subscription state.
//!
//! Hot frames (trades, books, marks) are those of [`crate::decode`]; what it leaves as
//! [`Frame::Other`] is looked at a second time here.

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
    /// The surface, where the frame's keys tell it.
    pub surface: Option<Surface>,
    /// What it says.
    pub event: MarketStreamEvent<'a>,
}

/// What a frame of a public stream says.
#[derive(Clone, Debug, PartialEq)]
pub enum MarketStreamEvent<'a> {
    /// `trade` or `aggTrade`.
    Trade(Trade<'a>),
    /// `tradepro`.
    TradePro(TradePro<'a>),
    /// `bookTicker`.
    Top(BookTop<'a>),
    /// `depth`: a difference; its levels are in the [`BookLevels`] given to the decoder.
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
    /// The answer to a command.
    Answer(CommandAnswer),
    /// A frame that the documents do not list: its payload as it came.
    Other(&'a str),
}

/// Decodes one frame: `{stream, data}` of a combined stream, or the bare payload of `/ws/`. The
/// levels of a depth frame go into `levels`.
///
/// The bare payload of a futures partial depth stream looks like a difference and is decoded as
/// one: only the connection's path tells them apart.
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
