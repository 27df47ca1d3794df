//! Checks whether streams can be connected, and from which source each public topic comes.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use windvane_client::budget::Lane;
use windvane_client::streams::{
    FeedItem, Obstacle, Refused, SocketEvent, Source, StreamStartError, Why,
};
use windvane_client::{Client, NotDone};
use windvane_client_core::streams::millis;
use windvane_model::Surface;
use windvane_protocol::market_stream::Topic;

use super::super::startup_steps;
use super::query::{PATIENCE, QueryClient, unreadable};
use super::report::Report;
use windvane_config::Config;
use windvane_session::{Query, venue_surface};

/// How long to listen. A topic without a frame in this time is reported as silent. A run starts
/// polling beside a silent stream after five seconds.
const LISTEN: Duration = Duration::from_secs(8);

/// Listens to all streams of each surface.
pub(super) async fn listen(
    config: &Config,
    surfaces: &[Surface],
    user: bool,
    queries: QueryClient<'_>,
    report: &mut Report,
) {
    for &surface in surfaces {
        let topics = startup_steps::topics(config, surface);
        let (connected, reports) = tokio::join!(
            async {
                if user {
                    Some(user_stream(surface, queries).await)
                } else {
                    None
                }
            },
            market(surface, &topics, queries.client),
        );
        match connected {
            Some(Ok(())) => report.ok("user stream", format!("{surface}: user stream connected")),
            Some(Err(why)) => {
                let found = format!("{surface}: {why}");
                report.no_go(
                    "user stream",
                    found,
                    "without the user stream a run sends no opening order; fix this cause",
                );
            }
            None => {}
        }
        match reports {
            Ok(reports) => report_topics(surface, &reports, report),
            Err(why) => report.no_go("market data", format!("{surface}: {why}"), ""),
        }
    }
}

/// Connects the user stream and tries again for a while if that fails. Its listen key is the
/// account's only key and a running instance may use it, so it is left to expire.
pub(super) async fn user_stream(surface: Surface, queries: QueryClient<'_>) -> Result<(), String> {
    let until = Instant::now() + PATIENCE;
    let (settings, venue) = (queries.client.settings(), venue_surface(surface));
    if settings.addresses.user_ws_of(venue).is_none() {
        return Err(StreamStartError::NoAddress(venue).to_string());
    }
    let (mut pause, most) = settings.streams.backoff;
    let mut why = format!("it was not connected within {PATIENCE:?}");
    loop {
        let wait = match timeout_at(until, open(surface, queries)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(NotOpen { obstacle, wait })) => {
                let text = obstacle.to_string();
                if why != text {
                    tracing::warn!(%surface, "{text}; it is tried again");
                    why = text;
                }
                wait.unwrap_or(pause)
            }
            Err(_) => return Err(why),
        };
        if timeout_at(until, tokio::time::sleep(wait)).await.is_err() {
            return Err(why);
        }
        pause = (pause * 2).min(most);
    }
}

/// Why a user stream is not connected, and how long the exchange forbids another attempt.
struct NotOpen {
    obstacle: Obstacle,
    wait: Option<Duration>,
}

impl From<NotDone> for NotOpen {
    fn from(not_done: NotDone) -> Self {
        let wait = match &not_done {
            NotDone::Wait(wait) => Some(wait.after),
            NotDone::Refused(_) | NotDone::Unknown(_) => None,
        };
        let obstacle = Obstacle::NoKey(not_done);
        Self { obstacle, wait }
    }
}

