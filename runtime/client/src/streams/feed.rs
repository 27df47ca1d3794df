//! One source of market data per topic: streams if the venue has them, otherwise polling, with the
//! same frames from both ([`MarketFeed`]).
//!
//! [`FeedMachine`] decides. This module has its sockets, requests and timers, on one task.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use windvane_client_core::streams::feed::{
    self, ConnectionId, FeedError, FeedInput, FeedMachine, FeedOutput, FeedTerms, PollId, Text,
    Verdict,
};
use windvane_client_core::streams::machine::LinkId;
use windvane_client_core::streams::millis;
use windvane_protocol::frame::BookLevels;
use windvane_protocol::market_stream::{self, Topic};
use windvane_protocol::route::{Route, Surface};
use windvane_protocol::wire::Parameters;

use crate::budget::Lane;
use crate::client::Client;
use crate::outcome::NotDone;

use super::driver::heed;
use super::market::MarketFrame;
use super::received::Received;
use super::socket::{SocketCommand, SocketEvent};
use super::start::{self, StreamStartError};
use super::{GapReason, MarketPath};

pub use windvane_client_core::streams::feed::{Source, Why};

/// An item of a [`MarketFeed`].
pub type FeedItem = feed::FeedItem<MarketFrame>;

/// Frames between sockets and feed. When the channel is full, TCP backpressure slows the venue.
const WAITING: usize = 1_024;
/// No timer waits longer than an hour; after that, the deadline is checked again.
const LATEST_MS: u64 = 3_600_000;

/// Public market data by topic; see [`Client::market_feed`].
#[derive(Debug)]
pub struct MarketFeed {
    items: mpsc::Receiver<FeedItem>,
    /// The source of each topic, according to the items that were taken.
    sources: BTreeMap<Topic, Source>,
}

impl Client {
    /// Market data of these topics, from streams or polling. `market_data` of the settings chooses
    /// the mode:
    ///
    /// - `Streams`: every topic is streamed.
    /// - `Documented`: `tradepro` is streamed on the path `/ws`, everything else is polled. Nothing
    ///   outside the core interface is sent.
    /// - `Auto`: every topic is streamed, and polled if the venue refuses its stream. A silent
    ///   stream is also polled; it is given up if polling shows data that the stream does not
    ///   deliver.
    ///
    /// Polling stays within the Query lane's share of the budget. Polling changes two kinds of
    /// frames. Instead of book differences it gives books of 50 levels, each of which replaces the
    /// previous one. Instead of `tradepro` it gives `trade`, which has the side instead of the
    /// addresses. A stream that was given up is not tried again until the next start. Call this
    /// function inside a tokio runtime.
    ///
    /// ```no_run
    /// use windvane_client::streams::FeedItem;
    /// use windvane_protocol::BookLevels;
    /// use windvane_protocol::route::Surface;
    ///
    /// # async fn watch(client: windvane_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let topics = ["btcusdt@bookTicker".parse()?, "btcusdt@markPrice".parse()?];
    /// let mut feed = client.market_feed(Surface::Futures, &topics)?;
    /// let mut levels = BookLevels::default();
    /// loop {
    ///     match feed.next().await {
    ///         FeedItem::Frame(frame) => println!("{:?}", frame.decode(&mut levels)?.event),
    ///         FeedItem::Source { topic, source, why } => println!("{topic}: {source:?}, {why}"),
    ///         other => println!("{other:?}"),
    ///     }
    /// }
    /// # }
    /// ```
    pub fn market_feed(
        &self,
        surface: Surface,
        topics: &[Topic],
    ) -> Result<MarketFeed, StreamStartError> {
        let settings = self.settings();
        let terms = FeedTerms {
            surface,
            topics: topics.to_vec(),
            mode: settings.market_data,
            settings: settings.streams.clone(),
            polling_weight: self.polling_weight(surface),
        };
        let machine = FeedMachine::new(0, terms)?;
        if machine.is_streamed() {
            start::address(settings, surface)?;
        }
        let sources = topics.iter().map(|topic| {
            let source = machine.source(topic).unwrap_or(Source::None);
            (topic.clone(), source)
        });
        let sources = sources.collect();
        let (items, receiver) = mpsc::channel(settings.streams.capacity.max(1));
        let (sender, events) = mpsc::channel(WAITING);
        let run = Run {
            client: self.clone(),
            surface,
            machine,
            items,
            sender,
            sockets: BTreeMap::new(),
            levels: BookLevels::default(),
            started: Instant::now(),
            topics: topics.to_vec(),
            has_dropped: false,
        };
        tokio::spawn(run.run(events));
        Ok(MarketFeed {
            items: receiver,
            sources,
        })
    }

