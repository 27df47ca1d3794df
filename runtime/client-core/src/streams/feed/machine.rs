//! A feed without its sockets. It decides which connection carries which topics, what is polled,
//! and which frames reach the consumer.
//!
//! Events enter through [`FeedMachine::handle`], actions leave through [`FeedMachine::poll`], and
//! [`FeedMachine::timeout_ms`] is the time of the next [`FeedInput::Tick`]. Time is in milliseconds
//! of a clock that never goes back.
//!
//! Each kind of topic has its own connection. So a venue that refuses one kind, or closes the
//! connection because of it, does not interrupt the others.
//!
//! This module contains no sockets and no requests, and it does not wait.

use std::collections::{BTreeMap, VecDeque};

use windvane_protocol::market_stream::{CommandAnswer, Feed, MarketStreamFrame, Topic};
use windvane_protocol::route::{Route, Surface};
use windvane_protocol::wire::Parameters;

use crate::budget::polling::{PollingError, plan};
use crate::outcome::NotDone;
use crate::settings::MarketData;

use super::super::machine::{Action, Emit, Input, LinkId, Machine};
use super::super::{
    BATCH, GapReason, MarketPath, Obstacle, StreamSettings, command_answer, is_documented, millis,
    rules, subscriptions,
};
use super::poll_requests::{PollId, PollRequests, Troubled};
use super::{
    Allowed, Attempt, Decision, FeedItem, FrameClass, Memory, Next, Rules, Source, Sources, Why,
    classify, feed_of, polled,
};

/// A frame in the owner's representation.
pub trait Text: AsRef<str> {
    /// Another text that arrived at the same time.
    #[must_use]
    fn with_text(&self, text: String) -> Self;
}

impl Text for String {
    fn with_text(&self, text: String) -> Self {
        text
    }
}

/// The parameters of a feed.
#[derive(Clone, Debug)]
pub struct FeedTerms {
    /// Surface.
    pub surface: Surface,
    /// The topics.
    pub topics: Vec<Topic>,
    /// Where market data may come from.
    pub mode: MarketData,
    /// Settings of the connections.
    pub settings: StreamSettings,
    /// Weight per minute that polling may use.
    pub polling_weight: u32,
}

/// Why a feed cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    /// There is no topic to subscribe.
    #[error("a market stream needs at least one topic")]
    NoTopics,
    /// A topic that must be polled cannot be polled.
    #[error("market_data is \"documented\", so it has to be polled: {0}")]
    Polling(#[from] PollingError),
}

/// An event for the feed.
#[derive(Clone, Debug)]
pub enum FeedInput<F> {
    /// Time passed.
    Tick,
    /// A connection is open.
    Opened(LinkId),
    /// A connection could not be opened.
    NotOpened {
        /// The connection.
        link: LinkId,
        /// HTTP status of the refusal.
        status: Option<u16>,
        /// The reason.
        why: String,
        /// The pause that the venue requested, if it stated one.
        pause_ms: Option<u64>,
    },
    /// A connection was not tried, because the venue accepts no requests for so many milliseconds.
    Held(LinkId, u64),
    /// A text frame.
    Text(LinkId, F),
    /// The response to a PING.
    Pong(LinkId),
    /// A connection was closed or broke.
    Closed(LinkId),
    /// The result of a polling request.
    Answered {
        /// The request.
        poll: PollId,
        /// Its response.
        result: Result<F, NotDone>,
        /// The venue's clock, Unix milliseconds.
        venue_ms: i64,
    },
}

/// An action for the driver.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedOutput<F> {
    /// Open a connection at this path.
    Open(LinkId, MarketPath),
    /// Send a message.
    Send(LinkId, String),
    /// Send a PING.
    Ping(LinkId),
    /// Close a connection, or give up opening it.
    Close(LinkId),
    /// Send a request to the venue; [`FeedInput::Answered`] is the reply.
    Poll(PollId, &'static Route, Parameters),
    /// A frame of a connection. The driver must decode it and call [`FeedMachine::frame_verdict`].
    Frame(ConnectionId, F),
    /// Pass the item to the consumer. A [`FeedItem::Frame`] comes from polling.
    Item(FeedItem<F>),
}

