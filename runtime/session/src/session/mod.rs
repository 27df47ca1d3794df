//! The live run: what happened goes in, what is to be done comes out.
//!
//! The shell (sockets, disk, clock) calls [`Session::handle`] for each thing that happens, takes
//! [`Session::poll_output`] until nothing is left, and calls [`Input::Timeout`] at
//! [`Session::poll_timeout`]. Live runs, paper runs and the simulator of faults drive this one type.

mod change;
mod journal;
mod outside;
mod reload;

use std::collections::VecDeque;

use windvane_client_core::budget::Lane;
use windvane_client_core::gateway::Unsigned;
use windvane_client_core::streams::StreamSettings;
use windvane_client_core::streams::machine::LinkId;
use windvane_engine::Engine;
use windvane_model::Input as EngineInput;
use windvane_model::input::Command;
use windvane_model::invariant::BrokenInvariant;
use windvane_model::latches::Latches;
use windvane_model::live::LiveInput;
use windvane_model::record::{Block, Chain};
use windvane_model::{
    ClientOrderId, InstrumentId, MarketEvent, Notice, Reply, Request, StrategyId, Surface, Time,
};
use windvane_protocol::sign::{PrepareError, Prepared};

use crate::account::Account;
use crate::clock::Clock;
use crate::driver::Driver;
use crate::guests::Guests;
use crate::head::Module;
use crate::latches::{LatchState, OPERATOR};
use crate::public_streams::PublicStreams;
use crate::requests::{Call, CallAnswer, CallEnded, CallId, Requests};
use crate::stop::Stop;
use crate::user_streams::{SocketAction, SocketEvent, UserStreams};
use crate::writer::{Lag, Writer};

pub use change::Freed;
pub use outside::log_note;
pub use reload::{NotReloaded, Reload, Reloaded};

/// What a session is made of.
#[derive(Debug)]
pub struct Parts<G> {
    /// Engine and strategies, which have begun.
    pub driver: Driver<G>,
    /// The account.
    pub account: Account,
    /// Requests to a venue, of its account or of its public data; none beside recordings.
    pub requests: Option<Requests>,
    /// The engine's clock.
    pub clock: Clock,
    /// The strategies' modules, in their order.
    pub modules: Vec<Module>,
    /// What is traded.
    pub surfaces: Vec<Surface>,
    /// How user streams are kept.
    pub streams: StreamSettings,
    /// Streams of public data; none beside recordings.
    pub public: Option<PublicStreams>,
    /// What is latched, and why.
    pub latches: LatchState,
    /// `on_stop = "flatten"`.
    pub flattens: bool,
    /// So many blocks may be on their way to the disk: [`BLOCKS_UNDER_WAY`](crate::BLOCKS_UNDER_WAY).
    pub blocks_under_way: usize,
}

/// Something that happened.
#[derive(Debug)]
pub enum Input<'a> {
    /// [`Session::poll_timeout`] has come.
    Timeout,
    /// A public event that was decoded before, as those of a recording are.
    Market {
        /// The instrument.
        instrument: InstrumentId,
        /// The event.
        event: MarketEvent<'a>,
    },
    /// A call was signed elsewhere, or could not be.
    Signed(CallId, Result<Prepared, PrepareError>),
    /// What came back of a call.
    Answer(CallId, CallAnswer<'a>),
    /// Something happened to a connection of a stream, which has this number.
    Socket(Surface, LinkId, SocketEvent<'a>),
    /// What is to be trusted.
    Live(LiveInput),
    /// The journal says something.
    Journal(JournalEvent),
    /// The file of [`Output::Latches`] is durable, or could not be written for this reason.
    Latches(Result<(), String>),
    /// The operator commands, for all or for one strategy.
    Command(Command, Option<StrategyId>),
    /// The run is to end. The second time it ends at once.
    Stop,
}

/// What the journal says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalEvent {
    /// Everything up to this record is durable.
    Durable(u64),
    /// A new segment was begun, after this record.
    Rolled(u64),
    /// It did not begin a new segment: it has no room, or the head is of another place.
    NotRolled,
    /// A write takes too long.
    Stalled,
    /// It does not any more.
    Healthy,
    /// The disk refused. Nothing is durable until a new segment is begun.
    Failed,
}

