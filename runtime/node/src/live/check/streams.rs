//! Whether streams come to stand, and where each public topic comes from.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use windvane_client::Client;
use windvane_client::streams::{FeedItem, Source, StreamItem, Why};
use windvane_engine::Surface;
use windvane_venue::market_stream::Topic;

use super::super::start;
use super::Report;
use super::venue::PATIENCE;
use crate::config::Config;
use windvane_session::venue_surface;

/// A topic that has not spoken by then is said to be silent: a stream is polled beside after five
/// seconds.
const LISTEN: Duration = Duration::from_secs(8);

/// Listens to every stream at once.
pub(super) async fn listen(
    config: &Config,
    surfaces: &[Surface],
    user: bool,
    client: &Client,
    report: &mut Report,
) {
    for &surface in surfaces {
        let topics = start::topics(config, surface);
        let (stands, heard) = tokio::join!(
            async {
                if user {
                    Some(user_stream(surface, client).await)
                } else {
                    None
                }
            },
            market(surface, &topics, client),
        );
        match stands {
            Some(Ok(())) => report.ok("user stream", format!("{surface}: it stands")),
            Some(Err(why)) => {
                let found = format!("{surface}: {why}");
                report.no_go("user stream", found, "without it there is no new exposure");
            }
            None => {}
        }
        match heard {
            Ok(heard) => say(surface, &heard, report),
            Err(why) => report.no_go("market data", format!("{surface}: {why}"), ""),
        }
    }
}

/// Waits until the user stream stands. Its listen key is the account's one key, which a running
/// instance may be using: it is left to expire.
async fn user_stream(surface: Surface, client: &Client) -> Result<(), String> {
    let stream = client.user_stream(venue_surface(surface));
    let mut stream = stream.map_err(|error| error.to_string())?;
    let until = Instant::now() + PATIENCE;
    let mut why = format!("it does not stand within {PATIENCE:?}");
    loop {
        match timeout_at(until, stream.next_text()).await {
            Ok(Some(StreamItem::Connected { .. })) => return Ok(()),
            Ok(Some(StreamItem::Failed { why: failed, .. })) => why = failed.to_string(),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return Err(why),
        }
    }
}

/// What came of a topic.
#[derive(Debug, Default)]
struct Heard {
    frames: u64,
    source: Option<(Source, Why)>,
    trouble: Option<String>,
}

async fn market(
    surface: Surface,
    topics: &[Topic],
    client: &Client,
) -> Result<BTreeMap<String, Heard>, String> {
    let mut feed = client
        .market_feed(venue_surface(surface), topics)
        .map_err(|error| error.to_string())?;
    let mut heard: BTreeMap<String, Heard> = BTreeMap::new();
    for topic in topics {
        heard.entry(topic.to_string()).or_default();
    }
    let until = Instant::now() + LISTEN;
    while heard.values().any(|topic| topic.frames == 0) {
        let Ok(item) = timeout_at(until, feed.next()).await else {
            break;
        };
        match item {
            FeedItem::Frame(frame) => {
                if let Some(topic) = stream_name(frame.text())
                    && let Some(heard) = heard.get_mut(&topic)
                {
                    heard.frames += 1;
                }
            }
            FeedItem::Source { topic, source, why } => {
                heard.entry(topic.to_string()).or_default().source = Some((source, why));
            }
            FeedItem::Failed { topics, why } => {
                for topic in topics {
                    heard.entry(topic.to_string()).or_default().trouble = Some(why.to_string());
                }
            }
            FeedItem::NotPolled { topics, why } => {
                for topic in topics {
                    heard.entry(topic.to_string()).or_default().trouble = Some(why.clone());
                }
            }
            FeedItem::Connected { .. } | FeedItem::Gap { .. } => {}
        }
    }
    Ok(heard)
}

/// The `stream` of a frame.
fn stream_name(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Name {
        stream: String,
    }
    let name: Name = serde_json::from_str(text).ok()?;
    Some(name.stream)
}

fn say(surface: Surface, heard: &BTreeMap<String, Heard>, report: &mut Report) {
    for (topic, heard) in heard {
        let from = match &heard.source {
            None | Some((Source::Stream, _)) => "streamed".to_owned(),
            Some((Source::Polling, why)) => format!("polled ({why})"),
            Some((Source::Both, why)) => format!("streamed and polled ({why})"),
            Some((Source::None, why)) => format!("nothing brings it ({why})"),
        };
        let found = format!("{surface}:{topic} is {from}");
        match (&heard.source, heard.frames, &heard.trouble) {
            (Some((Source::None, _)), ..) => {
                report.no_go(
                    "market data",
                    found,
                    "leave the stream out, or change market_data",
                );
            }
            (_, 1.., _) => report.ok("market data", found),
            (_, 0, Some(trouble)) => {
                report.warn("market data", format!("{found}: {trouble}"), "");
            }
            (_, 0, None) => {
                let found = format!("{found} and was silent for {LISTEN:?}");
                report.warn(
                    "market data",
                    found,
                    "a quiet market, or a stream that is not there",
                );
            }
        }
    }
}
