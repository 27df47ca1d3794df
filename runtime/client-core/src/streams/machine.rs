//! A stream that recovers by itself: its connections, their replacement, and the listen key.
//!
//! Events enter through [`Machine::handle`], actions leave through [`Machine::poll_action`], and
//! [`Machine::timeout_ms`] is the time of the next [`Input::Tick`]. Time is in milliseconds of a
//! clock that never goes back.
//!
//! This module contains no sockets and no requests. It does not wait, and it does not decode
//! events.

use std::collections::VecDeque;

use windvane_protocol::planted;

use super::GapReason;
use super::backoff::{Backoff, up_to};
use super::link::{Link, Wish};
use super::overlap::Overlap;
use windvane_model::random::SplitMix64;

pub use super::link::{LinkId, LinkRules};

/// The rules of a stream.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Rules of each connection.
    pub link: LinkRules,
    /// First and longest pause between attempts.
    pub backoff_ms: (u64, u64),
    /// A connection of this age is replaced.
    pub age_max_ms: u64,
    /// Time for which the old and the new connection run in parallel.
    pub overlap_ms: u64,
    /// A listen key must arrive, and a connection must open, within this time.
    pub connect_within_ms: u64,
    /// A connection that lived this long resets the pause between attempts.
    pub good_after_ms: u64,
    /// Renewal of the listen key, if the stream has one.
    pub key: Option<KeyRules>,
    /// Sent on each new connection. Each command is answered.
    pub commands: Vec<String>,
    /// Seed of the random part of pauses.
    pub seed: u64,
}

/// How a listen key is kept alive.
#[derive(Clone, Debug)]
pub struct KeyRules {
    /// The key is renewed after this time, or up to a quarter of it later.
    pub renew_every_ms: u64,
    /// Lifetime of a key that is not renewed.
    pub life_ms: u64,
}

/// An event for the machine.
#[derive(Clone, Debug)]
pub enum Input<F> {
    /// Time has passed.
    Tick,
    /// Reply to [`Action::CreateKey`]; an error has the pause that the venue requested.
    Key(Result<String, Option<u64>>),
    /// Reply to [`Action::RenewKey`].
    Renewed(Renewal),
    /// The connection is open.
    Opened(LinkId),
    /// The connection could not be opened; with the pause that the venue requested, if it stated
    /// one.
    NotOpened(LinkId, Option<u64>),
    /// A text frame.
    Frame(LinkId, F),
    /// The answer to a command.
    Answer(LinkId),
    /// The reply to [`Action::Ping`].
    Pong(LinkId),
    /// The connection was closed or broke.
    Closed(LinkId),
    /// The venue reported on the stream that the key has expired; with the event's time.
    KeyExpired(LinkId, i64),
    /// The consumer requests a new connection.
    Restart,
}

/// The result of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The key was renewed.
    Done,
    /// The response was lost, or it does not show the state of the key.
    Failed,
    /// The venue no longer knows the key.
    Dead,
}

/// An action for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<F> {
    /// Request a listen key; [`Input::Key`] is the reply.
    CreateKey,
    /// Renew this listen key; [`Input::Renewed`] is the reply.
    RenewKey(String),
    /// Open a connection, with the key if the stream has one.
    Open(LinkId, Option<String>),
    /// Send a command.
    Send(LinkId, String),
    /// Send a PING.
    Ping(LinkId),
    /// Close a connection, or stop opening it. [`Input::Closed`] need not follow.
    Close(LinkId),
    /// Pass this to the consumer.
    Emit(Emit<F>),
}

/// Output for the consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Emit<F> {
    /// A frame. Each one is passed once and in order.
    Frame(F),
    /// A connection is open and everything is subscribed.
    Connected,
    /// Frames may be missed until the next [`Self::Connected`].
    Gap(GapReason),
    /// A connection was lost before everything was subscribed.
    NotSubscribed(GapReason),
    /// A PING was answered after so many milliseconds.
    Alive(u64),
}

