//! One process of the runtime: start and recovery, requests, streams, the engine. It is told what
//! happens and says what it wants done; a kill drops it, whatever it still wanted.
//!
//! What may never enter here: the world's secrets. It sees what a real process sees.

mod boot;
mod closes;
mod notices;
mod overheard;
mod run;
mod shown;
mod streams;

use std::collections::VecDeque;
use std::sync::Arc;

use windvane::config::{Config, InstrumentName};
use windvane::live::recover::Remembered;
use windvane_client::streams::sans_io;
use windvane_client_core::budget::{Cost, Lane, Shares};
use windvane_client_core::gateway::{self, Gateway, Identity, Now};
use windvane_client_core::nonce::Nonces;
use windvane_client_core::outcome::{Lost, NotDone};
use windvane_engine::engine::Latch;
use windvane_engine::input::Command;
use windvane_engine::live::LiveInput;
use windvane_engine::record::{Block, Chain};
use windvane_engine::{StrategyId, Surface, Time};
use windvane_session::{
    CallAnswer, Input, JournalEvent, Requests, Session, StartInput, venue_surface,
};
use windvane_venue::error::Limit;
use windvane_venue::route::{self, Route};
use windvane_venue::wire::Parameters;

use crate::client::{Became, Client, Wire};
use crate::modules::Modules;
use crate::witness::{Answer, ProcessSeen, RequestId, Seen, View};

use boot::{Boot, requests};
use overheard::Overheard;
use shown::Shown;
pub use streams::StreamKey;
use streams::{Stream, Want};

const MS: i64 = 1_000_000;

/// What all processes of a life are made of.
pub struct Setup {
    /// The configuration.
    pub config: Config,
    /// What it trades.
    pub names: Vec<InstrumentName>,
    /// The surfaces of that.
    pub surfaces: Vec<Surface>,
    /// The strategies' modules, in their order.
    pub strategies: Vec<(String, String)>,
    /// The compiled modules.
    pub modules: Modules,
    /// Keys and dialect.
    pub identity: Identity,
    /// The seed.
    pub seed: u64,
}

/// What happens to a process.
#[derive(Debug)]
pub enum In {
    /// An answer, or that none will come.
    Answer(RequestId, Option<Answer>),
    /// A stream's connection stands.
    Opened(StreamKey, u64),
    /// It does not come about; the answer to the handshake, if there was one.
    NotOpened(StreamKey, u64, Option<Answer>),
    /// A frame.
    Text(StreamKey, u64, String),
    /// The answer to a PING.
    Pong(StreamKey, u64),
    /// The connection ended.
    Closed(StreamKey, u64),
    /// The journal is durable up to a record.
    Durable(u64),
    /// A new segment stands.
    Rolled(u64),
    /// The journal waits for the disk for long.
    Stalled,
    /// It does not any more.
    Healthy,
    /// The disk refused.
    Failed,
    /// A command of the operator, for all or for one strategy.
    Command(Command, Option<StrategyId>),
    /// The configuration and the modules are read again: every strategy gets a new instance.
    Reload,
    /// The time that it asked for has come.
    Wake,
}

/// What a process wants done.
#[derive(Debug)]
pub enum Out {
    /// A request leaves.
    Send(Wire),
    /// A stream's connection.
    Open(StreamKey, u64, String),
    /// A message on it.
    Say(StreamKey, u64, String),
    /// A PING on it.
    Ping(StreamKey, u64),
    /// Its end.
    Close(StreamKey, u64),
    /// The head of the first segment, durable at once.
    Begin(Vec<u8>, Chain),
    /// A block for the journal.
    Append(Block),
    /// A new segment.
    Roll(Vec<u8>, Chain),
    /// The latch changed.
    Latch(Latch),
    /// The process ends by itself, and why.
    Ended(String),
    /// Something for the witness.
    Seen(Seen),
}

/// What a call is for.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// A listen key.
    CreateKey(StreamKey),
    /// Its renewal.
    RenewKey(StreamKey),
}

/// What the disk gave a process that starts.
pub struct Given {
    /// The journal.
    pub remembered: Remembered<Vec<Block>>,
    /// The journal's verdict, in a word.
    pub verdict: &'static str,
    /// The epoch of the process before.
    pub epoch_before: Option<u64>,
    /// The epoch that was reserved.
    pub epoch: u64,
    /// The latch file.
    pub latch: Latch,
}