/// Number of a connection, which all its replacements share. It is the upper half of their link
/// ids, starting at 1.
pub type ConnectionId = u64;

/// The decision about a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Pass it to the consumer.
    Pass,
    /// Pass it to the consumer with this text.
    PassAs(String),
    /// Drop it.
    Drop,
}

/// Topics of one kind, at most as many as one connection carries, and their connection.
#[derive(Debug)]
struct Group<F> {
    topics: Vec<usize>,
    attempt: Attempt,
    connection: Option<Connection<F>>,
}

#[derive(Debug)]
struct Connection<F> {
    id: ConnectionId,
    machine: Machine<F>,
    /// The topics of each SUBSCRIBE, in the order of the command ids, which start at 1.
    subscribed: Vec<Vec<usize>>,
    /// When the machine needs the next tick.
    due_ms: u64,
}

/// See the module documentation.
#[derive(Debug)]
pub struct FeedMachine<F> {
    surface: Surface,
    mode: MarketData,
    settings: StreamSettings,
    topics: Vec<Topic>,
    /// Index of each topic by its name.
    places: BTreeMap<String, usize>,
    memory: Vec<Memory>,
    groups: Vec<Group<F>>,
    /// Number of connections that were started.
    opened: ConnectionId,
    sources: Sources,
    tick_ms: u64,
    poll_requests: PollRequests,
    /// The topics that are polled now.
    polled: Vec<usize>,
    polling_weight: u32,
    outputs: VecDeque<FeedOutput<F>>,
}

/// Maximum number of groups of one kind that may fail. With more, halving stops.
const FAILING_MAX: usize = 4;
/// Bits of a link id that distinguish the links of one connection.
const LINK_BITS: u32 = 32;

/// The connection that a link belongs to.
pub const fn connection_of(link: LinkId) -> ConnectionId {
    link >> LINK_BITS
}

impl<F: Text> FeedMachine<F> {
    /// A feed that opens its first connections at `now_ms`.
    ///
    /// # Errors
    /// There is no topic, or a topic that must be polled cannot be polled.
    pub fn new(now_ms: u64, terms: FeedTerms) -> Result<Self, FeedError> {
        let FeedTerms {
            surface,
            mut topics,
            mode,
            settings,
            polling_weight,
        } = terms;
        if topics.is_empty() {
            return Err(FeedError::NoTopics);
        }
        topics.sort();
        topics.dedup();
        let allowed = topics.iter();
        let allowed: Vec<_> = allowed
            .map(|topic| Allowed::new(mode, surface, topic, &settings))
            .collect();
        if mode == MarketData::Documented {
            let polled = topics.iter().filter(|topic| !is_documented(topic));
            let polled: Vec<Topic> = polled.cloned().collect();
            plan(surface, &polled, polling_weight)?;
        }
        let mut feed = Self {
            surface,
            mode,
            places: topics.iter().map(Topic::to_string).zip(0..).collect(),
            memory: topics.iter().map(|_| Memory::default()).collect(),
            groups: Vec::new(),
            opened: 0,
            sources: Sources::new(Rules::new(&settings), now_ms, &allowed),
            tick_ms: 0,
            poll_requests: PollRequests::default(),
            polled: Vec::new(),
            polling_weight,
            outputs: VecDeque::new(),
            topics,
            settings,
        };
        feed.open_groups(now_ms);
        feed.carry_out(now_ms);
        Ok(feed)
    }

