//! Signed routes over real HTTP, by requests written out by hand from the documents: nothing of
//! the client takes part, so that agreement of the two sides proves nothing here.

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
