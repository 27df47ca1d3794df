//! `windvane run` as a real process: killed, stopped, without disk, without network, and ended by
//! signals. Also checks that no secret leaks into its files and output.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod account;
mod bans;
mod disks;
mod ends;
mod kills;
mod limits;
mod secrets;
mod silence;
mod support;
