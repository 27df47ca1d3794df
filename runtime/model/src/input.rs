//! Everything that can happen to the engine, as one closed enum.

use serde::{Deserialize, Serialize};

use crate::config::Reconfiguration;
use crate::event::Intent;
use crate::forced::OnLiquidation;
use crate::ids::{InstrumentId, StrategyId};
use crate::instrument::SymbolStatus;
use crate::live::LiveInput;
use crate::market::MarketEvent;
use crate::protocol::{Reply, UserEvent};

/// One timestamped thing that happened. Every input is recorded before it is handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// A public market event.
    Market {
        /// The instrument.
        instrument: InstrumentId,
        /// The event.
        event: MarketEvent<'a>,
    },
    /// What a strategy answered to a callback: all of its intents as one input.
    Answer {
        /// Whose.
        strategy: StrategyId,
        /// In the order in which they were made. Without intents there is nothing to record.
        intents: &'a [Intent],
    },
    /// The venue's answer to a request.
    Reply(&'a Reply),
    /// An event of a user data stream.
    User(&'a UserEvent),
    /// Time has come for the timers that are due.
    Timeout,
    /// A strategy failed: it is quarantined and its `on_fault` policy applied.
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
    /// A strategy's module was instantiated anew, after a change of it or out of quarantine: it
    /// sets its timers again, and its fault is over.
    Renew {
        /// Which.
        strategy: StrategyId,
    },
    /// What a strategy saved. Recorded among what the strategy was told and what it intended, it is
    /// what the strategy knew then, and the next process gives it back. Ends of orders that are in
    /// it need not be told again.
    Saved {
        /// Which.
        strategy: StrategyId,
        /// Sequence of the last event that it had handled.
        handled: i64,
        /// Its state; `None` where that is what it saved before.
        state: Option<&'a [u8]>,
    },
    /// What may change while running has changed.
    Reconfigure(&'a Reconfiguration),
    /// How much of the outside can be trusted; live only.
    Live(&'a LiveInput),
    /// The status of a symbol changed.
    SymbolStatus {
        /// The instrument.
        instrument: InstrumentId,
        /// The new status.
        status: &'a SymbolStatus,
    },
    /// What follows a liquidation or an ADL from now on.
    OnLiquidation(OnLiquidation),
}

/// How a strategy failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum FaultKind {
    /// A trap of the module, panics included.
    Trap = 0,
    /// The fuel of a callback was used up.
    Fuel = 1,
    /// Memory, table or instances beyond the limit.
    Memory = 2,
    /// Stack overflow.
    Stack = 3,
    /// More intents in one callback than allowed.
    Intents = 4,
    /// More log or plot output in one callback than allowed.
    Output = 5,
    /// The module broke the contract: bad pointers, refused parameters.
    Contract = 6,
    /// The host failed while it served the module.
    Host = 7,
    /// A loss limit of the strategy was breached (found by the engine itself).
    Loss = 8,
    /// The strategy cannot load the state that it saved.
    State = 9,
}

impl FaultKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 10] = [
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
    ];

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
        }
    }
}

/// A command of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Command {
    /// No new exposure; cancels and reducing orders pass.
    Pause = 0,
    /// Ends a pause or a halt.
    Resume = 1,
    /// Cancel own orders; latched.
    Halt = 2,
    /// Halt, then close own positions.
    Flatten = 3,
}