    /// Handles an event. Drain [`Self::poll`] afterwards.
    pub fn handle(&mut self, now_ms: u64, input: FeedInput<F>) {
        match input {
            FeedInput::Tick => self.tick(now_ms),
            FeedInput::Opened(link) => self.link(now_ms, link, Input::Opened),
            FeedInput::Held(link, pause_ms) => {
                self.link(now_ms, link, |link| Input::NotOpened(link, Some(pause_ms)));
            }
            FeedInput::NotOpened {
                link,
                status,
                why,
                pause_ms,
            } => {
                let obstacle = Obstacle::NotOpened { status, why };
                if let Some(group) = self.group_of(connection_of(link)) {
                    self.failed(now_ms, group, obstacle);
                }
                self.link(now_ms, link, |link| Input::NotOpened(link, pause_ms));
            }
            FeedInput::Text(link, frame) => {
                if let Some(answer) = command_answer(frame.as_ref()) {
                    if let Some(group) = self.group_of(connection_of(link)) {
                        self.command_answered(now_ms, group, answer);
                    }
                    // A refused topic does not count as connected, so apply the refusal first.
                    self.carry_out(now_ms);
                    self.link(now_ms, link, Input::Answer);
                } else {
                    self.link(now_ms, link, |link| Input::Frame(link, frame));
                }
            }
            FeedInput::Pong(link) => self.link(now_ms, link, Input::Pong),
            FeedInput::Closed(link) => self.link(now_ms, link, Input::Closed),
            FeedInput::Answered {
                poll,
                result,
                venue_ms,
            } => self.answered(now_ms, poll, result, venue_ms),
        }
        self.carry_out(now_ms);
    }

    /// The next action.
    pub fn poll(&mut self) -> Option<FeedOutput<F>> {
        self.outputs.pop_front()
    }

    /// When the next [`FeedInput::Tick`] is due.
    pub fn timeout_ms(&self) -> u64 {
        let connections = self.groups.iter().flat_map(|group| &group.connection);
        let connections = connections.map(|connection| connection.due_ms).min();
        let connections = connections.unwrap_or(u64::MAX);
        self.tick_ms
            .min(connections)
            .min(self.poll_requests.timeout_ms())
    }

    /// Sets the weight per minute that polling may use from the next plan on.
    pub const fn set_polling_weight(&mut self, weight: u32) {
        self.polling_weight = weight;
    }

    /// Whether any topic is streamed now.
    pub fn is_streamed(&self) -> bool {
        (0..self.topics.len()).any(|at| self.sources.is_streamed(at))
    }

    /// The current source of a topic; `None` if the feed does not have the topic.
    pub fn source(&self, topic: &Topic) -> Option<Source> {
        let at = self.places.get(&topic.to_string())?;
        Some(self.sources.source(*at))
    }

