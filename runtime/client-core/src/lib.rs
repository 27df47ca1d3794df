//! The half of the client that does no IO: the request budget, nonces, outcomes with their advice,
//! the estimate of the venue's clock, and the state machines of streams and feeds.
//!
//! Two crates drive it, so that both make the same decisions: `client` with sockets and tasks, and
//! `session` in the live run and in the fault simulator. `live` and the fault simulator also use its
//! types.
//!
//! This crate must not contain sockets, files, threads, async code or clocks. Time is an argument.
//! `tests/tests/layout.rs` checks this.

#![forbid(unsafe_code)]

pub mod bans;
pub mod budget;
pub mod clock;
pub mod gateway;
pub mod nonce;
pub mod outcome;
pub mod settings;
pub mod streams;

mod called_route;

pub use budget::BAN_MAX;
pub use called_route::CalledRoute;
pub use gateway::Gateway;
pub use outcome::{Lost, NotDone, Outcome, Refusal, RequestError, UnknownReason, Wait, WaitReason};
pub use settings::{Api, MarketData};