/// What is to be done, in this order.
#[derive(Debug)]
pub enum Output {
    /// Give a block to the journal.
    Append(Block),
    /// Begin a new segment with this head.
    Roll(Vec<u8>, Chain),
    /// Have a call signed; what comes back is [`Input::Signed`]. Only where a signer elsewhere signs
    /// ([`Signing::Elsewhere`](crate::Signing::Elsewhere)).
    Sign(CallId, Unsigned),
    /// Write a call to the venue once; what comes back is [`Input::Answer`].
    Send(Call),
    /// Give this call up. [`Input::Answer`] says what became of it: that it did not leave
    /// ([`CallAnswer::Late`]), or that its answer is lost.
    Abandon(CallId),
    /// A request of the engine was handed over: to its calls, or to the simulated account.
    Handed {
        /// The request.
        request: Request,
        /// When the public frame came that it follows from.
        since: Option<Time>,
    },
    /// The engine was told this reply to a request.
    Replied(Reply),
    /// A call ended, for the metrics.
    CallEnded(CallEnded),
    /// A call of a lane waited so long for its share of the budget, nanoseconds, or gave up after that.
    BudgetWait(Lane, i64),
    /// Do something with a connection of a stream, which has this number: see [`crate::is_public`].
    Socket(Surface, LinkId, SocketAction),
    /// A stream misses nothing from here on, or may miss events.
    Stream {
        /// Surface.
        surface: Surface,
        /// A stream of public data; else the user stream.
        is_public: bool,
        /// It misses nothing.
        is_up: bool,
    },
    /// Give the watchdog process of spot orders a sign of health.
    Beat(u64),
    /// Write the file of the latches; it need not be durable before what follows. What became of it is
    /// [`Input::Latches`].
    Latches(Latches),
    /// Keep this snapshot of the engine for a report: its own books contradict each other. The run is
    /// halted already.
    BugReport {
        /// The rule that is broken.
        broken: BrokenInvariant,
        /// See [`Engine::report`].
        snapshot: Vec<u8>,
    },
    /// Tell people.
    Notice(Box<Notice>),
    /// The run is over: nothing follows.
    Ended(Ended),
}

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to, and `on_stop` is done.
    Stopped,
    /// It was asked to, and `on_stop` was not done in its time, or it was asked twice.
    Hurried,
    /// Another instance trades on the account, as this order shows: `on_stop` is not applied.
    AnotherInstance(ClientOrderId),
}

impl Ended {
    /// Whether the watchdog process of spot orders ends with the run, and cancels nothing: what rests is left
    /// on purpose, or is another instance's. After a stop in a hurry nobody cancelled what rests.
    pub fn lets_watchdog_go(&self) -> bool {
        *self != Self::Hurried
    }
}

/// Why the session wants to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A timer of the engine.
    Engine,
    /// The simulated account has something to say.
    Account,
    /// What was recorded is to become durable.
    Seal,
    /// A segment of the journal is old, or a new one is tried after a failure.
    Roll,
    /// The stop has lasted its time.
    Stop,
    /// The file of the latches is written again after a failure.
    Latches,
    /// A request is given up, asked again, or has its turn.
    Requests,
    /// A stream is to be pinged, replaced, or connected anew.
    Streams,
}

/// A live run. See the module's page.
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
    latches: LatchState,
    flattens: bool,
    writer: Writer,
    stop: Option<Stop>,
    /// What leaves, before anything else is done.
    leaving: VecDeque<Output>,
    outputs: VecDeque<Output>,
    /// A segment that begins once the journal has every block before it.
    head: Option<(Vec<u8>, Chain)>,
    ended: Option<Ended>,
    is_over: bool,
    /// When the public frame came that is being handled, or that led to what is released.
    since: Option<Time>,
}

