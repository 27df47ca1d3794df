//! Who hears what: connections, their listen keys and topics. No IO.

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use windvane_engine::{Surface, Time};

use crate::market::{Symbol, Update};

/// A user event as text, on its way to the connections of a listen key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserFrame {
    pub(crate) surface: Surface,
    pub(crate) listen_key: String,
    pub(crate) text: Utf8Bytes,
}

/// One WebSocket connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// What a connection's task is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Send this text.
    Text(Utf8Bytes),
}

#[derive(Debug)]
struct Connection {
    surface: Surface,
    queue: mpsc::Sender<Order>,
    listen_keys: Vec<String>,
}

/// All connections.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    connections: BTreeMap<ConnectionId, Connection>,
}

impl Hub {
    /// A change of a symbol.
    pub(crate) fn update(&mut self, _now: Time, _symbol: &Symbol, _update: &Update) {}

    /// A quarter of a second is over: open klines.
    pub(crate) fn refresh(&mut self, _now: Time, _symbol: &Symbol) {}

    /// A second is over: tickers and marks.
    pub(crate) fn second(&mut self, _now: Time, _symbols: &[Symbol]) {}

    /// Sends a user event to every connection of its listen key. One whose queue is full is let
    /// go: its task ends as the queue closes.
    pub(crate) fn tell_user(&mut self, frame: &UserFrame) {
        self.connections.retain(|_, connection| {
            let hears = connection.surface == frame.surface
                && connection.listen_keys.contains(&frame.listen_key);
            !hears
                || connection
                    .queue
                    .try_send(Order::Text(frame.text.clone()))
                    .is_ok()
        });
    }

    /// Closes every connection that hears this listen key and nothing else can renew.
    pub(crate) fn close_user(&mut self, surface: Surface, listen_key: &str) {
        self.connections.retain(|_, connection| {
            let hears = connection.surface == surface
                && connection.listen_keys.iter().any(|key| key == listen_key);
            !hears
        });
    }
}
