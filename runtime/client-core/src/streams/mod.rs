//! Streams without their sockets: the state machine of a connection that heals itself, its rules,
//! what is subscribed and how, and where the topics of a feed come from.
//!
//! Whoever drives them opens sockets, sends requests and waits; time is an argument, in
//! milliseconds of a clock that does not go back.

mod backoff;
pub mod feed;
mod keys;
mod link;
mod look;
pub mod machine;
mod overlap;
mod rules;
mod settings;
mod topics;

#[cfg(test)]
mod machine_tests;

pub use keys::{listen_key, path_segment};
pub use look::{Look, command_answer, key_expiry_ms, look_at_market, look_at_user};
pub use rules::{key_rules, millis, rules};
pub use settings::{MarketPath, StreamSettings};
pub use topics::{BATCH, is_documented, streams_max, subscriptions};

use crate::outcome::NotDone;

/// What comes out of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem<E> {
    /// An event.
    Event(E),
    /// The stream stands, everything is subscribed. What happened before has to be asked for.
    Connected {
        /// Which of the stream's connections, from 0.
        connection: usize,
    },
    /// Events may be missed from about here until the connection's next `Connected`.
    Gap {
        /// Which of the stream's connections.
        connection: usize,
        /// Why.
        reason: GapReason,
    },
    /// A connection did not come to stand; it is tried again, with growing pauses.
    Failed {
        /// Which of the stream's connections.
        connection: usize,
        /// What was in the way.
        why: Obstacle,
    },
    /// The venue answered a PING: evidence that the stream is alive.
    Alive {
        /// Which of the stream's connections.
        connection: usize,
        /// Round trip, milliseconds.
        round_trip_ms: u64,
    },
    /// A frame that cannot be read. What it should have said is missed.
    Unreadable {
        /// Which of the stream's connections.
        connection: usize,
        /// The frame.
        text: String,
        /// What is wrong with it.
        error: String,
    },
}

impl<E> StreamItem<E> {
    /// The same item with its event read. A frame that cannot be read becomes
    /// [`Self::Unreadable`] of this connection; the error of `read` is the frame's text and what is
    /// wrong with it.
    pub fn read<T>(
        self,
        connection: usize,
        read: impl FnOnce(E) -> Result<T, (String, String)>,
    ) -> StreamItem<T> {
        match self {
            Self::Event(event) => match read(event) {
                Ok(event) => StreamItem::Event(event),
                Err((text, error)) => StreamItem::Unreadable {
                    connection,
                    text,
                    error,
                },
            },
            Self::Connected { connection } => StreamItem::Connected { connection },
            Self::Gap { connection, reason } => StreamItem::Gap { connection, reason },
            Self::Failed { connection, why } => StreamItem::Failed { connection, why },
            Self::Alive {
                connection,
                round_trip_ms,
            } => StreamItem::Alive {
                connection,
                round_trip_ms,
            },
            Self::Unreadable {
                connection,
                text,
                error,
            } => StreamItem::Unreadable {
                connection,
                text,
                error,
            },
        }
    }
}

/// What keeps a connection from standing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// The listen key was not given, or not renewed.
    #[error("no listen key: {0}")]
    NoKey(NotDone),
    /// No WebSocket came about.
    #[error("no WebSocket connection: {why}")]
    NotOpened {
        /// The HTTP status by which the venue refused it.
        status: Option<u16>,
        /// Why.
        why: String,
    },
    /// It came about and was lost before the subscription was answered.
    #[error("the subscription came to nothing: {0}")]
    NotSubscribed(GapReason),
}

/// Why events may have been missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum GapReason {
    /// The connection was closed or broke.
    #[error("the connection was closed")]
    Closed,
    /// A PING was not answered in time.
    #[error("a PING was not answered in time")]
    NoPong,
    /// Topics that must be talking were silent.
    #[error("nothing came for too long")]
    Silent,
    /// A subscription was not answered in time.
    #[error("the subscription was not answered in time")]
    NoAnswer,
    /// The venue said that the listen key has expired.
    #[error("the listen key has expired")]
    KeyExpired,
    /// The listen key could not be renewed, or the venue does not know it any more.
    #[error("the listen key could not be kept alive")]
    KeyDead,
    /// The consumer asked for a new connection.
    #[error("a new connection was asked for")]
    Asked,
    /// The consumer was too slow: items were dropped. The connection still stands, so no
    /// `Connected` follows.
    #[error("events came faster than they were taken; some were dropped")]
    Overflow,
}
