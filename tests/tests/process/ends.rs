//! A run that is asked to end, with each value of `on_stop`, and with a second signal.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::venue::Venue;

use super::support;

/// `on_stop` has 10 seconds; the rest is reserve for a busy machine.
const DEADLINE: Duration = Duration::from_secs(15);

/// Number of countdowns that still run at the venue.
fn countdowns(account: &Value) -> usize {
    let settings = account["settings"].as_array().unwrap().iter();
    settings
        .filter(|row| !row["countdown_ends_ms"].is_null())
        .count()
}

/// A launch with parameters with which a position comes sooner.
fn quick(venue: &Venue) -> Launch {
    support::launch(venue)
        .set("strategy.1.params.fast=5")
        .set("strategy.1.params.slow=20")
}

/// Runs until orders rest and a position is held, asks the run to end, and returns the venue's
/// account afterwards.
fn ended(seed: &str, on_stop: &str) -> Value {
    let venue = Venue::start(&["--seed", seed]);
    let setting = format!("run.on_stop={on_stop}");
    let launch = quick(&venue).set(&setting);
    let mut instance = launch.start();
    support::ready(&mut instance);
    let admin = instance.admin();
    let is_held = |rows: &Value| rows.as_array().is_some_and(|rows| !rows.is_empty());
    instance.until_shown(&admin, "/api/positions", support::PATIENCE, &is_held);
    support::trading(&mut instance, &venue);
    let begin = Instant::now();
    instance.signal("TERM");
    let status = instance.end_within(DEADLINE);
    println!("on_stop = {on_stop}: {:?}", begin.elapsed());
    assert_eq!(status.code(), Some(0));
    venue.account()
}

#[test]
fn on_stop_cancel_leaves_no_order_and_the_position() {
    let account = ended("41", "cancel");
    assert_eq!(support::open_orders(&account), Vec::<&Value>::new());
    assert_eq!(support::positions(&account), 1, "{}", account["positions"]);
}

#[test]
fn on_stop_keep_leaves_orders_and_no_countdown() {
    let account = ended("42", "keep");
    assert!(!support::open_orders(&account).is_empty());
    assert_eq!(countdowns(&account), 0, "{}", account["settings"]);
}

#[test]
fn on_stop_flatten_leaves_nothing() {
    let account = ended("43", "flatten");
    assert_eq!(support::open_orders(&account), Vec::<&Value>::new());
    assert_eq!(support::positions(&account), 0, "{}", account["positions"]);
}

#[test]
fn positions_that_on_stop_flatten_could_not_close_are_named() {
    let venue = Venue::start(&["--seed", "47"]);
    let launch = quick(&venue).set("run.on_stop=flatten");
    let mut instance = launch.start();
    support::ready(&mut instance);
    let held = until_held(&mut instance);
    let refused =
        json!({"fault": "refuse", "code": -2010, "msg": "no", "route": "futures.new_order"});
    venue.control("/faults", &refused);
    instance.signal("TERM");
    let log = launch.data().with_extension("log");
    let status = instance.end_within(DEADLINE);
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(status.code(), Some(1), "{log}");
    let printed = log.lines().last().unwrap();
    assert!(printed.contains("did not close everything"), "{printed}");
    let named = log.matches("did not close a position").count();
    assert_eq!(named, held.len(), "{held:?}\n{log}");
    for one in held {
        assert!(printed.contains(&one), "{one}: {printed}");
    }
}

#[test]
fn a_final_flatten_takes_its_fills_from_order_responses() {
    let venue = Venue::start(&["--seed", "48"]);
    let launch = quick(&venue).set("run.on_stop=flatten");
    let mut instance = launch.start();
    support::ready(&mut instance);
    until_held(&mut instance);
    hide_fills(&venue);
    instance.signal("TERM");
    let log = launch.data().with_extension("log");
    let status = instance.end_within(DEADLINE);
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
    assert_eq!(venue.account()["positions"], json!([]));
}

#[test]
fn a_closed_order_with_missing_fills_is_not_listed_as_open() {
    let venue = Venue::start(&["--seed", "49"]);
    let launch = quick(&venue);
    let mut instance = launch.start();
    support::ready(&mut instance);
    until_held(&mut instance);
    hide_fills(&venue);
    let admin = instance.admin();
    admin.command("/api/flatten");
    let started = std::time::Instant::now();
    loop {
        let is_closed = venue.account()["positions"] == json!([]);
        let orders = admin.show("/api/orders");
        let held = admin.show("/api/positions").unwrap();
        let is_booked = held.as_array().unwrap().is_empty();
        assert!(
            !is_booked,
            "the fills were booked before the test saw the closed order"
        );
        if is_closed && orders == Some(json!([])) {
            return;
        }
        assert!(started.elapsed() < support::PATIENCE, "{orders:?}");
    }
}

