//! The one thread that owns the engine: it takes what happened, in order, and does what follows.
//! It waits for nothing but the next thing that happens.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use windvane_driver::{Action, Driver};
use windvane_engine::input::Command;
use windvane_engine::live::LiveInput;
use windvane_engine::{Engine, Input, InstrumentId, Notice, Surface, Time};
use windvane_journal::{AppendError, Event as JournalEvent, Journal, RollError};
use windvane_venue::market_stream;
use windvane_venue::speak::{MarketReader, Missing, Speaker};
use windvane_venue::{BookLevels, user_stream};

use super::guests::LiveGuests;
use super::head::{Head, SavedStrategy};
use super::mailbox::{Happened, Inbox, Waited};
use super::outside::Outside;

/// What was recorded becomes durable within this, orders or not.
const SEAL_EVERY: Duration = Duration::from_millis(100);
/// A segment is ended at this many records, so that a start reads little.
const SEGMENT_RECORDS: u64 = 1_000_000;
/// Or at this many blocks.
const SEGMENT_BLOCKS: u64 = 100_000;
/// How long `on_stop` may take.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// Wall time that never runs backwards: read once, then counted.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Time,
    since: Instant,
}

impl Clock {
    /// Begins now, but not before `last`, the last time that a journal knows.
    pub fn starting_after(last: Time) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        let wall = wall.map_or(0, |elapsed| elapsed.as_nanos());
        let wall = Time(i64::try_from(wall).unwrap_or(i64::MAX));
        Self {
            base: wall.max(last),
            since: Instant::now(),
        }
    }

    /// The time.
    pub fn now(&self) -> Time {
        let elapsed = self.since.elapsed().as_nanos();
        self.base.plus_ns(i64::try_from(elapsed).unwrap_or(i64::MAX))
    }
}

/// A strategy's name and the hash of its module.
pub type Module = (String, [u8; 32]);

/// What the thread is made of.
pub struct Pulse {
    pub clock: Clock,
    pub driver: Driver<LiveGuests>,
    pub journal: Journal,
    pub reader: MarketReader,
    pub speaker: Speaker,
    pub outside: Outside,
    pub inbox: Inbox,
    /// Asked to stop: the run ends once `on_stop` is done.
    pub stop: Receiver<()>,
    pub modules: Vec<Module>,
}

/// Why the thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to, and `on_stop` is done.
    Stopped,
    /// It was asked to, and `on_stop` was not done in its time, or it was asked twice.
    Hurried,
}

struct State {
    levels: BookLevels,
    fetching: BTreeSet<InstrumentId>,
    sealed: Instant,
    stopping: Option<Instant>,
    /// Blocks that the journal had no room for.
    behind: Vec<windvane_engine::record::Block>,
    rolling: bool,
    failed: bool,
}

impl Pulse {
    /// Runs until it is asked to stop.
    pub fn run(mut self) -> Ended {
        let mut state = State {
            levels: BookLevels::default(),
            fetching: BTreeSet::new(),
            sealed: Instant::now(),
            stopping: None,
            behind: Vec::new(),
            rolling: false,
            failed: false,
        };
        self.act(&mut state);
        let ended = loop {
            match self.inbox.wait(self.pause()) {
                Waited::Happened(happened) => self.take(happened, &mut state),
                Waited::TimeOver => {}
                Waited::Closed => break Ended::Hurried,
            }
            self.keep_time(&mut state);
            if let Some(ended) = self.ending(&mut state) {
                break ended;
            }
        };
        self.driver.seal();
        self.act(&mut state);
        if let Err(failure) = self.journal.close() {
            tracing::error!(%failure, "the last records may not be durable");
        }
        ended
    }

    /// How long to wait for the next thing: to the engine's next timer, and not past a seal.
    fn pause(&self) -> Duration {
        let next = self.driver.next_timeout().unwrap_or(Time::NEVER);
        let left = next.0.saturating_sub(self.clock.now().0).max(0);
        Duration::from_nanos(left.unsigned_abs()).min(SEAL_EVERY)
    }

    fn handle(&mut self, input: Input<'_>, state: &mut State) {
        self.driver.handle(self.clock.now(), input);
        self.act(state);
    }

    fn take(&mut self, happened: Happened, state: &mut State) {
        match happened {
            Happened::Frame { surface, frame, at } => {
                self.outside.market_event(at);
                self.take_frame(surface, frame.text(), state);
            }
            Happened::Interrupted { surface, symbols } => {
                self.interrupted(surface, &symbols, state);
            }
            Happened::Depth { instrument, text } => {
                self.take_depth(instrument, text.as_deref(), state);
            }
            Happened::User { surface, text } => self.take_user(surface, &text, state),
            Happened::Replies(replies) => {
                for reply in &replies {
                    self.handle(Input::Reply(reply), state);
                }
            }
            Happened::Live(input) => self.handle(Input::Live(&input), state),
            Happened::Journal(event) => self.take_journal(event, state),
        }
    }

