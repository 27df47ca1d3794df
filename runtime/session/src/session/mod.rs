//! The live run: events go in, work for the shell comes out.
//!
//! The shell (sockets, disk, clock) calls [`Session::handle`] for each event and drains
//! [`Session::poll_output`] after it. It calls [`Session::handle`] with [`Input::Timeout`] at
//! [`Session::poll_timeout`]. Live runs, paper runs and the fault simulator all drive this type.

mod change;
mod dispatch;
mod events;
mod journal;
mod reload;
mod starts;

use std::collections::VecDeque;

use windvane_client_core::streams::StreamSettings;
use windvane_engine::Engine;
use windvane_model::Input as EngineInput;
use windvane_model::input::Command;
use windvane_model::live::LiveInput;
use windvane_model::record::Chain;
use windvane_model::{InstrumentId, StrategyId, Surface, Time};
use windvane_protocol::sign::Prepared;

use crate::account::Account;
use crate::checkpoint::Module;
use crate::clock::Clock;
use crate::driver::Driver;
use crate::guests::Guests;
use crate::kill_switch::{KillSwitchState, OPERATOR};
use crate::public_streams::PublicStreams;
use crate::requests::Requests;
use crate::stop::Stop;
use crate::user_streams::UserStreams;
use crate::writer::{DurabilityLag, Writer};
use starts::Starts;

pub use events::{Ended, Input, JournalEvent, Output, Reason};
pub use reload::{NotReloaded, Reload, ReloadTrial};
pub use starts::{ReloadStarts, Renewed, START_MAX_MS, StartCause, StartJob, Started};

/// The parts of a session.
#[derive(Debug)]
pub struct Parts<G> {
    /// Engine and strategies. The strategies have started.
    pub driver: Driver<G>,
    /// The account.
    pub account: Account,
    /// Requests to the venue, for the account or only for public data; `None` for a recording.
    pub requests: Option<Requests>,
    /// The engine's clock.
    pub clock: Clock,
    /// The modules of the strategies, in order.
    pub modules: Vec<Module>,
    /// The surfaces that are traded.
    pub surfaces: Vec<Surface>,
    /// Settings of the user streams.
    pub streams: StreamSettings,
    /// Streams of public data; `None` for a recording.
    pub public: Option<PublicStreams>,
    /// The kill switches and their reasons.
    pub kill_switch: KillSwitchState,
    /// `on_stop = "flatten"`.
    pub flattens: bool,
    /// Maximum number of blocks on their way to the disk:
    /// [`BLOCKS_UNDER_WAY`](crate::BLOCKS_UNDER_WAY).
    pub blocks_under_way: usize,
}

/// A live run. See the module documentation.
#[derive(Debug)]
pub struct Session<G> {
    driver: Driver<G>,
    account: Account,
    requests: Option<Requests>,
    streams: Option<UserStreams>,
    public: Option<PublicStreams>,
    clock: Clock,
    modules: Vec<Module>,
    surfaces: Vec<Surface>,
    kill_switch: KillSwitchState,
    flattens: bool,
    writer: Writer,
    stop: Option<Stop>,
    starts: Starts,
    /// Outputs that leave before all others.
    leaving: VecDeque<Output>,
    outputs: VecDeque<Output>,
    /// A segment that begins once the journal has every block before it.
    checkpoint: Option<(Vec<u8>, Chain)>,
    ended: Option<Ended>,
    is_over: bool,
    /// Arrival of the public frame that is being handled, or that caused the blocks that are being
    /// released.
    since: Option<Time>,
}

