//! The fault simulator: one seed is one life of the whole runtime in virtual time, with a venue,
//! links and disks that fail as the seed draws it.
//!
//! The binary `faults` and the tests in `tests/faults/tests` use it.
//!
//! It must not contain sockets, real clocks, threads inside a seed, or randomness that does not come
//! from the seed. `check` must not use the engine or any other crate of this repository: checkers
//! read only the [`witness`].
//!
//! ```text
//! fault_plan   what a seed draws before its life begins
//! world        the queue of future events; links, incidents, the end of a life
//! venue        the simulated venue's own state machine
//! process      one process of the runtime: start, requests, streams, engine; a kill drops it
//! disk         the journal, in memory
//! open_points  the venue's behaviour where the documents leave something open
//! log          carries the witness entries to the checkers
//! tally        counts what happened and what failed
//! ```

#![forbid(unsafe_code)]

pub mod check;
pub mod disk;
pub mod fault_plan;
#[cfg(feature = "planted")]
pub mod hunt;
pub mod life;
pub mod log;
pub mod modules;
pub mod open_points;
pub mod process;
pub mod queue;
pub mod random;
pub mod tally;
pub mod venue;
pub mod witness;
pub mod world;
