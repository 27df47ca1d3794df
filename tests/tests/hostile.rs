//! A strategy that tries to hold the run, beside one that trades: it is quarantined or stays within
//! its share of the processor, the other one trades on, countdowns are renewed, and `halt` works.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use windvane_tests::admin::Admin;
use windvane_tests::binary;
use windvane_tests::guest::Guest;
use windvane_tests::hostile::{self, Hostile};
use windvane_tests::instance::Instance;
use windvane_tests::parallel;
use windvane_tests::venue::Venue;

/// Longest wait for one step.
const PATIENCE: Duration = Duration::from_mins(2);

/// Buys and sells at the market in turn.
const VICTIM: Guest<'static> = Guest {
    on_event: "(if (i64.eqz (i64.rem_u (global.get $count) (i64.const 20)))
        (then (drop (call $submit (i32.const 0)
          (i32.or (i32.const 2)
            (i32.wrap_i64 (i64.rem_u (i64.div_u (global.get $count) (i64.const 20)) (i64.const 2))))
          (i64.const 10) (i64.const 0) (i64.const 0) (i64.const 0) (i32.const 0)
          (i64.const 0)))))",
    ..Guest::EMPTY
};

fn config(folder: &Path, hostile: &Hostile) {
    let module = folder.join("hostile.wasm");
    hostile.write(&module);
    VICTIM.write(&folder.join("victim.wasm"));
    let base = include_str!("../../configs/live-sim.toml");
    let base = base.split("[[strategy]]").next().unwrap();
    // With this limit, a strategy could not place orders without end.
    let base: Vec<_> = base
        .lines()
        .filter(|line| !line.starts_with("max_orders_per_minute"))
        .collect();
    let base = base.join("\n");
    let (section, folder_name) = (hostile.section(&module), folder.display());
    let text = format!(
        r#"{base}{section}
[[strategy]]
id = "victim"
module = "{folder_name}/victim.wasm"
instruments = ["futures:BTCUSDT"]
streams = ["book"]
"#
    );
    std::fs::write(folder.join("own.toml"), text).unwrap();
}

/// The sum of the samples whose names contain all of these texts.
fn metric(admin: &Admin, parts: &[&str]) -> f64 {
    let samples = admin.metrics();
    let of = samples
        .iter()
        .filter(|sample| parts.iter().all(|part| sample.name.contains(part)));
    of.map(|sample| sample.value).sum()
}

fn orders_sent(admin: &Admin) -> f64 {
    metric(
        admin,
        &["windvane_orders_total", "victim", "outcome=\"sent\""],
    )
}

fn hostile_row(strategies: &Value) -> Option<&Value> {
    let mut rows = strategies.as_array()?.iter();
    rows.find(|row| row["id"] == "hostile")
}

fn endure(hostile: &Hostile) {
    let _core = parallel::core();
    let venue = Venue::start(&["--seed", "31"]);
    let data = venue.folder().join("data");
    config(venue.folder(), hostile);
    let file = venue.folder().join("own.toml");
    let mut instance = Instance::start_with(&venue, &data, &file, &[]);
    let admin = instance.admin();
    let state = |state: &'static str| move |status: &Value| status["state"] == state;
    instance.until_shown(&admin, "/api/status", PATIENCE, &state("ready"));

    if !hostile.faults.is_empty() {
        let is_out = |rows: &Value| hostile_row(rows).is_some_and(|row| !row["fault"].is_null());
        let (rows, _) = instance.until_shown(&admin, "/api/strategies", PATIENCE, &is_out);
        let row = hostile_row(&rows).unwrap();
        let fault = row["fault"].as_str().unwrap();
        assert!(hostile.faults.contains(&fault), "{row}");
        let reason = row["reason"].as_str().unwrap();
        assert!(
            !matches!(fault, "cpu" | "time") || reason.contains("limits.c"),
            "{row}"
        );
        assert!(
            fault != "intents" || reason.contains("after 4,000 at once"),
            "{row}"
        );
    }

    // The other strategy trades on.
    let before = orders_sent(&admin);
    let trades = |_: &Value| orders_sent(&admin) >= before + 5.0;
    instance.until_shown(&admin, "/api/status", PATIENCE, &trades);
    let heartbeats = |outcome: &str| metric(&admin, &["windvane_heartbeats_total", outcome]);
    assert!(heartbeats("renewed") > 0.0, "{}", instance.log());
    for outcome in ["failed", "lapsed", "withheld"] {
        assert!(heartbeats(outcome) == 0.0, "{outcome}\n{}", instance.log());
    }
    let used = metric(
        &admin,
        &["windvane_strategy_cpu_microseconds_total", "hostile"],
    );
    assert!(used > 0.0);
    // The operator sees the use of each strategy beside its limit.
    let status = admin.must_show("/api/status");
    let mut rows = status["cpu"].as_array().unwrap().iter();
    let victim = rows.find(|row| row["strategy"] == "victim").unwrap();
    assert_eq!(victim["limit_percent"], 25, "{status}");
    assert!(victim["used_percent"].as_u64().unwrap() > 0, "{status}");
    assert!(victim["left_ms"].as_i64().unwrap() > 0, "{status}");

    admin.command("/api/halt");
    instance.until_shown(&admin, "/api/status", PATIENCE, &state("halted"));
    let log = instance.log();
    assert!(instance.terminate().success(), "{log}");

    // What the clock decided is in the journal, so the replay gives the same run.
    let replayed = binary::run(["replay", data.to_str().unwrap(), "--json"]);
    assert!(replayed.status.success(), "{replayed:?}\n{log}");
}

#[test]
fn timers_that_set_each_other_do_not_hold_the_run() {
    endure(&hostile::TIMERS);
}

#[test]
fn an_endless_loop_with_fuel_for_minutes_ends_by_its_time() {
    endure(&hostile::LOOP_WITH_FUEL);
}

#[test]
fn an_endless_loop_ends_by_its_fuel() {
    endure(&hostile::LOOP);
}

#[test]
fn fills_of_the_whole_memory_end_by_their_fuel() {
    endure(&hostile::FILLS);
}

#[test]
fn cache_misses_over_the_whole_memory_do_not_hold_the_run() {
    endure(&hostile::CACHE_MISSES);
}

#[test]
fn dear_host_calls_do_not_hold_the_run() {
    endure(&hostile::HOST_CALLS);
}

#[test]
fn a_flood_of_log_lines_does_not_hold_the_run() {
    endure(&hostile::LOG_LINES);
}

#[test]
fn a_flood_of_points_does_not_hold_the_run() {
    endure(&hostile::POINTS);
}

#[test]
fn a_large_changing_state_does_not_hold_the_run() {
    endure(&hostile::LARGE_STATE);
}

#[test]
fn a_state_beyond_the_limit_ends_in_quarantine() {
    endure(&hostile::TOO_LARGE_STATE);
}

#[test]
fn orders_that_are_cancelled_before_they_leave_do_not_hold_the_run() {
    endure(&hostile::CANCELLED_ORDERS);
}

#[test]
fn orders_for_unknown_instruments_do_not_end_the_run() {
    endure(&hostile::UNKNOWN_INSTRUMENTS);
}
