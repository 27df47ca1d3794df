//! One source of market data that works by topic: streams where the venue has them, polling where
//! it has not, the same frames from both ([`MarketFeed`]).
//!
//! [`Sources`] and [`Attempt`] decide, [`polling`] asks, [`feed::hear`] and [`feed::polled`] read;
//! here is what passes between them.
//! Each kind of topic has a connection of its own, so that a venue that refuses one, or closes
//! the connection at it, takes no other with it.

mod polling;

use std::collections::{BTreeMap, VecDeque};
use std::task::Poll as Ready;
use std::time::Duration;

use tokio::time::Instant;
use windvane_client_core::streams::feed::{
    self, Allowed, Attempt, Decision, Heard, Memory, Next, Rules, Sources, feed_of,
};
use windvane_client_core::streams::{BATCH, is_documented, millis, streams_max};
use windvane_venue::frame::BookLevels;
use windvane_venue::market_stream::{CommandAnswer, Feed, Topic};
use windvane_venue::route::Surface;

use crate::budget::Lane;
use crate::budget::polling::plan;
use crate::client::Client;
use crate::settings::MarketData;

use super::market::{MarketFrame, MarketStream};
use super::received::Received;
use super::start::StreamStartError;
use super::{GapReason, Obstacle, StreamItem};
use polling::{Answered, Polling};

pub use windvane_client_core::streams::feed::{Source, Why};

/// What comes out of a [`MarketFeed`].
pub type FeedItem = feed::FeedItem<MarketFrame>;

/// Public market data by topic; see [`Client::market_feed`].
#[derive(Debug)]
pub struct MarketFeed {
    client: Client,
    surface: Surface,
    topics: Vec<Topic>,
    /// Topics by their names.
    places: BTreeMap<String, usize>,
    memory: Vec<Memory>,
    groups: Vec<Group>,
    sources: Sources,
    polling: Polling,
    /// The topics that are polled now.
    polled: Vec<usize>,
    items: VecDeque<FeedItem>,
    /// Room for the levels of the frame that is looked at.
    levels: BookLevels,
    started: Instant,
    tick_ms: u64,
    /// The group that is looked at first: each in turn, so that none waits for a louder one.
    turn: usize,
}

/// Topics of one kind, no more than one connection carries, and that connection.
#[derive(Debug)]
struct Group {
    topics: Vec<usize>,
    attempt: Attempt,
    stream: Option<MarketStream>,
}

impl Client {
    /// Market data of these topics from wherever the venue tells it, by `market_data` of the
    /// settings:
    ///
    /// - `Streams`: every topic is streamed.
    /// - `Documented`: `tradepro` is streamed on the path `/ws`, everything else polled; nothing
    ///   outside documents 1 to 3 is sent.
    /// - `Auto`: every topic is streamed, and polled when the venue refuses its stream. A stream
    ///   that is silent is polled beside, and given up when polling shows what it does not bring.
    ///
    /// Polling keeps the Query lane's part of the budget. Polled, book differences are books of 50
    /// levels, each of which replaces the last one, and `tradepro` is `trade`, which tells the side
    /// instead of the addresses. A stream that was given up is not tried again until the next
    /// start. It must be called inside a tokio runtime.
    ///
    /// ```no_run
    /// use windvane_client::streams::FeedItem;
    /// use windvane_venue::BookLevels;
    /// use windvane_venue::route::Surface;
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
        if topics.is_empty() {
            return Err(StreamStartError::NoTopics);
        }
        let mode = self.settings().market_data;
        let mut topics = topics.to_vec();
        topics.sort();
        topics.dedup();
        let settings = &self.settings().streams;
        let allowed: Vec<Allowed> = topics
            .iter()
            .map(|topic| Allowed::new(mode, surface, topic, settings))
            .collect();
        if mode == MarketData::Documented {
            let polled = topics.iter().filter(|topic| !is_documented(topic));
            let polled: Vec<Topic> = polled.cloned().collect();
            plan(surface, &polled, self.polling_weight(surface))?;
        }
        let places = topics.iter().map(Topic::to_string).zip(0..).collect();
        let mut feed = MarketFeed {
            client: self.clone(),
            surface,
            places,
            memory: topics.iter().map(|_| Memory::default()).collect(),
            groups: Vec::new(),
            sources: Sources::new(Rules::new(settings), 0, &allowed),
            polling: Polling::new(self.in_lane(Lane::Query)),
            polled: Vec::new(),
            items: VecDeque::new(),
            levels: BookLevels::default(),
            started: Instant::now(),
            tick_ms: 0,
            turn: 0,
            topics,
        };
        feed.open_groups()?;
        feed.carry_out();
        Ok(feed)
    }

    fn polling_weight(&self, surface: Surface) -> u32 {
        self.with_budget(surface, |budget, _| budget.steady_weight(Lane::Query))
    }
}

