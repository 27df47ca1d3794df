//! The journal of a data folder, read again: replays that compare hashes, strategies played again
//! beside the recorded ones, exports as JSON, and the ledger of fills.
//!
//! `cli` (verbs `replay`, `journal`) and `live` (the ledger of a running instance) use this crate.
//! It must not contain sockets, clocks, or anything that sends a request.

pub mod diff;
pub mod export;
mod journal_to_recording;
pub mod ledger;
mod reader;
pub mod runner;
pub mod segments;
mod shadow;
pub mod simulate;
