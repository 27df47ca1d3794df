//! The half of the client that does no IO: the request budget, nonces, outcomes with their advice,
//! the estimate of the venue's clock, and the state machines of streams and feeds.
//!
//! Two programs drive it, so that both make the same decisions. The client (`windvane-client`)
//! drives it with sockets and tasks. The session crate drives it in the live run and in the fault
//! simulator.
//!
//! This crate contains no sockets, files, threads, async code or clocks. Time is an argument.
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
