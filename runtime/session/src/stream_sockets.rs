//! Events and actions of the connections of streams, public and private.

use windvane_model::Time;

/// Only one of this many failures in a row is logged.
pub(crate) const LOGGED_EVERY: u64 = 16;

/// An event of a stream connection.
#[derive(Clone, Copy, Debug)]
pub enum SocketEvent<'a> {
    /// It is connected.
    Opened,
    /// The connection failed.
    NotOpened {
        /// The reason.
        why: &'a str,
        /// HTTP status, if the venue refused.
        status: Option<u16>,
        /// `Retry-After`, in milliseconds.
        pause_ms: Option<u64>,
    },
    /// A frame, and when it was read from its socket.
    Text(&'a str, Time),
    /// The venue answered a PING.
    Pong,
    /// The connection ended.
    Closed,
}

/// An action of the shell on a stream connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketAction {
    /// Connect to this path of the surface.
    Open(String),
    /// Send a message.
    SendText(String),
    /// Send a PING.
    Ping,
    /// Close it.
    Close,
}
