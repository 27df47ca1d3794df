//! The deterministic core of Windvane. Everything that happens to the account enters as a
//! timestamped [`Input`]. Everything that the runtime must do leaves as an [`Effect`].
//!
//! `session` drives it in every mode, `backtest` and `replay` through the session's loop. `host`
//! lends it to the imports of strategies.
//!
//! This crate must never contain IO, a clock, async, threads, randomness, floating point, shared
//! ownership (`Rc`, `Arc`, `Mutex`) or a dependency on another crate of this workspace. Live
//! trading, paper trading, backtests and replays differ only in their drivers, so all of them run
//! the same trading code. Errors mean bad input; a panic is a bug in this crate.

#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic, clippy::float_cmp)]

/// Version of the engine's decisions. Raise it with every change that can make the same inputs lead
/// to other effects. A replay of an older journal then reports why its effects differ.
pub const ENGINE_RULES: u32 = 16;

pub mod planted;

pub mod book;
pub mod callback;
pub mod codec;
pub mod config;
pub mod decimal;
pub mod effect;
pub mod engine;
pub mod event;
pub mod forced;
pub mod holding;
pub mod ids;
pub mod input;
pub mod instrument;
pub mod latches;
pub mod ledger;
pub mod live;
pub mod market;
pub mod order;
pub mod order_state;
pub mod orders;
pub mod protocol;
pub mod record;
pub mod refusal;
pub mod risk;
pub mod rules;
pub mod timer;
pub mod truth;

pub use callback::Callback;
pub use decimal::{Amount, Decimal};
pub use effect::{Effect, Notice};
pub use engine::Engine;
pub use event::{Event, EventKind, Intent};
pub use ids::{
    AssetId, ClientOrderId, InstrumentId, OrderSeq, StrategyId, Time, TradeId, VenueOrderId,
};
pub use input::Input;
pub use instrument::Instrument;
pub use market::{Level, MarketEvent};
pub use order::{
    ExecutionType, NewOrder, OrderStatus, OrderTerms, OrderType, PositionSide, Price, Qty, Side,
    Surface, TimeInForce, WorkingType,
};
pub use protocol::{Outcome, Reply, Request, UserEvent};
