//! The simulated venue, pure: what a spot and perpetual-futures service would have done with the
//! account's requests, had they been sent while the recording was made.
//!
//! What may never enter this crate: IO, a clock, floating point, unseeded randomness, and any
//! state code of the engine. It shares the engine's vocabulary (ids, decimals, instruments,
//! market events, orders, the protocol) and nothing else: filters, matching, ledger and margin
//! are written a second time here, from the documents, so that agreement means something.
//!
//! [`Venue`] is all that is called. The public modules hold no more than the pages that say what
//! it does and why: [`matching`] and [`queue`] the fill models, [`margin`], [`isolated`] and
//! [`bracket`] what margin a position needs, [`liquidation`] what happens without it, [`mode`] the
//! account's settings, [`trigger`] conditional orders, [`timer`] the countdown and funding,
//! [`filter`] and [`place`] what is refused, [`fill`] fees and events. [`latency`] is for the
//! driver.
//!
//! A server that speaks the venue's own form finds more: [`view`] what REST routes show,
//! [`stream`] user events in full, [`funds`] deposits and withdrawals, [`meeting`] accounts that
//! trade with each other, [`force`] what tests make happen. [`snapshot`] is for whoever must outlive
//! a process.

#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic, clippy::float_cmp)]

mod account;
mod book;
pub mod bracket;
pub mod choices;
mod code;
mod config;
pub mod fill;
pub mod filter;
pub mod force;
pub mod funds;
mod index;
pub mod isolated;
pub mod latency;
pub mod liquidation;
pub mod margin;
mod market;
pub mod matching;
pub mod meeting;
pub mod mode;
mod open_terms;
mod order;
pub mod place;
pub mod queue;
mod read;
pub mod snapshot;
pub mod stream;
pub mod timer;
pub mod trigger;
mod venue;
pub mod view;

pub use bracket::Bracket;
pub use config::{QueueModel, VenueConfig, VenueConfigError};
pub use latency::{Latency, LatencyModel};
pub use open_terms::{OpenTerms, Triggered};
pub use order::FINISHED_MAX;
pub use stream::{Cause, Deal, Met, OrderEvent, StreamEvent};
pub use venue::{Venue, VenueMessage};
pub use view::{FuturesBalance, OrderView, PositionView, SpotBalance};
