//! A real run must write every documented metric when the event that it counts happens.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windvane_tests::guest::Guest;
use windvane_tests::instance::Instance;
use windvane_tests::venue::Venue;

/// Metrics that this run does not write, and why.
const NOT_HERE: [(&str, &str); 4] = [
    (
        "windvane_forced_closes_total",
        "needs a liquidation: tests/liquidation.rs has one and reads the metric",
    ),
    (
        "windvane_rule_changes_total",
        "needs changed rules: tests/rules.rs changes them and reads the metric",
    ),
    (
        "windvane_fills_recovered_total",
        "needs a missed fill: tests of the engine have one, but no test reads the metric",
    ),
    (
        "windvane_watchdog_armed",
        "needs spot: only a spot run has a watchdog process",
    ),
];

/// Buys 0.01 BTC about 3 % below the bid, post-only, at every 32nd of 960 events. These orders
/// follow a market event and come when the countdown of their symbol is armed.
const BIDDER: &str = "(if (i32.and (i32.eq (local.get $kind) (i32.const 2)) (i32.and
      (i64.eqz (i64.rem_u (global.get $count) (i64.const 32)))
      (i64.le_u (global.get $count) (i64.const 960)))) (then
    (local.set $bid (i64.sub (local.get $a) (i64.div_s (local.get $a) (i64.const 32))))
    (drop (call $submit (i32.const 0) (i32.const 0x40) (i64.const 10)
      (i64.sub (local.get $bid) (i64.rem_s (local.get $bid) (i64.const 1000)))
      (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))))";

/// Names in the page that documents the metrics.
fn documented() -> BTreeSet<&'static str> {
    let page = include_str!("../../runtime/admin/METRICS.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.split('`').nth(1).unwrap()).collect()
}

/// Names that have a value in a `/metrics` text.
fn written(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| line.starts_with("windvane_"));
    let names = lines.map(|line| {
        let name = line.split(['{', ' ']).next().unwrap();
        let name = name.strip_suffix("_count").unwrap_or(name);
        name.strip_suffix("_sum").unwrap_or(name).to_owned()
    });
    names.collect()
}

fn until_written(instance: &Instance, series: &str) {
    let begin = Instant::now();
    while !instance.get("/metrics").contains(series) {
        assert!(
            begin.elapsed() < Duration::from_mins(3),
            "the run does not write {series}\n{}",
            instance.log()
        );
    }
}

#[test]
fn every_documented_metric_is_written() {
    let venue = Venue::start(&["--seed", "31"]);
    let folder = venue.folder();
    let guest = Guest {
        on_event: "(if (i64.gt_u (global.get $count) (i64.const 200)) (then unreachable))",
        ..Guest::default()
    };
    guest.write(&folder.join("faulty.wasm"));
    let bidder = Guest {
        on_event: BIDDER,
        ..Guest::default()
    };
    bidder.write(&folder.join("bidder.wasm"));
    let base = include_str!("../../configs/live-sim.toml");
    let file = folder.join("metrics.toml");
    let text = base.replace("half_spread_ticks = 5", "half_spread_ticks = 0");
    let guests = ["faulty", "bidder"].map(|id| {
        format!(
            "\n[[strategy]]\nid = \"{id}\"\nmodule = \"{}/{id}.wasm\"\n\
             instruments = [\"futures:BTCUSDT\"]\n",
            folder.display()
        )
    });
    let text = text + &guests.concat();
    std::fs::write(&file, text).unwrap();
    let data = folder.join("data");
    let mut instance = Instance::start_with(&venue, &data, &file, &[]);
    instance.ready();
    let act = |what: Value| venue.control("/act", &what);
    let fault = |what: Value| venue.control("/faults", &what);

    until_written(&instance, "windvane_fills_total");
    until_written(&instance, "windvane_order_latency_seconds_count");
    until_written(
        &instance,
        "windvane_quarantines_total{strategy=\"faulty\",fault=\"trap\"}",
    );
    act(
        json!({"act": "place", "symbol": "BTCUSDT", "side": "BUY", "price": "30000",
        "quantity": "0.01", "client_order_id": "web_a"}),
    );
    instance.until("orders", &|orders| {
        let mut rows = orders.as_array().unwrap().iter();
        rows.any(|row| row["client_order_id"] == "web_a" && row["strategy"].is_null())
    });
    until_written(&instance, "windvane_external_total");
    fault(json!({"fault": "unknown", "how": "503", "accepted": true,
        "route": "futures.new_order", "count": 1}));
    until_written(&instance, "outcome=\"unknown\"");
    fault(
        json!({"fault": "refuse", "code": -2010, "msg": "Order rejected.",
        "route": "futures.new_order", "count": 1}),
    );
    until_written(&instance, "windvane_orders_not_placed_total");
    fault(json!({"fault": "lost", "event": "ACCOUNT_UPDATE", "count": 1}));
    act(json!({"act": "withdraw", "asset": "USDT", "amount": "10.5", "cause": "ADMIN_WITHDRAW"}));
    until_written(&instance, "windvane_adjustments_total");
    act(json!({"act": "expire_listen_key"}));
    until_written(&instance, "windvane_stream_gaps_total");
    until_written(&instance, "to=\"degraded\"}");
    instance.ready();
    instance.answer("pause");
    until_written(&instance, "to=\"paused\"}");
    until_written(&instance, "windvane_state{state=\"paused\"} 1");
    instance.answer("resume");
    until_written(
        &instance,
        "windvane_reconciliations_total{surface=\"futures\",outcome=\"clean\"}",
    );
    until_written(&instance, "outcome=\"renewed\"");
    // Other programs leave so little weight that ordinary requests must wait.
    act(json!({"act": "others_weight", "weight": 2350}));
    until_written(&instance, "windvane_budget_wait_seconds_count");
    act(json!({"act": "others_weight", "weight": 0}));
    fault(
        json!({"fault": "ban", "status": 418, "retry_after_s": 1, "surface": "futures",
        "count": 1}),
    );
    until_written(&instance, "windvane_bans_total");

    let written = written(&instance.get("/metrics"));
    let missing = documented()
        .into_iter()
        .filter(|name| !written.contains(*name));
    let excused = |name: &&str| NOT_HERE.iter().any(|(excused, _)| excused == name);
    let missing: Vec<_> = missing.filter(|name| !excused(name)).collect();
    assert!(
        missing.is_empty(),
        "these metrics are documented but not written: {missing:?}"
    );
}
