//! Sockets, requests and timers around one [`Machine`]. A stream waits only in this module.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use windvane_protocol::error::code;
use windvane_protocol::route::{self, Surface};
use windvane_protocol::sign::percent_encoded;
use windvane_protocol::wire::Parameters;

use windvane_client_core::streams::machine::{
    Action, Emit, Input, LinkId, Machine, Renewal, Rules,
};
use windvane_client_core::streams::{FrameKind, listen_key, millis};

use crate::budget::Lane;
use crate::client::Client;
use crate::outcome::{NotDone, Outcome, Refusal};

use super::received::Received;
use super::socket::{self, Dial, Refused, SocketCommand, SocketEvent};
use super::{GapReason, Obstacle, StreamItem};

/// The driver of one of a stream's connections.
pub(super) struct Driver {
    pub(super) connection: usize,
    pub(super) client: Client,
    pub(super) surface: Surface,
    /// Base address with `/ws/` before the key, or the complete address.
    pub(super) url: String,
    pub(super) tls: Arc<rustls::ClientConfig>,
    pub(super) connect_within: Duration,
    /// Classifies a frame.
    pub(super) look: fn(&str) -> FrameKind,
    pub(super) items: mpsc::Sender<StreamItem<Received>>,
    pub(super) restarts: mpsc::Receiver<()>,
}

/// The result of a request for a listen key.
enum KeyAnswer {
    Created(Result<String, NotDone>),
    Renewed(Renewal, Option<NotDone>),
}

/// The state of one run.
struct Run {
    driver: Driver,
    machine: Machine<Received>,
    started: Instant,
    sockets: BTreeMap<LinkId, mpsc::UnboundedSender<SocketCommand>>,
    socket_events: mpsc::Sender<(LinkId, SocketEvent)>,
    key_answers: mpsc::Sender<KeyAnswer>,
    has_dropped: bool,
    /// The last logged obstacle to a connection. Retries are frequent, but the reason rarely changes.
    obstacle: Option<String>,
}

impl Driver {
    /// Runs until the consumer is dropped.
    pub(super) async fn run(self, rules: Rules) {
        // Frames between socket and driver. When the channel is full, TCP backpressure slows the
        // venue.
        let (socket_events, mut from_sockets) = mpsc::channel(1_024);
        let (key_answers, mut from_keys) = mpsc::channel(4);
        let mut run = Run {
            driver: self,
            machine: Machine::new(rules, 0),
            started: Instant::now(),
            sockets: BTreeMap::new(),
            socket_events,
            key_answers,
            has_dropped: false,
            obstacle: None,
        };
        run.handle(Input::Tick);
        loop {
            let now_ms = run.now_ms();
            let due_ms = run.machine.timeout_ms(now_ms);
            let due = run.started + Duration::from_millis(due_ms.min(now_ms + 3_600_000));
            tokio::select! {
                Some((link, event)) = from_sockets.recv() => run.socket_event(link, event),
                Some(answer) = from_keys.recv() => run.key_answer(answer),
                restart = run.driver.restarts.recv() => match restart {
                    Some(()) => run.handle(Input::Restart),
                    None => return,
                },
                () = tokio::time::sleep_until(due) => run.handle(Input::Tick),
                () = run.driver.items.closed() => return,
            }
        }
    }
}

impl Run {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn socket_event(&mut self, link: LinkId, event: SocketEvent) {
        match event {
            SocketEvent::Opened => {
                self.obstacle = None;
                self.handle(Input::Opened(link));
            }
            SocketEvent::NotOpened(why, refused) => {
                self.sockets.remove(&link);
                let pause_ms = heed(&self.driver.client, self.driver.surface, refused);
                let status = refused.status;
                self.obstacle(Obstacle::NotOpened { status, why });
                self.handle(Input::NotOpened(link, pause_ms));
            }
            SocketEvent::Text(text) => match (self.driver.look)(text.as_ref()) {
                FrameKind::Event => self.handle(Input::Frame(link, text)),
                FrameKind::Answer => {
                    self.handle(Input::Frame(link, text));
                    self.handle(Input::Answer(link));
                }
                FrameKind::KeyExpired(event_ms) => {
                    self.handle(Input::Frame(link, text));
                    self.handle(Input::KeyExpired(link, event_ms));
                }
            },
            SocketEvent::Binary(length) => {
                let text = format!("a binary frame of {length} bytes");
                self.handle(Input::Frame(link, Received::now(text)));
            }
            SocketEvent::Pong => self.handle(Input::Pong(link)),
            SocketEvent::Closed => {
                self.sockets.remove(&link);
                self.handle(Input::Closed(link));
            }
        }
    }

