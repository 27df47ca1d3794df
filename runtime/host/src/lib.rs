//! The WebAssembly host of strategies: loads modules of the contract in `sdk/wit`, calls them
//! under limits, and confines each failure to the strategy that caused it.
//!
//! What may never enter this crate: the venue's wire, keys, sockets, clocks and randomness.
//! Strategies are untrusted. What they can reach is the table in `link.rs`, no more; what they may
//! use is counted in fuel, bytes and numbers, never in time, so that a replay fails where the run
//! failed.
//!
//! Two versions of the contract are loaded: 0.2, and 0.1 for the replay of old journals. Who calls the host
//! decides which may trade ([`ContractVersion::PRESENT`]).
//!
//! Two paths lead into a guest under one contract: any component through the component model, and
//! core modules (bare, or found inside a component that only wraps one) by a direct call, which
//! costs a sixth. Both must answer alike; a test holds them to it.

#![deny(unsafe_code)]

mod cache;
mod capability;
mod config;
mod context;
mod contract;
mod error;
mod fault;
mod guest;
mod host;
mod inspect;
mod limits;
mod link;
mod output;
mod schema;
mod strategy;
mod wrap;

pub use cache::CacheUse;
pub use capability::{Capabilities, Capability};
pub use contract::ContractVersion;
pub use error::LoadError;
pub use fault::{Fault, FaultKind};
pub use host::{Host, HostError, HostOptions, PathChoice};
pub use inspect::{Format, ModuleInfo, validate};
pub use limits::Limits;
pub use output::{LogLevel, LogLine, Output, PlotPoint};
pub use schema::{Parameter, ParameterType};
pub use strategy::{CallPath, Description, Strategy};
pub use wrap::wrap;
