//! The public streams of a run: connections that heal themselves, and polling where the venue has no
//! stream ([`FeedMachine`]).
//!
//! What may never enter here: sockets, and what frames mean.

use std::collections::{BTreeMap, VecDeque};

use windvane_client_core::Gateway;
use windvane_client_core::outcome::NotDone;
use windvane_client_core::streams::feed::{
    ConnectionId, FeedError, FeedInput, FeedItem, FeedMachine, FeedOutput, FeedTerms, QuestionId,
    Text, Verdict, connection_of,
};
use windvane_client_core::streams::machine::LinkId;
use windvane_engine::{Surface, Time};
use windvane_venue::market_stream::{MarketStreamFrame, Topic};
use windvane_venue::route::Route;
use windvane_venue::wire::Parameters;

use crate::requests::venue_surface;
use crate::user_streams::{LOGGED_EVERY, SocketAction, SocketEvent, heed};

/// Whether a connection is one of public data, by its number.
pub const fn is_public(link: LinkId) -> bool {
    connection_of(link) > 0
}

/// A frame, and when it was read from its socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) text: String,
    pub(crate) at: Time,
}

/// What the streams want done.
#[derive(Debug)]
pub(crate) enum Want {
    /// Something with a connection.
    Socket(Surface, LinkId, SocketAction),
    /// A question to the venue.
    Ask(Surface, QuestionId, &'static Route, Parameters),
    /// A frame of a connection; [`PublicStreams::hear`] says what becomes of it.
    Frame(Surface, ConnectionId, Received),
    /// A frame of polling.
    Polled(Surface, Received),
    /// Events of these symbols may be missed.
    Interrupted(Surface, Vec<String>),
    /// A connection stands and all its topics are subscribed, or events may be missed.
    Up(Surface, bool),
}

/// See the module's page.
#[derive(Debug)]
pub struct PublicStreams {
    began: Time,
    feeds: BTreeMap<Surface, Feed>,
    wants: VecDeque<Want>,
}

#[derive(Debug)]
struct Feed {
    machine: FeedMachine<Received>,
    /// Connections in a row that did not come about.
    failed: u64,
}

impl Text for Received {
    fn with_text(&self, text: String) -> Self {
        Self { text, at: self.at }
    }
}

impl AsRef<str> for Received {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl PublicStreams {
    /// Streams of these surfaces, which want their first connections at once.
    ///
    /// # Errors
    /// A surface has no topic, or what has to be polled cannot be.
    pub fn new(
        now: Time,
        terms: impl IntoIterator<Item = (Surface, FeedTerms)>,
    ) -> Result<Self, FeedError> {
        let feeds = terms.into_iter().map(|(surface, terms)| {
            let machine = FeedMachine::new(0, terms)?;
            Ok((surface, Feed { machine, failed: 0 }))
        });
        Ok(Self {
            began: now,
            feeds: feeds.collect::<Result<_, FeedError>>()?,
            wants: VecDeque::new(),
        })
    }

    fn ms(&self, now: Time) -> u64 {
        u64::try_from(now.0.saturating_sub(self.began.0) / 1_000_000).unwrap_or(0)
    }

    /// The next thing that the streams want.
    pub(crate) fn poll(&mut self) -> Option<Want> {
        self.wants.pop_front()
    }

    /// When [`Self::timeout`] is due.
    pub(crate) fn next(&self) -> Option<Time> {
        let feeds = self.feeds.values();
        let due_ms = feeds.map(|feed| feed.machine.timeout_ms()).min()?;
        let due_ms = i64::try_from(due_ms).unwrap_or(i64::MAX / 1_000_000);
        let due_ns = due_ms.saturating_mul(1_000_000);
        Some(Time(self.began.0.saturating_add(due_ns)))
    }

    /// Everything whose time has come.
    pub(crate) fn timeout(&mut self, now: Time, budget: (&Gateway, u64)) {
        let now_ms = self.ms(now);
        let feeds = self.feeds.iter();
        let due = feeds.filter(|(_, feed)| feed.machine.timeout_ms() <= now_ms);
        let due: Vec<_> = due.map(|(surface, _)| *surface).collect();
        for surface in due {
            self.tell(now, surface, FeedInput::Tick, budget);
        }
    }

