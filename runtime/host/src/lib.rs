//! The WebAssembly host of strategies. It loads modules of the contract in `sdk/wit`, calls them
//! under limits, and confines each failure to the strategy that caused it. `build` uses it
//! to load modules; `backtest`, `replay`, `live` and the fault simulator use it to call them.
//!
//! This crate must never contain the venue's protocol, keys, sockets, clocks or randomness.
//! Strategies are not trusted. They can call only the functions in the table in `link.rs`. Their
//! use of resources is counted in fuel, bytes and numbers, so that a replay fails at the same point
//! as the run. A caller with a clock may end a callback earlier (`watch.rs`); it records that as an
//! input.
//!
//! The host loads two versions of the contract: 0.2, and 0.1 for the replay of old journals. The
//! caller decides which of them may trade ([`ContractVersion::PRESENT`]).
//!
//! There are two call paths under one contract. Any component can be called through the component
//! model. A core module (alone, or in a component that only wraps it) can be called directly, which
//! takes a sixth of the time. Both paths must give the same results; a test checks this.

#![deny(unsafe_code)]

mod cache;
mod capability;
mod config;
mod context;
mod contract;
mod error;
mod fault;
mod footprint;
mod guest;
mod host;
mod inspect;
mod limits;
mod link;
mod output;
mod prepare;
mod prune;
mod schema;
mod strategy;
mod watch;
mod wrap;

pub use cache::CacheUse;
pub use capability::{Capabilities, Capability, Grant};
pub use contract::ContractVersion;
pub use error::LoadError;
pub use fault::{Fault, FaultKind};
pub use host::{Host, HostError, HostOptions, PathChoice};
pub use inspect::{Format, ModuleInfo, validate};
pub use limits::Limits;
pub use output::{LogLevel, LogLine, Output, PlotPoint};
pub use prepare::Prepared;
pub use schema::{Parameter, ParameterType};
pub use strategy::{CallPath, Description, Strategy};
pub use watch::{Ticker, Watch};
pub use wrap::wrap;
