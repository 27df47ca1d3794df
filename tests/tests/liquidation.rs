//! The venue closes positions itself while `windvane run` trades. The strategies' sub-positions
//! must match the account, the configured reaction must follow, and status and log must report it.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use rust_decimal::Decimal;
use serde_json::{Value, json};
use windvane_tests::binary;
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::venue::Venue;

fn decimal(value: &Value) -> Decimal {
    value.as_str().unwrap().parse().unwrap()
}

/// The account's position, and the sum of the strategies' sub-positions.
fn held(positions: &Value) -> (Decimal, Decimal) {
    let rows = positions.as_array().unwrap();
    let sum = |own: bool| {
        let rows = rows.iter().filter(|row| row["strategy"].is_string() == own);
        rows.map(|row| decimal(&row["qty"])).sum()
    };
    (sum(false), sum(true))
}

/// Starts the sample strategies and waits until the account holds something.
fn holding(venue: &Venue, setting: &str) -> Instance {
    let data = venue.folder().join("data");
    let launch = Launch::new(venue, &data)
        .modules(&["market_maker", "ema_cross"])
        .set(setting);
    let mut instance = launch.start();
    instance.ready();
    instance.until("positions", &|rows| !rows.as_array().unwrap().is_empty());
    instance
}

fn metric(instance: &Instance, name: &str) -> f64 {
    let samples = instance.admin().metrics();
    let of_name = samples
        .iter()
        .filter(|sample| sample.name.starts_with(name));
    of_name.map(|sample| sample.value).sum()
}

#[test]
fn a_liquidation_is_settled_and_halts_the_run_until_resume() {
    let venue = Venue::start(&["--seed", "21"]);
    let mut instance = holding(&venue, "risk.on_liquidation=halt");
    venue.control("/act", &json!({"act": "liquidate", "symbol": "BTCUSDT"}));
    let status = instance.until("status", &|status| status["state"] == "halted");
    let reason = status["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("liquidation by the venue") && reason.contains("windvane resume"),
        "{reason}"
    );
    let status = instance.until("status", &|status| {
        let closes = status["forced_closes"].as_array().unwrap();
        closes.iter().any(|close| close["qty"] != "0")
    });
    let closes = status["forced_closes"].as_array().unwrap();
    let close = closes.iter().find(|close| close["qty"] != "0").unwrap();
    assert_eq!(close["reason"], "liquidation");
    assert_eq!(close["instrument"], "futures:BTCUSDT");
    assert!(decimal(&close["price"]) > Decimal::ZERO, "{close}");
    assert!(
        !close["strategies"].as_array().unwrap().is_empty(),
        "{close}"
    );
    instance.until("positions", &|rows| {
        held(rows) == (Decimal::ZERO, Decimal::ZERO)
    });
    assert_eq!(venue.account()["positions"], json!([]));
    assert!(metric(&instance, "windvane_forced_closes_total") >= 1.0);
    let log = instance.log();
    let line = log
        .lines()
        .find(|line| line.contains("the venue closed a position of the account itself"))
        .unwrap();
    for word in [
        "ERROR",
        "futures:BTCUSDT",
        "price",
        "realized_pnl",
        "strategies",
        "left",
    ] {
        assert!(line.contains(word), "{word} is missing in {line}");
    }

    let data = venue.folder().join("data");
    instance.kill();
    let launch = Launch::new(&venue, &data).modules(&["market_maker", "ema_cross"]);
    let mut instance = launch.start();
    let status = instance.until("status", &|status| {
        status["state"] == "halted" && !status["forced_closes"].as_array().unwrap().is_empty()
    });
    assert!(
        status["reason"]
            .as_str()
            .unwrap()
            .starts_with("liquidation by the venue"),
        "{status}"
    );
    instance.answer("resume");
    instance.ready();
    let status = instance.answer("status");
    assert_eq!(status["forced_closes"], json!([]));
    assert_eq!(instance.terminate().code(), Some(0));

    let data = data.display().to_string();
    let exported = binary::succeed(["journal", "export", &data]);
    let reported = exported
        .lines()
        .find(|line| line.contains("\"forced_close\""));
    assert!(reported.is_some_and(|line| line.contains("\"on_liquidation\":\"halt\"")));
}

