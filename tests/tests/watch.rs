//! `windvane watch` against the simulated venue: streams and polling print the same lines, and its
//! messages when it cannot continue.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windvane_tests::binary;
use windvane_tests::venue::{Venue, Watch};

const TOPICS: [&str; 3] = [
    "btcusdt@tradepro",
    "btcusdt@bookTicker",
    "btcusdt@markPrice",
];

/// Reads until each of these topics has had an event; returns the events in the order of `topics`.
fn events(watch: &mut Watch, topics: &[&str]) -> Vec<Value> {
    let mut events = vec![Value::Null; topics.len()];
    while events.contains(&Value::Null) {
        let line = watch.until(&|line| !line["event"].is_null());
        assert_eq!(line["stream"], "market", "{line}");
        let event = &line["event"];
        let place = topics.iter().position(|topic| event["stream"] == *topic);
        events[place.unwrap_or_else(|| panic!("{line}"))] = event["data"].clone();
    }
    events
}

/// The keys of an object.
fn keys(event: &Value) -> BTreeSet<String> {
    event.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn all_modes_print_events_with_the_same_keys() {
    let venue = Venue::start(&["--seed", "7"]);
    let mut seen = Vec::new();
    for mode in ["streams", "documented", "auto"] {
        let set = format!("venue.market_data={mode}");
        let mut watch = venue.watch(&["futures:BTCUSDT", "--set", &set]);
        let events = events(&mut watch, &TOPICS);
        assert_eq!(events[0]["e"], "tradepro", "{mode}");
        assert_eq!(events[1]["e"], "bookTicker", "{mode}");
        assert_eq!(events[2]["e"], "markPriceUpdate", "{mode}");
        seen.push(events.iter().map(keys).collect::<Vec<_>>());
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
}

#[test]
fn documented_mode_polls_undocumented_streams_and_reports_it() {
    let venue = Venue::start(&["--seed", "7"]);
    let streams = "tradepro,bookTicker,depth5,depth,kline_1m,miniTicker,ticker,trade,aggTrade";
    let mut watch = venue.watch(&[
        "spot:BTCUSDT",
        "--set",
        "venue.market_data=documented",
        "--streams",
        streams,
    ]);
    let polled = "btcusdt@bookTicker: polled from now on: the core interface has no stream of it \
                  (docs/interface/README.md#core-and-public-facts)";
    watch.until(&|line| line["notice"] == polled);
    let topics: Vec<String> = streams
        .split(',')
        .map(|one| format!("btcusdt@{one}"))
        .collect();
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    events(&mut watch, &topics);
}

#[test]
fn a_venue_that_refuses_every_handshake_is_polled() {
    let venue = Venue::start(&["--seed", "7"]);
    let fault = json!({"fault": "html", "status": 404, "route": "stream"});
    venue.control("/faults", &fault);
    let mut watch = venue.watch(&["futures:BTCUSDT", "--streams", "bookTicker,markPrice"]);
    let polled = "btcusdt@markPrice: polled from now on: the venue has no path for public streams \
                  (HTTP 404)";
    watch.until(&|line| line["notice"] == polled);
    let topics = ["btcusdt@bookTicker", "btcusdt@markPrice"];
    events(&mut watch, &topics);
}

#[test]
fn a_watch_ends_when_its_output_is_closed() {
    let venue = Venue::start(&["--seed", "7"]);
    let mut watch = venue.watch(&["futures:BTCUSDT", "--streams", "bookTicker"]);
    watch.until(&|line| !line["event"].is_null());
    let (code, text) = watch.end_unread();
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn an_unknown_symbol_ends_the_watch_with_code_1() {
    let venue = Venue::start(&[]);
    for mode in ["streams", "documented", "auto"] {
        let set = format!("venue.market_data={mode}");
        let mut watch = venue.watch(&["spot:NOSUCH", "--streams", "tradepro", "--set", &set]);
        let reported = watch.until(&|line| {
            let notice = line["notice"].as_str().unwrap_or_default();
            notice.starts_with("nosuch@tradepro: not available")
        });
        assert!(
            reported.to_string().contains("-1121") || mode == "streams",
            "{reported}"
        );
        let (code, text) = watch.end();
        assert_eq!(code, Some(1), "{mode}: {text}");
        assert!(text.contains("nothing is left to watch"), "{text}");
    }
}

#[test]
fn a_watch_without_an_address_or_a_surface_is_a_usage_error() {
    let output = binary::run(["watch", "BTCUSDT"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("set venue.spot.ws or venue.futures.ws"),
        "{text}"
    );
    let venue = Venue::start(&[]);
    for (arguments, reason) in [
        (&["chain:BTCUSDT"][..], "write spot: or futures:"),
        (&["futures:BTCUSDT", "--surface", "spot"], "see --surface"),
        (
            &["BTCUSDT", "--streams", "nothing"],
            "no stream \"nothing\"",
        ),
    ] {
        let (code, text) = venue.watch(arguments).end();
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn a_refused_key_ends_the_watch_with_code_1() {
    let venue = Venue::start(&[]);
    let refused = json!({"fault": "refuse", "status": 401, "code": -2015,
        "msg": "Invalid API-key, IP, or permissions for action.", "route": "spot.create_listen_key"});
    // The refusal comes at the start.
    venue.control("/faults", &refused);
    let (code, text) = venue.watch(&["user", "--surface", "spot"]).end();
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("spot user: no listen key") && text.contains("-2015"),
        "{text}"
    );
    venue.control_delete("/faults");
    // The refusal comes later, when a new connection requests a listen key.
    let mut watch = venue.watch(&["user", "--surface", "spot"]);
    watch.until(&|line| line["notice"] == "connected");
    venue.control("/faults", &refused);
    venue.control("/act", &json!({"act": "disconnect"}));
    watch.until(&|line| line["notice"] == "gap: the connection was closed");
    let (code, text) = watch.end();
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("spot user: no listen key") && text.contains("-2015"),
        "{text}"
    );
}