impl<G: Guests> Session<G> {
    /// A session that begins `now`, with a segment of the journal that was begun.
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
            latches,
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
            latches,
            flattens,
            stop: None,
            leaving: VecDeque::new(),
            outputs: VecDeque::new(),
            head: None,
            ended: None,
            is_over: false,
            since: None,
        };
        if let Some(requests) = session.requests.as_mut()
            && session.account.is_of_venue()
        {
            requests.watch_clocks(now);
        }
        session.streams_timeout(now);
        session.act(now);
        session.settle(now);
        session
    }

    /// Takes in what happened. `now` is the shell's clock, which never runs backwards. After it,
    /// [`Self::poll_output`] has to be drained.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        if let Input::Latches(result) = input {
            return self.latches.written(now, result);
        }
        if self.ended.is_some() {
            return;
        }
        match input {
            Input::Latches(_) => {}
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
                    requests.answered(now, (id, answer));
                }
            }
            Input::Live(input) => {
                self.live(now, input);
                if let Some(requests) = &mut self.requests {
                    requests.tell_stops(now);
                }
            }
            Input::Journal(event) => self.journal(now, event),
            Input::Command(command, None) => {
                self.latches.set_cause(match command {
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
                if let Some(requests) = &mut self.requests {
                    requests.hurry();
                }
                self.live(now, LiveInput::Stop);
            }
        }
        self.settle(now);
        self.look_for_end(now);
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        // An order that waits for the disk goes first: it takes longest.
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
        if let Some((head, at)) = self.head.take() {
            return Some(Output::Roll(head, at));
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
        let roll = self.writer.roll_at();
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
            (self.latches.due(), Reason::Latches),
            (requests, Reason::Requests),
            (streams, Reason::Streams),
        ];
        let due = all
            .into_iter()
            .filter_map(|(time, reason)| Some((time?, reason)));
        due.min()
    }

    /// Engine and strategies.
    pub const fn driver(&self) -> &Driver<G> {
        &self.driver
    }

    /// Engine and strategies, at the end.
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

    /// The strategies' modules, in their order.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The engine's clock while the shell's shows `now`.
    pub const fn time(&self, now: Time) -> Time {
        self.clock.at(now)
    }

    /// The bytes of the last order, stamped with no time: see [`Output::Send`] for those that leave.
    pub fn rehearse_order(&self) -> Option<(windvane_protocol::route::Surface, Prepared)> {
        self.requests.as_ref()?.rehearse()
    }

    /// How far the journal is behind.
    pub fn lag(&self, now: Time) -> Lag {
        self.writer.lag(now)
    }

    /// When a block was recorded last that is not durable yet.
    pub fn newest_block(&self) -> Option<Time> {
        self.writer.newest()
    }

    /// Whether the journal has no room for what was recorded.
    pub fn is_behind(&self) -> bool {
        self.writer.is_behind()
    }

    /// Whether the run was asked to end.
    pub const fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether no order can close a position, so that it counts as flat at the stop.
    pub fn is_dust(&self, strategy: StrategyId, instrument: InstrumentId) -> bool {
        let stop = self.stop.as_ref();
        stop.is_some_and(|stop| stop.is_dust(strategy, instrument))
    }

    /// What is latched, and why.
    pub const fn latches(&self) -> &LatchState {
        &self.latches
    }

    /// What follows outside, and in the file of the latches.
    fn settle(&mut self, now: Time) {
        self.hear_outside(now);
        self.keep_latches();
    }

    /// Has the shell write down what changed in what is latched.
    fn keep_latches(&mut self) {
        self.latches.look(self.driver.engine());
        let changed = self.latches.take();
        self.outputs.extend(changed.map(Output::Latches));
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
