//! What comes out of a feed.

use windvane_protocol::market_stream::Topic;

use super::super::{GapReason, Obstacle};

/// From where the frames of a topic come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The public stream.
    Stream,
    /// REST, asked again and again.
    Polling,
    /// Both: the stream is silent, which may be the market or the stream.
    Both,
    /// Nothing brings them.
    None,
}

/// Why a topic comes from there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// `market_data` is documented.
    #[error("documents 1 to 3 show no stream of it")]
    Documents,
    /// The stream brings frames.
    #[error("the stream speaks")]
    Speaks,
    /// The stream brings no frames.
    #[error("the stream is silent")]
    Silent,
    /// The stream was silent while polling showed changes.
    #[error("the stream is silent while the market moves")]
    Dead,
    /// The venue refused the subscription.
    #[error("the venue refused the subscription: {0}")]
    Refused(String),
    /// The venue ended one connection after the other at the subscription.
    #[error("the venue ends every connection that subscribes it")]
    Unsubscribable,
    /// The venue has no such path.
    #[error("the venue has no path for public streams (HTTP {0})")]
    NoPath(u16),
    /// The venue refused the question.
    #[error("it cannot be polled: {0}")]
    NotAnswered(String),
    /// The question was refused long ago; it is asked again.
    #[error("it is asked for again")]
    Again,
}

/// What comes out of a feed; `F` is a frame as the program holds it.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedItem<F> {
    /// A frame, always `{stream, data}` with the topic as `stream`, whatever its source.
    Frame(F),
    /// The topic is served from there from now on. Until this is said of a topic, it is streamed.
    Source {
        /// The topic.
        topic: Topic,
        /// From where.
        source: Source,
        /// Why.
        why: Why,
    },
    /// The streams of these topics stand. What happened before has to be asked for.
    Connected {
        /// The topics.
        topics: Vec<Topic>,
    },
    /// Events of these topics may be missed from about here until they are `Connected` again.
    /// Where they can be polled they are, if it takes longer.
    Gap {
        /// The topics.
        topics: Vec<Topic>,
        /// Why.
        reason: GapReason,
    },
    /// A connection for these topics did not come to stand; what follows from it is said by
    /// [`Self::Source`].
    Failed {
        /// The topics.
        topics: Vec<Topic>,
        /// What was in the way.
        why: Obstacle,
    },
    /// A question about these topics was not answered; it is asked again. Said once until it is
    /// answered.
    NotPolled {
        /// The topics.
        topics: Vec<Topic>,
        /// Why.
        why: String,
    },
}

impl<F> FeedItem<F> {
    /// The same item with its frame in another form.
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
