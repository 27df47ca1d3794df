//! A typed client of the venue: transport, budget, clock and streams.
//!
//! - [`Client`] sends one request once and returns its [`Outcome`]: done, refused, unknown, or
//!   wait. It never sends anything again by itself.
//! - [`budget`] plans the requests that may be sent, [`clock`] knows the venue's time, and
//!   [`nonce`] never returns the same number twice.
//! - [`streams`] deliver user and market events: [`Client::user_stream`],
//!   [`Client::market_stream`].
//! - [`keys`] reads keys from files and keystores.
//! - [`call`] builds a request of any route from text, for the command line.
//!
//! `windvane-client-core` has the decisions that need no IO; its modules are re-exported here under
//! the same names.
//!
//! An order with each of its outcomes:
//!
//! ```no_run
//! use windvane_client::{Client, Outcome};
//! use windvane_protocol::wire::spot::{NewOrder, QueryOrder};
//!
//! # async fn place(client: &Client, order: &NewOrder) {
//! match client.spot().new_order(order).await {
//!     Outcome::Done(order) => println!("accepted as {:?}", order.order_id),
//!     Outcome::Refused(refusal) => println!("not accepted: {refusal}"),
//!     Outcome::Unknown(_) => {
//!         // It may be in the book: query it by the id that was chosen before sending.
//!         let question = QueryOrder::new("BTCUSDT").client_order_id("mm:1");
//!         println!("{:?}", client.spot().query_order(&question).await);
//!     }
//!     Outcome::Wait(wait) => println!("not sent, or not accepted: {wait}"),
//! }
//! # }
//! ```
//!
//! `live` sends the requests of a run through it, `cli` serves `call` and `watch` with it, and any
//! other Rust program can use it alone. This crate must never contain orders, positions, or
//! decisions to send something again.

#![forbid(unsafe_code)]

pub mod call;
pub mod clock;
pub mod keys;
pub mod methods;
pub mod settings;
pub mod streams;
pub mod tls;

mod client;
mod departure;
mod rate_limiter;
mod transport;

pub use client::Client;
pub use departure::Departure;
pub use settings::{AddressError, Addresses, Api, MarketData, Settings, Timeouts};
pub use transport::{RawAnswer, Ready, TransportError};
pub use windvane_client_core::{
    BAN_MAX, CalledRoute, Lost, NotDone, Outcome, Refusal, RequestError, UnknownReason, Wait,
    WaitReason,
};
pub use windvane_client_core::{budget, nonce, outcome};
