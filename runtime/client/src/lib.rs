//! A typed client of the venue: transport, budget, clock and streams.
//!
//! What may never enter this crate: orders, positions, and decisions to send something again.

#![forbid(unsafe_code)]

pub mod budget;
pub mod clock;
pub mod nonce;
