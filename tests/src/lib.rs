//! End-to-end tests of the real binary, and what they need: a runner for it, and a checker of its
//! result files that shares no code with what made them.

#![forbid(unsafe_code)]

pub mod admin;
pub mod agreement;
pub mod binary;
pub mod checker;
pub mod csv;
pub mod fixed;
pub mod fixture;
pub mod guest;
pub mod instance;
pub mod launch;
pub mod modules;
pub mod random;
pub mod recording;
pub mod results;
pub mod venue;
pub mod watchdogs;
