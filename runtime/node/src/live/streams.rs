//! The streams of a run, each on a task of its own: what they say goes to the engine as it came.

use std::sync::Arc;

use tokio::sync::Notify;
use windvane_admin::metrics::table;
use windvane_client::streams::{FeedItem, GapReason, MarketFeed, StreamItem, UserStream};
use windvane_engine::Surface;
use windvane_engine::live::LiveInput;
use windvane_session::Quiet;
use windvane_venue::market_stream::Topic;

use super::clock::Clock;
use super::mailbox::{Happened, Mailbox};

/// Brings a user stream to the engine; `reconnect` asks for a new connection.
pub async fn user(
    surface: Surface,
    mut stream: UserStream,
    reconnect: Arc<Notify>,
    mailbox: Mailbox,
) {
    let live = |input| Happened::Live(input);
    let name = [surface.as_str(), "user"];
    let (clock, mut failed) = (Clock::start(), Quiet::default());
    loop {
        let item = tokio::select! {
            item = stream.next_text() => item,
            () = reconnect.notified() => {
                stream.restart();
                continue;
            }
        };
        let Some(item) = item else { return };
        let happened = match item {
            StreamItem::Event(text) => Happened::User { surface, text },
            StreamItem::Connected { .. } => {
                let failed = failed.over();
                tracing::info!(%surface, failed, "the user stream is connected");
                table::STREAM_UP.of(name).set(1.0);
                live(LiveInput::StreamUp { surface })
            }
            StreamItem::Gap { reason, .. } => {
                tracing::warn!(%surface, %reason, "the user stream may miss events");
                table::STREAM_UP.of(name).set(0.0);
                table::STREAM_GAPS.of(name).increment(1);
                if reason == GapReason::Overflow {
                    // It still stands, so that no `Connected` would follow.
                    stream.restart();
                }
                live(LiveInput::StreamDown { surface })
            }
            StreamItem::Failed { why, .. } => {
                if let Some(repeated) = failed.again(clock.now()) {
                    tracing::warn!(%surface, %why, repeated, "the user stream cannot be opened; it is tried again");
                }
                continue;
            }
            StreamItem::Unreadable { text, error, .. } => {
                // What it told is missed: as good as a gap.
                tracing::error!(%surface, error, text, "a user event cannot be read");
                stream.restart();
                live(LiveInput::StreamDown { surface })
            }
            StreamItem::Alive { .. } => live(LiveInput::StreamAlive { surface }),
        };
        mailbox.tell(happened).await;
    }
}

/// Brings public frames to the engine.
pub async fn market(surface: Surface, mut feed: MarketFeed, mailbox: Mailbox) {
    let name = [surface.as_str(), "market"];
    loop {
        match feed.next().await {
            FeedItem::Frame(frame) => {
                let happened = Happened::Frame { surface, frame };
                mailbox.tell(happened).await;
            }
            FeedItem::Source { topic, source, why } => {
                tracing::info!(%surface, %topic, ?source, %why, "market data");
            }
            FeedItem::Connected { .. } => table::STREAM_UP.of(name).set(1.0),
            FeedItem::Gap { topics, reason } => {
                tracing::warn!(%surface, %reason, "public events may be missed");
                table::STREAM_UP.of(name).set(0.0);
                table::STREAM_GAPS.of(name).increment(1);
                let symbols = symbols(&topics);
                mailbox
                    .tell(Happened::Interrupted { surface, symbols })
                    .await;
            }
            FeedItem::Failed { why, .. } => tracing::warn!(%surface, %why, "no public stream"),
            FeedItem::NotPolled { why, .. } => tracing::warn!(%surface, why, "not polled"),
        }
    }
}

fn symbols(topics: &[Topic]) -> Vec<String> {
    let named = topics.iter().filter_map(|topic| match topic {
        Topic::Of { symbol, .. } => Some(symbol.to_ascii_uppercase()),
        Topic::AllMarkPrices { .. } => None,
    });
    let mut symbols: Vec<_> = named.collect();
    symbols.dedup();
    symbols
}