    fn key_answer(&mut self, answer: KeyAnswer) {
        let input = match answer {
            KeyAnswer::Created(Ok(key)) => Input::Key(Ok(key)),
            KeyAnswer::Created(Err(not_done)) => {
                let pause_ms = match &not_done {
                    NotDone::Wait(wait) => Some(millis(wait.after)),
                    NotDone::Refused(_) | NotDone::Unknown(_) => None,
                };
                self.obstacle(Obstacle::NoKey(not_done));
                Input::Key(Err(pause_ms))
            }
            KeyAnswer::Renewed(renewal, not_done) => {
                if let Some(not_done) = not_done {
                    self.obstacle(Obstacle::NoKey(not_done));
                }
                Input::Renewed(renewal)
            }
        };
        self.handle(input);
    }

    /// Reports an obstacle to a connection, and logs it if it differs from the last one.
    fn obstacle(&mut self, why: Obstacle) {
        let connection = self.driver.connection;
        let text = why.to_string();
        if self.obstacle.as_ref() != Some(&text) {
            let surface = self.driver.surface;
            tracing::warn!(%surface, connection, "{text}; the stream tries again");
            self.obstacle = Some(text);
        }
        self.deliver(StreamItem::Failed { connection, why });
    }

    fn handle(&mut self, input: Input<Received>) {
        let now_ms = self.now_ms();
        self.machine.handle(now_ms, input);
        while let Some(action) = self.machine.poll_action() {
            self.perform(action);
        }
    }

    fn perform(&mut self, action: Action<Received>) {
        match action {
            Action::Emit(emit) => self.emit(emit),
            Action::Send(link, text) => self.command(link, SocketCommand::Send(text)),
            Action::Ping(link) => self.command(link, SocketCommand::Ping),
            Action::Close(link) => {
                self.sockets.remove(&link);
            }
            Action::Open(link, key) => self.open(link, key),
            Action::CreateKey => {
                let (client, surface) = self.requests();
                let answers = self.key_answers.clone();
                tokio::spawn(async move {
                    let key = create_key(&client, surface).await;
                    let _ = answers.send(KeyAnswer::Created(key)).await;
                });
            }
            Action::RenewKey(key) => {
                let (client, surface) = self.requests();
                let answers = self.key_answers.clone();
                tokio::spawn(async move {
                    let (renewal, not_done) = renew_key(&client, surface, &key).await;
                    let answer = KeyAnswer::Renewed(renewal, not_done);
                    let _ = answers.send(answer).await;
                });
            }
        }
    }

    fn open(&mut self, link: LinkId, key: Option<String>) {
        // A ban applies to the address: a handshake would prolong it, like a request.
        if let Some(stop) = self.driver.client.stopped_for(self.driver.surface) {
            let now_ms = self.now_ms();
            let pause_ms = Some(millis(stop));
            self.machine
                .handle(now_ms, Input::NotOpened(link, pause_ms));
            return;
        }
        let (sender, commands) = mpsc::unbounded_channel();
        self.sockets.insert(link, sender);
        let dial = Dial {
            url: format!(
                "{}{}",
                self.driver.url,
                percent_encoded(&key.unwrap_or_default())
            ),
            tls: Arc::clone(&self.driver.tls),
            within: self.driver.connect_within,
        };
        let events = self.socket_events.clone();
        let notify = move |event| {
            let events = events.clone();
            async move { events.send((link, event)).await.is_ok() }
        };
        tokio::spawn(socket::run(link, dial, commands, notify));
    }