/// A process.
pub struct Process {
    /// Its life: 1, 2, ...
    pub life: u32,
    setup: Arc<Setup>,
    client: Client<Purpose>,
    next_request: RequestId,
    boot: Option<Boot>,
    /// The session, once it runs, and what the witness has of it.
    run: Option<(Session<Overheard>, Shown)>,
    streams: Vec<Stream>,
    outs: VecDeque<Out>,
    now_ns: i64,
    started_ns: i64,
    /// The client's clock: the wall's at the start, then counted.
    wall_us: i64,
    /// Wall less true time at the start.
    counted_from_ns: i64,
    /// Why it cannot go on: a bug, of the runtime or of this simulator.
    pub broken: Option<String>,
}

impl Process {
    /// A process that starts now.
    pub fn start(setup: Arc<Setup>, life: u32, given: Given, now_ns: i64, wall_ns: i64) -> Self {
        let gateway = Gateway::new(
            setup.identity.clone(),
            Shares::default(),
            Arc::new(Nonces::new()),
        );
        let (now, client) = (Time(wall_ns), Client::new(gateway.clone()));
        let requests = requests(&setup, gateway, life, now);
        let mut process = Self {
            life,
            client,
            next_request: u64::from(life) << 32,
            boot: Some(Boot::new(given, &setup, requests, now)),
            run: None,
            streams: Vec::new(),
            outs: VecDeque::new(),
            now_ns,
            started_ns: now_ns,
            wall_us: wall_ns / 1_000,
            counted_from_ns: wall_ns - now_ns,
            broken: None,
            setup,
        };
        process.perform_start();
        process
    }

    /// Something happened; `now_ns` never runs backwards.
    pub fn handle(&mut self, now_ns: i64, happened: In) {
        self.now_ns = now_ns;
        self.wall_us = (now_ns + self.counted_from_ns) / 1_000;
        match happened {
            In::Answer(id, answer) => self.heard(id, answer.as_ref()),
            In::Opened(key, link) => self.stream(key, sans_io::Input::Opened(link)),
            In::NotOpened(key, link, answer) => self.not_opened(key, link, answer.as_ref()),
            In::Text(key, link, text) => {
                let expired = key.user.then(|| sans_io::key_expiry_ms(&text)).flatten();
                self.stream(key, sans_io::Input::Frame(link, text));
                if let Some(event_ms) = expired {
                    self.stream(key, sans_io::Input::KeyExpired(link, event_ms));
                }
            }
            In::Pong(key, link) => self.stream(key, sans_io::Input::Pong(link)),
            In::Closed(key, link) => self.stream(key, sans_io::Input::Closed(link)),
            In::Durable(record) => self.input(Input::Journal(JournalEvent::Durable(record))),
            In::Rolled(record) => self.input(Input::Journal(JournalEvent::Rolled(record))),
            In::Stalled => self.input(Input::Journal(JournalEvent::Stalled)),
            In::Healthy => self.input(Input::Journal(JournalEvent::Healthy)),
            In::Failed => self.input(Input::Journal(JournalEvent::Failed)),
            In::Command(command, whom) => self.command(command, whom),
            In::Reload => self.reload(),
            In::Wake => {}
        }
        self.keep_time();
    }

    /// Everything whose time has come.
    fn keep_time(&mut self) {
        let now_ns = self.now_ns;
        while let Some(id) = self.client.late(now_ns) {
            self.outs.push_back(Out::Seen(Seen::Heard {
                request: id,
                answer: None,
            }));
            self.heard(id, None);
        }
        self.keep_start_time();
        for place in 0..self.streams.len() {
            let key = self.streams[place].key;
            if self.streams[place].wake_ns(now_ns) <= now_ns {
                self.stream(key, sans_io::Input::Tick);
            }
        }
        self.keep_session_time();
    }

    /// Whether it wants anything.
    pub fn wants(&self) -> bool {
        !self.outs.is_empty()
    }

    /// What it wants next.
    pub fn poll(&mut self) -> Option<Out> {
        self.outs.pop_front()
    }

