//! The events of the user streams as types (docs/interface/user-stream.md#user-stream). This module
//! only parses; a server formats its own frames. It has no state: the reader handles order of
//! arrival, duplicates and gaps.
//!
//! In busy periods payloads may arrive out of order
//! (docs/interface/user-stream.md#order-of-events), and they may arrive more than once
//! (docs/interface/README.md#2-user-events-twice-or-out-of-order). So order them by event time,
//! identify fills by trade id, and find orders by the client order id that was chosen before
//! sending.

mod enums;
mod futures;
mod spot;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
pub use windvane_model::Surface;

pub use enums::{ForcedClose, MarginType, UpdateReason};
pub use futures::{
    AccountChange, AccountConfigUpdate, AccountUpdate, BalanceChange, LeverageChange,
    ListenKeyExpired, MarginCall, ModeChange, OrderTradeUpdate, OrderUpdate, PositionAtRisk,
    PositionChange,
};
pub use spot::{AssetBalance, ExecutionReport, OutboundAccountPosition};

use crate::wire::Whole;

/// One event of a user stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserStreamEvent {
    /// Spot balances changed.
    OutboundAccountPosition(OutboundAccountPosition),
    /// A spot order changed.
    ExecutionReport(Box<ExecutionReport>),
    /// The listen key of the connection has expired: no event follows until a new key is used.
    ListenKeyExpired(ListenKeyExpired),
    /// Futures positions are at risk.
    MarginCall(MarginCall),
    /// Futures balances or positions changed.
    AccountUpdate(AccountUpdate),
    /// A futures order changed.
    OrderTradeUpdate(Box<OrderTradeUpdate>),
    /// Leverage or an account mode changed.
    AccountConfigUpdate(AccountConfigUpdate),
    /// An event that the documents do not list, or the response to a command.
    Other(OtherEvent),
}

/// A frame that is passed on without being parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherEvent {
    /// `e`, if it is text.
    pub event: Option<String>,
    /// `E`, milliseconds, if there is one.
    pub event_ms: Option<i64>,
    /// The payload as received.
    pub text: String,
}

/// The frame is not a valid event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The frame is not a JSON object.
    #[error("not a frame of a user stream: {0}; reconnect and catch up over REST")]
    Json(String),
    /// A documented event lacks a documented field, or a value has another type.
    #[error("user event {event}: {error}; catch up over REST")]
    Event {
        /// Its name.
        event: &'static str,
        /// The field, and the reason.
        error: String,
    },
}

/// The keys that identify any frame.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, rename = "e")]
    event: Option<&'a RawValue>,
    #[serde(borrow, rename = "E")]
    event_ms: Option<&'a RawValue>,
    #[serde(borrow)]
    stream: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// Decodes one frame: `{stream, data}` of a combined stream, or the bare payload.
pub fn decode(surface: Surface, text: &str) -> Result<UserStreamEvent, StreamError> {
    let frame = probe(text)?;
    match frame.data {
        Some(data) if frame.stream.is_some() && data.get().starts_with('{') => {
            payload(surface, data.get(), &probe(data.get())?)
        }
        _ => payload(surface, text, &frame),
    }
}

fn probe(text: &str) -> Result<Frame<'_>, StreamError> {
    serde_json::from_str(text).map_err(|error| StreamError::Json(error.to_string()))
}

fn payload(
    surface: Surface,
    text: &str,
    frame: &Frame<'_>,
) -> Result<UserStreamEvent, StreamError> {
    use UserStreamEvent as Event;
    let name = frame.event.and_then(|raw| read_text(raw.get()));
    Ok(match (surface, name.as_deref()) {
        (Surface::Spot, Some("outboundAccountPosition")) => {
            Event::OutboundAccountPosition(typed("outboundAccountPosition", text)?)
        }
        (Surface::Spot, Some("executionReport")) => {
            Event::ExecutionReport(Box::new(typed("executionReport", text)?))
        }
        // The event is listed for futures only. Spot accepts it too, because an expired spot key
        // would otherwise go unnoticed.
        (_, Some("listenKeyExpired")) => Event::ListenKeyExpired(typed("listenKeyExpired", text)?),
        (Surface::Futures, Some("MARGIN_CALL")) => Event::MarginCall(typed("MARGIN_CALL", text)?),
        (Surface::Futures, Some("ACCOUNT_UPDATE")) => {
            Event::AccountUpdate(typed("ACCOUNT_UPDATE", text)?)
        }
        (Surface::Futures, Some("ORDER_TRADE_UPDATE")) => {
            Event::OrderTradeUpdate(Box::new(typed("ORDER_TRADE_UPDATE", text)?))
        }
        (Surface::Futures, Some("ACCOUNT_CONFIG_UPDATE")) => {
            Event::AccountConfigUpdate(typed("ACCOUNT_CONFIG_UPDATE", text)?)
        }
        _ => Event::Other(OtherEvent {
            event: name.map(Cow::into_owned),
            event_ms: frame.event_ms.and_then(|raw| read_whole(raw.get())),
            text: text.to_owned(),
        }),
    })
}

fn typed<'a, T: Deserialize<'a>>(event: &'static str, text: &'a str) -> Result<T, StreamError> {
    serde_json::from_str(text).map_err(|error| StreamError::Event {
        event,
        error: error.to_string(),
    })
}

fn read_text(raw: &str) -> Option<Cow<'_, str>> {
    let plain = raw
        .strip_prefix('"')
        .and_then(|raw| raw.strip_suffix('"'))?;
    if plain.contains('\\') {
        return serde_json::from_str(raw).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(plain))
}

fn read_whole(raw: &str) -> Option<i64> {
    let whole: Whole = serde_json::from_str(raw).ok()?;
    Some(whole.0)
}

impl UserStreamEvent {
    /// `E`: order the events of one stream by it (docs/interface/user-stream.md#order-of-events).
    pub fn event_ms(&self) -> Option<i64> {
        match self {
            Self::OutboundAccountPosition(event) => Some(event.event_ms.0),
            Self::ExecutionReport(event) => Some(event.event_ms.0),
            Self::ListenKeyExpired(event) => Some(event.event_ms.0),
            Self::MarginCall(event) => Some(event.event_ms.0),
            Self::AccountUpdate(event) => Some(event.event_ms.0),
            Self::OrderTradeUpdate(event) => Some(event.event_ms.0),
            Self::AccountConfigUpdate(event) => Some(event.event_ms.0),
            Self::Other(event) => event.event_ms,
        }
    }
}
