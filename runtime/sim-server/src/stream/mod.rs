//! WebSocket connections: user events by listen key and public frames by topic.
//!
//! [`Hub`] belongs to the state and does no IO. It puts frames into the bounded queue of each
//! connection, and the connection's task writes them to the socket. A connection whose queue is
//! full reads too slowly, and is closed.

mod command;
mod connection;
mod frames;
mod hub;
mod publish;
mod topic;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use windvane_model::{Surface, Time};

pub(crate) use hub::{Connection, ConnectionId, End, Hub, Order, Seat};
pub(crate) use publish::liquidated;
pub(crate) use topic::Topic;

use crate::http::{Shared, Slot, now};
use crate::request::{Port, Refusal};
use crate::settings::StreamLimits;
use crate::state::State;

/// Whether a request asks for a WebSocket.
pub(crate) fn is_upgrade(request: &Request<Incoming>) -> bool {
    let upgrade = request.headers().get(UPGRADE);
    upgrade.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Answers the handshake and starts the connection's task. A banned address is refused (418).
pub(crate) fn accept(
    shared: &Arc<Shared>,
    port: Port,
    ip: IpAddr,
    mut request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Refusal> {
    let Some(key) = request.headers().get(SEC_WEBSOCKET_KEY) else {
        let msg = "The handshake has no Sec-WebSocket-Key.";
        return Err(Refusal::new(-1100, msg));
    };
    let accept_key = derive_accept_key(key.as_bytes());
    let target = (request.uri().path(), request.uri().query());
    let (seat, limits) = {
        let seat = shared.at_present(|state, now| sit(state, port, ip, target, now))?;
        let state = shared.state();
        let surface = surface_of(port, target.0)?;
        (seat, *state.settings.streams(surface))
    };
    let slot: Option<Slot> = request.extensions_mut().remove();
    let upgrade = hyper::upgrade::on(&mut request);
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else {
            shared.state().hub.end(seat.id, End::Cut);
            return;
        };
        let io = TokioIo::new(upgraded);
        let config = Some(connection::config());
        let socket = WebSocketStream::from_raw_socket(io, Role::Server, config).await;
        connection::run(socket, seat, limits, shared).await;
        drop(slot);
    });
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(
        UPGRADE,
        hyper::header::HeaderValue::from_static("websocket"),
    );
    headers.insert(
        CONNECTION,
        hyper::header::HeaderValue::from_static("Upgrade"),
    );
    if let Ok(value) = accept_key.parse() {
        headers.insert(SEC_WEBSOCKET_ACCEPT, value);
    }
    Ok(response)
}

/// Registers a connection for this path and query. A banned address is refused (418).
pub(crate) fn sit(
    state: &mut State,
    port: Port,
    ip: IpAddr,
    target: (&str, Option<&str>),
    now: Time,
) -> Result<Seat, Refusal> {
    let surface = surface_of(port, target.0)?;
    state.advance(now);
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
    command::command(&mut state.hub, &state.board, &limits, id, text);
}

/// The surface of a port's streams.
fn surface_of(port: Port, path: &str) -> Result<Surface, Refusal> {
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

/// The payload of a ping: the time, so that every ping is different.
fn now_ms_text() -> String {
    now().millis().to_string()
}
