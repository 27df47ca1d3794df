//! User and market streams as event iterators that heal themselves: pings, reconnects with
//! growing pauses, a planned replacement of each connection before the venue ends it, listen keys
//! renewed and made anew.
//!
//! A consumer always knows when it may have missed something: between [`StreamItem::Gap`] and the
//! next [`StreamItem::Connected`] nothing is promised, and after each `Connected` the state has to
//! be asked for over REST (spec 4, section 6, point 1).

mod backoff;
mod driver;
mod feed;
mod link;
mod machine;
mod market;
mod overlap;
mod received;
mod settings;
mod socket;
mod start;
mod user;

#[cfg(test)]
mod machine_tests;

pub use feed::{FeedItem, MarketFeed, Source, Why};
pub use market::{MarketFrame, MarketStream};
pub use settings::{MarketPath, StreamSettings};
pub use start::StreamStartError;
pub use user::UserStream;

use crate::outcome::NotDone;

/// The streams without their sockets, for whoever simulates time.
#[doc(hidden)]
pub mod sans_io {
    pub use super::link::{LinkId, LinkRules};
    pub use super::machine::{Action, Emit, Input, KeyRules, Machine, Renewal, Rules};
    pub use super::start::{key_rules, rules};
    pub use super::user::key_expiry_ms;
}

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
    /// The same item with its event read; a frame that cannot be read becomes
    /// [`Self::Unreadable`].
    fn read<T>(
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
