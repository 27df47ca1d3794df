//! The engine under random sequences of intents and venue messages. The tests check invariants
//! after every step, and that the journal of any run replays to the same fingerprint.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod invariants;
mod model;
mod replay;
mod steps;
#[path = "../support/mod.rs"]
mod support;
mod world;
