//! WebSocket handshakes.

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

use super::connection;
use super::shared::{Shared, Slot};
use crate::request::{Port, Refusal};
use crate::stream::End;
use crate::stream_routes::{sit, surface_of};

/// Whether a request asks for a WebSocket.
pub(super) fn is_upgrade(request: &Request<Incoming>) -> bool {
    let upgrade = request.headers().get(UPGRADE);
    upgrade.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Answers the handshake and starts the connection's task. A banned address is refused (418).
pub(super) fn accept(
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