impl MarketFeed {
    /// The next item. It may be dropped while it waits; nothing is lost.
    pub async fn next(&mut self) -> FeedItem {
        loop {
            if let Some(item) = self.items.pop_front() {
                return item;
            }
            let tick_ms = self.tick_ms.min(self.now_ms() + LATEST_MS);
            let tick = self.started + Duration::from_millis(tick_ms);
            tokio::select! {
                (group, item) = next_of(&mut self.groups, &mut self.turn) => {
                    self.stream_item(group, item);
                }
                answered = self.polling.next() => self.answered(answered),
                () = tokio::time::sleep_until(tick) => {
                    self.sources.tick(self.now_ms());
                    self.tick_ms = self.sources.timeout_ms();
                }
            }
            self.carry_out();
        }
    }

    /// From where a topic comes now; `None` if it is not one of the feed's.
    pub fn source(&self, topic: &Topic) -> Option<Source> {
        let at = self.places.get(&topic.to_string())?;
        Some(self.sources.source(*at))
    }

    fn now_ms(&self) -> u64 {
        millis(self.started.elapsed())
    }

    /// A group for each kind of topic that is streamed, or several if there are too many of it.
    fn open_groups(&mut self) -> Result<(), StreamStartError> {
        let mut kinds: BTreeMap<Option<Feed>, Vec<usize>> = BTreeMap::new();
        for (at, topic) in self.topics.iter().enumerate() {
            if self.sources.is_streamed(at) {
                kinds.entry(feed_of(topic)).or_default().push(at);
            }
        }
        let attempt = self.first_attempt();
        for topics in kinds.values() {
            for topics in topics.chunks(streams_max(self.surface)) {
                let stream = Some(self.open(topics, attempt)?);
                self.groups.push(Group {
                    topics: topics.to_vec(),
                    attempt,
                    stream,
                });
            }
        }
        Ok(())
    }

    fn first_attempt(&self) -> Attempt {
        let settings = self.client.settings();
        Attempt::first(settings.market_data, &settings.streams)
    }

    fn open(&self, topics: &[usize], attempt: Attempt) -> Result<MarketStream, StreamStartError> {
        let topics = self.named(topics);
        let batch = if attempt.is_apart { 1 } else { BATCH };
        self.client
            .open_market_stream(self.surface, &topics, attempt.path, batch)
    }

    /// A new stream for a group in place of its old one, without the topics that have none.
    fn reopen(&mut self, group: usize) {
        let topics = self.streamed(group);
        let attempt = self.groups[group].attempt;
        self.groups[group] = self.group(topics, attempt);
    }

    /// Two streams in place of one: if a topic ends the connection, it is cut off from the others
    /// step by step.
    fn halve(&mut self, group: usize) {
        let mut topics = self.streamed(group);
        let others = topics.split_off(topics.len() / 2);
        let attempt = self.first_attempt();
        self.groups[group] = self.group(topics, attempt);
        self.groups.push(self.group(others, attempt));
    }

    /// Not where so many pieces of a kind fail that it is the kind: a venue may block an address
    /// that is disconnected again and again (spec 1, Limits, rule 8).
    fn may_halve(&self, group: usize) -> bool {
        let kind = |group: &Group| group.topics.first().map(|at| feed_of(&self.topics[*at]));
        // Those that were given up count as well.
        let failing = self.groups.iter().filter(|other| {
            let is_failing = !other.attempt.has_stood && other.topics.len() > 1;
            is_failing && kind(other) == kind(&self.groups[group])
        });
        self.streamed(group).len() > 1 && failing.count() < FAILING_MAX
    }

