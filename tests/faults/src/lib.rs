//! The simulator of faults: one seed is one life of the whole runtime in virtual time, with a
//! venue, links and disks that fail as the seed draws it.
//!
//! What may never enter here: sockets, real clocks, threads inside a seed, randomness that is not
//! of the seed. What may never enter `check`: the engine and every other crate of ours. Checkers
//! read the [`witness`] alone.
//!
//! ```text
//! mix      what a seed draws before its life begins
//! world    the queue of what happens; links, incidents, rest
//! venue    the simulated venue's own state machine
//! process  one process of the runtime: boot, requests, streams, engine; dropped by a kill
//! disk     the journal, in memory
//! open_points  what the venue does where the documents leave something open
//! log      what is seen, on its way to the checkers
//! tally    what was done and what went wrong, counted
//! ```

#![forbid(unsafe_code)]

pub mod check;
pub mod disk;
#[cfg(feature = "planted")]
pub mod hunt;
pub mod life;
pub mod log;
pub mod mix;
pub mod modules;
pub mod open_points;
pub mod process;
pub mod queue;
pub mod random;
pub mod tally;
pub mod venue;
pub mod witness;
pub mod world;
