//! The drivers, recordings, configuration and command line of the binary `windvane`.

pub mod report;
pub mod results;
