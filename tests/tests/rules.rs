//! The venue changes the rules of a symbol, and a person changes its leverage, while `windvane run`
//! trades. Orders must be accepted again without a restart. Status, log and metrics must show the
//! change.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rust_decimal::Decimal;
use serde_json::{Value, json};
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::venue::Venue;

fn trading(venue: &Venue) -> Instance {
    let data = venue.folder().join("data");
    let launch = Launch::new(venue, &data).modules(&["market_maker", "ema_cross"]);
    let mut instance = launch.start();
    instance.ready();
    instance.until("orders", &|rows| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.any(|row| row["strategy"] == "maker" && row["status"] == "NEW")
    });
    instance
}

fn change(venue: &Venue, rules: &Value) {
    let mut act = json!({"act": "rules", "symbol": "BTCUSDT"});
    let fields = rules.as_object().unwrap().clone();
    act.as_object_mut().unwrap().extend(fields);
    venue.control("/act", &act);
}

/// Ids and prices of the maker's orders that the venue accepted.
fn accepted(venue: &Venue) -> Vec<(String, Decimal)> {
    let account = venue.account();
    let orders = account["orders"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    orders
        .map(|order| (text(&order["client_order_id"]), text(&order["price"])))
        .filter(|(id, _)| id.starts_with("maker."))
        .map(|(id, price)| (id, price.parse().unwrap()))
        .collect()
}

/// Waits until the venue accepts an order of the maker that is not in `known`.
fn until_accepted(venue: &Venue, known: &BTreeSet<String>) -> Decimal {
    let started = Instant::now();
    loop {
        let new = accepted(venue).into_iter();
        if let Some((_, price)) = new.into_iter().find(|(id, _)| !known.contains(id)) {
            return price;
        }
        assert!(
            started.elapsed() < Duration::from_mins(2),
            "no order was accepted"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn ids(venue: &Venue) -> BTreeSet<String> {
    accepted(venue).into_iter().map(|(id, _)| id).collect()
}

/// Waits until `status` shows matching terms of the symbol.
fn until_terms(instance: &mut Instance, is_it: &dyn Fn(&Value) -> bool) {
    instance.until("status", &|status| is_it(&status["terms"][0]));
}

#[test]
fn a_new_tick_is_used_without_a_restart() {
    let venue = Venue::start(&["--seed", "31"]);
    let mut instance = trading(&venue);
    change(&venue, &json!({"tick_size": "0.7"}));
    until_terms(&mut instance, &|terms| terms["tick"] == "0.7");
    let known = ids(&venue);
    let price = until_accepted(&venue, &known);
    let rules = &venue.whole_state()["market"];
    assert!(rules.is_array() || rules.is_object());
    let tick = Decimal::new(7, 1);
    let rest = price % tick;
    let price_again = until_accepted(&venue, &ids(&venue));
    assert_eq!(
        price_again % tick,
        rest,
        "the two prices are not on the same tick grid"
    );
    let log = instance.log();
    assert!(log.contains("tickSize 0.1 -> 0.7"), "{log}");
    let samples = instance.admin().metrics();
    let changes = samples
        .iter()
        .find(|sample| sample.name.starts_with("windvane_rule_changes_total"));
    assert!(changes.is_some_and(|sample| sample.value >= 1.0));
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn trading_resumes_after_a_symbol_was_stopped() {
    let venue = Venue::start(&["--seed", "32"]);
    let mut instance = trading(&venue);
    change(&venue, &json!({"status": "SETTLING"}));
    until_terms(&mut instance, &|terms| terms["status"] == "SETTLING");
    change(&venue, &json!({"status": "TRADING"}));
    until_terms(&mut instance, &|terms| terms["status"] == "TRADING");
    until_accepted(&venue, &ids(&venue));
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_leverage_change_by_others_is_noticed() {
    let venue = Venue::start(&["--seed", "33"]);
    let mut instance = trading(&venue);
    until_terms(&mut instance, &|terms| terms["leverage"].is_u64());
    venue.control(
        "/act",
        &json!({"act": "leverage", "symbol": "BTCUSDT", "leverage": 7}),
    );
    until_terms(&mut instance, &|terms| {
        terms["leverage"] == 7 && terms["margin_changed_ms"].is_i64()
    });
    let log = instance.log();
    assert!(
        log.contains("the leverage or the margin type of a symbol was changed"),
        "{log}"
    );
    assert_eq!(instance.terminate().code(), Some(0));
}