/// The state of opening the next connection.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Attempt {
    None,
    Waiting { until_ms: u64 },
    Key { by_ms: u64 },
    Opening { link: LinkId, by_ms: u64 },
}

#[derive(Clone, Debug)]
struct Key {
    text: String,
    renew_ms: u64,
    dead_ms: u64,
    is_renewing: bool,
}

/// A stream. It has at most two connections; the later one replaces the earlier one.
#[derive(Clone, Debug)]
pub struct Machine<F> {
    rules: Rules,
    random: SplitMix64,
    backoff: Backoff,
    attempt: Attempt,
    /// The connection whose frames reach the consumer.
    leader: Option<Link>,
    /// The connection that will replace it.
    follower: Option<Link>,
    overlap: Option<Overlap<F>>,
    /// Since when the follower is ready.
    ready_ms: Option<u64>,
    /// After a replacement: the time until which the old connection's frames are remembered.
    forget_ms: Option<u64>,
    key: Option<Key>,
    /// Event times of the last expiries that were acted on.
    expiries_ms: VecDeque<i64>,
    is_connected: bool,
    next_link: LinkId,
    actions: VecDeque<Action<F>>,
}

/// Number of listen key expiries to remember: more than a venue repeats on a new connection.
const EXPIRIES: usize = 64;

impl<F: AsRef<str>> Machine<F> {
    /// A stream that opens its first connection at once.
    pub fn new(rules: Rules, now_ms: u64) -> Self {
        Self {
            random: SplitMix64::new(rules.seed),
            backoff: Backoff::new(rules.backoff_ms.0, rules.backoff_ms.1),
            attempt: Attempt::Waiting { until_ms: now_ms },
            leader: None,
            follower: None,
            overlap: None,
            ready_ms: None,
            forget_ms: None,
            key: None,
            expiries_ms: VecDeque::new(),
            is_connected: false,
            next_link: 0,
            actions: VecDeque::new(),
            rules,
        }
    }

    /// Handles an event. Drain [`Self::poll_action`] afterwards.
    pub fn handle(&mut self, now_ms: u64, input: Input<F>) {
        match input {
            Input::Tick => {}
            Input::Key(key) => self.key_received(now_ms, key),
            Input::Renewed(renewal) => self.renewed(now_ms, renewal),
            Input::Opened(id) => self.opened(now_ms, id),
            Input::NotOpened(id, pause_ms) => self.not_opened(now_ms, id, pause_ms),
            Input::Frame(id, frame) => self.frame(now_ms, id, frame),
            Input::Answer(id) => {
                if let Some(link) = self.link(id) {
                    link.frame(now_ms);
                    link.answered(now_ms);
                }
            }
            Input::Pong(id) => {
                if let Some(round_trip) = self.link(id).and_then(|link| link.pong(now_ms)) {
                    self.emit(Emit::Alive(round_trip));
                }
            }
            Input::Closed(id) => self.lost(now_ms, id, GapReason::Closed),
            Input::KeyExpired(id, event_ms) => self.key_expired(now_ms, id, event_ms),
            Input::Restart => {
                if let Some(id) = self.leader.as_ref().map(|leader| leader.id) {
                    self.actions.push_back(Action::Close(id));
                    self.lost(now_ms, id, GapReason::Requested);
                }
            }
        }
        self.advance(now_ms);
    }

    /// The next action.
    pub fn poll_action(&mut self) -> Option<Action<F>> {
        self.actions.pop_front()
    }

