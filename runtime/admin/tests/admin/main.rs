//! The admin server and its client over real sockets on 127.0.0.1.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

mod access;
mod commands;
mod instance;
mod metrics;
mod proof;
mod queries;
mod slow;
mod start;
mod unit;
