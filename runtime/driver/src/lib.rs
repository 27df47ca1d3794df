//! The half of every driver that needs no clock and no socket: it lends the engine to the
//! strategies, takes their answers back, and lets an order leave only once the record of its
//! intent is durable. Live runs, paper runs, replays and the simulator of faults share it.
//!
//! What may never enter this crate: IO, a clock, threads, async, and the WebAssembly host, which
//! is behind [`Guests`]. Whoever drives brings the time, makes blocks durable and carries requests.

#![forbid(unsafe_code)]

mod driver;
mod guests;
mod outbox;
mod saving;

pub use driver::{Action, Driver, Renewed};
pub use guests::{Guests, InitResult, NoGuests};
pub use outbox::Outbox;
pub use saving::{Cost, is_saved_at_once};
