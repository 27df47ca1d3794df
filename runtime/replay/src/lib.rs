//! The journal of a data folder, read again: replays that compare hashes, strategies played again
//! beside the recorded ones, exports as JSON, and the ledger of fills.
//!
//! `cli` (verbs `replay`, `journal`) and `live` (the ledger of a running instance) use this crate.
//! It must not contain sockets, clocks, or anything that sends a request.

mod beside;
pub mod export;
pub mod ledger;
mod market;
mod reread;
pub mod rerun;
pub mod segments;
pub mod trial;
pub mod whatif;
