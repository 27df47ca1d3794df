//! Converts items of streams and feeds to output lines.

use tokio::sync::mpsc;
use windvane_client::streams::{
    FeedItem, MarketFeed, Obstacle, Source, StreamItem, UserStream, Why,
};
use windvane_client::{NotDone, Refusal};
use windvane_protocol::market_stream::Topic;
use windvane_protocol::route::Surface;
use windvane_protocol::user_stream;
use windvane_protocol::user_stream::Surface as EventSurface;

use super::line::{Line, LineContent};

/// Sends the items of a user stream as lines, until the receiver is closed.
pub(super) async fn user(surface: Surface, mut stream: UserStream, lines: mpsc::Sender<Line>) {
    let events_of = match surface {
        Surface::Spot => EventSurface::Spot,
        _ => EventSurface::Futures,
    };
    while let Some(item) = stream.next_text().await {
        let content = match item {
            StreamItem::Event(text) => match user_stream::decode(events_of, &text) {
                Ok(_) => LineContent::Event(text.to_string()),
                Err(error) => LineContent::Notice(format!("unreadable frame: {error}: {text}")),
            },
            StreamItem::Connected { .. } => LineContent::Notice("connected".to_owned()),
            StreamItem::Gap { reason, .. } => LineContent::Notice(format!("gap: {reason}")),
            StreamItem::Failed { why, .. } => obstacle(&why),
            StreamItem::Unreadable { text, error, .. } => {
                LineContent::Notice(format!("unreadable frame: {error}: {text}"))
            }
            StreamItem::Alive { .. } => continue,
        };
        let line = Line {
            surface,
            stream: "user",
            content,
        };
        if lines.send(line).await.is_err() {
            return;
        }
    }
}

fn obstacle(why: &Obstacle) -> LineContent {
    match why {
        Obstacle::NoKey(not_done) if is_final(not_done) => LineContent::Final(why.to_string()),
        _ => LineContent::Notice(format!("{why}; retrying")),
    }
}

/// Sends the items of a feed as lines, until the receiver is closed or no topic has a source.
pub(super) async fn market(
    surface: Surface,
    topics: Vec<Topic>,
    mut feed: MarketFeed,
    lines: mpsc::Sender<Line>,
) {
    let has_source = |feed: &MarketFeed, topic| feed.source(topic) != Some(Source::None);
    loop {
        let item = feed.next().await;
        let is_last = matches!(item, FeedItem::Source { .. })
            && !topics.iter().any(|topic| has_source(&feed, topic));
        let line = Line {
            surface,
            stream: "market",
            content: content(item),
        };
        if lines.send(line).await.is_err() || is_last {
            return;
        }
    }
}

fn content(item: FeedItem) -> LineContent {
    LineContent::Notice(match item {
        FeedItem::Frame(frame) => return LineContent::Event(frame.text().to_owned()),
        FeedItem::Source { topic, source, why } => moved(&topic, source, &why),
        FeedItem::Connected { topics } => format!("connected: {}", names(&topics)),
        FeedItem::Gap { topics, reason } => format!("gap: {reason}: {}", names(&topics)),
        FeedItem::Failed { topics, why } => format!("{}: {why}", names(&topics)),
        FeedItem::NotPolled { topics, why } => {
            format!("{}: polling failed: {why}", names(&topics))
        }
    })
}

fn moved(topic: &Topic, source: Source, why: &Why) -> String {
    let source_text = match source {
        Source::Stream => "streamed from now on",
        Source::Polling => "polled from now on",
        Source::Both => "polled too from now on",
        Source::None => "not available",
    };
    format!("{topic}: {source_text}: {why}")
}

fn names(topics: &[Topic]) -> String {
    let names: Vec<String> = topics.iter().map(Topic::to_string).collect();
    names.join(", ")
}

/// Whether the refusal stays until a person changes the key (docs/interface/errors.md#classes).
pub(super) fn is_final(not_done: &NotDone) -> bool {
    let NotDone::Refused(refusal) = not_done else {
        return false;
    };
    let is_of_the_key = matches!(refusal.code(), Some(-2014 | -2015 | -1022));
    is_of_the_key
        || matches!(refusal, Refusal::Venue { complaint, is_fatal, .. }
            if *is_fatal || complaint.status == 401)
}
