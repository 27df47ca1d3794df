//! The simulated venue, pure: what a spot and perpetual-futures service would have done with the
//! account's requests, had they been sent while the recording was made.
//!
//! What may never enter this crate: IO, a clock, floating point, unseeded randomness, and any
//! state code of the engine. It shares the engine's vocabulary (ids, decimals, instruments,
//! market events, orders, the protocol) and nothing else: filters, matching, ledger and margin
//! are written a second time here, from the documents, so that agreement means something.

#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic, clippy::float_cmp)]

mod account;
mod book;
mod code;
mod config;
mod fill;
mod filter;
mod index;
pub mod latency;
mod margin;
mod market;
mod matching;
mod mode;
mod order;
mod place;
mod queue;
mod timer;
mod trigger;
mod venue;

pub use config::{QueueModel, VenueConfig, VenueConfigError};
pub use latency::{Latency, LatencyModel};
pub use order::FINISHED_MAX;
pub use venue::{Venue, VenueMessage};
