//! Commands of clients on a connection: `SUBSCRIBE`, `UNSUBSCRIBE`, `LIST_SUBSCRIPTIONS`,
//! `SET_PROPERTY` and `GET_PROPERTY`. A request `{method, params, id}` is answered by `{result,
//! id}` (docs/interface/market-data.md#stream-commands); without an id, the answer has a null one.
//! The id is any number (docs/interface/market-data.md#stream-commands), and is returned as it was
//! written. Text is accepted too, because clients of such services use it.
//!
//! The documents show no refusal. Here it is `{error: {code, msg}, id}`, as such services send it,
//! and the request has no effect.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use windvane_model::Surface;

use super::hub::{ConnectionId, Hub, Order};
use super::topic::Topic;
use crate::settings::StreamLimits;
use windvane_sim_market::Board;

#[derive(Deserialize)]
struct Request<'a> {
    method: String,
    params: Option<Value>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
}

/// Why a request has no effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CommandError {
    #[error("Invalid JSON: {0}")]
    Json(String),
    #[error("Invalid request: unknown method {0:?}")]
    Method(String),
    #[error("Invalid request: params of {0} must be {1}")]
    Params(&'static str, &'static str),
    #[error("Invalid request: request ID must be a number, a string or null")]
    Id,
    #[error("Invalid request: no stream is called {0:?}")]
    Stream(String),
    #[error("Invalid request: a connection may have at most {0} streams")]
    TooMany(usize),
}

impl CommandError {
    fn code(&self) -> u8 {
        match self {
            Self::Method(_) => 1,
            Self::Params(..) | Self::Id | Self::Stream(_) | Self::TooMany(_) => 2,
            Self::Json(_) => 3,
        }
    }
}

/// Carries out a client's request. Its answer is queued before the frames of new subscriptions.
pub(crate) fn command(
    hub: &mut Hub,
    board: &Board,
    limits: &StreamLimits,
    id: ConnectionId,
    text: &str,
) {
    let answer = match serde_json::from_str::<Request<'_>>(text) {
        Ok(request) => {
            let request_id = request.id.map_or("null", RawValue::get);
            match carry_out(hub, board, limits, id, &request) {
                Ok(result) => format!("{{\"result\":{result},\"id\":{request_id}}}"),
                Err(error) => refusal(&error, request_id),
            }
        }
        Err(error) => refusal(&CommandError::Json(error.to_string()), "null"),
    };
    hub.order(id, Order::Text(Utf8Bytes::from(answer)));
}

fn refusal(error: &CommandError, id: &str) -> String {
    let error_body = json!({ "code": error.code(), "msg": error.to_string() });
    format!("{{\"error\":{error_body},\"id\":{id}}}")
}

fn carry_out(
    hub: &mut Hub,
    board: &Board,
    limits: &StreamLimits,
    id: ConnectionId,
    request: &Request<'_>,
) -> Result<Value, CommandError> {
    let id_is_valid = request.id.is_none_or(|id| {
        let text = id.get();
        !text.starts_with(['{', '[', 't', 'f'])
    });
    if !id_is_valid {
        return Err(CommandError::Id);
    }
    let Some(connection) = hub.connection_mut(id) else {
        return Ok(Value::Null);
    };
    let surface = connection.surface;
    match request.method.as_str() {
        "SUBSCRIBE" => {
            let topics = topics("SUBSCRIBE", request, surface, board)?;
            let new = topics
                .iter()
                .filter(|t| !connection.topics.contains(t))
                .count();
            if connection.topics.len() + new > limits.streams_max {
                return Err(CommandError::TooMany(limits.streams_max));
            }
            for topic in topics {
                hub.subscribe(id, topic, board);
            }
            Ok(Value::Null)
        }
        "UNSUBSCRIBE" => {
            for topic in topics("UNSUBSCRIBE", request, surface, board)? {
                hub.unsubscribe(id, topic);
            }
            Ok(Value::Null)
        }
        "LIST_SUBSCRIPTIONS" => {
            let names = connection.topics.iter().map(|topic| topic.name(board));
            Ok(names.collect())
        }
        "SET_PROPERTY" => match request.params.as_ref().and_then(Value::as_array) {
            Some(params) if params.len() == 2 && params[0] == "combined" => {
                let expected = "[\"combined\", true or false]";
                let wrapped = params[1].as_bool();
                connection.wrapped =
                    wrapped.ok_or(CommandError::Params("SET_PROPERTY", expected))?;
                Ok(Value::Null)
            }
            _ => Err(CommandError::Params(
                "SET_PROPERTY",
                "[\"combined\", true or false]",
            )),
        },
        "GET_PROPERTY" => match request.params.as_ref().and_then(Value::as_array) {
            Some(params) if params.len() == 1 && params[0] == "combined" => {
                Ok(Value::Bool(connection.wrapped))
            }
            _ => Err(CommandError::Params("GET_PROPERTY", "[\"combined\"]")),
        },
        other => Err(CommandError::Method(other.to_owned())),
    }
}

fn topics(
    method: &'static str,
    request: &Request<'_>,
    surface: Surface,
    board: &Board,
) -> Result<std::collections::BTreeSet<Topic>, CommandError> {
    let malformed = || CommandError::Params(method, "a list of stream names");
    let names = request.params.as_ref().and_then(Value::as_array);
    let names = names
        .filter(|names| !names.is_empty())
        .ok_or_else(malformed)?;
    names
        .iter()
        .map(|name| {
            let name = name.as_str().ok_or_else(malformed)?;
            let topic = Topic::parse(name, surface, board);
            topic.ok_or_else(|| CommandError::Stream(name.to_owned()))
        })
        .collect()
}
