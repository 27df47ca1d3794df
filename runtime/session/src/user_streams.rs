//! The user streams of a run: connections that reconnect on their own, and their listen keys.
//!
//! This module must never contain sockets, or decode events.

use std::collections::{BTreeMap, VecDeque};

use windvane_client_core::outcome::NotDone;
use windvane_client_core::streams::machine::{Action, Emit, Input, LinkId, Machine, Renewal};
use windvane_client_core::streams::{GapReason, StreamSettings, key_rules, millis, rules};
use windvane_model::{Surface, Time};

use crate::requests::Requests;
use crate::stream_sockets::{LOGGED_EVERY, SocketAction, SocketEvent};

/// Work that the streams request.
#[derive(Debug)]
pub(crate) enum Want {
    /// Create a listen key.
    CreateKey(Surface),
    /// Renew a listen key.
    RenewKey(Surface, String),
    /// Do this with a connection.
    Socket(Surface, LinkId, SocketAction),
    /// Pass this frame to the engine.
    Frame(Surface, String),
    /// The stream is complete from here on.
    Up(Surface),
    /// The stream may miss events.
    Down(Surface),
    /// The venue answered a PING.
    Alive(Surface),
}

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct UserStreams {
    began: Time,
    streams: BTreeMap<Surface, Stream>,
    wants: VecDeque<Want>,
}

#[derive(Debug)]
struct Stream {
    machine: Machine<String>,
    /// Failed connection attempts in a row.
    failed: u64,
    /// When the stream needs its next timeout, in milliseconds since the streams began.
    due_ms: u64,
}

impl UserStreams {
    /// Streams of these surfaces. Each requests its first connection at once.
    pub(crate) fn new(now: Time, surfaces: &[Surface], settings: &StreamSettings) -> Self {
        let stream = |surface: &Surface| {
            let mut rules = rules(settings, *surface as u64);
            rules.key = Some(key_rules(settings));
            let stream = Stream {
                machine: Machine::new(rules, 0),
                failed: 0,
                due_ms: 0,
            };
            (*surface, stream)
        };
        Self {
            began: now,
            streams: surfaces.iter().map(stream).collect(),
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
        let due_ms = self.streams.values().map(|stream| stream.due_ms).min()?;
        let due_ms = i64::try_from(due_ms).unwrap_or(i64::MAX / 1_000_000);
        let due_ns = due_ms.saturating_mul(1_000_000);
        Some(Time(self.began.0.saturating_add(due_ns)))
    }

    /// Advances the user stream of each surface to `now`.
    pub(crate) fn timeout(&mut self, now: Time, requests: &Requests) {
        let surfaces: Vec<_> = self.streams.keys().copied().collect();
        for surface in surfaces {
            self.handle_input(now, surface, Input::Tick, requests);
        }
    }

    /// Reconnects the stream of a surface.
    pub(crate) fn restart(&mut self, now: Time, surface: Surface, requests: &Requests) {
        self.handle_input(now, surface, Input::Restart, requests);
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
            SocketEvent::Opened => Input::Opened(link),
            SocketEvent::NotOpened { why, pause_ms, .. } => {
                self.trouble(surface, why);
                Input::NotOpened(link, pause_ms)
            }
            SocketEvent::Text(text, _) => {
                let expired = requests.exchange().key_expiry_ms(text);
                let frame = Input::Frame(link, text.to_owned());
                self.handle_input(now, surface, frame, requests);
                match expired {
                    Some(event_ms) => Input::KeyExpired(link, event_ms),
                    None => return,
                }
            }
            SocketEvent::Pong => Input::Pong(link),
            SocketEvent::Closed => Input::Closed(link),
        };
        self.handle_input(now, surface, input, requests);
    }

    /// The result of [`Want::CreateKey`].
    pub(crate) fn key(
        &mut self,
        now: Time,
        surface: Surface,
        key: Result<String, NotDone>,
        requests: &Requests,
    ) {
        let key = match key {
            Ok(text) => requests.exchange().listen_key(&text).ok_or_else(|| {
                self.trouble(surface, "the response has no listen key");
                None
            }),
            Err(not_done) => {
                self.trouble(
                    surface,
                    &format!("the listen key could not be created: {not_done}"),
                );
                Err(match not_done {
                    NotDone::Wait(wait) => Some(millis(wait.after)),
                    NotDone::Refused(_) | NotDone::Unknown(_) => None,
                })
            }
        };
        self.handle_input(now, surface, Input::Key(key), requests);
    }

    /// The result of [`Want::RenewKey`].
    pub(crate) fn renewed(
        &mut self,
        now: Time,
        surface: Surface,
        renewed: Result<String, NotDone>,
        requests: &Requests,
    ) {
        let exchange = requests.exchange();
        let renewal = match &renewed {
            Ok(_) => Renewal::Done,
            Err(not_done) if exchange.is_of_dead_key(not_done) => Renewal::Dead,
            Err(_) => Renewal::Failed,
        };
        if let Err(not_done) = renewed {
            self.trouble(
                surface,
                &format!("the listen key could not be renewed: {not_done}"),
            );
        }
        self.handle_input(now, surface, Input::Renewed(renewal), requests);
    }

    fn trouble(&mut self, surface: Surface, why: &str) {
        let Some(stream) = self.streams.get_mut(&surface) else {
            return;
        };
        if stream.failed.is_multiple_of(LOGGED_EVERY) {
            let repeated = stream.failed;
            tracing::warn!(%surface, why, repeated, "the user stream is not available; it is tried again");
        }
        stream.failed += 1;
    }

    fn handle_input(
        &mut self,
        now: Time,
        surface: Surface,
        input: Input<String>,
        requests: &Requests,
    ) {
        let now_ms = self.ms(now);
        let Some(stream) = self.streams.get_mut(&surface) else {
            return;
        };
        stream.machine.handle(now_ms, input);
        while let Some(action) = stream.machine.poll_action() {
            let want = match action {
                Action::CreateKey => Want::CreateKey(surface),
                Action::RenewKey(key) => Want::RenewKey(surface, key),
                Action::Open(link, key) => {
                    // A ban applies to the address, and a handshake would prolong it like a
                    // request.
                    if let Some(stop_ms) = requests.stopped_ms(now, surface) {
                        let not_opened = Input::NotOpened(link, Some(stop_ms));
                        stream.machine.handle(now_ms, not_opened);
                        continue;
                    }
                    let path = requests.exchange().user_stream(&key.unwrap_or_default());
                    Want::Socket(surface, link, SocketAction::Open(path))
                }
                Action::Send(link, text) => {
                    Want::Socket(surface, link, SocketAction::SendText(text))
                }
                Action::Ping(link) => Want::Socket(surface, link, SocketAction::Ping),
                Action::Close(link) => Want::Socket(surface, link, SocketAction::Close),
                Action::Emit(Emit::Frame(text)) => Want::Frame(surface, text),
                Action::Emit(Emit::Connected) => {
                    let failed = std::mem::take(&mut stream.failed);
                    tracing::info!(%surface, failed, "the user stream is connected");
                    Want::Up(surface)
                }
                Action::Emit(Emit::Gap(reason)) => {
                    report_gap(surface, reason);
                    Want::Down(surface)
                }
                Action::Emit(Emit::Alive(_)) => Want::Alive(surface),
                Action::Emit(Emit::NotSubscribed(_)) => continue,
            };
            self.wants.push_back(want);
        }
        stream.due_ms = stream.machine.timeout_ms(now_ms);
    }
}

fn report_gap(surface: Surface, reason: GapReason) {
    tracing::warn!(%surface, %reason, "the user stream may miss events");
}
