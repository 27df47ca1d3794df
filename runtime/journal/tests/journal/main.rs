//! Tests of the whole journal, with real files and real processes.
//!
//! `WINDVANE_KILLS` and `WINDVANE_DAMAGES` set how often a process is killed and a file is damaged.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests: a panic is how a test fails"
)]

mod damage;
mod disks;
mod fixture;
mod kills;
mod life;
mod market;
mod support;
mod wal;
