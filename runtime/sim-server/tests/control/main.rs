//! The control port over real HTTP: every example in `CONTROL.md`, and the effect of each switch on
//! a client that is unaware of it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

#[path = "../common/http.rs"]
mod http;

mod actions;
mod events;
mod page;
mod requests;
mod venue;