    fn take_frame(&mut self, surface: Surface, text: &str, state: &mut State) {
        let decoded = match market_stream::decode(text, &mut state.levels) {
            Ok(decoded) => decoded,
            Err(error) => {
                tracing::warn!(%surface, %error, text, "a public frame cannot be read");
                return;
            }
        };
        let (driver, clock) = (&mut self.driver, self.clock);
        let mut emit = |instrument: InstrumentId, event: windvane_engine::MarketEvent<'_>| {
            driver.handle(clock.now(), Input::Market { instrument, event });
        };
        let missing = self
            .reader
            .frame(surface, &decoded.event, &state.levels, &mut emit);
        self.after_frame(missing, state);
    }

    fn after_frame(
        &mut self,
        missing: Result<Missing, windvane_venue::speak::MarketError>,
        state: &mut State,
    ) {
        self.act(state);
        match missing {
            Ok(Missing::Nothing) => {}
            Ok(Missing::Snapshot(id)) => {
                if state.fetching.insert(id)
                    && let Some(instrument) = self.driver.engine().instrument(id)
                {
                    self.outside.fetch_depth(id, instrument);
                }
            }
            Err(error) => tracing::warn!(%error, "a public frame is not used"),
        }
    }

    fn take_depth(&mut self, id: InstrumentId, text: Option<&str>, state: &mut State) {
        state.fetching.remove(&id);
        let Some(text) = text else { return };
        let Some(instrument) = self.driver.engine().instrument(id) else {
            return;
        };
        let symbol = instrument.symbol.clone();
        let snapshot = market_stream::polling::book(&symbol, text, &mut state.levels);
        let mut snapshot = match snapshot {
            Ok(snapshot) => snapshot,
            Err(error) => {
                tracing::warn!(symbol, %error, "a depth answer cannot be read");
                return;
            }
        };
        snapshot.partial = false;
        let (driver, clock) = (&mut self.driver, self.clock);
        let mut emit = |instrument: InstrumentId, event: windvane_engine::MarketEvent<'_>| {
            driver.handle(clock.now(), Input::Market { instrument, event });
        };
        let missing = self.reader.snapshot(id, &snapshot, &state.levels, &mut emit);
        self.after_frame(missing, state);
    }

    fn interrupted(&mut self, surface: Surface, symbols: &[String], state: &mut State) {
        for symbol in symbols {
            let Some(id) = self.speaker.names.instrument(surface, symbol) else {
                continue;
            };
            let (driver, clock) = (&mut self.driver, self.clock);
            let mut emit = |instrument: InstrumentId, event: windvane_engine::MarketEvent<'_>| {
                driver.handle(clock.now(), Input::Market { instrument, event });
            };
            self.reader.interrupted(id, &mut emit);
        }
        self.act(state);
    }

    fn take_user(&mut self, surface: Surface, text: &str, state: &mut State) {
        let said = user_stream::decode(surface, text)
            .map_err(|error| error.to_string())
            .and_then(|event| {
                let said = self.speaker.user_event(&event);
                said.map_err(|error| error.to_string())
            });
        match said {
            Ok(said) => {
                for note in &said.notes {
                    tracing::info!(%surface, %note, "in a user event");
                }
                for event in &said.said {
                    self.handle(Input::User(event), state);
                }
            }
            Err(error) => {
                // What it told is missed: the account is read again over REST.
                tracing::error!(%surface, error, text, "a user event cannot be used");
                self.handle(Input::Live(&LiveInput::StreamDown { surface }), state);
                self.outside.reconnect(surface);
            }
        }
    }

    fn take_journal(&mut self, event: JournalEvent, state: &mut State) {
        match event {
            JournalEvent::Durable { chain, took, .. } => {
                self.outside.durable(took);
                self.driver.durable(chain.last_record);
                self.act(state);
            }
            JournalEvent::Rolled { chain, segment, .. } => {
                tracing::info!(segment, "a new segment of the journal");
                state.rolling = false;
                self.driver.durable(chain.last_record);
                if std::mem::take(&mut state.failed) {
                    self.handle(Input::Live(&LiveInput::Journal { healthy: true }), state);
                }
                self.act(state);
            }
            JournalEvent::Stalled { waiting } => {
                tracing::error!(waiting_ms = waiting.as_millis(), "the journal stalls");
                self.handle(Input::Live(&LiveInput::Journal { healthy: false }), state);
            }
            JournalEvent::Healthy { .. } => {
                let healthy = !state.failed;
                self.handle(Input::Live(&LiveInput::Journal { healthy }), state);
            }
            JournalEvent::Failed(failure) => {
                tracing::error!(%failure, "the journal failed: no new exposure until it writes");
                state.failed = true;
                self.handle(Input::Live(&LiveInput::Journal { healthy: false }), state);
            }
        }
    }

    /// Does what follows from the last input.
    fn act(&mut self, state: &mut State) {
        while let Some(action) = self.driver.poll() {
            match action {
                Action::Append(block) => state.behind.push(block),
                Action::Request(request) => self.outside.carry(request),
                Action::Reconnect(surface) => self.outside.reconnect(surface),
                Action::Notice(notice) => self.notice(&notice),
            }
            self.append(state);
        }
        self.outside.acted();
    }

    /// Gives blocks to the journal as far as it takes them.
    fn append(&mut self, state: &mut State) {
        let mut waiting = std::mem::take(&mut state.behind).into_iter();
        while let Some(block) = waiting.next() {
            match self.journal.append(block) {
                Ok(()) => {}
                Err(AppendError::Full { block }) => {
                    state.behind.push(*block);
                    state.behind.extend(waiting);
                    return;
                }
                // A failed journal is begun anew with a head that holds everything.
                Err(AppendError::Failed(_)) => {}
                Err(AppendError::OutOfOrder(error)) => {
                    tracing::error!(%error, "a block is out of order: the journal is begun anew");
                    state.failed = true;
                }
            }
        }
    }

    fn notice(&mut self, notice: &Notice) {
        self.outside.notice(self.driver.engine(), notice);
        if let Notice::State { to, doubts, .. } = notice {
            let doubts: Vec<String> = doubts.iter().map(ToString::to_string).collect();
            tracing::info!(state = to.as_str(), ?doubts, "the state changed");
        }
    }

    /// Timers, seals, segments, and what people asked for.
    fn keep_time(&mut self, state: &mut State) {
        let now = self.clock.now();
        if self.driver.next_timeout().is_some_and(|at| at <= now) {
            self.handle(Input::Timeout, state);
        }
        if state.sealed.elapsed() >= SEAL_EVERY {
            state.sealed = Instant::now();
            self.driver.seal();
            self.act(state);
            self.append(state);
            self.roll_if_due(state);
        }
        while let Some(command) = self.outside.next_command() {
            self.command(command, state);
        }
        self.outside.publish(&self.driver);
    }

    fn command(&mut self, command: Command, state: &mut State) {
        tracing::warn!(?command, "a command of the operator");
        self.handle(Input::Command(command), state);
    }

    /// Ends a segment that is long enough, or one whose disk failed.
    fn roll_if_due(&mut self, state: &mut State) {
        let long = self.journal.segment_records() >= SEGMENT_RECORDS
            || self.journal.segment_blocks() >= SEGMENT_BLOCKS;
        if state.rolling || !(long || state.failed) || (!state.behind.is_empty() && !state.failed) {
            return;
        }
        let (head, chain) = {
            let (engine, states) = self.driver.snapshot();
            (head(engine, states, &self.modules), self.driver.engine().chain())
        };
        self.act(state);
        match self.journal.roll(head.to_bytes(), chain) {
            Ok(()) => state.rolling = true,
            Err(RollError::Full) => {}
            Err(error @ RollError::OutOfPlace { .. }) => {
                tracing::error!(%error, "the journal is not where the engine is");
            }
        }
    }

    /// Whether the run ends now.
    fn ending(&mut self, state: &mut State) -> Option<Ended> {
        if self.stop.try_recv().is_ok() {
            if state.stopping.is_some() {
                return Some(Ended::Hurried);
            }
            state.stopping = Some(Instant::now());
            self.handle(Input::Live(&LiveInput::Stop), state);
        }
        let since = state.stopping?;
        if self.driver.engine().has_stopped() {
            return Some(Ended::Stopped);
        }
        (since.elapsed() >= STOP_WITHIN).then_some(Ended::Hurried)
    }
}

/// The head of a segment that begins here.
pub fn head(engine: Vec<u8>, states: Vec<Option<Vec<u8>>>, modules: &[Module]) -> Head {
    let strategies = modules.iter().zip(states);
    Head {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        engine,
        strategies: strategies
            .map(|((name, sha256), state)| SavedStrategy {
                name: name.clone(),
                sha256: *sha256,
                state,
            })
            .collect(),
    }
}

