//! The decisions of a feed, one source of market data that works by topic: streams where the venue
//! has them, polling where it has not, the same frames from both.
//!
//! [`Sources`] decides from where each topic comes, [`Attempt`] how a connection asks for its topics,
//! [`hear`] and [`polled`] read frames and answers. Topics are named by their place in the feed.

mod attempt;
mod frames;
mod item;
mod machine;
mod questions;
mod sources;

use windvane_protocol::error::code;
use windvane_protocol::market_stream::{Feed, Topic};

use crate::outcome::Refusal;

pub use attempt::{Attempt, Next};
pub use frames::{Heard, Memory, Polled, hear, polled};
pub use item::{FeedItem, Source, Why};
pub use machine::{
    ConnectionId, FeedError, FeedInput, FeedMachine, FeedOutput, FeedTerms, Text, Verdict,
    connection_of,
};
pub use questions::QuestionId;
pub use sources::{Allowed, Decision, Rules, Sources};

/// The kind of a topic. Topics of one kind share connections, and no others do: a venue that refuses
/// a kind takes no other with it.
pub const fn feed_of(topic: &Topic) -> Option<Feed> {
    match topic {
        Topic::Of { feed, .. } => Some(*feed),
        Topic::AllMarkPrices { .. } => None,
    }
}

/// Whether a question of polling would be refused again: the venue does not know the symbol, or the
/// question cannot be made. Anything else the venue may say once and take back; a refusal without a
/// code may be the word of a gateway in between.
pub fn is_final(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::NotMade(_)) || refusal.code() == Some(code::BAD_SYMBOL.code)
}