    /// When it wants to be told the time.
    pub fn wake_ns(&mut self) -> i64 {
        let now_ns = self.now_ns;
        let streams = self.streams.iter_mut().map(|stream| stream.wake_ns(now_ns));
        let mut wake = streams.min().unwrap_or(i64::MAX).min(self.client.wake_ns());
        let session = self.run.as_ref().map(|(session, _)| session);
        let session = session.and_then(Session::poll_timeout).map(|(due, _)| due);
        let start = self.boot.as_ref().and_then(Boot::due);
        for due in [session, start].into_iter().flatten() {
            wake = wake.min(due.0.saturating_sub(self.counted_from_ns));
        }
        wake
    }

    /// What it believes; `None` before it runs.
    pub fn view(&self) -> Option<View> {
        let (session, _) = self.run.as_ref()?;
        Some(notices::view(session.engine()))
    }

    /// Where its chain of records stands.
    pub fn chain(&self) -> Option<Chain> {
        let (session, _) = self.run.as_ref()?;
        Some(session.engine().chain())
    }

    /// Closes by others that were witnessed and that a next process does not know of, where its journal
    /// ends with this record.
    pub fn closes_after(&self, record: u64) -> impl Iterator<Item = &Seen> {
        let is_close = |out: &&Out| matches!(out, Out::Seen(Seen::ClosedOutside { .. }));
        let unseen = self.outs.iter().filter(is_close).count();
        let shown = self.run.iter();
        shown.flat_map(move |(_, shown)| shown.closes_after(record, unseen))
    }

    /// Whether no request is under way.
    pub fn is_idle(&self) -> bool {
        let session = self
            .run
            .as_ref()
            .and_then(|(session, _)| session.requests());
        self.client.is_idle() && session.is_none_or(Requests::is_idle)
    }

    fn request_id(&mut self) -> RequestId {
        self.next_request += 1;
        self.next_request
    }

    fn call(
        &mut self,
        route: &'static Route,
        parameters: &Parameters,
        lane: Lane,
        purpose: Purpose,
    ) {
        let id = self.request_id();
        let times = (self.now_ns, self.gateway_now());
        let called = self
            .client
            .call((route, parameters), lane, (id, purpose), times);
        match called {
            Ok(wire) => self.outs.push_back(Out::Send(wire)),
            Err((purpose, became)) => self.became(purpose, became),
        }
    }

    /// The clocks of the gateway.
    pub(super) fn gateway_now(&self) -> Now {
        let since_start = (self.now_ns - self.started_ns) / MS;
        Now {
            ms: u64::try_from(since_start).unwrap_or(0),
            local_us: self.wall_us,
        }
    }

    /// An answer came, or none will.
    fn heard(&mut self, id: RequestId, answer: Option<&Answer>) {
        let now = self.gateway_now();
        if let Some((purpose, became)) = self.client.heard(id, answer, now) {
            return self.became(purpose, became);
        }
        let Some(answer) = answer else {
            let lost = CallAnswer::Lost(Lost::Cut("the connection broke".to_owned()));
            return self.called(id, lost);
        };
        let headers = answer.headers.iter();
        let headers: Vec<_> = headers.map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let came = CallAnswer::Came(gateway::Answer {
            status: answer.status,
            headers: &headers,
            text: &answer.body,
        });
        self.called(id, came);
    }

    /// What came back of a call of the start or of the session.
    fn called(&mut self, id: RequestId, answer: CallAnswer<'_>) {
        if self.boot.is_some() {
            self.start_input(StartInput::Answer(id, answer));
        } else {
            self.input(Input::Answer(id, answer));
        }
    }

    fn became(&mut self, purpose: Purpose, became: Became) {
        match purpose {
            Purpose::CreateKey(key) => {
                let answer = match became {
                    Ok(text) => listen_key(&text).ok_or(None),
                    Err(NotDone::Wait(wait)) => Err(Some(
                        u64::try_from(wait.after.as_millis()).unwrap_or(u64::MAX),
                    )),
                    Err(_) => Err(None),
                };
                self.stream(key, sans_io::Input::Key(answer));
            }
            Purpose::RenewKey(key) => {
                let dead = windvane_venue::error::code::INVALID_LISTEN_KEY.code;
                let renewal = match became {
                    Ok(_) => sans_io::Renewal::Done,
                    Err(NotDone::Refused(refusal)) if refusal.code() == Some(dead) => {
                        sans_io::Renewal::Dead
                    }
                    Err(_) => sans_io::Renewal::Failed,
                };
                self.stream(key, sans_io::Input::Renewed(renewal));
            }
        }
    }

