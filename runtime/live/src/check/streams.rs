//! Whether streams come to stand, and where each public topic comes from.

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

use super::super::start;
use super::Report;
use super::ask::{Asker, unreadable};
use super::venue::PATIENCE;
use windvane_config::Config;
use windvane_session::{Question, venue_surface};

/// A topic that has not spoken by then is said to be silent: a stream is polled beside after five
/// seconds.
const LISTEN: Duration = Duration::from_secs(8);

/// Listens to every stream at once.
pub(super) async fn listen(
    config: &Config,
    surfaces: &[Surface],
    user: bool,
    asker: Asker<'_>,
    report: &mut Report,
) {
    for &surface in surfaces {
        let topics = start::topics(config, surface);
        let (stands, heard) = tokio::join!(
            async {
                if user {
                    Some(user_stream(surface, asker).await)
                } else {
                    None
                }
            },
            market(surface, &topics, asker.client),
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

/// Opens the user stream, again and again for a while, until it stands. Its listen key is the account's
/// one key, which a running instance may be using: it is left to expire.
pub(super) async fn user_stream(surface: Surface, asker: Asker<'_>) -> Result<(), String> {
    let until = Instant::now() + PATIENCE;
    let (settings, venue) = (asker.client.settings(), venue_surface(surface));
    if settings.addresses.ws_of(venue).is_none() {
        return Err(StreamStartError::NoAddress(venue).to_string());
    }
    let (mut pause, most) = settings.streams.backoff;
    let mut why = format!("it does not stand within {PATIENCE:?}");
    loop {
        let wait = match timeout_at(until, open(surface, asker)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(NotOpen { obstacle, wait })) => {
                let words = obstacle.to_string();
                if why != words {
                    tracing::warn!(%surface, "{words}; it is tried again");
                    why = words;
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

/// Why a user stream does not stand, and how long the exchange wants no other attempt.
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

/// Opens the user stream once, and closes it.
async fn open(surface: Surface, asker: Asker<'_>) -> Result<(), NotOpen> {
    let (client, exchange) = (asker.client.in_lane(Lane::Heartbeat), asker.exchange);
    let asker = Asker::new(&client, exchange);
    let text = asker.question(Question::CreateKey(surface)).await?;
    let key = exchange.listen_key(&text);
    let key = key.ok_or_else(|| unreadable("it has no listen key", &text))?;
    let (gateway, venue) = (exchange.gateway(), venue_surface(surface));
    let not_opened = |status, why: String, wait_ms: Option<u64>| NotOpen {
        obstacle: Obstacle::NotOpened { status, why },
        wait: wait_ms.map(Duration::from_millis),
    };
    // A ban is of the address: a handshake would prolong it as a request does.
    if let Some(stop_ms) = gateway.stopped_ms(client.now().ms, venue) {
        let why = "the venue takes nothing from this address now".to_owned();
        return Err(not_opened(None, why, Some(stop_ms)));
    }
    let (sender, mut events) = mpsc::unbounded_channel();
    let tell = move |event| std::future::ready(sender.send(event).is_ok());
    let path = exchange.user_stream(&key);
    // The connection lasts as long as this.
    let _commands = client
        .socket(venue, (0, &path), tell)
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
