//! Sockets, requests and timers around one [`Machine`]: the only place where a stream waits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use windvane_venue::error::code;
use windvane_venue::route::{self, Surface};
use windvane_venue::wire::Parameters;

use crate::budget::{Cost, Lane};
use crate::client::Client;
use crate::outcome::Outcome;

use super::link::LinkId;
use super::machine::{Action, Emit, Input, Machine, Renewal, Rules};
use super::socket::{self, Dial, Refused, SocketCommand, SocketEvent};
use super::start;
use super::{GapReason, StreamItem};

/// What the driver does for one of a stream's connections.
pub(super) struct Driver {
    pub(super) connection: usize,
    pub(super) client: Client,
    pub(super) surface: Surface,
    /// Base address, with `/ws/` to come before the key, or the whole address.
    pub(super) url: String,
    pub(super) tls: Arc<rustls::ClientConfig>,
    pub(super) connect_within: Duration,
    /// Tells what a frame is.
    pub(super) look: fn(&str) -> Look,
    pub(super) items: mpsc::Sender<StreamItem<Utf8Bytes>>,
    pub(super) restarts: mpsc::Receiver<()>,
}

/// What a frame is, as far as the stream itself has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// The consumer's.
    Event,
    /// The answer to a command.
    Answer,
    /// The consumer's too, and the listen key is dead.
    KeyExpired,
}

/// What a request for a listen key came to.
enum KeyAnswer {
    Created(Result<String, NoKey>),
    Renewed(Renewal),
}

/// Why there is no listen key, and the pause that the venue wants, if it said one.
struct NoKey {
    why: String,
    pause_ms: Option<u64>,
}

/// The state of one run.
struct Run {
    driver: Driver,
    machine: Machine<Utf8Bytes>,
    started: Instant,
    sockets: BTreeMap<LinkId, mpsc::UnboundedSender<SocketCommand>>,
    socket_events: mpsc::Sender<(LinkId, SocketEvent)>,
    key_answers: mpsc::Sender<KeyAnswer>,
    has_dropped: bool,
    /// Why there is no connection, as it was last logged: retries are many, reasons few.
    obstacle: Option<String>,
}

