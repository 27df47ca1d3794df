//! One WebSocket connection: whether it is alive, what it may send, and how old it is.
//!
//! Only a PONG to our own PING proves that the connection is alive. A ping from the venue shows
//! that the venue can reach us, not that we can reach the venue.

use std::collections::VecDeque;

use windvane_protocol::planted;

use crate::budget::{Lane, Shares, Window};

use super::GapReason;

/// Identifies a connection. A stream never reuses an id.
pub type LinkId = u64;

/// Times and limits of a connection, in milliseconds.
#[derive(Clone, Debug)]
pub struct LinkRules {
    /// Interval of our PINGs.
    pub ping_every_ms: u64,
    /// A connection whose PONG takes longer counts as lost.
    pub pong_within_ms: u64,
    /// A connection without a frame for this time counts as lost, even if it answers PINGs.
    pub silence_max_ms: Option<u64>,
    /// A command must be answered within this time.
    pub answer_within_ms: u64,
    /// Messages per second to the venue. One of them is reserved for PONGs, which the socket sends
    /// by itself.
    pub messages_per_s: u32,
}

/// The next action of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Ping,
    Send(String),
    Lost(GapReason),
}

#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) id: LinkId,
    pub(super) opened_ms: u64,
    rules: LinkRules,
    frame_ms: u64,
    next_ping_ms: u64,
    pinged_ms: Option<u64>,
    messages: Window,
    queue: VecDeque<String>,
    unanswered: usize,
    /// When the last command was sent, or when an answer to an earlier command arrived.
    command_ms: Option<u64>,
}

impl Link {
    /// A connection that has just opened and must send these commands.
    pub(super) fn new(id: LinkId, now_ms: u64, rules: LinkRules, commands: Vec<String>) -> Self {
        let unanswered = commands.len();
        Self {
            id,
            opened_ms: now_ms,
            frame_ms: now_ms,
            next_ping_ms: now_ms + rules.ping_every_ms,
            pinged_ms: None,
            messages: Window::new(rules.messages_per_s.saturating_sub(1).max(1), 1_000),
            queue: commands.into(),
            unanswered,
            command_ms: None,
            rules,
        }
    }

    /// Whether everything is subscribed, so that all later events arrive.
    pub(super) const fn is_ready(&self) -> bool {
        self.unanswered == 0
    }

    pub(super) const fn frame(&mut self, now_ms: u64) {
        self.frame_ms = now_ms;
    }

    /// One command was answered.
    pub(super) fn answered(&mut self, now_ms: u64) {
        self.unanswered = self.unanswered.saturating_sub(1);
        let is_waiting = self.unanswered > self.queue.len();
        self.command_ms = is_waiting.then_some(now_ms);
    }

    /// Ends the last PING and returns its round trip in milliseconds.
    pub(super) fn pong(&mut self, now_ms: u64) -> Option<u64> {
        let pinged_ms = self.pinged_ms.take()?;
        Some(now_ms - pinged_ms)
    }

    /// The next action of the connection. Call it until it returns `None`.
    pub(super) fn poll(&mut self, now_ms: u64) -> Option<Wish> {
        self.accept_silence(now_ms);
        if self.loss(now_ms).is_some() && planted!(SilenceIgnored) {
            self.pinged_ms = None;
        }
        if let Some(reason) = self.loss(now_ms) {
            return Some(Wish::Lost(reason));
        }
        if self.message_ms(now_ms) > now_ms {
            return None;
        }
        if self.pinged_ms.is_none() && self.next_ping_ms <= now_ms {
            self.next_ping_ms = now_ms + self.rules.ping_every_ms;
            if !planted!(OwnPingsForgotten) {
                self.pinged_ms = Some(now_ms);
                self.messages.count(now_ms, Lane::Heartbeat, 1);
                return Some(Wish::Ping);
            }
        }
        let command = self.queue.pop_front()?;
        self.messages.count(now_ms, Lane::Place, 1);
        self.command_ms = Some(now_ms);
        Some(Wish::Send(command))
    }

    /// When [`Self::poll`] has something, if nothing happens before.
    pub(super) fn timeout_ms(&mut self, now_ms: u64) -> u64 {
        let message_ms = self.message_ms(now_ms);
        let ping_ms = match self.pinged_ms {
            Some(pinged_ms) => pinged_ms + self.rules.pong_within_ms,
            None => self.next_ping_ms.max(message_ms),
        };
        let command_ms = (!self.queue.is_empty()).then_some(message_ms);
        let silence_ms = self.rules.silence_max_ms.map(|most| self.frame_ms + most);
        [command_ms, silence_ms, self.answer_by_ms()]
            .into_iter()
            .flatten()
            .fold(ping_ms, u64::min)
    }

    fn loss(&self, now_ms: u64) -> Option<GapReason> {
        let pong_by = self.pinged_ms.map(|at| at + self.rules.pong_within_ms);
        if pong_by.is_some_and(|by_ms| by_ms <= now_ms) {
            return Some(GapReason::NoPong);
        }
        let frame_by = self.rules.silence_max_ms.map(|most| self.frame_ms + most);
        if frame_by.is_some_and(|by_ms| by_ms <= now_ms) {
            return Some(GapReason::Silent);
        }
        self.is_late(now_ms).then_some(GapReason::NoAnswer)
    }

    /// The documents do not promise an answer to each command. If frames arrived after the last
    /// command was sent, they count as the answer.
    fn accept_silence(&mut self, now_ms: u64) {
        let has_frames = self
            .command_ms
            .is_some_and(|command_ms| command_ms < self.frame_ms);
        if has_frames && self.is_late(now_ms) {
            self.unanswered = self.queue.len();
            self.command_ms = None;
        }
    }

    fn is_late(&self, now_ms: u64) -> bool {
        self.answer_by_ms().is_some_and(|by_ms| by_ms <= now_ms)
    }

    fn answer_by_ms(&self) -> Option<u64> {
        let command_ms = self.command_ms?;
        Some(command_ms + self.rules.answer_within_ms)
    }

    fn message_ms(&mut self, now_ms: u64) -> u64 {
        let free_at = self.messages.free_at(now_ms, Lane::Place, Shares::NONE, 1);
        // One message always fits an empty window.
        free_at.unwrap_or(now_ms)
    }
}
