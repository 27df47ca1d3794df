//! The public streams of a run: one [`PublicFeed`] for each surface, with its connections and its
//! polling.
//!
//! This module must never contain sockets, or decode frames.

use std::collections::{BTreeMap, VecDeque};

use windvane_client_core::outcome::NotDone;
use windvane_client_core::streams::feed::{
    ConnectionId, FeedInput, FeedItem, FeedOutput, PollId, connection_of,
};
use windvane_client_core::streams::machine::LinkId;
use windvane_model::{InstrumentId, Surface, Time};
use windvane_protocol::adapter::EncodedCall;
use windvane_protocol::market_stream::Topic;

use crate::exchange::{EmitMarket, PublicFeed, Received};
use crate::requests::Requests;
use crate::stream_sockets::{LOGGED_EVERY, SocketAction, SocketEvent};

/// Whether a connection belongs to a public stream, by its number.
pub const fn is_public(link: LinkId) -> bool {
    connection_of(link) > 0
}

/// Work that the streams request.
#[derive(Debug)]
pub(crate) enum Want {
    /// Do this with a connection.
    Socket(Surface, LinkId, SocketAction),
    /// Send a query to the venue.
    Poll(Surface, PollId, EncodedCall),
    /// A frame of a connection, for [`PublicStreams::frame`].
    Frame(Surface, ConnectionId, Received),
    /// A frame from polling.
    Polled(Surface, Received),
    /// Events of these symbols may be missed.
    Interrupted(Surface, Vec<String>),
    /// A connection is up with all its topics subscribed, or events may be missed.
    Up(Surface, bool),
}

/// See the module documentation.
#[derive(Debug)]
pub struct PublicStreams {
    began: Time,
    feeds: BTreeMap<Surface, Feed>,
    wants: VecDeque<Want>,
}

#[derive(Debug)]
struct Feed {
    feed: Box<dyn PublicFeed>,
    /// Failed connection attempts in a row.
    failed: u64,
}

impl PublicStreams {
    /// Feeds of these surfaces. Each requests its first connections at once.
    pub fn new(now: Time, feeds: impl IntoIterator<Item = (Surface, Box<dyn PublicFeed>)>) -> Self {
        let feeds = feeds.into_iter();
        Self {
            began: now,
            feeds: feeds
                .map(|(surface, feed)| (surface, Feed { feed, failed: 0 }))
                .collect(),
            wants: VecDeque::new(),
        }
    }

    fn ms(&self, now: Time) -> u64 {
        u64::try_from(now.0.saturating_sub(self.began.0) / 1_000_000).unwrap_or(0)
    }

    /// The next work that the streams request.
    pub(crate) fn poll(&mut self) -> Option<Want> {
        self.wants.pop_front()
    }

    /// When [`Self::timeout`] is due.
    pub(crate) fn next(&self) -> Option<Time> {
        let feeds = self.feeds.values();
        let due_ms = feeds.map(|feed| feed.feed.timeout_ms()).min()?;
        let due_ms = i64::try_from(due_ms).unwrap_or(i64::MAX / 1_000_000);
        let due_ns = due_ms.saturating_mul(1_000_000);
        Some(Time(self.began.0.saturating_add(due_ns)))
    }

    /// Advances the feeds whose timeout has passed.
    pub(crate) fn timeout(&mut self, now: Time, requests: &Requests) {
        let now_ms = self.ms(now);
        let feeds = self.feeds.iter();
        let due = feeds.filter(|(_, feed)| feed.feed.timeout_ms() <= now_ms);
        let due: Vec<_> = due.map(|(surface, _)| *surface).collect();
        for surface in due {
            self.handle_feed(now, surface, FeedInput::Tick, requests);
        }
    }

