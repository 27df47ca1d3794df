//! The domain of Windvane as types: what is traded and by which rules, orders and their states,
//! books and ledgers, everything that enters an engine ([`Input`]) and leaves it ([`Effect`],
//! [`Notice`]), and the records of both. The engine is made of it, and most crates use it, many of
//! them without the engine: the venue's protocol, the simulated venue, recordings and reports.
//!
//! This crate must not contain decisions for an account, IO, a clock, async, threads, randomness,
//! floating point, shared ownership (`Rc`, `Arc`, `Mutex`) or any other crate of this workspace.

#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic, clippy::float_cmp)]

pub mod planted;

pub mod book;
pub mod capability;
pub mod codec;
pub mod config;
pub mod decimal;
pub mod degraded_reason;
pub mod effect;
pub mod encode;
pub mod event;
pub mod forced;
pub mod holding;
pub mod ids;
pub mod input;
pub mod instrument;
pub mod invariant;
pub mod kill_switch;
pub mod ledger;
pub mod live;
pub mod market;
pub mod market_state;
pub mod names;
pub mod order;
pub mod order_state;
pub mod orders;
pub mod outside_text;
pub mod protocol;
pub mod quota;
pub mod random;
pub mod record;
pub mod refusal;
pub mod risk;
pub mod rules;
pub mod run_state;
pub mod state_report;
mod statement;
pub mod timer;
pub mod trading;

pub use decimal::{Amount, Decimal};
pub use effect::{Effect, Notice};
pub use event::{Event, EventKind, Intent};
pub use ids::{
    AssetId, ClientOrderId, InstrumentId, OrderSeq, StrategyId, Time, TradeId, VenueOrderId,
};
pub use input::Input;
pub use instrument::Instrument;
pub use market::{Level, MarketEvent, OwnedMarketEvent};
pub use order::{
    ExecutionType, NewOrder, OrderStatus, OrderTerms, OrderType, PositionSide, Price, Qty, Side,
    Surface, TimeInForce, WorkingType,
};
pub use protocol::{Outcome, Reply, Request, UserEvent};
