//! User and market streams as event iterators that recover by themselves. They send pings and
//! reconnect with growing pauses. They replace each connection before the venue ends it, renew
//! listen keys, and create new ones.
//!
//! A consumer always knows when it may have missed something. Between [`StreamItem::Gap`] and the
//! next [`StreamItem::Connected`] events may be missing. After each `Connected` the consumer must
//! read the state over REST (docs/interface/README.md#1-listen-keys-and-silent-streams).

mod bounded;
mod driver;
mod feed;
mod fragments;
mod market;
mod received;
mod socket;
mod start;
mod user;

pub use feed::{FeedItem, MarketFeed, Source, Why};
pub use market::{MarketFrame, MarketStream};
pub use received::Received;
pub use socket::{Refused, SocketCommand, SocketEvent};
pub use start::StreamStartError;
pub use user::UserStream;
pub use windvane_client_core::streams::{
    GapReason, MarketPath, Obstacle, StreamItem, StreamSettings,
};

/// The state machine of a stream, for a program that has its own sockets and time, such as a time
/// simulator.
pub mod sans_io {
    pub use windvane_client_core::streams::machine::{
        Action, Emit, Input, KeyRules, LinkId, LinkRules, Machine, Renewal, Rules,
    };
    pub use windvane_client_core::streams::{key_expiry_ms, key_rules, rules};
}
