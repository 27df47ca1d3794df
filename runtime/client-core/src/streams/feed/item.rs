//! The output of a feed.

use windvane_protocol::market_stream::Topic;

use super::super::{GapReason, Obstacle};

/// The source of a topic's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The public stream.
    Stream,
    /// REST requests, sent repeatedly.
    Polling,
    /// Both. The stream sends nothing: either the market is quiet or the stream is dead.
    Both,
    /// No source works.
    None,
}

/// Why a topic has its source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// `market_data` is documented.
    #[error(
        "the core interface has no stream of it (docs/interface/README.md#core-and-public-facts)"
    )]
    Documents,
    /// The stream sends frames.
    #[error("the stream sends frames")]
    Speaks,
    /// The stream sends no frames.
    #[error("the stream is silent")]
    Silent,
    /// The stream sent nothing while polling showed changes.
    #[error("the stream is silent while the market moves")]
    Dead,
    /// The venue refused the subscription.
    #[error("the venue refused the subscription: {0}")]
    Refused(String),
    /// The venue closed several consecutive connections at the subscription.
    #[error("the venue closes every connection that subscribes to it")]
    Unsubscribable,
    /// The venue does not have this path.
    #[error("the venue has no path for public streams (HTTP {0})")]
    NoPath(u16),
    /// The venue refused the polling request.
    #[error("it cannot be polled: {0}")]
    NotAnswered(String),
    /// The polling request was refused long ago, and is sent again.
    #[error("polling is tried again")]
    Again,
}

/// The output of a feed; `F` is the program's representation of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedItem<F> {
    /// A frame, always `{stream, data}` with the topic as `stream`, from any source.
    Frame(F),
    /// The topic has this source from now on. Before the first item of this kind, a topic is
    /// streamed.
    Source {
        /// The topic.
        topic: Topic,
        /// The new source.
        source: Source,
        /// The reason.
        why: Why,
    },
    /// These topics are subscribed. The program must request what happened before.
    Connected {
        /// The topics.
        topics: Vec<Topic>,
    },
    /// Events of these topics may be missing from about here until they are `Connected` again. If
    /// that takes longer, the topics are polled where possible.
    Gap {
        /// The topics.
        topics: Vec<Topic>,
        /// The reason.
        reason: GapReason,
    },
    /// A connection for these topics was not established. [`Self::Source`] follows if the source
    /// changes.
    Failed {
        /// The topics.
        topics: Vec<Topic>,
        /// The reason.
        why: Obstacle,
    },
    /// A polling request for these topics failed; it is sent again. The same failure is reported
    /// once until a request succeeds.
    NotPolled {
        /// The topics.
        topics: Vec<Topic>,
        /// The reason.
        why: String,
    },
}

impl<F> FeedItem<F> {
    /// Maps the frame of an item.
    pub fn map<T>(self, form: impl FnOnce(F) -> T) -> FeedItem<T> {
        match self {
            Self::Frame(frame) => FeedItem::Frame(form(frame)),
            Self::Source { topic, source, why } => FeedItem::Source { topic, source, why },
            Self::Connected { topics } => FeedItem::Connected { topics },
            Self::Gap { topics, reason } => FeedItem::Gap { topics, reason },
            Self::Failed { topics, why } => FeedItem::Failed { topics, why },
            Self::NotPolled { topics, why } => FeedItem::NotPolled { topics, why },
        }
    }
}