    /// Decides what to do with a frame of [`FeedOutput::Frame`] and its decoded content (`None` if
    /// it cannot be read). Drain [`Self::poll`] afterwards.
    pub fn frame_verdict(
        &mut self,
        now_ms: u64,
        connection: ConnectionId,
        (text, decoded): (&str, Option<&MarketStreamFrame<'_>>),
    ) -> Verdict {
        let Some(group) = self.group_of(connection) else {
            return Verdict::Drop;
        };
        let carried = &self.groups[group].topics;
        let verdict = match classify(text, decoded, carried, &self.topics, &self.places) {
            FrameClass::Other => Verdict::Pass,
            FrameClass::Answer(answer) => {
                self.command_answered(now_ms, group, answer);
                Verdict::Drop
            }
            FrameClass::Topic {
                at,
                wrapped,
                trade_id,
            } if self.sources.is_streamed(at) => {
                self.sources.spoke(now_ms, at);
                if self.memory[at].is_fresh(&self.topics[at], trade_id) {
                    wrapped.map_or(Verdict::Pass, Verdict::PassAs)
                } else {
                    Verdict::Drop
                }
            }
            // The stream of this topic was given up, and another source serves it. A single frame
            // does not change that.
            FrameClass::Topic { .. } | FrameClass::Stray => Verdict::Drop,
        };
        self.carry_out(now_ms);
        verdict
    }

    fn tick(&mut self, now_ms: u64) {
        if self.tick_ms <= now_ms {
            self.sources.tick(now_ms);
            self.tick_ms = self.sources.timeout_ms();
        }
        let due = self.groups.iter().flat_map(|group| &group.connection);
        let due = due.filter(|connection| connection.due_ms <= now_ms);
        let due: Vec<ConnectionId> = due.map(|connection| connection.id).collect();
        for connection in due {
            self.connection(now_ms, connection, Input::Tick);
        }
        for (id, route, parameters) in self.poll_requests.due(now_ms) {
            self.outputs
                .push_back(FeedOutput::Poll(id, route, parameters));
        }
    }

    fn group_of(&self, connection: ConnectionId) -> Option<usize> {
        let is_it = |group: &Group<F>| group.id() == Some(connection);
        self.groups.iter().position(is_it)
    }

    fn link(&mut self, now_ms: u64, link: LinkId, input: impl FnOnce(LinkId) -> Input<F>) {
        let (connection, link) = (connection_of(link), link & ((1 << LINK_BITS) - 1));
        self.connection(now_ms, connection, input(link));
    }

    /// Passes an event to a connection and carries out its actions.
    fn connection(&mut self, now_ms: u64, id: ConnectionId, input: Input<F>) {
        let Some(group) = self.group_of(id) else {
            return;
        };
        let Some(connection) = &mut self.groups[group].connection else {
            return;
        };
        connection.machine.handle(now_ms, input);
        // An action may replace the connection of the group.
        while let Some(group) = self.group_of(id)
            && let Some(connection) = &mut self.groups[group].connection
        {
            connection.due_ms = connection.machine.timeout_ms(now_ms);
            let Some(action) = connection.machine.poll_action() else {
                return;
            };
            self.act(now_ms, (group, id), action);
        }
    }

    fn act(&mut self, now_ms: u64, (group, id): (usize, ConnectionId), action: Action<F>) {
        let of = |link| id << LINK_BITS | link;
        let output = match action {
            Action::Open(link, _) => FeedOutput::Open(of(link), self.groups[group].attempt.path),
            Action::Send(link, text) => FeedOutput::Send(of(link), text),
            Action::Ping(link) => FeedOutput::Ping(of(link)),
            Action::Close(link) => FeedOutput::Close(of(link)),
            Action::Emit(Emit::Frame(frame)) => FeedOutput::Frame(id, frame),
            Action::Emit(Emit::Connected) => {
                let topics = self.groups[group].topics.clone();
                for at in &topics {
                    self.sources.subscribed(*at);
                }
                self.groups[group].attempt.stands();
                let topics = self.named(&topics);
                FeedOutput::Item(FeedItem::Connected { topics })
            }
            Action::Emit(Emit::Gap(reason)) => return self.gap(now_ms, group, reason),
            Action::Emit(Emit::NotSubscribed(reason)) => {
                return self.failed(now_ms, group, Obstacle::NotSubscribed(reason));
            }
            // Public streams have no listen key.
            Action::CreateKey | Action::RenewKey(_) | Action::Emit(Emit::Alive(_)) => return,
        };
        self.outputs.push_back(output);
    }

    fn gap(&mut self, now_ms: u64, group: usize, reason: GapReason) {
        let topics = self.groups[group].topics.clone();
        for at in &topics {
            self.sources.lost(now_ms, *at);
        }
        self.tick_ms = self.sources.timeout_ms();
        let topics = self.named(&topics);
        self.item(FeedItem::Gap { topics, reason });
    }

    fn failed(&mut self, now_ms: u64, group: usize, why: Obstacle) {
        let topics = self.groups[group].topics.clone();
        match self.groups[group].attempt.next(&why) {
            Next::Wait => {}
            Next::Reopen => self.reopen(now_ms, group),
            Next::GiveUp(Why::Unsubscribable) if self.may_halve(group) => {
                self.halve(now_ms, group);
            }
            Next::GiveUp(why) => {
                for at in &topics {
                    if self.sources.can_do_without(*at) {
                        self.sources.no_stream(*at, why.clone());
                    }
                }
            }
        }
        let topics = self.named(&topics);
        self.item(FeedItem::Failed { topics, why });
    }

    /// The refusal of a batch does not show which topic caused it, so each topic is then subscribed
    /// separately.
    fn command_answered(&mut self, now_ms: u64, group: usize, answer: CommandAnswer) {
        let Err(error) = answer.result else { return };
        let group_state = &mut self.groups[group];
        let subscribed = group_state.connection.as_ref().map(|one| &one.subscribed);
        let place = answer.id.and_then(|id| usize::try_from(id - 1).ok());
        let of_command = subscribed.zip(place).and_then(|(all, at)| all.get(at));
        let refused = of_command.unwrap_or(&group_state.topics).clone();
        if refused.len() > 1 && !group_state.attempt.is_apart {
            group_state.attempt.is_apart = true;
            return self.reopen(now_ms, group);
        }
        for at in refused {
            self.sources.no_stream(at, Why::Refused(error.to_string()));
        }
    }

    fn answered(&mut self, now_ms: u64, poll: PollId, result: Result<F, NotDone>, venue_ms: i64) {
        let (text, not_done) = match result {
            Ok(text) => (Some(text), None),
            Err(not_done) => (None, Some(not_done)),
        };
        let Some((topics, trouble)) = self.poll_requests.answered(now_ms, poll, not_done) else {
            return;
        };
        let places = topics.iter().map(|topic| self.places[&topic.to_string()]);
        // The stream may have recovered while the request was in flight. Then the response is older
        // than the stream.
        let places: Vec<usize> = places.filter(|at| self.sources.is_polled(*at)).collect();
        match (text, trouble) {
            (Some(text), _) => self.polled(now_ms, &places, &text, venue_ms),
            (None, Some(Troubled::Finally(why))) => {
                for at in places {
                    let why = Why::NotAnswered(why.clone());
                    self.sources.no_polling(now_ms, at, why);
                }
            }
            (None, Some(Troubled::ForNow(why))) if !places.is_empty() => {
                let topics = self.named(&places);
                self.item(FeedItem::NotPolled { topics, why });
            }
            (None, _) => {}
        }
    }

    fn polled(&mut self, now_ms: u64, places: &[usize], text: &F, venue_ms: i64) {
        for at in places.iter().copied() {
            let topic = &self.topics[at];
            let memory = &mut self.memory[at];
            match polled(topic, self.surface, venue_ms, text.as_ref(), memory) {
                Ok(polled) => {
                    self.sources.answered(now_ms, at, polled.is_news);
                    for frame in polled.frames {
                        self.item(FeedItem::Frame(text.with_text(frame)));
                    }
                }
                Err(error) => {
                    let (topics, why) = (vec![topic.clone()], error.to_string());
                    self.item(FeedItem::NotPolled { topics, why });
                }
            }
        }
        self.tick_ms = self.sources.timeout_ms();
    }

    /// Carries out the decisions of [`Sources`].
    fn carry_out(&mut self, now_ms: u64) {
        let mut has_changed = false;
        while let Some(decision) = self.sources.poll_decision() {
            match decision {
                Decision::Restart(at) => self.restart(now_ms, at),
                Decision::Serve(at, source, why) => {
                    has_changed = true;
                    let topic = self.topics[at].clone();
                    self.item(FeedItem::Source { topic, source, why });
                }
            }
        }
        if has_changed {
            for group in 0..self.groups.len() {
                if self.streamed(group).is_empty() {
                    self.close(group);
                }
            }
            self.plan_polling(now_ms);
            self.tick_ms = self.sources.timeout_ms();
        }
    }

    fn restart(&mut self, now_ms: u64, at: usize) {
        let with_it = self
            .groups
            .iter()
            .filter(|group| group.topics.contains(&at));
        let with_it: Vec<_> = with_it.filter_map(Group::id).collect();
        for connection in with_it {
            self.connection(now_ms, connection, Input::Restart);
        }
    }

    /// Makes a new polling plan if the set of polled topics has changed.
    fn plan_polling(&mut self, now_ms: u64) {
        let all = 0..self.topics.len();
        let polled: Vec<usize> = all.filter(|at| self.sources.is_polled(*at)).collect();
        if polled == self.polled {
            return;
        }
        let topics = self.named(&polled);
        self.polled = polled;
        match plan(self.surface, &topics, self.polling_weight) {
            Ok(polls) => self.poll_requests.replace(now_ms, polls),
            Err(error) => {
                self.poll_requests.replace(now_ms, Vec::new());
                let why = error.to_string();
                self.item(FeedItem::NotPolled { topics, why });
            }
        }
    }

    fn item(&mut self, item: FeedItem<F>) {
        self.outputs.push_back(FeedOutput::Item(item));
    }

    fn named(&self, topics: &[usize]) -> Vec<Topic> {
        topics.iter().map(|at| self.topics[*at].clone()).collect()
    }
}

/// Management of the connections.
impl<F: Text> FeedMachine<F> {
    /// Opens a group for each kind of streamed topic, or several if one connection cannot carry
    /// them all.
    fn open_groups(&mut self, now_ms: u64) {
        let mut kinds: BTreeMap<Option<Feed>, Vec<usize>> = BTreeMap::new();
        for (at, topic) in self.topics.iter().enumerate() {
            if self.sources.is_streamed(at) {
                kinds.entry(feed_of(topic)).or_default().push(at);
            }
        }
        let most = self.settings.streams_max(self.surface);
        for topics in kinds.into_values() {
            for topics in topics.chunks(most) {
                let attempt = self.first_attempt();
                self.begin_group(now_ms, topics.to_vec(), attempt);
            }
        }
    }

