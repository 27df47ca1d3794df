//! The simulated venue. It computes how a spot and perpetual-futures venue would have handled the
//! account's requests, if they had been sent while the recording was made. It is pure: no IO and no
//! clock.
//!
//! `backtest` and paper runs (`session`) use it to trade on; `sim-server` puts the venue's wire
//! format around it. `sim-market` and `config` use its types. This crate must not contain IO, a clock, floating point, unseeded randomness, or any
//! state code of the engine. It shares only the engine's vocabulary: ids, decimals, instruments,
//! market events, orders and the protocol. Filters, matching, ledger and margin are implemented
//! here a second time, from the documents, so that agreement between the two is evidence.
//!
//! The driver only calls [`Venue`]. The public modules document its behaviour and the reasons:
//! - [`matching`] and [`queue`]: the fill models.
//! - [`margin`], [`isolated`] and [`bracket`]: the margin of a position.
//! - [`liquidation`]: the end of a position without enough margin.
//! - [`mode`]: the account's settings.
//! - [`trigger`]: conditional orders.
//! - [`timer`]: the countdown and funding.
//! - [`filter`] and [`place`]: the rejections.
//! - [`fill`]: fees and events.
//! - [`latency`]: delays, for the driver.
//!
//! A server with the venue's own wire format uses more: [`view`] for REST routes, [`stream`] for
//! complete user events, [`funds`] for deposits and withdrawals, [`cross_account`] for accounts that
//! trade with each other, [`force`] for events that a test triggers. [`snapshot`] saves a venue for
//! a later process.

#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic, clippy::float_cmp)]

mod account;
mod book;
pub mod bracket;
pub mod choices;
mod code;
mod config;
pub mod cross_account;
mod emit;
mod fee_asset;
pub mod fill;
pub mod filter;
pub mod force;
pub mod funds;
mod index;
pub mod isolated;
pub mod latency;
pub mod liquidation;
pub mod margin;
mod margin_watch;
mod market;
pub mod matching;
pub mod mode;
mod open_terms;
mod order;
mod order_key;
pub mod place;
mod query;
pub mod queue;
mod read;
pub mod snapshot;
pub mod stream;
pub mod timer;
mod trades;
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