    /// When the next [`Input::Tick`] is due.
    pub fn timeout_ms(&mut self, now_ms: u64) -> u64 {
        let attempt = match self.attempt {
            Attempt::None => None,
            Attempt::Waiting { until_ms } => Some(until_ms),
            Attempt::Key { by_ms } | Attempt::Opening { by_ms, .. } => Some(by_ms),
        };
        let key = self.key.as_ref().map(|key| {
            let renew_ms = if key.is_renewing {
                u64::MAX
            } else {
                key.renew_ms
            };
            renew_ms.min(key.dead_ms)
        });
        let leader = self.leader.as_ref().filter(|_| self.may_replace());
        let age = leader.map(|link| link.opened_ms + self.rules.age_max_ms);
        let switch = self
            .ready_ms
            .map(|ready_ms| ready_ms + self.rules.overlap_ms);
        let links = self.leader.iter_mut().chain(self.follower.iter_mut());
        let links = links.map(|link| link.timeout_ms(now_ms)).min();
        let due = [attempt, key, age, switch, links, self.forget_ms];
        due.into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// The connections that are open or being opened.
    pub fn links(&self) -> impl Iterator<Item = LinkId> {
        let opening = match self.attempt {
            Attempt::Opening { link, .. } => Some(link),
            _ => None,
        };
        let links = self.leader.iter().chain(&self.follower);
        links.map(|link| link.id).chain(opening)
    }

    fn advance(&mut self, now_ms: u64) {
        self.advance_links(now_ms);
        self.advance_key(now_ms);
        self.advance_overlap(now_ms);
        self.advance_attempt(now_ms);
    }

    fn advance_links(&mut self, now_ms: u64) {
        for id in [&self.leader, &self.follower].map(|link| link.as_ref().map(|link| link.id)) {
            let Some(id) = id else { continue };
            while let Some(wish) = self.link(id).and_then(|link| link.poll(now_ms)) {
                match wish {
                    Wish::Ping => self.actions.push_back(Action::Ping(id)),
                    Wish::Send(text) => self.actions.push_back(Action::Send(id, text)),
                    Wish::Lost(reason) => {
                        self.actions.push_back(Action::Close(id));
                        self.lost(now_ms, id, reason);
                    }
                }
            }
        }
        let leads = self.leader.as_ref().is_some_and(Link::is_ready);
        if leads && !self.is_connected {
            self.is_connected = true;
            self.emit(Emit::Connected);
        }
        let lived = self.leader.as_ref().map(|link| now_ms - link.opened_ms);
        if lived.is_some_and(|lived| lived >= self.rules.good_after_ms) {
            self.backoff.reset();
        }
    }

    fn advance_key(&mut self, now_ms: u64) {
        let Some(key) = &mut self.key else { return };
        if key.dead_ms <= now_ms {
            self.key_died(now_ms, GapReason::KeyDead);
        } else if key.renew_ms <= now_ms && !key.is_renewing {
            key.is_renewing = true;
            let action = Action::RenewKey(key.text.clone());
            self.actions.push_back(action);
        }
    }

    /// Replaces a connection as planned, before the venue ends it.
    fn advance_overlap(&mut self, now_ms: u64) {
        if self.forget_ms.is_some_and(|forget_ms| forget_ms <= now_ms) {
            self.forget_ms = None;
            self.overlap = None;
        }
        if self.ready_ms.is_none() && self.follower.as_ref().is_some_and(Link::is_ready) {
            self.ready_ms = Some(now_ms);
        }
        let switch_ms = self
            .ready_ms
            .map(|ready_ms| ready_ms + self.rules.overlap_ms);
        if switch_ms.is_some_and(|switch_ms| switch_ms <= now_ms) {
            self.switch(now_ms);
        }
        let age = self.leader.as_ref().map(|link| now_ms - link.opened_ms);
        let is_old = age.is_some_and(|age| age >= self.rules.age_max_ms);
        if is_old && self.may_replace() {
            self.attempt = Attempt::Waiting { until_ms: now_ms };
        }
    }

    /// Only one replacement runs at a time, including the time in which old frames are remembered.
    fn may_replace(&self) -> bool {
        self.attempt == Attempt::None && self.follower.is_none() && self.forget_ms.is_none()
    }

    fn advance_attempt(&mut self, now_ms: u64) {
        match self.attempt {
            Attempt::Waiting { until_ms } if until_ms <= now_ms => {
                if self.rules.key.is_some() {
                    // Each connection asks for its own key. Creating one returns the living key and
                    // prolongs it, or returns a new key if the old one expired unnoticed.
                    self.attempt = Attempt::Key {
                        by_ms: now_ms + self.rules.connect_within_ms,
                    };
                    self.actions.push_back(Action::CreateKey);
                } else {
                    self.open(now_ms, None);
                }
            }
            Attempt::Key { by_ms } if by_ms <= now_ms => self.retry(now_ms, None),
            Attempt::Opening { link, by_ms } if by_ms <= now_ms => {
                self.actions.push_back(Action::Close(link));
                self.retry(now_ms, None);
            }
            _ => {}
        }
    }

    fn open(&mut self, now_ms: u64, key: Option<String>) {
        let link = self.next_link;
        self.next_link += 1;
        if self.leader.is_some() {
            self.overlap = Some(Overlap::new());
            self.forget_ms = None;
        }
        self.attempt = Attempt::Opening {
            link,
            by_ms: now_ms + self.rules.connect_within_ms,
        };
        self.actions.push_back(Action::Open(link, key));
    }

    fn retry(&mut self, now_ms: u64, pause_ms: Option<u64>) {
        // Without a second connection there is nothing to compare with, so drop the remembered
        // frames. They would only grow until the next attempt.
        if self.follower.is_none() && self.forget_ms.is_none() {
            self.overlap = None;
        }
        let pause = self.backoff.next_ms(&mut self.random);
        self.attempt = Attempt::Waiting {
            until_ms: now_ms + pause.max(pause_ms.unwrap_or(0)),
        };
    }

    fn key_received(&mut self, now_ms: u64, key: Result<String, Option<u64>>) {
        if !matches!(self.attempt, Attempt::Key { .. }) {
            return;
        }
        match key {
            Ok(text) => {
                self.keep_key(now_ms, text.clone());
                self.open(now_ms, Some(text));
            }
            Err(pause_ms) => self.retry(now_ms, pause_ms),
        }
    }

    fn keep_key(&mut self, now_ms: u64, text: String) {
        let Some(rules) = &self.rules.key else { return };
        let later = up_to(&mut self.random, rules.renew_every_ms / 4);
        self.key = Some(Key {
            text,
            renew_ms: now_ms + rules.renew_every_ms + later,
            dead_ms: now_ms + rules.life_ms,
            is_renewing: false,
        });
    }

    fn renewed(&mut self, now_ms: u64, renewal: Renewal) {
        let Some(key) = &mut self.key else { return };
        if !key.is_renewing {
            return;
        }
        match renewal {
            Renewal::Done => {
                let text = key.text.clone();
                self.keep_key(now_ms, text);
            }
            Renewal::Failed => {
                key.is_renewing = false;
                key.renew_ms = now_ms + self.rules.backoff_ms.1;
            }
            Renewal::Dead => self.key_died(now_ms, GapReason::KeyDead),
        }
    }

    /// The venue may repeat its last events on a new connection
    /// (docs/interface/README.md#2-user-events-twice-or-out-of-order). So an expiry that was
    /// handled before does not concern the present key.
    fn key_expired(&mut self, now_ms: u64, id: LinkId, event_ms: i64) {
        let is_known = self.expiries_ms.contains(&event_ms);
        if self.link(id).is_none() || is_known || planted!(KeyExpiryIgnored) {
            return;
        }
        if self.expiries_ms.len() == EXPIRIES {
            self.expiries_ms.pop_front();
        }
        self.expiries_ms.push_back(event_ms);
        self.key_died(now_ms, GapReason::KeyExpired);
    }

    /// Connections of a dead key deliver nothing any more.
    fn key_died(&mut self, now_ms: u64, reason: GapReason) {
        self.key = None;
        let links = [self.leader.take(), self.follower.take()];
        for link in links.into_iter().flatten() {
            self.actions.push_back(Action::Close(link.id));
        }
        if let Attempt::Opening { link, .. } = self.attempt {
            self.actions.push_back(Action::Close(link));
        }
        self.end_overlap();
        self.gap(reason);
        self.retry(now_ms, None);
    }

    fn opened(&mut self, now_ms: u64, id: LinkId) {
        if !matches!(self.attempt, Attempt::Opening { link, .. } if link == id) {
            self.actions.push_back(Action::Close(id));
            return;
        }
        self.attempt = Attempt::None;
        let rules = self.rules.link.clone();
        let link = Link::new(id, now_ms, rules, self.rules.commands.clone());
        if self.leader.is_none() {
            self.leader = Some(link);
            self.end_overlap();
        } else {
            self.follower = Some(link);
        }
    }

    fn not_opened(&mut self, now_ms: u64, id: LinkId, pause_ms: Option<u64>) {
        if matches!(self.attempt, Attempt::Opening { link, .. } if link == id) {
            self.retry(now_ms, pause_ms);
        }
    }

    fn frame(&mut self, now_ms: u64, id: LinkId, frame: F) {
        if let Some(leader) = self.leader.as_mut().filter(|link| link.id == id) {
            leader.frame(now_ms);
            let is_fresh = match &mut self.overlap {
                None => true,
                // After a replacement the overlap knows what the old connection delivered.
                Some(overlap) if self.forget_ms.is_some() => overlap.is_fresh(&frame),
                Some(overlap) => {
                    overlap.passed(&frame);
                    true
                }
            };
            if is_fresh {
                self.emit(Emit::Frame(frame));
            }
        } else if let Some(follower) = self.follower.as_mut().filter(|link| link.id == id) {
            follower.frame(now_ms);
            let has_room = self
                .overlap
                .as_mut()
                .is_none_or(|overlap| overlap.hold(frame));
            if !has_room {
                self.switch(now_ms);
            }
        }
    }

    /// The follower becomes the leader, and the old connection is closed.
    fn switch(&mut self, now_ms: u64) {
        let Some(follower) = self.follower.take() else {
            return;
        };
        if let Some(old) = self.leader.replace(follower) {
            self.actions.push_back(Action::Close(old.id));
        }
        let held = self.overlap.as_mut().map(Overlap::take_over);
        for frame in held.into_iter().flatten() {
            self.emit(Emit::Frame(frame));
        }
        self.ready_ms = None;
        self.forget_ms = Some(now_ms + self.rules.overlap_ms * 4);
    }

    /// A connection was lost.
    fn lost(&mut self, now_ms: u64, id: LinkId, reason: GapReason) {
        if self.leader.as_ref().is_some_and(|link| link.id == id) {
            // The old connection was closed regularly. A ready follower has received everything
            // that the old one did not deliver.
            if reason == GapReason::Closed && self.ready_ms.is_some() {
                self.switch(now_ms);
                return;
            }
            self.leader = None;
            if self.is_connected {
                self.gap(reason);
            } else {
                self.emit(Emit::NotSubscribed(reason));
            }
            if self.follower.is_some() {
                self.switch(now_ms);
            } else if self.attempt == Attempt::None {
                self.retry(now_ms, None);
            }
        } else if self.follower.as_ref().is_some_and(|link| link.id == id) {
            self.follower = None;
            self.end_overlap();
            self.retry(now_ms, None);
        } else if matches!(self.attempt, Attempt::Opening { link, .. } if link == id) {
            self.retry(now_ms, None);
        }
    }

    fn end_overlap(&mut self) {
        self.overlap = None;
        self.ready_ms = None;
        self.forget_ms = None;
    }

    fn gap(&mut self, reason: GapReason) {
        let is_seamless = planted!(EndIsNoGap) && reason == GapReason::Closed;
        if self.is_connected && !is_seamless {
            self.is_connected = false;
            self.emit(Emit::Gap(reason));
        }
    }

    fn emit(&mut self, emit: Emit<F>) {
        self.actions.push_back(Action::Emit(emit));
    }

    fn link(&mut self, id: LinkId) -> Option<&mut Link> {
        let links = self.leader.iter_mut().chain(self.follower.iter_mut());
        links.into_iter().find(|link| link.id == id)
    }
}
