//! The events of the user data streams as types (spec 1 and 2, Events). Reading only: a server
//! writes its frames itself. No state: order of arrival, doubles and gaps are the reader's.
//!
//! Payloads may arrive out of order in heavy periods (spec 2, Events) and more than once (spec 4,
//! section 6, points 1 and 2): order them by their event time, tell fills apart by trade id, and
//! find orders by the client order id that was chosen before sending.

mod futures;
mod spot;
mod words;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
pub use windvane_model::Surface;

pub use futures::{
    AccountChange, AccountConfigUpdate, AccountUpdate, BalanceChange, LeverageChange,
    ListenKeyExpired, MarginCall, ModeChange, OrderTradeUpdate, OrderUpdate, PositionAtRisk,
    PositionChange,
};
pub use spot::{AssetBalance, ExecutionReport, OutboundAccountPosition};
pub use words::{ForcedClose, MarginType, UpdateReason};

use crate::wire::Whole;

/// One event of a user data stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserStreamEvent {
    /// Spot balances changed.
    OutboundAccountPosition(OutboundAccountPosition),
    /// A spot order changed.
    ExecutionReport(Box<ExecutionReport>),
    /// The listen key of the connection is dead: no event follows until a new one is used.
    ListenKeyExpired(ListenKeyExpired),
    /// Futures positions are at risk.
    MarginCall(MarginCall),
    /// Futures balances or positions changed.
    AccountUpdate(AccountUpdate),
    /// A futures order changed.
    OrderTradeUpdate(Box<OrderTradeUpdate>),
    /// Leverage or an account mode changed.
    AccountConfigUpdate(AccountConfigUpdate),
    /// An event that the documents do not list, or the answer to a command.
    Other(OtherEvent),
}

/// A frame that is carried, not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherEvent {
    /// `e`, where it is a text.
    pub event: Option<String>,
    /// `E`, milliseconds, where there is one.
    pub event_ms: Option<i64>,
    /// The payload as it came.
    pub text: String,
}

/// A frame that is no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// No JSON object.
    #[error("no frame of a user stream: {0}; reconnect and catch up over REST")]
    Json(String),
    /// A documented event without a documented field, or with a value of another type.
    #[error("user event {event}: {error}; catch up over REST")]
    Event {
        /// Its name.
        event: &'static str,
        /// Which field, and why.
        error: String,
    },
}

/// What every frame is looked at for, whichever it is.
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
        // Document 2 alone lists it; a spot key dies as silently otherwise.
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
    /// `E`: events of one stream are to be ordered by it (spec 2, Events).
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
