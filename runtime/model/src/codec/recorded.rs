//! Decoded records. They own their data.

use crate::config::Reconfiguration;
use crate::degraded_reason::DegradedReason;
use crate::effect::{Adjustment, Cause};
use crate::event::{EventKind, Intent};
use crate::forced::{ForcedCloseReport, OnLiquidation};
use crate::ids::{InstrumentId, StrategyId, Time};
use crate::input::{Command, FaultKind, Input, StartPhase};
use crate::instrument::SymbolStatus;
use crate::live::LiveInput;
use crate::market::OwnedMarketEvent;
use crate::order::Surface;
use crate::protocol::{Reply, Request, UserEvent};
use crate::run_state::RunState;

/// One record. Its sequence is the sequence of its block's first record plus its position in the
/// block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time when the engine handled it; 0 for the configuration.
    pub time: Time,
    /// The content.
    pub body: RecordBody,
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordBody {
    /// The configuration of the engine, for people and for the hash.
    Config(String),
    /// An input.
    Input(RecordedInput),
    /// An effect that followed from the inputs before it.
    Effect(RecordedEffect),
    /// A decision inside the engine that followed from the inputs, for people who read the journal.
    Notice(RecordedNotice),
}

/// A recorded input: [`Input`] with owned data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedInput {
    /// A public market event.
    Market {
        /// The instrument.
        instrument: InstrumentId,
        /// The event.
        event: OwnedMarketEvent,
    },
    /// The intents of one callback.
    Answer {
        /// The strategy.
        strategy: StrategyId,
        /// The intents, in the order in which they were made.
        intents: Vec<Intent>,
    },
    /// The venue's reply to a request.
    Reply(Reply),
    /// An event of a user data stream.
    User(UserEvent),
    /// One or more timers were due.
    Timeout,
    /// A strategy failed.
    Fault {
        /// The strategy.
        strategy: StrategyId,
        /// The kind of fault.
        kind: FaultKind,
    },
    /// A command of the operator.
    Command(Command),
    /// A command of the operator for one strategy.
    Steer {
        /// The strategy.
        strategy: StrategyId,
        /// The command.
        command: Command,
    },
    /// A strategy's module was instantiated again.
    Renew {
        /// The strategy.
        strategy: StrategyId,
    },
    /// A start of a strategy's module beside the run began or ended.
    Start {
        /// The strategy.
        strategy: StrategyId,
        /// The begin or the end.
        phase: StartPhase,
    },
    /// The saved state of a strategy.
    Saved {
        /// The strategy.
        strategy: StrategyId,
        /// Sequence of the last event that the strategy had handled.
        handled: i64,
        /// The state; `None` if it is the same as the previous one.
        state: Option<Vec<u8>>,
    },
    /// The part of the configuration that may change during a run has changed.
    Reconfigure(Reconfiguration),
    /// Information about connections, clocks and the venue's availability.
    Live(LiveInput),
    /// The status of a symbol changed.
    SymbolStatus {
        /// The instrument.
        instrument: InstrumentId,
        /// The new status.
        status: SymbolStatus,
    },
    /// The reaction to a liquidation or an ADL from then on.
    OnLiquidation(OnLiquidation),
}

impl RecordedInput {
    /// Converts to the input type of the engine.
    pub fn as_input(&self) -> Input<'_> {
        match self {
            Self::Market { instrument, event } => Input::Market {
                instrument: *instrument,
                event: event.market(),
            },
            Self::Answer { strategy, intents } => Input::Answer {
                strategy: *strategy,
                intents,
            },
            Self::Reply(reply) => Input::Reply(reply),
            Self::User(event) => Input::User(event),
            Self::Timeout => Input::Timeout,
            Self::Fault { strategy, kind } => Input::Fault {
                strategy: *strategy,
                kind: *kind,
            },
            Self::Command(command) => Input::Command(*command),
            Self::Steer { strategy, command } => Input::Steer {
                strategy: *strategy,
                command: *command,
            },
            Self::Renew { strategy } => Input::Renew {
                strategy: *strategy,
            },
            Self::Start { strategy, phase } => Input::Start {
                strategy: *strategy,
                phase: *phase,
            },
            Self::Saved {
                strategy,
                handled,
                state,
            } => Input::Saved {
                strategy: *strategy,
                handled: *handled,
                state: state.as_deref(),
            },
            Self::Reconfigure(next) => Input::Reconfigure(next),
            Self::Live(input) => Input::Live(input),
            Self::SymbolStatus { instrument, status } => Input::SymbolStatus {
                instrument: *instrument,
                status,
            },
            Self::OnLiquidation(reaction) => Input::OnLiquidation(*reaction),
        }
    }
}

/// A recorded effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedEffect {
    /// An event was delivered to a strategy. Its fields follow from the inputs before it.
    Deliver {
        /// The strategy that received it.
        strategy: StrategyId,
        /// The kind of event.
        kind: EventKind,
        /// The sequence of the event. Recovery needs it if market records are lost. `None` for a
        /// market event and in format 1.
        sequence: Option<i64>,
    },
    /// The engine sent a request.
    Send {
        /// Sequence of the record that had to be durable first.
        record: u64,
        /// The request.
        request: Request,
    },
    /// The engine requested a new connection of a user stream.
    Reconnect {
        /// Surface.
        surface: Surface,
    },
    /// The engine sent a heartbeat to the watchdog process.
    Heartbeat {
        /// Number of the heartbeat.
        number: u64,
    },
}

/// A recorded notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedNotice {
    /// The state of a live run changed.
    State {
        /// The state before.
        from: RunState,
        /// The state after.
        to: RunState,
        /// The degraded reasons at that time.
        reasons: Vec<DegradedReason>,
    },
    /// The engine adopted a value of the venue.
    Adjusted {
        /// The correction, with the old and the new value.
        adjustment: Adjustment,
        /// The reason.
        cause: Cause,
    },
    /// The venue closed a position by liquidation or ADL.
    ForcedClose(ForcedCloseReport),
}
