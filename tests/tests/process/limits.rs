//! The venue's limits, while other programs use the address. Cancels, closes and countdown renewals
//! must still be sent. They wait only if the venue itself refuses requests.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::venue::Venue;

use super::support::{self, PATIENCE, REST};

/// Longest allowed start. A start that waits for the next minute usually takes longer.
const START: Duration = Duration::from_secs(20);

/// Asks a run with `on_stop = "flatten"` to end, and waits until nothing is left.
fn flattens(instance: Instance, venue: &Venue, within: Duration) {
    instance.signal("TERM");
    let status = instance.end_within(within);
    let account = venue.account();
    assert_eq!(support::open_orders(&account), Vec::<&Value>::new());
    assert_eq!(support::positions(&account), 0, "{}", account["positions"]);
    assert_eq!(status.code(), Some(0));
}

/// Makes other programs use this much of the futures weight in each minute.
fn others(venue: &Venue, weight: u32) {
    venue.control("/act", &json!({"act": "others_weight", "weight": weight}));
}

fn launch(venue: &Venue) -> Launch {
    support::launch(venue)
        // With these parameters a position comes sooner.
        .set("strategy.1.params.fast=5")
        .set("strategy.1.params.slow=20")
}

/// Waits until the run holds a position and own orders rest.
fn holding(instance: &mut Instance, venue: &Venue) {
    support::ready(instance);
    let admin = instance.admin();
    let is_held = |rows: &Value| rows.as_array().is_some_and(|rows| !rows.is_empty());
    instance.until_shown(&admin, "/api/positions", PATIENCE, &is_held);
    support::trading(instance, venue);
}

/// Waits until the run knows the weight that others use, from a response header.
fn wait_for_use_by_others(instance: &mut Instance, weight: f64) {
    let admin = instance.admin();
    let used = || {
        let metrics = admin.metrics();
        let mut samples = metrics.iter();
        let used = samples.find(|sample| sample.name.starts_with("windvane_weight_used{"));
        used.is_some_and(|sample| sample.value >= weight)
    };
    instance.until_shown(&admin, "/api/status", PATIENCE, &|_| used());
}

fn refusals(venue: &Venue) -> u64 {
    venue.hits().unwrap_or_default()
}

#[test]
fn a_stop_flattens_while_others_use_most_of_the_weight() {
    let venue = Venue::start(&["--seed", "81"]);
    let mut instance = launch(&venue).set("run.on_stop=flatten").start();
    holding(&mut instance, &venue);
    others(&venue, 1_400);
    wait_for_use_by_others(&mut instance, 1_400.0);
    flattens(instance, &venue, Duration::from_secs(15));
}

#[test]
fn a_halt_cancels_all_orders_while_others_use_the_weight() {
    let venue = Venue::start(&["--seed", "82"]);
    let crowded = support::crowded(venue.folder());
    let mut instance = support::launch(&venue)
        .config(&crowded)
        .modules(&["market_maker", "ema_cross", "grid"])
        .start();
    support::ready(&mut instance);
    let admin = instance.admin();
    let many = |orders: &Value| orders.as_array().is_some_and(|rows| rows.len() > 150);
    instance.until_shown(&admin, "/api/orders", PATIENCE, &many);
    others(&venue, 1_400);
    wait_for_use_by_others(&mut instance, 1_400.0);
    let halted = Instant::now();
    admin.command("/api/halt");
    instance.until_shown(&admin, "/api/orders", REST, &|orders| *orders == json!([]));
    println!("{:?} until all orders were cancelled", halted.elapsed());
    assert!(
        halted.elapsed() < Duration::from_secs(10),
        "{}",
        instance.log()
    );
    // From here on only closing orders may trade.
    let executed = |account: &Value| {
        let orders = account["orders"].as_array().unwrap().iter();
        let resting = orders.filter(|order| order["type"] == json!("LIMIT"));
        let executed = resting.map(|order| order["executed_qty"].as_str().unwrap().to_owned());
        executed.collect::<Vec<_>>()
    };
    let before = executed(&venue.account());
    admin.command("/api/flatten");
    let is_flat = |rows: &Value| *rows == json!([]);
    instance.until_shown(&admin, "/api/positions", REST, &is_flat);
    let account = venue.account();
    assert_eq!(executed(&account), before);
    assert_eq!(support::open_orders(&account), Vec::<&Value>::new());
    assert_eq!(support::positions(&account), 0, "{}", account["positions"]);
}

#[test]
fn a_429_pauses_requests_and_status_lists_open_closes() {
    let venue = Venue::start(&["--seed", "83"]);
    let mut instance = launch(&venue).start();
    holding(&mut instance, &venue);
    let ban = json!({"fault": "ban", "status": 429, "retry_after_s": 12, "surface": "futures",
        "for_ms": 12_000});
    venue.control("/faults", &ban);
    let admin = instance.admin();
    admin.command("/api/flatten");
    let reported = |status: &Value| {
        let wait = &status["venue_waits"][0];
        let open = wait["open"].as_array().into_iter().flatten();
        let mut open = open.filter_map(Value::as_str);
        wait["what"] == "requests"
            && wait["left_s"].as_u64() > Some(0)
            && open.any(|one| one.starts_with("close of "))
    };
    instance.until_shown(&admin, "/api/status", PATIENCE, &reported);
    let reason = instance.answer("status")["reason"].to_string();
    assert!(reason.contains("accepts no request for"), "{reason}");
    // Requests that were in flight with the first refused one may count, but no later ones.
    let at_once = refusals(&venue);
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(refusals(&venue), at_once, "{}", venue.faults());
    let is_flat = |rows: &Value| *rows == json!([]);
    instance.until_shown(&admin, "/api/positions", REST, &is_flat);
    let account = venue.account();
    assert_eq!(support::open_orders(&account), Vec::<&Value>::new());
    assert_eq!(support::positions(&account), 0, "{}", account["positions"]);
    instance.until_shown(&admin, "/api/status", REST, &|status| {
        status["venue_waits"] == json!([])
    });
}