    fn group(&self, topics: Vec<usize>, attempt: Attempt) -> Group {
        Group {
            // What began once can begin again: address and surface are the same.
            stream: self.open(&topics, attempt).ok(),
            topics,
            attempt,
        }
    }

    /// The topics of a group that have a stream.
    fn streamed(&self, group: usize) -> Vec<usize> {
        let topics = self.groups[group].topics.iter().copied();
        topics.filter(|at| self.sources.is_streamed(*at)).collect()
    }

    fn named(&self, topics: &[usize]) -> Vec<Topic> {
        topics.iter().map(|at| self.topics[*at].clone()).collect()
    }

    fn stream_item(&mut self, group: usize, item: StreamItem<MarketFrame>) {
        match item {
            StreamItem::Event(frame) => self.frame(group, frame),
            StreamItem::Connected { .. } => {
                let topics = self.groups[group].topics.clone();
                for at in &topics {
                    self.sources.subscribed(*at);
                }
                self.groups[group].attempt.stands();
                let topics = self.named(&topics);
                self.items.push_back(FeedItem::Connected { topics });
            }
            StreamItem::Gap { reason, .. } => {
                let topics = self.groups[group].topics.clone();
                if reason != GapReason::Overflow {
                    let now_ms = self.now_ms();
                    for at in &topics {
                        self.sources.lost(now_ms, *at);
                    }
                    self.tick_ms = self.sources.timeout_ms();
                }
                let topics = self.named(&topics);
                self.items.push_back(FeedItem::Gap { topics, reason });
            }
            StreamItem::Failed { why, .. } => {
                let topics = self.groups[group].topics.clone();
                self.failed(group, &topics, &why);
                let topics = self.named(&topics);
                self.items.push_back(FeedItem::Failed { topics, why });
            }
            StreamItem::Alive { .. } | StreamItem::Unreadable { .. } => {}
        }
    }

    fn frame(&mut self, group: usize, frame: MarketFrame) {
        let topics = &self.groups[group].topics;
        let levels = &mut self.levels;
        match feed::hear(frame.text(), topics, &self.topics, &self.places, levels) {
            Heard::Answer(answer) => self.command_answered(group, answer),
            Heard::Other => self.items.push_back(FeedItem::Frame(frame)),
            Heard::Topic {
                at,
                wrapped,
                trade_id,
            } if self.sources.is_streamed(at) => {
                self.sources.spoke(self.now_ms(), at);
                if self.memory[at].is_fresh(&self.topics[at], trade_id) {
                    let frame = match wrapped {
                        None => frame,
                        Some(text) => frame.with_text(text),
                    };
                    self.items.push_back(FeedItem::Frame(frame));
                }
            }
            // What was given up is served from elsewhere, and one frame is no return.
            Heard::Topic { .. } | Heard::Stray => {}
        }
    }

    /// A refusal among others says nothing of the others: they are asked apart.
    fn command_answered(&mut self, group: usize, answer: CommandAnswer) {
        let Err(error) = answer.result else { return };
        let of_command = match (&self.groups[group].stream, answer.id) {
            (Some(stream), Some(id)) => stream.topics_of(id),
            _ => &[],
        };
        let of_command = of_command
            .iter()
            .map(|topic| self.places[&topic.to_string()]);
        let mut refused: Vec<usize> = of_command.collect();
        if refused.is_empty() {
            refused.clone_from(&self.groups[group].topics);
        }
        if refused.len() > 1 && !self.groups[group].attempt.is_apart {
            self.groups[group].attempt.is_apart = true;
            self.reopen(group);
            return;
        }
        for at in refused {
            self.sources.no_stream(at, Why::Refused(error.to_string()));
        }
    }

    fn failed(&mut self, group: usize, topics: &[usize], why: &Obstacle) {
        match self.groups[group].attempt.next(why) {
            Next::Wait => {}
            Next::Reopen => self.reopen(group),
            Next::GiveUp(Why::Unsubscribable) if self.may_halve(group) => self.halve(group),
            Next::GiveUp(why) => {
                for at in topics {
                    if self.sources.can_do_without(*at) {
                        self.sources.no_stream(*at, why.clone());
                    }
                }
            }
        }
    }