    fn not_opened(&mut self, key: StreamKey, link: u64, answer: Option<&Answer>) {
        let pause_ms = answer.and_then(|answer| {
            let after = answer
                .header("retry-after")
                .and_then(|text| text.parse::<u64>().ok());
            let after_ms = after.map(|seconds| seconds * 1_000);
            self.heed(venue_surface(key.surface), answer.status, after_ms)
        });
        self.stream(key, sans_io::Input::NotOpened(link, pause_ms));
    }

    /// A handshake was refused: what that stops, as the streams' driver has it; the pause that the
    /// stream is told, milliseconds.
    fn heed(&self, surface: route::Surface, status: u16, pause_ms: Option<u64>) -> Option<u64> {
        let limit = match status {
            429 => Limit::Weight,
            418 => Limit::Ban,
            403 => return Some(pause_ms.unwrap_or(60_000)),
            _ => return None,
        };
        let (gateway, ms) = (self.client.gateway(), self.gateway_now().ms);
        gateway.heed_refusal(ms, surface, (limit, pause_ms), &Cost::default());
        gateway.stopped_ms(ms, surface)
    }

    /// Something happened to a stream; what it then wants is done.
    fn stream(&mut self, key: StreamKey, input: sans_io::Input<String>) {
        let Some(place) = self.streams.iter().position(|stream| stream.key == key) else {
            return;
        };
        self.streams[place].handle(self.now_ns, input);
        while let Some(want) = self.streams[place].poll() {
            self.want(key, want);
        }
    }

    fn want(&mut self, key: StreamKey, want: Want) {
        let surface = key.surface;
        match want {
            Want::CreateKey => {
                self.key_call(key, "create_listen_key", None, Purpose::CreateKey(key));
            }
            Want::RenewKey(text) => {
                self.key_call(
                    key,
                    "keepalive_listen_key",
                    Some(text),
                    Purpose::RenewKey(key),
                );
            }
            Want::Open(link, target) => {
                let ms = self.gateway_now().ms;
                let gateway = self.client.gateway();
                let stopped = gateway.stopped_ms(ms, venue_surface(surface));
                match stopped {
                    // A ban is of the address: a handshake would prolong it as a request does.
                    Some(ms) => self.stream(key, sans_io::Input::NotOpened(link, Some(ms))),
                    None => self.outs.push_back(Out::Open(key, link, target)),
                }
            }
            Want::Say(link, text) => self.outs.push_back(Out::Say(key, link, text)),
            Want::Ping(link) => self.outs.push_back(Out::Ping(key, link)),
            Want::Close(link) => self.outs.push_back(Out::Close(key, link)),
            Want::Frame(text) if key.user => {
                let text = &text;
                self.input(Input::User { surface, text });
            }
            Want::Frame(text) => self.input(Input::Frame {
                surface,
                text: &text,
                received: self.shell_time(),
            }),
            Want::Connected if key.user => self.live(LiveInput::StreamUp { surface }),
            Want::Gap if key.user => self.live(LiveInput::StreamDown { surface }),
            Want::Alive if key.user => self.live(LiveInput::StreamAlive { surface }),
            Want::Gap => self.interrupted(surface),
            Want::Connected | Want::Alive => {}
        }
    }

    fn key_call(
        &mut self,
        key: StreamKey,
        name: &str,
        listen_key: Option<String>,
        purpose: Purpose,
    ) {
        let Some(route) = route::named(&format!("{}.{name}", key.surface)) else {
            return;
        };
        let mut parameters = Parameters::new();
        let takes_key = route.params.iter().any(|param| param.name == "listenKey");
        if let Some(text) = listen_key.filter(|_| takes_key) {
            parameters.push("listenKey", text);
        }
        self.call(route, &parameters, Lane::Heartbeat, purpose);
    }

    /// It runs: for the witness.
    fn tell_running(&mut self, epoch: u64, verdict: &str) {
        self.outs
            .push_back(Out::Seen(Seen::Process(ProcessSeen::Running {
                process: self.life,
                epoch,
                journal: verdict.to_owned(),
            })));
    }
}

fn listen_key(text: &str) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_str(text).ok()?;
    let key = answer.get("listenKey")?.as_str()?;
    (!key.is_empty()).then(|| key.to_owned())
}
