//! Streams without their sockets: the state machine of a connection that recovers by itself, its
//! rules, its subscriptions, and the sources of a feed's topics.
//!
//! The driver opens sockets, sends requests and waits. Time is an argument, in milliseconds of a
//! clock that never goes back.

mod backoff;
pub mod feed;
mod frame_kind;
mod keys;
mod link;
pub mod machine;
mod overlap;
mod rules;
mod settings;
mod topics;

#[cfg(test)]
mod machine_tests;

pub use frame_kind::{
    FrameKind, command_answer, key_expiry_ms, market_frame_kind, user_frame_kind,
};
pub use keys::listen_key;
pub use rules::{key_rules, millis, rules};
pub use settings::{MarketPath, StreamSettings};
pub use topics::{BATCH, is_documented, subscriptions};

use crate::outcome::NotDone;

/// The output of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem<E> {
    /// An event.
    Event(E),
    /// The stream is connected and everything is subscribed. The program must request what happened
    /// before.
    Connected {
        /// Index of the connection within the stream, from 0.
        connection: usize,
    },
    /// Events may be missed from about here until the connection's next `Connected`.
    Gap {
        /// Index of the connection within the stream.
        connection: usize,
        /// The reason.
        reason: GapReason,
    },
    /// A connection was not established. It is tried again, with growing pauses.
    Failed {
        /// Index of the connection within the stream.
        connection: usize,
        /// The reason.
        why: Obstacle,
    },
    /// The venue answered a PING, which proves that the stream is alive.
    Alive {
        /// Index of the connection within the stream.
        connection: usize,
        /// Round trip, milliseconds.
        round_trip_ms: u64,
    },
    /// A frame that cannot be read. Its event is lost.
    Unreadable {
        /// Index of the connection within the stream.
        connection: usize,
        /// The frame.
        text: String,
        /// The parse error.
        error: String,
    },
}

impl<E> StreamItem<E> {
    /// Decodes the event of an item. A frame that cannot be read becomes [`Self::Unreadable`] of
    /// this connection. The error of `read` is the frame's text and the parse error.
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

/// Why a connection is not established.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// The listen key could not be created or renewed.
    #[error("no listen key: {0}")]
    NoKey(NotDone),
    /// No WebSocket connection could be opened.
    #[error("no WebSocket connection: {why}")]
    NotOpened {
        /// The HTTP status with which the venue refused it.
        status: Option<u16>,
        /// The reason.
        why: String,
    },
    /// The connection opened, and was lost before the subscription was answered.
    #[error("the subscription failed: {0}")]
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
    /// No frame arrived on a connection that must not be silent.
    #[error("no frame arrived for too long")]
    Silent,
    /// A subscription was not answered in time.
    #[error("the subscription was not answered in time")]
    NoAnswer,
    /// The venue reported that the listen key has expired.
    #[error("the listen key has expired")]
    KeyExpired,
    /// The listen key could not be renewed, or the venue no longer knows it.
    #[error("the listen key could not be kept alive")]
    KeyDead,
    /// The consumer requested a new connection.
    #[error("the program requested a new connection")]
    Requested,
    /// The consumer was too slow, so items were dropped. The connection is still open, so no
    /// `Connected` follows.
    #[error("the program read events too slowly; some were dropped")]
    Overflow,
}
