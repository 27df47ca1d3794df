//! The streams of a run, each on a task of its own: what they say goes to the engine as it came.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use windvane_admin::metrics::table;
use windvane_client::Client;
use windvane_client::budget::Lane;
use windvane_client::streams::{FeedItem, GapReason, MarketFeed, StreamItem, UserStream};
use windvane_engine::live::LiveInput;
use windvane_engine::{Instrument, InstrumentId, Surface};
use windvane_venue::market_stream::Topic;
use windvane_venue::route;
use windvane_venue::wire::Parameters;

use super::carrier::venue_surface;
use super::mailbox::{Happened, Mailbox};
use super::quiet::Quiet;

/// How often the venue's clock is read.
pub(super) const CLOCK_EVERY: Duration = Duration::from_mins(1);
/// After a reading that failed.
const CLOCK_AGAIN: Duration = Duration::from_secs(2);
/// Readings of which the best counts.
pub(super) const CLOCK_SAMPLES: u8 = 3;
/// Levels of a depth snapshot (spec 4, section 5: the local book).
pub(super) const DEPTH_LIMIT: &str = "1000";

/// Brings a user stream to the engine; `reconnect` asks for a new connection.
pub async fn user(
    surface: Surface,
    mut stream: UserStream,
    reconnect: Arc<Notify>,
    mailbox: Mailbox,
) {
    let live = |input| Happened::Live(input);
    let name = [surface.as_str(), "user"];
    let mut failed = Quiet::default();
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
                if let Some(repeated) = failed.again(Instant::now()) {
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

/// Reads the venue's clock again and again, and when a request was refused for its time.
pub async fn clock(surface: Surface, client: Client, mailbox: Mailbox) {
    // Without it no heartbeat is renewed.
    let client = client.in_lane(Lane::Heartbeat);
    let mut trouble = Quiet::default();
    loop {
        let read = client
            .sync_clock(venue_surface(surface), CLOCK_SAMPLES)
            .await;
        let pause = match read {
            Ok(offset) => {
                if let Some(count) = trouble.over() {
                    tracing::info!(%surface, count, "the venue's clock is read again");
                }
                let seconds = offset.offset_us as f64 / 1e6;
                table::CLOCK_OFFSET.of([surface.as_str()]).set(seconds);
                let read = Happened::Live(LiveInput::Clock {
                    surface,
                    offset_ns: offset.offset_us.saturating_mul(1_000),
                    error_ns: offset.error_us.saturating_mul(1_000),
                });
                mailbox.tell(read).await;
                CLOCK_EVERY
            }
            Err(error) => {
                if let Some(repeated) = trouble.again(Instant::now()) {
                    tracing::warn!(%surface, %error, repeated, "the venue's clock was not read");
                }
                CLOCK_AGAIN
            }
        };
        tokio::time::sleep(CLOCK_AGAIN).await;
        let refused = client.clock_refused(venue_surface(surface));
        // Whether it was refused or time passed, it is read again.
        let _ = tokio::time::timeout(pause.saturating_sub(CLOCK_AGAIN), refused).await;
    }
}

/// Fetches the depth that the differences of an instrument wait for.
pub fn fetch_depth(
    handle: &Handle,
    client: &Client,
    id: InstrumentId,
    instrument: &Instrument,
    mailbox: &Mailbox,
) {
    let name = format!("{}.depth", instrument.surface);
    let Some(route) = route::named(&name) else {
        return;
    };
    let (client, mailbox) = (client.in_lane(Lane::Query), mailbox.clone());
    let mut parameters = Parameters::new();
    parameters.push("symbol", instrument.symbol.as_str());
    parameters.push("limit", DEPTH_LIMIT);
    handle.spawn(async move {
        let answer = client.call(route, None, &parameters).await;
        let text = match answer.into_result() {
            Ok(answer) => Some(answer.text),
            Err(not_done) => {
                tracing::warn!(%not_done, "no depth");
                tokio::time::sleep(CLOCK_AGAIN).await;
                None
            }
        };
        let depth = Happened::Depth {
            instrument: id,
            text,
        };
        mailbox.tell(depth).await;
    });
}
