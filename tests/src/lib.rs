//! End-to-end tests of the real binary, with the code that they need: a runner for the binary, and
//! a checker of its result files that shares no code with the runtime.
//!
//! The tests in `tests/tests`, the examples in `tests/examples` and the test of one core in
//! `tests/faults` use it. It must not depend on any crate of this repository, so that it is
//! independent evidence.

#![forbid(unsafe_code)]

pub mod admin;
pub mod agreement;
pub mod binary;
pub mod checker;
pub mod csv;
pub mod fixed;
pub mod fixture;
pub mod guest;
pub mod hostile;
pub mod instance;
pub mod launch;
pub mod memory;
pub mod modules;
pub mod parallel;
pub mod processes;
pub mod random;
pub mod recording;
pub mod resting;
pub mod results;
pub mod segment;
pub mod venue;
