//! What goes into a session and what comes out of it.

use windvane_client_core::budget::Lane;
use windvane_client_core::gateway::Unsigned;
use windvane_client_core::streams::machine::LinkId;
use windvane_model::input::Command;
use windvane_model::invariant::BrokenInvariant;
use windvane_model::kill_switch::StoredKillSwitches;
use windvane_model::live::LiveInput;
use windvane_model::record::{Block, Chain};
use windvane_model::{
    ClientOrderId, InstrumentId, MarketEvent, Notice, Reply, Request, StrategyId, Surface, Time,
};
use windvane_protocol::sign::{PrepareError, Prepared};

use crate::requests::{Call, CallAnswer, CallEnded, CallId};
use crate::stream_sockets::{SocketAction, SocketEvent};

/// An event for the session.
#[derive(Debug)]
pub enum Input<'a> {
    /// The time of [`Session::poll_timeout`](crate::Session::poll_timeout) has come.
    Timeout,
    /// A public event that is already decoded, such as one of a recording.
    Market {
        /// The instrument.
        instrument: InstrumentId,
        /// The event.
        event: MarketEvent<'a>,
    },
    /// A call was signed elsewhere, or could not be signed.
    Signed(CallId, Result<Prepared, PrepareError>),
    /// The result of a call.
    Answer(CallId, CallAnswer<'a>),
    /// An event of the stream connection with this number.
    Socket(Surface, LinkId, SocketEvent<'a>),
    /// A report about the connection, the clock, the journal or the venue's limits.
    Live(LiveInput),
    /// A report of the journal.
    Journal(JournalEvent),
    /// The file of [`Output::KillSwitch`] is durable, or could not be written, for this reason.
    KillSwitch(Result<(), String>),
    /// A command of the operator, for all strategies or for one.
    Command(Command, Option<StrategyId>),
    /// The run must end. A second stop ends it at once.
    Stop,
}

/// A report of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalEvent {
    /// Everything up to this record is durable.
    Durable(u64),
    /// A new segment began after this record.
    Rolled(u64),
    /// A new segment did not begin: the journal has no room, or it is not at the position of the
    /// checkpoint.
    NotRolled,
    /// A write takes too long.
    Stalled,
    /// Writes are fast again.
    Healthy,
    /// The disk failed. Nothing becomes durable until a new segment begins.
    Failed,
}

/// Work for the shell, in this order.
#[derive(Debug)]
pub enum Output {
    /// Pass this block to the journal.
    Append(Block),
    /// Begin a new segment with this checkpoint.
    Roll(Vec<u8>, Chain),
    /// Have this call signed; the result is [`Input::Signed`]. Only with a signer elsewhere
    /// ([`Signing::Elsewhere`](crate::Signing::Elsewhere)).
    Sign(CallId, Unsigned),
    /// Write this call to the venue once; the result is [`Input::Answer`].
    Send(Call),
    /// Stop waiting for this call. The shell reports the result as [`Input::Answer`]: the call did
    /// not leave ([`CallAnswer::Late`]), or its response is lost.
    Abandon(CallId),
    /// A request of the engine was passed on: to the venue's calls, or to the simulated account.
    Handed {
        /// The request.
        request: Request,
        /// Arrival of the public frame that caused it.
        since: Option<Time>,
    },
    /// The engine received this reply to a request.
    Replied(Reply),
    /// A call ended; for the metrics.
    CallEnded(CallEnded),
    /// How long a call waited for the budget of its lane, in nanoseconds, also if it then stopped
    /// waiting without being sent.
    BudgetWait(Lane, i64),
    /// Do this with the stream connection of this number: see [`crate::is_public`].
    Socket(Surface, LinkId, SocketAction),
    /// A stream is complete from here on, or may miss events.
    Stream {
        /// Surface.
        surface: Surface,
        /// Whether it is a public stream; otherwise it is the user stream.
        is_public: bool,
        /// Whether it is complete.
        is_up: bool,
    },
    /// Send a heartbeat to the watchdog process of spot orders.
    Heartbeat(u64),
    /// Write the kill switch file. It need not be durable before the next outputs. The result is
    /// [`Input::KillSwitch`].
    KillSwitch(StoredKillSwitches),
    /// Save this snapshot of the engine for a bug report: its own books contradict each other. The
    /// run is halted already.
    BugReport {
        /// The rule that is broken.
        broken: BrokenInvariant,
        /// See [`Engine::report`](windvane_engine::Engine::report).
        snapshot: Vec<u8>,
    },
    /// Show this notice to people.
    Notice(Box<Notice>),
    /// The run is over: no output follows.
    Ended(Ended),
}

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A stop was requested, and `on_stop` is finished.
    Stopped,
    /// A stop was requested, but `on_stop` did not finish in time, or a second stop was requested.
    Hurried,
    /// Another instance trades on the account, as this order shows. `on_stop` is not applied.
    AnotherInstance(ClientOrderId),
}

impl Ended {
    /// Whether the watchdog process of spot orders ends with the run and cancels nothing. Then the
    /// resting orders were left on purpose, or belong to another instance. After a stop that was
    /// cut short, the watchdog cancels them, because the run did not.
    pub fn lets_watchdog_go(&self) -> bool {
        *self != Self::Hurried
    }
}

/// Why the session must be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A timer of the engine.
    Engine,
    /// The simulated account has a message.
    Account,
    /// Records must become durable.
    Seal,
    /// The segment must end, or a new one is tried after a failure.
    Roll,
    /// The time limit of the stop is over.
    Stop,
    /// The kill switch file is written again after a failure.
    KillSwitch,
    /// A request is given up, repeated, or has its turn.
    Requests,
    /// A stream must be pinged, replaced or reconnected.
    Streams,
    /// A start of a strategy is given up.
    Start,
}
