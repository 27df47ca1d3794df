//! A typed client of the venue: transport, budget, clock and streams.
//!
//! - [`Client`] sends one request once and says what became of it as an [`Outcome`]: done,
//!   refused, unknown, or wait. It never sends anything again by itself.
//! - [`budget`] plans what may be sent, [`clock`] knows the venue's time, [`nonce`] never gives
//!   the same number twice.
//! - [`streams`] are user and market events that arrive by themselves: [`Client::user_stream`],
//!   [`Client::market_stream`].
//! - [`keys`] reads keys from files and keystores.
//! - [`call`] makes a request of any route from text, as the command line does.
//!
//! What may never enter this crate: orders, positions, and decisions to send something again.

#![forbid(unsafe_code)]

pub mod budget;
pub mod call;
pub mod clock;
pub mod keys;
pub mod methods;
pub mod nonce;
pub mod outcome;
pub mod settings;
pub mod streams;
pub mod tls;

mod asked;
mod bans;
mod client;
mod gate;
mod transport;

pub use asked::Asked;
pub use bans::BAN_MAX;
pub use client::{Client, Departure};
pub use outcome::{Doubt, Lost, NotDone, Outcome, Refusal, RequestError, Wait, WaitReason};
pub use settings::{AddressError, Addresses, Api, MarketData, Settings, Timeouts};
pub use transport::{RawAnswer, Ready, TransportError};
