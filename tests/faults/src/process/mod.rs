//! One process of the runtime: start and recovery, requests, streams, the engine. It gets inputs
//! and returns outputs; a kill drops it together with its pending outputs.
//!
//! The world's hidden state must not enter here: the process sees only what a real process sees.

mod boot;
mod closes;
mod notices;
mod observed;
mod reload;
mod run;
mod shown;
mod signer;
mod starter;
mod watchdog;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rust_decimal::Decimal;
use windvane_client_core::bans::{BansNow, WrittenBan};
use windvane_client_core::budget::Shares;
use windvane_client_core::gateway::{self, Change, Gateway, Identity};
use windvane_client_core::nonce::Nonces;
use windvane_client_core::outcome::Lost;
use windvane_config::{Config, InstrumentName};
use windvane_model::input::Command;
use windvane_model::kill_switch::StoredKillSwitches;
use windvane_model::record::{Block, Chain};
use windvane_model::{InstrumentId, Side, StrategyId, Surface, Time};
use windvane_protocol::route::{self, Route};
use windvane_protocol::sign::{PrepareError, Prepared};
use windvane_session::recovery::JournalContent;
use windvane_session::watchdog::{Keeper, KeeperInput, KeeperOutput, WatchdogMessage};
use windvane_session::{
    CallAnswer, Input, JournalEvent, Requests, SaveState, Session, SocketEvent, StartupInput,
};

use crate::modules::Modules;
use crate::witness::{Answer, ProcessEvent, RequestId, View, WitnessEvent};

use boot::{Boot, requests};
use observed::ObservedGuests;
use shown::Shown;
use signer::Signer;
use starter::Starter;

pub use signer::SignerTerms;

const MS: i64 = 1_000_000;
/// A request without a response is abandoned after this time (the client's default).
pub const REQUEST: Duration = Duration::from_secs(10);

/// The setup that all processes of a life share.
#[derive(Clone)]
pub struct Setup {
    /// The configuration.
    pub config: Config,
    /// The instruments that it trades.
    pub names: Vec<InstrumentName>,
    /// The surfaces of these instruments.
    pub surfaces: Vec<Surface>,
    /// Ids and module names of the strategies, in their order.
    pub strategies: Vec<(String, String)>,
    /// The build of each strategy's module: builds differ only in their hash.
    pub builds: Vec<u8>,
    /// Largest number of blocks that may be in flight to the disk.
    pub disk_room: usize,
    /// The compiled modules.
    pub modules: Modules,
    /// Keys and dialect.
    pub identity: Identity,
    /// How calls are signed.
    pub signer: SignerTerms,
    /// The seed.
    pub seed: u64,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup")
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// Identifies a stream of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamKey {
    /// The surface.
    pub surface: Surface,
    /// True for the user stream, false for public data.
    pub user: bool,
}

/// Inputs of a process.
#[derive(Debug)]
pub enum In {
    /// A response, or `None` if none will come.
    Answer(RequestId, Option<Answer>),
    /// A request was not sent because it was late by this much.
    Late(RequestId, Duration),
    /// A stream is connected.
    Opened(StreamKey, u64),
    /// A stream did not connect; with the response to the handshake, if there was one.
    NotOpened(StreamKey, u64, Option<Answer>),
    /// A frame.
    Text(StreamKey, u64, String),
    /// The PONG for a PING.
    Pong(StreamKey, u64),
    /// The connection ended.
    Closed(StreamKey, u64),
    /// The journal is durable up to a record.
    Durable(u64),
    /// A new segment is durable.
    Rolled(u64),
    /// The journal has waited long for the disk.
    Stalled,
    /// The journal no longer waits.
    Healthy,
    /// The disk refused data.
    Failed,
    /// The kill switch file is durable, or the disk refused it.
    KillSwitches(Result<(), String>),
    /// A command of the operator, for all or for one strategy.
    Command(Command, Option<StrategyId>),
    /// The configuration and the modules are read again; changed strategies get a new instance.
    Reload(Arc<Setup>),
    /// The run must end in order; a second time it must end at once.
    Stop,
    /// A message of the watchdog process of spot orders.
    Watchdog(WatchdogMessage),
    /// The watchdog process has ended.
    WatchdogEnded,
    /// The requested timer is due.
    Wake,
}