/// Connects the user stream once and closes it.
async fn open(surface: Surface, queries: QueryClient<'_>) -> Result<(), NotOpen> {
    let (client, exchange) = (queries.client.in_lane(Lane::Heartbeat), queries.exchange);
    let queries = QueryClient::new(&client, exchange);
    let text = queries.query(Query::CreateKey(surface)).await?;
    let key = exchange.listen_key(&text);
    let key = key.ok_or_else(|| unreadable("it has no listen key", &text))?;
    let (gateway, venue) = (exchange.gateway(), venue_surface(surface));
    let not_opened = |status, why: String, wait_ms: Option<u64>| NotOpen {
        obstacle: Obstacle::NotOpened { status, why },
        wait: wait_ms.map(Duration::from_millis),
    };
    // A ban applies to this address, so a handshake would extend it, as any request does.
    if let Some(stop_ms) = gateway.stopped_ms(client.now().ms, venue) {
        let why = "the venue accepts no requests from this address now".to_owned();
        return Err(not_opened(None, why, Some(stop_ms)));
    }
    let (sender, mut events) = mpsc::unbounded_channel();
    let emit = move |event| std::future::ready(sender.send(event).is_ok());
    let path = exchange.user_stream(&key);
    // Dropping this value closes the connection.
    let _commands = client
        .socket(venue, (0, &path), emit)
        .map_err(|error| not_opened(None, error.to_string(), None))?;
    match events.recv().await {
        Some(SocketEvent::Opened) => Ok(()),
        Some(SocketEvent::NotOpened(why, Refused { status, pause })) => {
            let refused = (status, pause.map(millis));
            let wait_ms = gateway.heed_handshake(client.now().ms, venue, refused);
            Err(not_opened(status, why, wait_ms))
        }
        _ => Err(not_opened(
            None,
            "the connection was closed".to_owned(),
            None,
        )),
    }
}

/// The frames, the source and the last problem of a topic.
#[derive(Debug, Default)]
struct TopicReport {
    frames: u64,
    source: Option<(Source, Why)>,
    trouble: Option<String>,
}

async fn market(
    surface: Surface,
    topics: &[Topic],
    client: &Client,
) -> Result<BTreeMap<String, TopicReport>, String> {
    let mut feed = client
        .market_feed(venue_surface(surface), topics)
        .map_err(|error| error.to_string())?;
    let mut reports: BTreeMap<String, TopicReport> = BTreeMap::new();
    for topic in topics {
        reports.entry(topic.to_string()).or_default();
    }
    let until = Instant::now() + LISTEN;
    while reports.values().any(|topic| topic.frames == 0) {
        let Ok(item) = timeout_at(until, feed.next()).await else {
            break;
        };
        match item {
            FeedItem::Frame(frame) => {
                if let Some(topic) = stream_name(frame.text())
                    && let Some(received) = reports.get_mut(&topic)
                {
                    received.frames += 1;
                }
            }
            FeedItem::Source { topic, source, why } => {
                reports.entry(topic.to_string()).or_default().source = Some((source, why));
            }
            FeedItem::Failed { topics, why } => {
                for topic in topics {
                    reports.entry(topic.to_string()).or_default().trouble = Some(why.to_string());
                }
            }
            FeedItem::NotPolled { topics, why } => {
                for topic in topics {
                    reports.entry(topic.to_string()).or_default().trouble = Some(why.clone());
                }
            }
            FeedItem::Connected { .. } | FeedItem::Gap { .. } => {}
        }
    }
    Ok(reports)
}

/// The `stream` field of a frame.
fn stream_name(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Name {
        stream: String,
    }
    let name: Name = serde_json::from_str(text).ok()?;
    Some(name.stream)
}

fn report_topics(surface: Surface, topics: &BTreeMap<String, TopicReport>, report: &mut Report) {
    for (topic, received) in topics {
        let from = match &received.source {
            None | Some((Source::Stream, _)) => "streamed".to_owned(),
            Some((Source::Polling, why)) => format!("polled ({why})"),
            Some((Source::Both, why)) => format!("streamed and polled ({why})"),
            Some((Source::None, why)) => format!("available from no source ({why})"),
        };
        let found = format!("{surface}:{topic} is {from}");
        match (&received.source, received.frames, &received.trouble) {
            (Some((Source::None, _)), ..) => {
                report.no_go(
                    "market data",
                    found,
                    "remove the stream from the strategy, or change venue.market_data",
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
                    "the market may be quiet, or the venue does not have this stream",
                );
            }
        }
    }
}
