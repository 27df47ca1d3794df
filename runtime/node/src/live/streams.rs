//! The streams of a run, each on a task of its own: what they say goes to the engine as it came.

use windvane_admin::metrics::table;
use windvane_client::streams::{FeedItem, MarketFeed};
use windvane_engine::Surface;
use windvane_venue::market_stream::Topic;

use super::mailbox::{Happened, Mailbox};

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
