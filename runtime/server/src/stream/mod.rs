//! WebSocket connections: user events by listen key and public frames by topic.
//!
//! [`Hub`] belongs to the state and does no IO: it puts frames into the bounded queue of each
//! connection; the connection's task carries them to the socket. A connection whose queue is full
//! reads too slowly and is closed.

mod hub;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::UPGRADE;
use hyper::{Request, Response};

pub(crate) use hub::{Hub, UserFrame};

use crate::http::{Cut, Port, Shared};

/// Asks for a WebSocket.
pub(crate) fn is_upgrade(request: &Request<Incoming>) -> bool {
    let upgrade = request.headers().get(UPGRADE);
    upgrade.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Answers the handshake and starts the connection's task.
pub(crate) fn accept(
    _shared: &Arc<Shared>,
    _port: Port,
    _ip: IpAddr,
    _request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Cut> {
    let mut refused = Response::new(Full::default());
    *refused.status_mut() = hyper::StatusCode::NOT_IMPLEMENTED;
    Ok(refused)
}
