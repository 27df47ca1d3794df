//! Actions on WebSocket connections: cut, pause or freeze them, or send them invalid frames.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use super::arguments::{Done, SURFACES, optional_account};
use crate::faults::{Fields, required};
use crate::state::State;
use crate::stream::{Connection, ConnectionId, End, Order};

/// The longest pause.
const PAUSE_MS_MAX: u64 = 600_000;

/// The kinds of invalid frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Garbage {
    Binary,
    Truncated,
    Unknown,
    NotJson,
    Empty,
}

const GARBAGE: &[(&str, Garbage)] = &[
    ("binary", Garbage::Binary),
    ("truncated", Garbage::Truncated),
    ("unknown", Garbage::Unknown),
    ("not_json", Garbage::NotJson),
    ("empty", Garbage::Empty),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    User,
    Public,
}

const KINDS: &[(&str, Kind)] = &[("user", Kind::User), ("public", Kind::Public)];

/// Applies the action to every connection that matches `surface`, `kind`, `account` and
/// `connection`.
pub(super) fn act(state: &mut State, name: &str, mut fields: Fields) -> Done {
    let surface = fields.word("surface", SURFACES)?;
    let kind = fields.word("kind", KINDS)?;
    let account = optional_account(state, &mut fields)?;
    let only = fields.whole("connection")?.map(ConnectionId);
    let close = fields.boolean("close_frame")?.unwrap_or(false);
    let garbage = if name == "garbage" {
        Some(required("frame", fields.word("frame", GARBAGE))?)
    } else {
        None
    };
    let pause = if name == "pause" {
        Duration::from_millis(required("for_ms", fields.whole("for_ms"))?.min(PAUSE_MS_MAX))
    } else {
        Duration::ZERO
    };
    fields.finish()?;
    let keys: Vec<String> = account.map_or_else(Vec::new, |id| {
        let keys = &state.account(id).listen_keys;
        let surfaces = SURFACES.iter();
        let valid = surfaces.filter_map(|(_, surface)| keys.valid(*surface));
        valid.map(|key| key.key.clone()).collect()
    });
    let fits = |(id, connection): &(ConnectionId, &Connection)| {
        let user = !connection.listen_keys.is_empty();
        only.is_none_or(|only| only == *id)
            && surface.is_none_or(|surface| surface == connection.surface)
            && kind.is_none_or(|kind| (kind == Kind::User) == user)
            && (account.is_none() || keys.iter().any(|key| connection.listen_keys.contains(key)))
    };
    let hit: Vec<_> = state
        .hub
        .connections()
        .filter(fits)
        .map(|(id, _)| id)
        .collect();
    for id in &hit {
        match (name, garbage) {
            ("pause", _) => state.hub.order(*id, Order::Pause(pause)),
            ("freeze", _) => state.hub.order(*id, Order::Freeze),
            (_, Some(garbage)) => state.hub.order(*id, frame(garbage)),
            _ => state.hub.end(*id, if close { End::Life } else { End::Cut }),
        }
    }
    let ids: Vec<_> = hit.iter().map(|id| id.0).collect();
    Ok(json!({ "connections": ids }))
}

fn frame(garbage: Garbage) -> Order {
    let text = match garbage {
        Garbage::Binary => return Order::Binary(Bytes::from_static(b"\x00\xff\x1f\x8b\x08\x00")),
        Garbage::Truncated => r#"{"e":"ORDER_TRADE_UPDATE","E":17000000"#,
        Garbage::Unknown => r#"{"e":"SOMETHING_NEW","E":1700000000000,"x":{"y":[1,2]}}"#,
        Garbage::NotJson => "upstream connect error or disconnect/reset before headers",
        Garbage::Empty => "",
    };
    Order::Text(text.into())
}
