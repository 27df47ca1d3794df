//! The types that watch a run and keep it from trading: blocks of the account and of instruments,
//! series of refused orders, market data that stopped, countdowns and heartbeats of the dead man's
//! switch, and waits that the venue demands. They also follow the venue's rules when these are read
//! again. Each type takes an event and returns its consequences. Only the engine uses the types, and
//! it carries out the consequences.
//!
//! This crate must not contain the books, requests, events for strategies, IO, a clock, floating
//! point, or any other crate of this workspace but the model.

#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic, clippy::float_cmp)]

pub mod blocks;
pub mod countdown;
pub mod descriptions;
pub mod margin_terms;
pub mod refusals;
pub mod rules_refresh;
pub mod stale_markets;
pub mod venue_wait;
pub mod watchdog;