    fn requests(&self) -> (Client, Surface) {
        let client = self.driver.client.in_lane(Lane::Heartbeat);
        (client, self.driver.surface)
    }

    fn command(&self, link: LinkId, command: SocketCommand) {
        if let Some(socket) = self.sockets.get(&link) {
            // A socket that is gone reports it with its own event.
            let _ = socket.send(command);
        }
    }

    fn emit(&mut self, emit: Emit<Received>) {
        let connection = self.driver.connection;
        self.deliver(match emit {
            Emit::Frame(text) => StreamItem::Event(text),
            Emit::Connected => StreamItem::Connected { connection },
            Emit::Gap(reason) => StreamItem::Gap { connection, reason },
            Emit::NotSubscribed(reason) => {
                let why = Obstacle::NotSubscribed(reason);
                StreamItem::Failed { connection, why }
            }
            Emit::Alive(round_trip_ms) => StreamItem::Alive {
                connection,
                round_trip_ms,
            },
        });
    }

    /// Passes an item to the consumer. A consumer that is too slow loses items, and gets a gap item
    /// as soon as there is room. The venue is not slowed down, because that would end the
    /// connection.
    fn deliver(&mut self, item: StreamItem<Received>) {
        if self.has_dropped {
            let connection = self.driver.connection;
            let reason = GapReason::Overflow;
            let gap = StreamItem::Gap { connection, reason };
            match self.driver.items.try_send(gap) {
                Ok(()) => self.has_dropped = false,
                Err(_) => return,
            }
        }
        if self.driver.items.try_send(item).is_err() {
            self.has_dropped = true;
        }
    }
}

/// How long a refused handshake delays the next one. 429 and 418 apply to the address
/// (docs/interface/limits.md#429-418-and-bans), so requests stop too. A firewall (403) refused only
/// this handshake: requests may still pass, and cancels and renewals must not wait because of a
/// stream.
pub(super) fn heed(client: &Client, surface: Surface, refused: Refused) -> Option<u64> {
    client.heed_handshake(surface, (refused.status, refused.pause.map(millis)))
}

/// Requests a listen key. The venue extends and returns the valid one, or creates a new one.
async fn create_key(client: &Client, surface: Surface) -> Result<String, NotDone> {
    let answer = key_request(client, surface, "create_listen_key", None).await;
    let text = answer.into_result()?;
    listen_key(&text).map_err(|error| {
        let excerpt = text.chars().take(200).collect();
        NotDone::Refused(Refusal::Unreadable { error, excerpt })
    })
}

/// The result of the renewal, and the reason if it failed.
async fn renew_key(client: &Client, surface: Surface, key: &str) -> (Renewal, Option<NotDone>) {
    let answer = key_request(client, surface, "keepalive_listen_key", Some(key)).await;
    let Err(not_done) = answer.into_result() else {
        return (Renewal::Done, None);
    };
    let code = match &not_done {
        NotDone::Refused(refusal) => refusal.code(),
        NotDone::Unknown(_) | NotDone::Wait(_) => None,
    };
    let is_dead = code == Some(code::INVALID_LISTEN_KEY.code);
    let renewal = if is_dead {
        Renewal::Dead
    } else {
        Renewal::Failed
    };
    (renewal, Some(not_done))
}

async fn key_request(
    client: &Client,
    surface: Surface,
    name: &str,
    key: Option<&str>,
) -> Outcome<String> {
    let name = format!("{surface}.{name}");
    let Some(route) = route::named(&name) else {
        return crate::outcome::RequestError::NoRoute(name).into();
    };
    let mut parameters = Parameters::new();
    let takes_key = route.params.iter().any(|param| param.name == "listenKey");
    if let Some(key) = key.filter(|_| takes_key) {
        parameters.push("listenKey", key);
    }
    let answer = client.call(route, None, &parameters).await;
    answer.map(|raw| raw.text)
}
