//! Records as they are read back: owned, without a life of their own.

use crate::config::Reconfiguration;
use crate::doubt::Doubt;
use crate::effect::{Adjustment, Cause};
use crate::event::{EventKind, Intent};
use crate::forced::{ForcedCloseReport, OnLiquidation};
use crate::ids::{InstrumentId, StrategyId, Time};
use crate::input::{Command, FaultKind, Input};
use crate::instrument::SymbolStatus;
use crate::live::LiveInput;
use crate::market::{Level, MarketEvent};
use crate::order::Surface;
use crate::protocol::{Reply, Request, UserEvent};
use crate::run_state::RunState;

/// One record. Its sequence is that of its block's first record plus its place in the block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was handled; 0 for the configuration.
    pub time: Time,
    /// What was recorded.
    pub body: RecordBody,
}

/// What a record holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordBody {
    /// What the engine was made of, for people and for the hash.
    Config(String),
    /// An input.
    Input(RecordedInput),
    /// An effect that followed from the inputs before it.
    Effect(RecordedEffect),
    /// What followed from them inside the engine, and whoever reads a journal looks for.
    Notice(RecordedNotice),
}

/// An input as it was recorded: [`Input`] with everything owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedInput {
    /// A public market event without levels.
    Market {
        /// The instrument.
        instrument: InstrumentId,
        /// The event; never [`MarketEvent::Depth`].
        event: MarketEvent<'static>,
    },
    /// A depth difference or snapshot.
    Depth {
        /// The instrument.
        instrument: InstrumentId,
        /// Its update id.
        update_id: i64,
        /// Replaces the whole book.
        snapshot: bool,
        /// Bid levels.
        bids: Vec<Level>,
        /// Ask levels.
        asks: Vec<Level>,
    },
    /// The intents of one callback.
    Answer {
        /// Whose.
        strategy: StrategyId,
        /// In the order in which they were made.
        intents: Vec<Intent>,
    },
    /// The venue's answer to a request.
    Reply(Reply),
    /// An event of a user data stream.
    User(UserEvent),
    /// Time for the timers that were due.
    Timeout,
    /// A strategy failed.
    Fault {
        /// Which.
        strategy: StrategyId,
        /// How.
        kind: FaultKind,
    },
    /// A command of the operator.
    Command(Command),
    /// A command of the operator for one strategy.
    Steer {
        /// Which.
        strategy: StrategyId,
        /// What.
        command: Command,
    },
    /// A strategy's module was instantiated anew.
    Renew {
        /// Which.
        strategy: StrategyId,
    },
    /// What a strategy saved.
    Saved {
        /// Which.
        strategy: StrategyId,
        /// Sequence of the last event that it had handled.
        handled: i64,
        /// Its state; `None` where that is what it saved before.
        state: Option<Vec<u8>>,
    },
    /// What may change while running has changed.
    Reconfigure(Reconfiguration),
    /// How much of the outside can be trusted.
    Live(LiveInput),
    /// The status of a symbol changed.
    SymbolStatus {
        /// The instrument.
        instrument: InstrumentId,
        /// The new status.
        status: SymbolStatus,
    },
    /// What follows a liquidation or an ADL from then on.
    OnLiquidation(OnLiquidation),
}

impl RecordedInput {
    /// The input as an engine takes it.
    pub fn as_input(&self) -> Input<'_> {
        match self {
            Self::Market { instrument, event } => Input::Market {
                instrument: *instrument,
                event: *event,
            },
            Self::Depth {
                instrument,
                update_id,
                snapshot,
                bids,
                asks,
            } => Input::Market {
                instrument: *instrument,
                event: MarketEvent::Depth {
                    update_id: *update_id,
                    snapshot: *snapshot,
                    bids,
                    asks,
                },
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

/// An effect as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedEffect {
    /// An event was handed to a strategy. Its fields follow from the inputs before it.
    Deliver {
        /// To whom.
        strategy: StrategyId,
        /// Its kind.
        kind: EventKind,
        /// Its sequence, which a recovery needs where market records are lost; `None` for an event
        /// of the market and in format 1.
        sequence: Option<i64>,
    },
    /// A request was to be sent.
    Send {
        /// Sequence of the record that had to be durable first.
        record: u64,
        /// The request.
        request: Request,
    },
    /// A user stream was to be connected anew.
    Reconnect {
        /// Surface.
        surface: Surface,
    },
    /// The watchdog process was to be given a sign of health.
    Beat {
        /// Its number.
        number: u64,
    },
}

/// A notice as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedNotice {
    /// The state of a live run moved.
    State {
        /// From.
        from: RunState,
        /// To.
        to: RunState,
        /// What was in doubt then.
        doubts: Vec<Doubt>,
    },
    /// The venue's word was taken.
    Adjusted {
        /// What, from what, to what.
        adjustment: Adjustment,
        /// Why.
        cause: Cause,
    },
    /// The venue closed a position itself.
    ForcedClose(ForcedCloseReport),
}