/// Hides fills from now on, in user events and in the list of the account's trades.
fn hide_fills(venue: &Venue) {
    for fault in [
        json!({"fault": "lost", "surface": "futures"}),
        json!({"fault": "unknown", "how": "half_open", "accepted": false,
            "route": "futures.user_trades"}),
    ] {
        venue.control("/faults", &fault);
    }
}

/// Trades until strategies hold something, then pauses; returns one text for each position.
fn until_held(instance: &mut Instance) -> Vec<String> {
    let admin = instance.admin();
    let is_held = |rows: &Value| rows.as_array().is_some_and(|rows| !rows.is_empty());
    loop {
        instance.until_shown(&admin, "/api/positions", support::PATIENCE, &is_held);
        admin.command("/api/pause");
        instance.until_shown(&admin, "/api/orders", support::REST, &|orders| {
            *orders == json!([])
        });
        let shown = admin.show("/api/positions").unwrap();
        let own = shown.as_array().unwrap().iter();
        let own = own.filter(|row| !row["strategy"].is_null());
        let text: Vec<_> = own
            .map(|row| {
                let word = |field: &str| row[field].as_str().unwrap();
                let [strategy, qty, name] = ["strategy", "qty", "instrument"].map(word);
                format!("{strategy} holds {qty} {name}")
            })
            .collect();
        if !text.is_empty() {
            return text;
        }
        admin.command("/api/resume");
    }
}

#[test]
fn a_signal_stops_the_build_of_modules() {
    let venue = Venue::start(&["--seed", "45"]);
    let data = venue.folder().join("data");
    // A compiler that never ends.
    let tools = venue.folder().join("tools");
    std::fs::create_dir(&tools).unwrap();
    let cargo = tools.join("cargo");
    std::fs::write(&cargo, "#!/bin/sh\nexec sleep 60\n").unwrap();
    std::fs::set_permissions(&cargo, Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", tools.display());
    let instance = Launch::new(&venue, &data).env("PATH", &path).start();
    // The run listens before it builds.
    let begin = Instant::now();
    while !data.join("admin.sock").exists() {
        assert!(begin.elapsed() < support::PATIENCE, "{}", instance.log());
        std::thread::sleep(Duration::from_millis(5));
    }
    let begin = Instant::now();
    instance.signal("TERM");
    let status = instance.end_within(DEADLINE);
    println!("the build was stopped after {:?}", begin.elapsed());
    assert_eq!(status.code(), Some(0));
}

#[test]
fn an_unanswered_cancel_does_not_delay_the_stop() {
    let venue = Venue::start(&["--seed", "46"]);
    let mut instance = support::launch(&venue).start();
    support::ready(&mut instance);
    support::trading(&mut instance, &venue);
    // The first cancels get no response.
    let deaf = json!({"fault": "unknown", "how": "half_open", "accepted": false,
        "route": "futures.cancel*", "for_ms": 2000});
    venue.control("/faults", &deaf);
    instance.signal("TERM");
    let status = instance.end_within(DEADLINE);
    assert_eq!(status.code(), Some(0));
    let account = venue.account();
    assert_eq!(support::open_orders(&account), Vec::<&Value>::new());
}

#[test]
fn a_second_signal_exits_at_once_without_cancelling() {
    let venue = Venue::start(&["--seed", "44"]);
    let launch = support::launch(&venue)
        .set("heartbeat.countdown_ms=5000")
        .set("heartbeat.interval_ms=1500");
    let mut instance = launch.start();
    support::ready(&mut instance);
    support::trading(&mut instance, &venue);
    // No cancel reaches the venue.
    let deaf = json!({"fault": "unknown", "how": "half_open", "accepted": false,
        "route": "futures.cancel*"});
    venue.control("/faults", &deaf);
    instance.signal("TERM");
    let admin = instance.admin();
    let stopping = |status: &Value| status["state"] == "halted";
    instance.until_shown(&admin, "/api/status", DEADLINE, &stopping);
    instance.signal("TERM");
    let begin = Instant::now();
    let status = instance.end_within(Duration::from_secs(5));
    println!("the second signal: {:?}", begin.elapsed());
    assert_eq!(status.code(), Some(1));
    assert!(!support::open_orders(&venue.account()).is_empty());
    support::dead_man(&venue, Duration::from_secs(10));
}
