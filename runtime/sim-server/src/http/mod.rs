//! The sockets: one listener per port, HTTP/1 with keep-alive, and WebSocket connections. This
//! module only moves bytes; `dispatch`, `control` and `stream_routes` interpret them.

mod connection;
mod exchange;
mod listener;
mod shared;
mod websocket;

pub(crate) use listener::serve;
pub(crate) use shared::{Shared, now};