    fn first_attempt(&self) -> Attempt {
        Attempt::first(self.mode, &self.settings)
    }

    fn begin_group(&mut self, now_ms: u64, topics: Vec<usize>, attempt: Attempt) {
        self.groups.push(Group {
            topics,
            attempt,
            connection: None,
        });
        self.open(now_ms, self.groups.len() - 1);
    }

    /// Replaces the connection of a group, without the topics that have no stream.
    fn reopen(&mut self, now_ms: u64, group: usize) {
        self.groups[group].topics = self.streamed(group);
        self.open(now_ms, group);
    }

    fn open(&mut self, now_ms: u64, group: usize) {
        self.close(group);
        self.opened += 1;
        let id = self.opened;
        let Group {
            topics, attempt, ..
        } = &self.groups[group];
        let batch = if attempt.is_apart { 1 } else { BATCH };
        let salt = 16 + self.surface as u64 + 4 * id;
        let mut rules = rules(&self.settings, salt);
        rules.link.silence_max_ms = self.settings.silence_max.map(millis);
        rules.commands = subscriptions(&self.named(topics), batch, 0);
        self.groups[group].connection = Some(Connection {
            id,
            machine: Machine::new(rules, now_ms),
            subscribed: topics.chunks(batch).map(<[usize]>::to_vec).collect(),
            due_ms: now_ms,
        });
        self.connection(now_ms, id, Input::Tick);
    }