impl<G: Guests> Session<G> {
    /// A session that begins at `now`. Its first journal segment has begun already.
    pub fn new(now: Time, parts: Parts<G>) -> Self {
        let Parts {
            driver,
            account,
            requests,
            clock,
            modules,
            surfaces,
            streams,
            public,
            kill_switch,
            flattens,
            blocks_under_way,
        } = parts;
        let is_of_venue = account.is_of_venue() && requests.is_some();
        let mut session = Self {
            writer: Writer::new(now, clock.is_played(), blocks_under_way),
            driver,
            account,
            requests,
            public,
            streams: is_of_venue.then(|| UserStreams::new(now, &surfaces, &streams)),
            clock,
            modules,
            surfaces,
            kill_switch,
            flattens,
            stop: None,
            starts: Starts::default(),
            leaving: VecDeque::new(),
            outputs: VecDeque::new(),
            checkpoint: None,
            ended: None,
            is_over: false,
            since: None,
        };
        if let Some(requests) = session.requests.as_mut()
            && session.account.is_of_venue()
        {
            requests.share_between(session.driver.guests().count());
            requests.watch_clocks(now);
        }
        session.streams_timeout(now);
        session.act(now);
        session.settle(now);
        session
    }

    /// Handles one event. `now` is the shell's clock, which never runs backwards. Drain
    /// [`Self::poll_output`] after it.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        if let Input::KillSwitch(result) = input {
            return self.kill_switch.written(now, result);
        }
        if self.ended.is_some() {
            return;
        }
        // A pause of the account needs no more: it holds back every strategy by itself.
        if let Input::Command(command, of) = &input
            && !matches!((command, of), (Command::Resume, _) | (Command::Pause, None))
        {
            self.starts.overtake(*of);
        }
        match input {
            Input::KillSwitch(_) => {}
            Input::Timeout => self.timeout(now),
            Input::Market { instrument, event } => {
                let time = self.clock.at(now);
                self.account.market(time, instrument, &event);
                self.engine_input(now, EngineInput::Market { instrument, event });
            }
            Input::Socket(surface, link, event) => self.socket(now, (surface, link), event),
            Input::Signed(id, prepared) => {
                if let Some(requests) = &mut self.requests {
                    requests.signed(now, id, prepared);
                }
            }
            Input::Answer(id, answer) => {
                if let Some(requests) = &mut self.requests {
                    requests.handle_answer(now, (id, answer));
                }
            }
            Input::Live(input) => {
                self.live(now, input);
                if let Some(requests) = &mut self.requests {
                    requests.report_stops(now);
                }
            }
            Input::Journal(event) => self.journal(now, event),
            Input::Command(command, None) => {
                self.kill_switch.set_cause(match command {
                    Command::Resume => String::new(),
                    Command::Pause | Command::Halt | Command::Flatten => OPERATOR.to_owned(),
                });
                self.engine_input(now, EngineInput::Command(command));
            }
            Input::Command(command, Some(strategy)) => {
                self.engine_input(now, EngineInput::Steer { strategy, command });
            }
            Input::Stop if self.stop.is_some() => self.end(now, Ended::Hurried),
            Input::Stop => {
                self.stop = Some(Stop::new(now));
                self.starts.drop_queued();
                if let Some(requests) = &mut self.requests {
                    requests.hurry();
                }
                self.live(now, LiveInput::Stop);
            }
        }
        self.settle(now);
        self.look_for_end(now);
    }

    /// The next work for the shell.
    pub fn poll_output(&mut self) -> Option<Output> {
        // Blocks that an order waits for go first, because the disk takes longest.
        if self.driver.waiting() > 0
            && let Some(block) = self.writer.next_block()
        {
            return Some(Output::Append(block));
        }
        let output = self.leaving.pop_front();
        if let Some(output) = output.or_else(|| self.outputs.pop_front()) {
            return Some(output);
        }
        if let Some(block) = self.writer.next_block() {
            return Some(Output::Append(block));
        }
        if let Some((checkpoint, at)) = self.checkpoint.take() {
            return Some(Output::Roll(checkpoint, at));
        }
        let ended = self.ended.filter(|_| !self.is_over)?;
        self.is_over = true;
        Some(Output::Ended(ended))
    }

    /// When [`Input::Timeout`] is due by the shell's clock, and why.
    pub fn poll_timeout(&self) -> Option<(Time, Reason)> {
        if self.ended.is_some() {
            return None;
        }
        let engine = self.driver.next_timeout();
        let engine = engine.and_then(|time| self.clock.shell_time(time));
        let account = match self.account.next() {
            Time::NEVER => None,
            time => self.clock.shell_time(time),
        };
        let seal = (self.has_unsealed() && !self.clock.is_played()).then(|| self.writer.seal_at());
        let roll = self.writer.roll_at().filter(|_| self.may_roll());
        let stop = self.stop.as_ref().map(Stop::by);
        let requests = self.requests.as_ref().and_then(Requests::next);
        let user = self.streams.as_ref().and_then(UserStreams::next);
        let public = self.public.as_ref().and_then(PublicStreams::next);
        let streams = user.into_iter().chain(public).min();
        let all = [
            (engine, Reason::Engine),
            (account, Reason::Account),
            (seal, Reason::Seal),
            (roll, Reason::Roll),
            (stop, Reason::Stop),
            (self.kill_switch.due(), Reason::KillSwitch),
            (requests, Reason::Requests),
            (streams, Reason::Streams),
            (self.starts.next(), Reason::Start),
        ];
        let due = all
            .into_iter()
            .filter_map(|(time, reason)| Some((time?, reason)));
        due.min()
    }

    /// Whether a segment may begin. A replay of a segment that began during a start could not know what
    /// the new instance has seen. A journal that failed cannot wait: without a new segment nothing opens,
    /// and its replay has a gap in any case.
    pub(super) const fn may_roll(&self) -> bool {
        !self.is_starting() || self.writer.has_failed()
    }

    /// Engine and strategies.
    pub const fn driver(&self) -> &Driver<G> {
        &self.driver
    }

    /// Engine and strategies, at the end of the run.
    pub fn into_driver(self) -> Driver<G> {
        self.driver
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        self.driver.engine()
    }

    /// Requests to the venue.
    pub const fn requests(&self) -> Option<&Requests> {
        self.requests.as_ref()
    }

    /// The account.
    pub const fn account(&self) -> &Account {
        &self.account
    }

    /// The modules of the strategies, in order.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The engine's time when the shell's clock shows `now`.
    pub const fn time(&self, now: Time) -> Time {
        self.clock.at(now)
    }

    /// The bytes of the last order, signed again for a rehearsal. They are never sent: see
    /// [`Output::Send`] for requests that leave.
    pub fn rehearse_order(&self) -> Option<(windvane_protocol::route::Surface, Prepared)> {
        self.requests.as_ref()?.rehearse()
    }

    /// How far the journal is behind.
    pub fn durability_lag(&self, now: Time) -> DurabilityLag {
        self.writer.durability_lag(now)
    }

    /// When the newest block that is not durable yet was recorded.
    pub fn newest_block(&self) -> Option<Time> {
        self.writer.newest()
    }

    /// Whether blocks wait because the journal has no room.
    pub fn is_behind(&self) -> bool {
        self.writer.is_behind()
    }

    /// Whether a stop was requested.
    pub const fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether no order can close a position, so that the stop counts it as flat.
    pub fn is_dust(&self, strategy: StrategyId, instrument: InstrumentId) -> bool {
        let stop = self.stop.as_ref();
        stop.is_some_and(|stop| stop.is_dust(strategy, instrument))
    }

    /// The kill switches and their reasons.
    pub const fn kill_switch(&self) -> &KillSwitchState {
        &self.kill_switch
    }

    /// Handles the results in requests and streams, and updates the kill switch file.
    fn settle(&mut self, now: Time) {
        self.give_up_starts(now);
        self.handle_results(now);
        self.update_kill_switch();
    }

    /// Has the shell write the kill switch file if a kill switch changed.
    fn update_kill_switch(&mut self) {
        self.kill_switch.update_from(self.driver.engine());
        let changed = self.kill_switch.take();
        self.outputs.extend(changed.map(Output::KillSwitch));
    }

    fn engine_input(&mut self, now: Time, input: EngineInput<'_>) {
        self.driver.handle(self.clock.at(now), input);
        self.act(now);
    }

    fn live(&mut self, now: Time, input: LiveInput) {
        let input = self.clock.by_engine(input);
        self.engine_input(now, EngineInput::Live(&input));
    }
}