/// Outputs of a process.
#[derive(Debug)]
pub enum Out {
    /// Sends a request.
    Send(Wire),
    /// Opens a connection of a stream.
    Open(StreamKey, u64, String),
    /// Sends a message on it.
    SendText(StreamKey, u64, String),
    /// Sends a PING on it.
    Ping(StreamKey, u64),
    /// Closes it.
    Close(StreamKey, u64),
    /// The checkpoint of the first segment, durable at once.
    Begin(Vec<u8>, Chain),
    /// Writes a block to the journal.
    Append(Block),
    /// Begins a new segment.
    Roll(Vec<u8>, Chain),
    /// Writes the kill switch file.
    KillSwitches(StoredKillSwitches),
    /// A host reported a ban: [`Process::bans`] must be written to the file.
    Bans,
    /// An output of the keeper of the watchdog process of spot orders.
    Watchdog(KeeperOutput),
    /// The process ends by itself, for this reason.
    Ended(String),
    /// The process ends after a stop: `stopped` or `hurried`.
    Stopped(&'static str),
    /// An entry for the witness.
    WitnessEvent(WitnessEvent),
}

/// A request on its way to the socket.
#[derive(Debug)]
pub struct Wire {
    /// Its id.
    pub id: RequestId,
    /// The route.
    pub route: &'static Route,
    /// The bytes.
    pub prepared: Prepared,
    /// It must not leave after this time, nanoseconds.
    pub leave_by_ns: Option<i64>,
}

/// The data that the disk gives to a starting process.
pub struct Given {
    /// The journal.
    pub remembered: JournalContent<Vec<Block>>,
    /// The journal's verdict.
    pub verdict: &'static str,
    /// The epoch of the previous process.
    pub epoch_before: Option<u64>,
    /// The epoch that was reserved for this process.
    pub epoch: u64,
    /// The content of the kill switch file.
    pub kill_switches: StoredKillSwitches,
    /// The content of the file of bans.
    pub bans: Vec<WrittenBan>,
}

/// A process.
pub struct Process {
    /// Its life: 1, 2, ...
    pub life: u32,
    setup: Arc<Setup>,
    /// Signs and sends requests; it knows the shares of the lanes, and the reported bans.
    gateway: Gateway,
    signer: Signer,
    starter: Starter,
    started_ns: i64,
    boot: Option<Boot>,
    /// The session, once it runs, and its data for the witness.
    run: Option<(Session<ObservedGuests>, Shown)>,
    /// The keeper of the watchdog process of spot orders, once the session runs.
    keeper: Option<Keeper>,
    outs: VecDeque<Out>,
    now_ns: i64,
    /// Wall clock minus true time at the start.
    counted_from_ns: i64,
    /// A ban was reported and is not in the file yet.
    is_banned: Arc<AtomicBool>,
    /// Why it cannot continue: a bug in the runtime or in this simulator.
    pub broken: Option<String>,
}

impl Process {
    /// A process that starts now.
    pub fn start(setup: Arc<Setup>, life: u32, given: Given, now_ns: i64, wall_ns: i64) -> Self {
        let is_banned = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_banned);
        let gateway = Gateway::with_listener(
            setup.identity.clone(),
            Shares::default(),
            Arc::new(Nonces::new()),
            move |change| {
                if matches!(change, Change::Banned) {
                    flag.store(true, Ordering::Relaxed);
                }
            },
        );
        BansNow::new(&gateway, 0, wall_ns / MS).heed(&given.bans);
        let now = Time(wall_ns);
        let requests = requests(&setup, gateway.clone(), life, now);
        let mut process = Self {
            life,
            gateway,
            signer: Signer::new(setup.signer),
            starter: Starter::of(setup.seed),
            started_ns: now_ns,
            boot: Some(Boot::new(given, &setup, requests, now)),
            run: None,
            keeper: None,
            outs: VecDeque::new(),
            now_ns,
            counted_from_ns: wall_ns - now_ns,
            is_banned,
            broken: None,
            setup,
        };
        process.perform_start();
        process
    }