    fn polling_weight(&self, surface: Surface) -> u32 {
        self.with_budget(surface, |budget, _| budget.steady_weight(Lane::Query))
    }
}

impl From<FeedError> for StreamStartError {
    fn from(error: FeedError) -> Self {
        match error {
            FeedError::NoTopics => Self::NoTopics,
            FeedError::Polling(error) => Self::Polling(error),
        }
    }
}

impl Text for Received {
    fn with_text(&self, text: String) -> Self {
        Self {
            text: text.into(),
            at: self.at,
        }
    }
}

impl MarketFeed {
    /// The next item. Cancelling the wait loses no item.
    pub async fn next(&mut self) -> FeedItem {
        let Some(item) = self.items.recv().await else {
            // The tokio runtime is shutting down.
            return std::future::pending().await;
        };
        if let FeedItem::Source { topic, source, .. } = &item {
            self.sources.insert(topic.clone(), *source);
        }
        item
    }

    /// The source of a topic, according to the items that were taken; `None` if the topic is not in
    /// the feed.
    pub fn source(&self, topic: &Topic) -> Option<Source> {
        self.sources.get(topic).copied()
    }
}

/// An event from a socket or a request.
#[derive(Debug)]
enum Event {
    Socket(LinkId, SocketEvent),
    Answered(PollId, Result<Received, NotDone>),
}

/// The task of a feed.
struct Run {
    client: Client,
    surface: Surface,
    machine: FeedMachine<Received>,
    items: mpsc::Sender<FeedItem>,
    sender: mpsc::Sender<Event>,
    sockets: BTreeMap<LinkId, mpsc::UnboundedSender<SocketCommand>>,
    levels: BookLevels,
    started: Instant,
    topics: Vec<Topic>,
    has_dropped: bool,
}

impl Run {
    /// Runs until the consumer is dropped.
    async fn run(mut self, mut events: mpsc::Receiver<Event>) {
        self.perform();
        loop {
            let due_ms = self.machine.timeout_ms().min(self.now_ms() + LATEST_MS);
            let due = self.started + Duration::from_millis(due_ms);
            tokio::select! {
                Some(event) = events.recv() => match event {
                    Event::Socket(link, event) => self.socket_event(link, event),
                    Event::Answered(poll, result) => {
                        let venue_us = self.client.clock().venue_us(self.surface);
                        let venue_ms = venue_us.div_euclid(1_000);
                        self.handle(FeedInput::Answered { poll, result, venue_ms });
                    }
                },
                () = tokio::time::sleep_until(due) => {
                    let weight = self.client.polling_weight(self.surface);
                    self.machine.set_polling_weight(weight);
                    self.handle(FeedInput::Tick);
                }
                () = self.items.closed() => return,
            }
        }
    }

    fn now_ms(&self) -> u64 {
        millis(self.started.elapsed())
    }

    fn socket_event(&mut self, link: LinkId, event: SocketEvent) {
        let input = match event {
            SocketEvent::Opened => FeedInput::Opened(link),
            SocketEvent::NotOpened(why, refused) => {
                self.sockets.remove(&link);
                FeedInput::NotOpened {
                    link,
                    status: refused.status,
                    why,
                    pause_ms: heed(&self.client, self.surface, refused),
                }
            }
            SocketEvent::Text(text) => FeedInput::Text(link, text),
            SocketEvent::Binary(length) => {
                let text = format!("a binary frame of {length} bytes");
                FeedInput::Text(link, Received::now(text))
            }
            SocketEvent::Pong => FeedInput::Pong(link),
            SocketEvent::Closed => {
                self.sockets.remove(&link);
                FeedInput::Closed(link)
            }
        };
        self.handle(input);
    }