    /// Handles an event of a connection.
    pub(crate) fn socket(
        &mut self,
        now: Time,
        (surface, link): (Surface, LinkId),
        event: SocketEvent<'_>,
        requests: &Requests,
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
                pause_ms,
            },
            SocketEvent::Text(text, at) => {
                let text = text.to_owned();
                FeedInput::Text(link, Received { text, at })
            }
            SocketEvent::Pong => FeedInput::Pong(link),
            SocketEvent::Closed => FeedInput::Closed(link),
        };
        self.handle_feed(now, surface, input, requests);
    }

    /// The result of [`Want::Poll`]. `venue_ms` is the venue's clock, in Unix milliseconds.
    pub(crate) fn answered(
        &mut self,
        now: Time,
        (surface, poll): (Surface, PollId),
        (result, venue_ms): (Result<String, NotDone>, i64),
        requests: &Requests,
    ) {
        let answered = FeedInput::Answered {
            poll,
            result: result.map(|text| Received { text, at: now }),
            venue_ms,
        };
        self.handle_feed(now, surface, answered, requests);
    }

    /// Decodes a frame of a connection. Nothing may be sent to the surface for `stop_ms`. Returns
    /// the instrument whose snapshot must be requested.
    pub(crate) fn frame(
        &mut self,
        now: Time,
        (surface, connection): (Surface, ConnectionId),
        text: &str,
        (stop_ms, emit): (Option<u64>, &mut EmitMarket<'_>),
    ) -> Option<InstrumentId> {
        let now_ms = self.ms(now);
        let feed = self.feeds.get_mut(&surface)?;
        let fetch = feed.feed.frame(now_ms, connection, text, emit);
        self.take_outputs(now, surface, stop_ms);
        fetch
    }

    /// Decodes a frame from polling.
    pub(crate) fn polled(
        &mut self,
        surface: Surface,
        text: &str,
        emit: &mut EmitMarket<'_>,
    ) -> Option<InstrumentId> {
        self.feeds.get_mut(&surface)?.feed.polled(text, emit)
    }

    /// The depth snapshot of an instrument, or `None` if the request failed.
    pub(crate) fn snapshot(
        &mut self,
        (surface, id): (Surface, InstrumentId),
        text: Option<&str>,
        emit: &mut EmitMarket<'_>,
    ) -> Option<InstrumentId> {
        self.feeds.get_mut(&surface)?.feed.snapshot(id, text, emit)
    }

    /// Events of these symbols may have been missed.
    pub(crate) fn interrupted(
        &mut self,
        surface: Surface,
        symbols: &[String],
        emit: &mut EmitMarket<'_>,
    ) {
        if let Some(feed) = self.feeds.get_mut(&surface) {
            feed.feed.interrupted(symbols, emit);
        }
    }

    fn handle_feed(
        &mut self,
        now: Time,
        surface: Surface,
        input: FeedInput<Received>,
        requests: &Requests,
    ) {
        let now_ms = self.ms(now);
        let Some(feed) = self.feeds.get_mut(&surface) else {
            return;
        };
        feed.feed.handle(now_ms, input);
        self.take_outputs(now, surface, requests.stopped_ms(now, surface));
    }

    fn take_outputs(&mut self, now: Time, surface: Surface, stop_ms: Option<u64>) {
        let now_ms = self.ms(now);
        let Some(feed) = self.feeds.get_mut(&surface) else {
            return;
        };
        while let Some(output) = feed.feed.poll() {
            let want = match output {
                FeedOutput::Open(link, path) => {
                    // A ban applies to the address, and a handshake would prolong it like a
                    // request.
                    if let Some(stop_ms) = stop_ms {
                        let held = FeedInput::Held(link, stop_ms);
                        feed.feed.handle(now_ms, held);
                        continue;
                    }
                    let open = SocketAction::Open(path.path().to_owned());
                    Want::Socket(surface, link, open)
                }
                FeedOutput::Send(link, text) => {
                    Want::Socket(surface, link, SocketAction::SendText(text))
                }
                FeedOutput::Ping(link) => Want::Socket(surface, link, SocketAction::Ping),
                FeedOutput::Close(link) => Want::Socket(surface, link, SocketAction::Close),
                FeedOutput::Poll(poll, route, parameters) => {
                    Want::Poll(surface, poll, EncodedCall { route, parameters })
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
    /// Handles a report of the feed that is not a frame.
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
                    tracing::warn!(%surface, %why, repeated, "a public stream is not available; it is tried again");
                }
                self.failed += 1;
            }
            FeedItem::NotPolled { why, .. } => {
                tracing::warn!(%surface, why, "market data is not polled");
            }
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