    fn close(&mut self, group: usize) {
        let Some(connection) = self.groups[group].connection.take() else {
            return;
        };
        for link in connection.machine.links() {
            let link = connection.id << LINK_BITS | link;
            self.outputs.push_back(FeedOutput::Close(link));
        }
    }

    /// Replaces one connection by two. Repeated halving isolates a topic because of which the venue
    /// closes the connection.
    fn halve(&mut self, now_ms: u64, group: usize) {
        let mut topics = self.streamed(group);
        let others = topics.split_off(topics.len() / 2);
        let attempt = self.first_attempt();
        self.groups[group].topics = topics;
        self.groups[group].attempt = attempt;
        self.open(now_ms, group);
        self.begin_group(now_ms, others, attempt);
    }

    /// Whether halving makes sense. If many groups of a kind fail, the whole kind is the cause. The
    /// venue may block an address that is disconnected again and again
    /// (docs/interface/limits.md#websocket-limits).
    fn may_halve(&self, group: usize) -> bool {
        let kind = |group: &Group<F>| group.topics.first().map(|at| feed_of(&self.topics[*at]));
        // Groups that were given up count as well.
        let failing = self.groups.iter().filter(|other| {
            let is_failing = !other.attempt.has_stood && other.topics.len() > 1;
            is_failing && kind(other) == kind(&self.groups[group])
        });
        self.streamed(group).len() > 1 && failing.count() < FAILING_MAX
    }

    /// The topics of a group that have a stream.
    fn streamed(&self, group: usize) -> Vec<usize> {
        let topics = self.groups[group].topics.iter().copied();
        topics.filter(|at| self.sources.is_streamed(*at)).collect()
    }
}

impl<F> Group<F> {
    fn id(&self) -> Option<ConnectionId> {
        Some(self.connection.as_ref()?.id)
    }
}