    /// Handles an input; `now_ns` never runs backwards.
    pub fn handle(&mut self, now_ns: i64, happened: In) {
        self.now_ns = now_ns;
        match happened {
            In::Answer(id, answer) => self.answer_received(id, answer.as_ref()),
            In::Late(id, late) => self.called(id, CallAnswer::Late(late)),
            In::Opened(key, link) => self.socket(key, link, SocketEvent::Opened),
            In::NotOpened(key, link, answer) => {
                let pause_ms = answer.as_ref().and_then(retry_after_ms);
                let not_opened = SocketEvent::NotOpened {
                    why: "the venue refuses it, or does not answer",
                    status: answer.map(|answer| answer.status),
                    pause_ms,
                };
                self.socket(key, link, not_opened);
            }
            In::Text(key, link, text) => {
                let now = self.shell_time();
                self.socket(key, link, SocketEvent::Text(&text, now));
            }
            In::Pong(key, link) => self.socket(key, link, SocketEvent::Pong),
            In::Closed(key, link) => self.socket(key, link, SocketEvent::Closed),
            In::Durable(record) => self.input(Input::Journal(JournalEvent::Durable(record))),
            In::Rolled(record) => self.input(Input::Journal(JournalEvent::Rolled(record))),
            In::Stalled => self.input(Input::Journal(JournalEvent::Stalled)),
            In::Healthy => self.input(Input::Journal(JournalEvent::Healthy)),
            In::Failed => self.input(Input::Journal(JournalEvent::Failed)),
            In::KillSwitches(result) => self.input(Input::KillSwitch(result)),
            In::Command(command, whom) => self.command(command, whom),
            In::Reload(next) => self.reload(next),
            In::Stop => self.stop(),
            In::Watchdog(message) => self.keep(KeeperInput::Message(message)),
            In::WatchdogEnded => self.watchdog_is_gone(),
            In::Wake => {}
        }
        self.keep_time();
    }

    /// Handles all timers that are due.
    fn keep_time(&mut self) {
        while let Some((id, unsigned)) = self.signer.signed(self.now_ns) {
            self.signed(id, self.gateway.sign(&unsigned));
        }
        self.end_starts();
        self.keep_start_time();
        self.keep_session_time();
        self.keep_watchdog_time();
    }

    /// The signer signed a call of the start or of the session.
    fn signed(&mut self, id: RequestId, prepared: Result<Prepared, PrepareError>) {
        if self.boot.is_some() {
            self.start_input(StartupInput::Signed(id, prepared));
        } else {
            self.input(Input::Signed(id, prepared));
        }
    }

    /// Whether it has outputs.
    pub fn wants(&self) -> bool {
        !self.outs.is_empty()
    }

    /// The next output.
    pub fn poll(&mut self) -> Option<Out> {
        self.outs.pop_front()
    }

    /// Puts an output back, because the process was stopped before it was executed.
    pub fn put_back(&mut self, out: Out) {
        self.outs.push_front(out);
    }

    /// When its next timer is due.
    pub fn wake_ns(&mut self) -> i64 {
        let mut wake = self.signer.due_ns().unwrap_or(i64::MAX);
        wake = wake.min(self.starter.due_ns().unwrap_or(i64::MAX));
        let session = self.run.as_ref().map(|(session, _)| session);
        let session = session.and_then(Session::poll_timeout).map(|(due, _)| due);
        wake = wake.min(self.keeper_due_ns().unwrap_or(i64::MAX));
        let start = self.boot.as_ref().and_then(Boot::due);
        for due in [session, start].into_iter().flatten() {
            wake = wake.min(due.0.saturating_sub(self.counted_from_ns));
        }
        wake
    }

    /// Its view; `None` before it runs.
    pub fn view(&self) -> Option<View> {
        let (session, _) = self.run.as_ref()?;
        Some(notices::view(session.engine()))
    }

