//! Tests of the translation between the engine and the venue's wire (`windvane_protocol::adapter`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

mod encode;
mod fixture;
mod market;
mod reply;
mod reply_properties;
mod user;