#[test]
fn a_stop_waits_out_a_429_and_then_flattens() {
    let venue = Venue::start(&["--seed", "84"]);
    let mut instance = launch(&venue).set("run.on_stop=flatten").start();
    holding(&mut instance, &venue);
    let ban = json!({"fault": "ban", "status": 429, "retry_after_s": 14, "surface": "futures",
        "for_ms": 14_000});
    venue.control("/faults", &ban);
    flattens(instance, &venue, Duration::from_secs(40));
}

#[test]
fn the_order_limit_allows_cancels_and_closes_are_retried() {
    let venue = Venue::start(&["--seed", "85"]);
    let mut instance = launch(&venue).start();
    holding(&mut instance, &venue);
    // As documented: without a Retry-After header.
    let limited = json!({"fault": "refuse", "status": 429, "code": -1015,
        "msg": "Too many new orders.", "route": "futures.new_order", "for_ms": 6_000});
    venue.control("/faults", &limited);
    let admin = instance.admin();
    admin.command("/api/flatten");
    let reported = |status: &Value| status["venue_waits"][0]["what"] == "orders";
    let (status, _) = instance.until_shown(&admin, "/api/status", PATIENCE, &reported);
    let left_s = status["venue_waits"][0]["left_s"].as_u64().unwrap();
    let orders = venue.account();
    assert_eq!(support::open_orders(&orders), Vec::<&Value>::new());
    let is_flat = |rows: &Value| *rows == json!([]);
    let (_, took) = instance.until_shown(&admin, "/api/positions", PATIENCE, &is_flat);
    println!("{took:?} until all was closed, {left_s} s left at first");
    // The limit ends with the venue's minute, and the test may start at any time within that
    // minute. One second is allowed for rounding.
    assert!(took.as_secs() + 1 >= left_s, "{took:?} < {left_s} s");
    assert_eq!(support::positions(&venue.account()), 0);
}

/// Runs in documented mode with a reconciliation every 5 s. The run must stay ready.
fn documented(seed: &str, shared: &str) {
    let venue = Venue::start(&["--seed", seed]);
    venue.control("/act", &json!({"act": "counters", "shared": shared}));
    others(&venue, 1_300);
    let mut instance = support::launch(&venue)
        .set("venue.market_data=documented")
        .set("reconcile.interval_ms=5000")
        .start();
    support::ready(&mut instance);
    let admin = instance.admin();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(75) {
        let status = admin.must_show("/api/status");
        // A disk that is busy for a moment has nothing to do with the weight.
        let is_disk = status["reason"] == "the journal does not write in time";
        let is_ready = status["state"] == "ready" || is_disk;
        assert!(is_ready, "{status}\n{}", instance.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_shared_weight_counter_of_info_keeps_the_run_ready() {
    documented("86", "info");
}

#[test]
fn an_info_endpoint_with_its_own_counter_keeps_the_run_ready() {
    documented("87", "apart");
}

/// The account is known at once, but the weight does not allow reading its modes. Nothing opens
/// before they are read.
#[test]
fn a_start_reads_the_account_with_the_remaining_weight() {
    let venue = Venue::start(&["--seed", "88"]);
    others(&venue, 2_330);
    let mut instance = support::launch(&venue).start();
    let admin = instance.admin();
    let is_known = |status: &Value| {
        let reason = status["reason"].as_str().unwrap_or_default();
        status["state"] == "degraded" && reason.starts_with("the account's position mode")
    };
    let (_, took) = instance.until_shown(&admin, "/api/status", PATIENCE, &is_known);
    println!("{took:?} until the account was known");
    assert!(took < START, "{took:?}\n{}", instance.log());
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_start_reads_the_modes_if_the_weight_allows() {
    let venue = Venue::start(&["--seed", "90"]);
    others(&venue, 2_100);
    let mut instance = support::launch(&venue).start();
    let took = support::ready(&mut instance);
    println!("{took:?} until ready");
    assert!(took < START, "{took:?}\n{}", instance.log());
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn restarts_are_quick_while_others_use_most_of_the_weight() {
    let venue = Venue::start(&["--seed", "89"]);
    let crowded = support::crowded(venue.folder());
    let run =
        support::launch(&venue)
            .config(&crowded)
            .modules(&["market_maker", "ema_cross", "grid"]);
    let many = |orders: &Value| orders.as_array().is_some_and(|rows| rows.len() > 60);
    // Four starts fit into one minute of the venue beside the weight that others used. A fifth
    // start would have no weight for its second account snapshot and would wait for the next
    // minute.
    for start in 0..4 {
        let mut instance = run.start();
        let took = support::ready(&mut instance);
        println!("{took:?} until start {start} was ready");
        assert!(took < START, "start {start}: {took:?}\n{}", instance.log());
        let admin = instance.admin();
        instance.until_shown(&admin, "/api/orders", PATIENCE, &many);
        if start == 0 {
            others(&venue, 1_400);
            wait_for_use_by_others(&mut instance, 1_400.0);
        }
        instance.kill();
    }
}