    fn handle(&mut self, input: FeedInput<Received>) {
        let now_ms = self.now_ms();
        self.machine.handle(now_ms, input);
        self.perform();
    }

    fn perform(&mut self) {
        while let Some(output) = self.machine.poll() {
            match output {
                FeedOutput::Open(link, path) => self.open(link, path),
                FeedOutput::Send(link, text) => self.command(link, SocketCommand::Send(text)),
                FeedOutput::Ping(link) => self.command(link, SocketCommand::Ping),
                FeedOutput::Close(link) => {
                    self.sockets.remove(&link);
                }
                FeedOutput::Poll(poll, route, parameters) => {
                    self.poll(poll, route, parameters);
                }
                FeedOutput::Frame(connection, frame) => self.frame(connection, frame),
                FeedOutput::Item(item) => self.deliver(item.map(MarketFrame)),
            }
        }
    }

    fn open(&mut self, link: LinkId, path: MarketPath) {
        // A ban applies to the address: a handshake would prolong it, like a request.
        if let Some(stop) = self.client.stopped_for(self.surface) {
            let now_ms = self.now_ms();
            let held = FeedInput::Held(link, millis(stop));
            return self.machine.handle(now_ms, held);
        }
        let sender = self.sender.clone();
        let notify = move |event| {
            let sender = sender.clone();
            async move { sender.send(Event::Socket(link, event)).await.is_ok() }
        };
        match self
            .client
            .socket(self.surface, (link, path.path()), notify)
        {
            Ok(commands) => {
                self.sockets.insert(link, commands);
            }
            Err(error) => {
                let not_opened = FeedInput::NotOpened {
                    link,
                    status: None,
                    why: error.to_string(),
                    pause_ms: None,
                };
                let now_ms = self.now_ms();
                self.machine.handle(now_ms, not_opened);
            }
        }
    }

    fn command(&self, link: LinkId, command: SocketCommand) {
        if let Some(socket) = self.sockets.get(&link) {
            // A socket that is gone reports it with its own event.
            let _ = socket.send(command);
        }
    }

    /// Each request has its own task, so that a slow one does not delay the others.
    fn poll(&self, poll: PollId, route: &'static Route, parameters: Parameters) {
        let client = self.client.in_lane(Lane::Query);
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let outcome = client.call(route, None, &parameters).await;
            let result = outcome.into_result();
            let result = result.map(|answer| Received::now(answer.text));
            // A feed that has ended receives nothing, and needs nothing.
            let _ = sender.send(Event::Answered(poll, result)).await;
        });
    }

    fn frame(&mut self, connection: ConnectionId, frame: Received) {
        let decoded = market_stream::decode(frame.as_ref(), &mut self.levels).ok();
        let content = (frame.as_ref(), decoded.as_ref());
        let now_ms = millis(self.started.elapsed());
        let frame = match self.machine.frame_verdict(now_ms, connection, content) {
            Verdict::Pass => frame,
            Verdict::PassAs(text) => frame.with_text(text),
            Verdict::Drop => return,
        };
        self.deliver(FeedItem::Frame(MarketFrame(frame)));
    }

    /// Passes an item to the consumer. A consumer that is too slow loses items, and gets a gap item
    /// as soon as there is room. The venue is not slowed down, because that would end the
    /// connection.
    fn deliver(&mut self, item: FeedItem) {
        if self.has_dropped {
            let gap = FeedItem::Gap {
                topics: self.topics.clone(),
                reason: GapReason::Overflow,
            };
            match self.items.try_send(gap) {
                Ok(()) => self.has_dropped = false,
                Err(_) => return,
            }
        }
        if self.items.try_send(item).is_err() {
            self.has_dropped = true;
        }
    }
}
