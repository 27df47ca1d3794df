//! The control port over real HTTP: every example of its page, and what each switch does to a
//! client that knows nothing of it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

mod actions;
mod events;
mod page;
mod requests;
mod venue;