    fn answered(&mut self, answered: Answered) {
        let topics = &answered.poll.topics;
        let places = topics.iter().map(|topic| self.places[&topic.to_string()]);
        // An answer that was on its way when the stream spoke again is older than the stream.
        let places: Vec<usize> = places.filter(|at| self.sources.is_polled(*at)).collect();
        let text = match answered.result {
            Ok(text) => text,
            Err(polling::Trouble {
                why,
                is_final: true,
            }) => {
                let now_ms = self.now_ms();
                for at in places {
                    let why = Why::NotAnswered(why.clone());
                    self.sources.no_polling(now_ms, at, why);
                }
                return;
            }
            Err(polling::Trouble { why, .. }) if places.is_empty() => {
                tracing::debug!(why, "a question that nobody waits for any more");
                return;
            }
            Err(polling::Trouble { why, .. }) => {
                let topics = self.named(&places);
                self.items.push_back(FeedItem::NotPolled { topics, why });
                return;
            }
        };
        let now_ms = self.client.clock().venue_us(self.surface).div_euclid(1_000);
        for at in places {
            let topic = &self.topics[at];
            match feed::polled(topic, self.surface, now_ms, &text, &mut self.memory[at]) {
                Ok(polled) => {
                    self.sources.answered(self.now_ms(), at, polled.is_news);
                    let at = std::time::Instant::now();
                    let frames = polled.frames.into_iter().map(|text| {
                        let text = text.into();
                        FeedItem::Frame(MarketFrame(Received { text, at }))
                    });
                    self.items.extend(frames);
                }
                Err(error) => self.items.push_back(FeedItem::NotPolled {
                    topics: vec![topic.clone()],
                    why: error.to_string(),
                }),
            }
        }
        self.tick_ms = self.sources.timeout_ms();
    }

    /// Does what was decided.
    fn carry_out(&mut self) {
        let mut has_changed = false;
        while let Some(decision) = self.sources.poll_decision() {
            match decision {
                Decision::Restart(at) => self.restart(at),
                Decision::Serve(at, source, why) => {
                    has_changed = true;
                    let topic = self.topics[at].clone();
                    self.items
                        .push_back(FeedItem::Source { topic, source, why });
                }
            }
        }
        if has_changed {
            for group in &mut self.groups {
                let is_streamed = |at: &usize| self.sources.is_streamed(*at);
                if !group.topics.iter().any(is_streamed) {
                    group.stream = None;
                }
            }
            self.poll();
            self.tick_ms = self.sources.timeout_ms();
        }
    }

    fn restart(&self, at: usize) {
        let has_it = |group: &&Group| group.topics.contains(&at);
        for group in self.groups.iter().filter(has_it) {
            if let Some(stream) = &group.stream {
                stream.restart(0);
            }
        }
    }

    /// Polls what is to be polled now, if that is not what is polled already.
    fn poll(&mut self) {
        let all = 0..self.topics.len();
        let polled: Vec<usize> = all.filter(|at| self.sources.is_polled(*at)).collect();
        if polled == self.polled {
            return;
        }
        let topics = self.named(&polled);
        self.polled = polled;
        let weight = self.client.polling_weight(self.surface);
        match plan(self.surface, &topics, weight) {
            Ok(polls) => self.polling.ask(polls),
            Err(error) => {
                self.polling.ask(Vec::new());
                let why = error.to_string();
                self.items.push_back(FeedItem::NotPolled { topics, why });
            }
        }
    }
}

/// Pieces of one kind of topics that have not stood.
const FAILING_MAX: usize = 4;
/// No timer waits longer than an hour; it looks again then.
const LATEST_MS: u64 = 3_600_000;

/// The next item of any stream.
async fn next_of(groups: &mut [Group], turn: &mut usize) -> (usize, StreamItem<MarketFrame>) {
    std::future::poll_fn(|context| {
        let count = groups.len();
        for step in 0..count {
            let at = (*turn + step) % count;
            let Some(stream) = &mut groups[at].stream else {
                continue;
            };
            if let Ready::Ready(Some(item)) = stream.poll_next(context) {
                *turn = (at + 1) % count;
                return Ready::Ready((at, item));
            }
        }
        Ready::Pending
    })
    .await
}
