//! User and market streams as event iterators that heal themselves: pings, reconnects with
//! growing pauses, a planned replacement of each connection before the venue ends it, listen keys
//! renewed and made anew.
//!
//! A consumer always knows when it may have missed something: between [`StreamItem::Gap`] and the
//! next [`StreamItem::Connected`] nothing is promised, and after each `Connected` the state has to
//! be asked for over REST (spec 4, section 6, point 1).

mod driver;
mod feed;
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

/// The state machine of a stream, for a program that has sockets and time of its own, as a
/// simulator of time has.
pub mod sans_io {
    pub use windvane_client_core::streams::machine::{
        Action, Emit, Input, KeyRules, LinkId, LinkRules, Machine, Renewal, Rules,
    };
    pub use windvane_client_core::streams::{key_expiry_ms, key_rules, rules};
}
