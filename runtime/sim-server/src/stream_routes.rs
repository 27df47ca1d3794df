//! The paths of WebSocket connections, and the messages of their clients.

use std::net::IpAddr;

use windvane_model::{Surface, Time};

use crate::advance::advance;
use crate::request::{Port, Refusal};
use crate::settings::StreamLimits;
use crate::state::State;
use crate::stream::{ConnectionId, Seat, Topic, command};

/// Registers a connection for this path and query. A banned address is refused (418).
pub(crate) fn sit(
    state: &mut State,
    port: Port,
    ip: IpAddr,
    target: (&str, Option<&str>),
    now: Time,
) -> Result<Seat, Refusal> {
    let surface = surface_of(port, target.0)?;
    advance(state, now);
    state.limits.check_ban(ip, now)?;
    let limits = *state.settings.streams(surface);
    seat(state, surface, &limits, target)
}

/// Handles a client's message on a connection.
pub(crate) fn handle_message(state: &mut State, id: ConnectionId, text: &str) {
    let connection = state.hub.connections().find(|(known, _)| *known == id);
    let Some(surface) = connection.map(|(_, connection)| connection.surface) else {
        return;
    };
    let limits = *state.settings.streams(surface);
    command(&mut state.hub, &state.board, &limits, id, text);
}

/// The surface of a port's streams.
pub(crate) fn surface_of(port: Port, path: &str) -> Result<Surface, Refusal> {
    match port {
        Port::Spot => Ok(Surface::Spot),
        Port::Futures => Ok(Surface::Futures),
        Port::Chain | Port::Rpc | Port::Control => Err(no_such_path(path)),
    }
}

/// Registers a connection with the subscriptions in its path: `/ws`, `/ws/<stream or listen
/// key>/...`, `/stream`, `/stream?streams=<stream>/...`.
fn seat(
    state: &mut State,
    surface: Surface,
    limits: &StreamLimits,
    (path, query): (&str, Option<&str>),
) -> Result<Seat, Refusal> {
    let (wrapped, names) = match path.trim_end_matches('/') {
        "/ws" => (false, ""),
        "/stream" => (true, streams_of(query)),
        _ => match path.strip_prefix("/ws/") {
            Some(names) => (false, names),
            None => return Err(no_such_path(path)),
        },
    };
    let names = percent_encoding::percent_decode_str(names).decode_utf8_lossy();
    let (mut topics, mut keys) = (Vec::new(), Vec::new());
    for name in names.split('/').filter(|name| !name.is_empty()) {
        if name.contains(['@', '!']) {
            let topic = Topic::parse(name, surface, &state.board);
            topics
                .push(topic.ok_or_else(|| {
                    Refusal::new(-1130, format!("No stream is called '{name}'."))
                })?);
        } else if state.is_listen_key(surface, name) {
            keys.push(name.to_owned());
        } else {
            return Err(Refusal::new(-1125, "This listenKey does not exist."));
        }
    }
    if topics.len() + keys.len() > limits.streams_max {
        let most = limits.streams_max;
        let msg = format!("A connection may have at most {most} streams.");
        return Err(Refusal::new(-1130, msg));
    }
    let seat = state.hub.open(surface, wrapped, limits.frames_waiting_max);
    for topic in topics {
        state.hub.subscribe(seat.id, topic, &state.board);
    }
    for key in keys {
        state.hub.listen(seat.id, &key);
    }
    Ok(seat)
}

/// The value of `streams`. Its slashes are not encoded.
fn streams_of(query: Option<&str>) -> &str {
    let parts = query.unwrap_or_default().split('&');
    let mut values = parts.filter_map(|part| part.strip_prefix("streams="));
    values.next().unwrap_or_default()
}

fn no_such_path(path: &str) -> Refusal {
    let msg = format!("Path {path} is no WebSocket path: /ws, /ws/<stream> or /stream.");
    Refusal::new(-1020, msg).with_status(404)
}