impl Driver {
    /// Runs until the consumer is gone.
    pub(super) async fn run(self, rules: Rules) {
        // Frames that wait between socket and driver: when it is full, TCP holds the venue back.
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
                self.log(format!("no WebSocket connection: {why}"));
                let pause_ms = refused.map(|refused| self.heed(refused));
                self.handle(Input::NotOpened(link, pause_ms));
            }
            SocketEvent::Text(text) => match (self.driver.look)(&text) {
                Look::Event => self.handle(Input::Frame(link, text)),
                Look::Answer => {
                    self.handle(Input::Frame(link, text));
                    self.handle(Input::Answer(link));
                }
                Look::KeyExpired => {
                    self.handle(Input::Frame(link, text));
                    self.handle(Input::KeyExpired(link));
                }
            },
            SocketEvent::Binary(length) => {
                let text = format!("a binary frame of {length} bytes");
                self.handle(Input::Frame(link, text.into()));
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
            KeyAnswer::Created(Err(NoKey { why, pause_ms })) => {
                self.log(format!("no listen key: {why}"));
                Input::Key(Err(pause_ms))
            }
            KeyAnswer::Renewed(renewal) => Input::Renewed(renewal),
        };
        self.handle(input);
    }

    /// Logs what is in the way of a connection when it is another than before.
    fn log(&mut self, obstacle: String) {
        if self.obstacle.as_ref() != Some(&obstacle) {
            let (surface, connection) = (self.driver.surface, self.driver.connection);
            tracing::warn!(%surface, connection, "{obstacle}; it is tried again");
            self.obstacle = Some(obstacle);
        }
    }

    fn handle(&mut self, input: Input<Utf8Bytes>) {
        let now_ms = self.now_ms();
        self.machine.handle(now_ms, input);
        while let Some(action) = self.machine.poll_action() {
            self.perform(action);
        }
    }

    fn perform(&mut self, action: Action<Utf8Bytes>) {
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
                    let renewal = renew_key(&client, surface, &key).await;
                    let _ = answers.send(KeyAnswer::Renewed(renewal)).await;
                });
            }
        }
    }

    /// A limit that a handshake met is one of the address: requests stop as well.
    fn heed(&self, refused: Refused) -> u64 {
        let pause_ms = start::millis(refused.pause);
        let surface = self.driver.surface;
        self.driver.client.with_budget(surface, |budget, now_ms| {
            budget.refused(now_ms, refused.limit, Some(pause_ms), &Cost::default());
        });
        pause_ms
    }

    fn open(&mut self, link: LinkId, key: Option<String>) {
        // A ban is of the address: a handshake would prolong it as a request does.
        if let Some(stop) = self.driver.client.stopped_for(self.driver.surface) {
            let now_ms = self.now_ms();
            let pause_ms = Some(start::millis(stop));
            self.machine
                .handle(now_ms, Input::NotOpened(link, pause_ms));
            return;
        }
        let (sender, commands) = mpsc::unbounded_channel();
        self.sockets.insert(link, sender);
        let dial = Dial {
            url: format!("{}{}", self.driver.url, key.unwrap_or_default()),
            tls: Arc::clone(&self.driver.tls),
            within: self.driver.connect_within,
        };
        let events = self.socket_events.clone();
        tokio::spawn(socket::run(link, dial, commands, events));
    }

    fn requests(&self) -> (Client, Surface) {
        let client = self.driver.client.in_lane(Lane::Heartbeat);
        (client, self.driver.surface)
    }

    fn command(&self, link: LinkId, command: SocketCommand) {
        if let Some(socket) = self.sockets.get(&link) {
            // A socket that is gone says so by its own event.
            let _ = socket.send(command);
        }
    }

    /// Hands an item to the consumer. A consumer who is too slow loses items and is told so as
    /// soon as there is room; the venue is not held back, because that would end the connection.
    fn emit(&mut self, emit: Emit<Utf8Bytes>) {
        let connection = self.driver.connection;
        if self.has_dropped {
            let reason = GapReason::Overflow;
            let gap = StreamItem::Gap { connection, reason };
            match self.driver.items.try_send(gap) {
                Ok(()) => self.has_dropped = false,
                Err(_) => return,
            }
        }
        let item = match emit {
            Emit::Frame(text) => StreamItem::Event(text),
            Emit::Connected => StreamItem::Connected { connection },
            Emit::Gap(reason) => StreamItem::Gap { connection, reason },
            Emit::Alive(round_trip_ms) => StreamItem::Alive {
                connection,
                round_trip_ms,
            },
        };
        if self.driver.items.try_send(item).is_err() {
            self.has_dropped = true;
        }
    }
}

/// Asks for a listen key; the venue gives the living one and prolongs it, or a new one.
async fn create_key(client: &Client, surface: Surface) -> Result<String, NoKey> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        listen_key: String,
    }
    match key_request(client, surface, "create_listen_key", None).await {
        Outcome::Done(text) => {
            let answer: Result<Answer, _> = serde_json::from_str(&text);
            let key = answer.map(|answer| answer.listen_key);
            // It becomes part of a path: what would change the path is no key.
            let key = key.ok().filter(|key| is_key(key));
            key.ok_or_else(|| NoKey {
                why: "the answer holds none".to_owned(),
                pause_ms: None,
            })
        }
        Outcome::Wait(wait) => Err(NoKey {
            why: wait.why.to_string(),
            pause_ms: u64::try_from(wait.after.as_millis()).ok(),
        }),
        Outcome::Refused(refusal) => Err(NoKey {
            why: refusal.to_string(),
            pause_ms: None,
        }),
        Outcome::Unknown(doubt) => Err(NoKey {
            why: doubt.to_string(),
            pause_ms: None,
        }),
    }
}

async fn renew_key(client: &Client, surface: Surface, key: &str) -> Renewal {
    match key_request(client, surface, "keepalive_listen_key", Some(key)).await {
        Outcome::Done(_) => Renewal::Done,
        Outcome::Refused(refusal) => {
            tracing::info!(%surface, %refusal, "the listen key is not renewed");
            if refusal.code() == Some(code::INVALID_LISTEN_KEY.code) {
                Renewal::Dead
            } else {
                Renewal::Failed
            }
        }
        Outcome::Unknown(_) | Outcome::Wait(_) => Renewal::Failed,
    }
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

fn is_key(key: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~');
    !key.is_empty() && key.bytes().all(is_allowed)
}
