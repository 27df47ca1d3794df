//! Signed routes over real HTTP. The requests are written by hand from the documents and do not use
//! the client, so an error that client and server share cannot hide here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

mod auth;
mod bytes;
mod events;
mod fixture;
mod forms;
mod futures;
mod limits;
mod parameters;
mod recorded;
mod spot;
