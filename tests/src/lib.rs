//! End-to-end tests of the real binary, and what they need: a runner for it, and a checker of its
//! result files that shares no code with what made them.

#![forbid(unsafe_code)]

pub mod binary;
pub mod checker;
pub mod csv;
pub mod fixed;
pub mod guest;
pub mod instance;
pub mod recording;
pub mod results;
pub mod venue;
