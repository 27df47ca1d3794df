//! The decisions of a feed. A feed is one source of market data that works by topic: streams where
//! the venue has them, polling elsewhere, with the same frames from both.
//!
//! [`Sources`] decides the source of each topic. [`Attempt`] decides how a connection subscribes to
//! its topics. [`classify`] and [`polled`] read frames and polling responses. Topics are identified by
//! their index in the feed.

mod attempt;
mod frames;
mod item;
mod machine;
mod poll_requests;
mod sources;

use windvane_protocol::error::code;
use windvane_protocol::market_stream::{Feed, Topic};

use crate::outcome::Refusal;

pub use attempt::{Attempt, Next};
pub use frames::{FrameClass, Memory, Polled, classify, polled};
pub use item::{FeedItem, Source, Why};
pub use machine::{
    ConnectionId, FeedError, FeedInput, FeedMachine, FeedOutput, FeedTerms, Text, Verdict,
    connection_of,
};
pub use poll_requests::PollId;
pub use sources::{Allowed, Decision, Rules, Sources};

/// The kind of a topic. Only topics of one kind share connections, so a venue that refuses one kind
/// does not interrupt another.
pub const fn feed_of(topic: &Topic) -> Option<Feed> {
    match topic {
        Topic::Of { feed, .. } => Some(*feed),
        Topic::AllMarkPrices { .. } => None,
    }
}

/// Whether the venue would refuse the same polling request again, because it does not know the
/// symbol or because the request cannot be built. Any other refusal may be temporary; one without a
/// code may come from a gateway in between.
pub fn is_final(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::NotMade(_)) || refusal.code() == Some(code::BAD_SYMBOL.code)
}
