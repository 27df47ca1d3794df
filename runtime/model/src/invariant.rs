//! The rules of the books that the engine checks in every build.

use std::fmt;

use crate::ids::{InstrumentId, StrategyId};
use crate::order::PositionSide;

/// A broken rule of the books.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenInvariant {
    /// The strategies' ledgers do not sum to the account's ledger: in quantity, money, fees,
    /// funding or open orders.
    Ledgers(InstrumentId, PositionSide),
    /// A flat position has a cost.
    FlatCost(InstrumentId, PositionSide),
    /// The open quantity of an instrument differs from the account's live orders.
    OpenQuantity(InstrumentId, PositionSide),
    /// The number of open orders of a strategy differs from its live orders.
    OpenOrders(StrategyId),
}

impl fmt::Display for BrokenInvariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ledgers(id, side) => write!(
                f,
                "the strategies' ledgers do not sum to the account's ledger (instrument {}, position side {})",
                id.0,
                side.as_str()
            ),
            Self::FlatCost(id, side) => write!(
                f,
                "a flat position has a cost (instrument {}, position side {})",
                id.0,
                side.as_str()
            ),
            Self::OpenQuantity(id, side) => write!(
                f,
                "the open quantity differs from the live orders (instrument {}, position side {})",
                id.0,
                side.as_str()
            ),
            Self::OpenOrders(strategy) => write!(
                f,
                "the number of open orders differs from the live orders (strategy {})",
                strategy.0
            ),
        }
    }
}
