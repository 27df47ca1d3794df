//! The drivers, recordings, configuration and command line of the binary `windvane`.

pub mod assembly;
pub mod backtest;
pub mod bans;
pub mod build;
pub mod cli;
pub mod config;
pub mod connection;
pub mod live;
mod memory;
pub mod playback;
pub mod recording;
pub mod report;
pub mod results;
pub mod strategies;
pub mod watchdog;
