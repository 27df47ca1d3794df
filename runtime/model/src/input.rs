//! All inputs of the engine, as one closed enum.

use serde::{Deserialize, Serialize};

use crate::config::Reconfiguration;
use crate::event::Intent;
use crate::forced::OnLiquidation;
use crate::ids::{InstrumentId, StrategyId};
use crate::instrument::SymbolStatus;
use crate::live::LiveInput;
use crate::market::MarketEvent;
use crate::protocol::{Reply, UserEvent};

/// One input. The engine records every input with its time before it handles it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// A public market event.
    Market {
        /// The instrument.
        instrument: InstrumentId,
        /// The event.
        event: MarketEvent<'a>,
    },
    /// The result of a strategy's callback: all of its intents as one input.
    Answer {
        /// The strategy.
        strategy: StrategyId,
        /// The intents, in the order in which they were made. A callback without intents is not
        /// recorded.
        intents: &'a [Intent],
    },
    /// The venue's reply to a request.
    Reply(&'a Reply),
    /// An event of a user data stream.
    User(&'a UserEvent),
    /// One or more timers are due.
    Timeout,
    /// A strategy failed. The engine puts it into quarantine and applies its `on_fault` policy.
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
    /// A strategy's module was instantiated again, after a change of the module or after
    /// quarantine, and started at this moment. The new instance sets its timers again, and the
    /// fault is cleared. Journals of earlier programs have it. Now a start takes time: see
    /// [`Input::Start`].
    Renew {
        /// The strategy.
        strategy: StrategyId,
    },
    /// A new instance of a strategy's module starts beside the run. Orders, positions and other
    /// strategies go on meanwhile. The caller of the engine keeps the strategy's events until the
    /// start ends, and gives them to the new instance then. A start that fails ends with
    /// [`Input::Fault`].
    Start {
        /// The strategy.
        strategy: StrategyId,
        /// The begin or the end of the start.
        phase: StartPhase,
    },
    /// The saved state of a strategy. Its place in the journal, between events and intents, shows
    /// what the strategy knew when it saved. The next process gives the state back to the strategy.
    /// Terminal events of orders that the saved state already includes are not delivered again.
    Saved {
        /// The strategy.
        strategy: StrategyId,
        /// Sequence of the last event that the strategy had handled.
        handled: i64,
        /// The state; `None` if it is the same as the previous one.
        state: Option<&'a [u8]>,
    },
    /// The part of the configuration that may change during a run has changed.
    Reconfigure(&'a Reconfiguration),
    /// Information about connections, clocks and the venue's availability. Only in a live run.
    Live(&'a LiveInput),
    /// The status of a symbol changed.
    SymbolStatus {
        /// The instrument.
        instrument: InstrumentId,
        /// The new status.
        status: &'a SymbolStatus,
    },
    /// The reaction to a liquidation or an ADL from now on.
    OnLiquidation(OnLiquidation),
}

/// A moment of a start beside the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum StartPhase {
    /// The old instance is not called any more. The new one starts with the engine as it is here:
    /// its fault is cleared and its timers are gone. It accepts no order until the start ends.
    Begins = 0,
    /// The new instance is ready. Its intents follow, then its answers to the events since the
    /// begin. Last it gets the state of the run.
    Ends = 1,
}

impl StartPhase {
    /// All phases, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::Begins, Self::Ends];

    /// One word for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Begins => "begins",
            Self::Ends => "ends",
        }
    }
}

/// The kind of a strategy's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum FaultKind {
    /// A trap of the module, panics included.
    Trap = 0,
    /// A callback used up its fuel.
    Fuel = 1,
    /// Memory, tables or instances exceeded the limit.
    Memory = 2,
    /// Stack overflow.
    Stack = 3,
    /// One callback made more intents than allowed.
    Intents = 4,
    /// One callback wrote more log or plot output than allowed.
    Output = 5,
    /// The module broke the contract, for example by an invalid pointer or by rejecting its
    /// parameters.
    Contract = 6,
    /// The host failed while it executed a call of the module.
    Host = 7,
    /// The strategy breached one of its loss limits. The engine itself detects this fault.
    Loss = 8,
    /// The strategy could not load its saved state.
    State = 9,
    /// A callback used more processor time than `limits.callback_ms` allows. Only a live or paper
    /// run measures time, so a replay takes this fault as it was recorded.
    Time = 10,
    /// The strategy used more processor time than `limits.cpu_percent` allows. A replay takes this
    /// fault as it was recorded.
    Cpu = 11,
}

impl FaultKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::Trap,
        Self::Fuel,
        Self::Memory,
        Self::Stack,
        Self::Intents,
        Self::Output,
        Self::Contract,
        Self::Host,
        Self::Loss,
        Self::State,
        Self::Time,
        Self::Cpu,
    ];

    /// Whether the fault was measured with a clock. The module does not fail in this way in a
    /// replay, so the record alone decides.
    pub const fn is_measured(self) -> bool {
        matches!(self, Self::Time | Self::Cpu)
    }

    /// One word for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Fuel => "fuel",
            Self::Memory => "memory",
            Self::Stack => "stack",
            Self::Intents => "intents",
            Self::Output => "output",
            Self::Contract => "contract",
            Self::Host => "host",
            Self::Loss => "loss",
            Self::State => "state",
            Self::Time => "time",
            Self::Cpu => "cpu",
        }
    }
}

/// A command of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Command {
    /// Reject orders that add exposure. Cancels and reducing orders pass.
    Pause = 0,
    /// End a pause or a halt.
    Resume = 1,
    /// Cancel own orders and set the kill switch to halt.
    Halt = 2,
    /// Halt, then close own positions.
    Flatten = 3,
}
