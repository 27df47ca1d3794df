//! The sockets: one listener per port, HTTP/1 with keep-alive, and WebSocket connections. This
//! module only moves bytes; the modules below it interpret them.

mod connection;
mod exchange;
mod listener;
mod shared;
mod websocket;

pub(crate) use listener::serve;
pub(crate) use shared::{Shared, now};