#[test]
fn an_adl_pauses_the_run_if_configured() {
    let venue = Venue::start(&["--seed", "22"]);
    let mut instance = holding(&venue, "risk.on_liquidation=pause");
    venue.control("/act", &json!({"act": "adl", "symbol": "BTCUSDT"}));
    let status = instance.until("status", &|status| status["state"] == "paused");
    assert!(
        status["reason"]
            .as_str()
            .unwrap()
            .starts_with("ADL by the venue"),
        "{status}"
    );
    instance.until("positions", &|rows| {
        let (account, own) = held(rows);
        account == own
    });
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn the_run_continues_after_a_liquidation_if_configured() {
    let venue = Venue::start(&["--seed", "23"]);
    let mut instance = holding(&venue, "risk.on_liquidation=continue");
    // Almost the whole wallet is withdrawn, so that a fall of the mark price is enough to
    // liquidate.
    let account = venue.account();
    let wallets = account["balances"]["futures"].as_array().unwrap();
    let wallet = wallets.iter().find(|row| row["asset"] == "USDT").unwrap();
    let most = decimal(&wallet["available"]) * Decimal::new(98, 2);
    let amount = most.round_dp(2).to_string();
    venue.control(
        "/act",
        &json!({"act": "withdraw", "asset": "USDT", "amount": amount}),
    );
    let is_closed = |status: &Value| {
        let closes = status["forced_closes"].as_array().unwrap();
        closes.iter().any(|close| close["qty"] != "0")
    };
    let started = std::time::Instant::now();
    while !is_closed(&instance.answer("status")) {
        for price in ["1000", "900000"] {
            venue.control(
                "/act",
                &json!({"act": "mark", "symbol": "BTCUSDT", "price": price}),
            );
        }
        assert!(
            started.elapsed() < Duration::from_mins(2),
            "nothing was liquidated"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    instance.until("positions", &|rows| {
        let (account, own) = held(rows);
        account == own
    });
    let status = instance.answer("status");
    assert_ne!(status["state"], "halted", "{status}");
    assert_ne!(status["state"], "paused", "{status}");
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_close_seen_only_in_an_account_event_halts_documented_mode() {
    let venue = Venue::start(&["--seed", "24"]);
    let choice = json!({"account-event-without-orders": "account-only"});
    venue.control("/choices", &choice);
    let mut instance = holding(&venue, "venue.market_data=documented");
    venue.control("/act", &json!({"act": "liquidate", "symbol": "BTCUSDT"}));
    let status = instance.until("status", &|status| status["state"] == "halted");
    let reason = status["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("close that no order explains, by a person or by the venue"),
        "{reason}"
    );
    let close = &status["forced_closes"][0];
    assert_eq!(
        (&close["reason"], &close["instrument"]),
        (&json!("unreported"), &json!("futures:BTCUSDT"))
    );
    // Only the balance shows the loss.
    assert_eq!(
        (&close["price"], &close["fee"]),
        (&json!(null), &json!(null))
    );
    assert!(close["note"].is_string(), "{close}");
    assert!(decimal(&close["realized_pnl"]) < Decimal::ZERO, "{close}");
    assert_ne!(close["strategies"], json!([]), "{close}");
    instance.until("positions", &|rows| {
        held(rows) == (Decimal::ZERO, Decimal::ZERO)
    });
    let log = instance.log();
    let line = log
        .lines()
        .find(|line| line.contains("no order explains it"));
    assert!(line.is_some_and(|line| line.contains("ERROR")), "{log}");
}
