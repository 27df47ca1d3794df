//! A live run without its driver: what each piece of evidence, and its absence, leads to.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../support/mod.rs"]
mod support;

mod account_events;
mod adoption;
mod closes;
mod contradiction;
mod crossings;
mod cuts;
mod deadman;
mod deadman_release;
mod down_losses;
mod ends;
mod entries;
mod estimated_fees;
mod exits;
mod feeds;
mod fees_in_readings;
mod forced;
mod forced_exits;
mod forced_fees;
mod forced_orders;
mod forced_questions;
mod forced_shifts;
mod forced_stated;
mod forced_traces;
mod forced_unexplained;
mod forced_unreported;
mod gaps;
mod income;
mod instances;
mod instances_at_market;
mod late_fees;
mod late_start;
mod late_stream;
mod lifecycle;
mod listing;
mod lists_behind;
mod loss_limits;
mod marks;
mod order_of_events;
mod other_fees;
mod others;
mod outside_closes;
mod outside_exits;
mod readings;
mod reconciliation;
mod refused_closes;
mod skipped_fills;
mod snapshots;
mod spot;
mod stated_balances;
mod stated_fees;
mod stated_fills;
mod steering;
mod succession;
mod trading;
mod triggers;
mod unknown;
mod untold;
mod vanished;
mod venue_wait;
mod watchdog;
mod world;
