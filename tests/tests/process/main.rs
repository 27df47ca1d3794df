//! `windvane run` as a process among processes: killed, stopped, without disk, without network,
//! told to end; and what of its secrets can be found afterwards.

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