    /// Something happened to a connection.
    pub(crate) fn socket(
        &mut self,
        now: Time,
        (surface, link): (Surface, LinkId),
        event: SocketEvent<'_>,
        budget: (&Gateway, u64),
    ) {
        let input = match event {
            SocketEvent::Opened => FeedInput::Opened(link),
            SocketEvent::NotOpened {
                why,
                status,
                pause_ms,
            } => FeedInput::NotOpened {
                link,
                status,
                why: why.to_owned(),
                pause_ms: heed(surface, (status, pause_ms), budget),
            },
            SocketEvent::Text(text, at) => {
                let text = text.to_owned();
                FeedInput::Text(link, Received { text, at })
            }
            SocketEvent::Pong => FeedInput::Pong(link),
            SocketEvent::Closed => FeedInput::Closed(link),
        };
        self.tell(now, surface, input, budget);
    }

    /// What became of [`Want::Ask`], at this time of the venue's clock, Unix milliseconds.
    pub(crate) fn answered(
        &mut self,
        now: Time,
        (surface, question): (Surface, QuestionId),
        (result, venue_ms): (Result<String, NotDone>, i64),
        budget: (&Gateway, u64),
    ) {
        let answered = FeedInput::Answered {
            question,
            result: result.map(|text| Received { text, at: now }),
            venue_ms,
        };
        self.tell(now, surface, answered, budget);
    }

    /// What becomes of a frame that says this; `None` if it cannot be read.
    pub(crate) fn hear(
        &mut self,
        now: Time,
        (surface, connection): (Surface, ConnectionId),
        said: (&str, Option<&MarketStreamFrame<'_>>),
        budget: (&Gateway, u64),
    ) -> Verdict {
        let now_ms = self.ms(now);
        let Some(feed) = self.feeds.get_mut(&surface) else {
            return Verdict::Drop;
        };
        let verdict = feed.machine.hear(now_ms, connection, said);
        self.take_outputs(now, surface, budget);
        verdict
    }

    fn tell(
        &mut self,
        now: Time,
        surface: Surface,
        input: FeedInput<Received>,
        budget: (&Gateway, u64),
    ) {
        let now_ms = self.ms(now);
        let Some(feed) = self.feeds.get_mut(&surface) else {
            return;
        };
        feed.machine.handle(now_ms, input);
        self.take_outputs(now, surface, budget);
    }

    fn take_outputs(&mut self, now: Time, surface: Surface, (gateway, ms): (&Gateway, u64)) {
        let now_ms = self.ms(now);
        let Some(feed) = self.feeds.get_mut(&surface) else {
            return;
        };
        while let Some(output) = feed.machine.poll() {
            let want = match output {
                FeedOutput::Open(link, path) => {
                    // A ban is of the address: a handshake would prolong it as a request does.
                    if let Some(stop_ms) = gateway.stopped_ms(ms, venue_surface(surface)) {
                        let held = FeedInput::Held(link, stop_ms);
                        feed.machine.handle(now_ms, held);
                        continue;
                    }
                    let open = SocketAction::Open(path.path().to_owned());
                    Want::Socket(surface, link, open)
                }
                FeedOutput::Send(link, text) => {
                    Want::Socket(surface, link, SocketAction::Say(text))
                }
                FeedOutput::Ping(link) => Want::Socket(surface, link, SocketAction::Ping),
                FeedOutput::Close(link) => Want::Socket(surface, link, SocketAction::Close),
                FeedOutput::Ask(question, route, parameters) => {
                    Want::Ask(surface, question, route, parameters)
                }
                FeedOutput::Frame(connection, frame) => Want::Frame(surface, connection, frame),
                FeedOutput::Item(FeedItem::Frame(frame)) => Want::Polled(surface, frame),
                FeedOutput::Item(item) => {
                    feed.item(surface, item, &mut self.wants);
                    continue;
                }
            };
            self.wants.push_back(want);
        }
    }
}

impl Feed {
    /// What a feed tells, beside frames.
    fn item(&mut self, surface: Surface, item: FeedItem<Received>, wants: &mut VecDeque<Want>) {
        match item {
            FeedItem::Frame(_) => {}
            FeedItem::Source { topic, source, why } => {
                tracing::info!(%surface, %topic, ?source, %why, "market data");
            }
            FeedItem::Connected { .. } => {
                self.failed = 0;
                wants.push_back(Want::Up(surface, true));
            }
            FeedItem::Gap { topics, reason } => {
                tracing::warn!(%surface, %reason, "public events may be missed");
                wants.push_back(Want::Up(surface, false));
                wants.push_back(Want::Interrupted(surface, symbols(&topics)));
            }
            FeedItem::Failed { why, .. } => {
                if self.failed.is_multiple_of(LOGGED_EVERY) {
                    let repeated = self.failed;
                    tracing::warn!(%surface, %why, repeated, "a public stream cannot be opened; it is tried again");
                }
                self.failed += 1;
            }
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