    /// The first levels of an instrument's book, both sides: price and quantity.
    pub fn book(&self, place: usize, levels: usize) -> [Vec<(Decimal, Decimal)>; 2] {
        let engine = self.run.as_ref().map(|(session, _)| session.engine());
        let id = InstrumentId(place as u16);
        let side = |side| {
            let level = |nth| {
                let (engine, rules) = (engine?, engine?.instrument(id)?);
                let level = engine.book_level(id, side, nth)?;
                Some((rules.price(level.price), rules.qty(level.qty)))
            };
            (0..levels).map_while(level).collect()
        };
        [side(Side::Buy), side(Side::Sell)]
    }

    /// How long nothing may be sent to spot, as its gateway knows, milliseconds.
    fn spot_stopped_ms(&self) -> u64 {
        let since_ms = u64::try_from((self.now_ns - self.started_ns) / MS).unwrap_or(0);
        let stopped = self.gateway.stopped_ms(since_ms, route::Surface::Spot);
        stopped.unwrap_or(0)
    }

    /// The position of its chain of records.
    pub fn chain(&self) -> Option<Chain> {
        let (session, _) = self.run.as_ref()?;
        Some(session.engine().chain())
    }

    /// The closes by others that the witness got and that a next process does not know if its
    /// journal ends with this record.
    pub fn closes_after(&self, record: u64) -> impl Iterator<Item = &WitnessEvent> {
        let is_close =
            |out: &&Out| matches!(out, Out::WitnessEvent(WitnessEvent::ClosedOutside { .. }));
        let unseen = self.outs.iter().filter(is_close).count();
        let shown = self.run.iter();
        shown.flat_map(move |(_, shown)| shown.closes_after(record, unseen))
    }

    /// Whether the kill switches survive a kill, as the session reports; `None` before it runs.
    pub fn kill_switches_kept(&self) -> Option<SaveState> {
        let (session, _) = self.run.as_ref()?;
        Some(session.kill_switch().save_state())
    }

    /// Whether no request is in flight.
    pub fn is_idle(&self) -> bool {
        let session = self
            .run
            .as_ref()
            .and_then(|(session, _)| session.requests());
        session.is_none_or(Requests::is_idle)
    }

    /// A response came, or `None` if none will come.
    fn answer_received(&mut self, id: RequestId, answer: Option<&Answer>) {
        let Some(answer) = answer else {
            let lost = CallAnswer::Lost(Lost::Cut("the connection broke".to_owned()));
            return self.called(id, lost);
        };
        let headers = answer.headers.iter();
        let headers: Vec<_> = headers.map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let result = CallAnswer::Received(gateway::Answer {
            status: answer.status,
            headers: &headers,
            text: &answer.body,
        });
        self.called(id, result);
    }

    /// Passes the result of a call to the start or to the session.
    fn called(&mut self, id: RequestId, answer: CallAnswer<'_>) {
        if self.boot.is_some() {
            self.start_input(StartupInput::Answer(id, answer));
        } else {
            self.input(Input::Answer(id, answer));
        }
        self.write_bans();
    }

    /// Requests a write of the file of bans if a host reported a ban since the last time.
    fn write_bans(&mut self) {
        let is_banned = self.is_banned.swap(false, Ordering::Relaxed);
        if is_banned && !self.bans(0).is_empty() {
            self.outs.push_back(Out::Bans);
        }
    }

    /// The bans for the file of bans, with their ends by the wall clock.
    pub fn bans(&self, wall_ns: i64) -> Vec<WrittenBan> {
        let since_ns = self.now_ns - self.started_ns;
        let now_ms = u64::try_from(since_ns / MS).unwrap_or(0);
        BansNow::new(&self.gateway, now_ms, wall_ns / MS).to_write()
    }

    fn socket(&mut self, key: StreamKey, link: u64, event: SocketEvent<'_>) {
        self.input(Input::Socket(key.surface, link, event));
    }

    /// Reports to the witness that the process runs.
    fn record_running(&mut self, epoch: u64, verdict: &str) {
        self.outs.push_back(Out::WitnessEvent(WitnessEvent::Process(
            ProcessEvent::Running {
                process: self.life,
                epoch,
                journal: verdict.to_owned(),
            },
        )));
    }
}

fn retry_after_ms(answer: &Answer) -> Option<u64> {
    let seconds = answer.header("retry-after")?.parse::<u64>().ok()?;
    Some(seconds * 1_000)
}
