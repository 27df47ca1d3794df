//! The simulator of faults: one seed is one life of the whole runtime in virtual time, with a
//! venue, links and disks that fail as the seed draws it.
//!
//! What may never enter here: sockets, real clocks, threads inside a seed, randomness that is not
//! of the seed. What may never enter `check`: the engine and every other crate of ours. Checkers
//! read the [`witness`] alone.

#![forbid(unsafe_code)]

pub mod check;
pub mod witness;
