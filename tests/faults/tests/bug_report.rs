//! A live run whose own books contradict each other halts, cancels its orders, reports it, and
//! leaves a snapshot for a bug report.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;

use serde_json::{Value, json};
use windvane_tests::binary;
use windvane_tests::guest::Guest;
use windvane_tests::launch::Launch;
use windvane_tests::venue::Venue;

/// Two orders at a time, far from the market, so that only the test fills them.
const CONFIG: &str = r#"
[run]
mode = "live"

[risk]
max_open_orders = 2

[[strategy]]
id = "far"
module = "far.wasm"
instruments = ["futures:BTCUSDT"]
streams = ["book"]
"#;

/// Buys a twentieth below the bid at each top of the book.
const FAR_ORDERS: Guest<'static> = Guest {
    on_event: "(if (i32.eq (local.get $kind) (i32.const 2)) (then
        (local.set $bid (i64.sub (local.get $a) (i64.div_s (local.get $a) (i64.const 20))))
        (drop (call $submit (i32.const 0) (i32.const 0x10) (i64.const 10)
          (i64.sub (local.get $bid) (i64.rem_s (local.get $bid) (i64.const 1000)))
          (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))))",
    ..Guest::EMPTY
};

fn rows(answer: &Value) -> impl Iterator<Item = &Value> {
    answer.as_array().into_iter().flatten()
}

#[test]
fn a_run_with_contradicting_books_halts_and_leaves_a_report() {
    binary::choose(Path::new(env!("CARGO_BIN_EXE_windvane-changed")));
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let venue = Venue::start(&["--seed", "7"]);
    let (module, file) = (
        folder.path().join("far.wasm"),
        folder.path().join("far.toml"),
    );
    FAR_ORDERS.write(&module);
    std::fs::write(&file, CONFIG).unwrap();
    let launch = Launch::new(&venue, &data)
        .config(&file)
        .set(&format!("strategy.0.module={}", module.display()));
    let mut instance = launch.env("WINDVANE_PLANTED", "books-contradict").start();
    instance.ready();
    let orders = instance.until("orders", &|orders| rows(orders).count() >= 2);
    let reports = data.join("bug-reports");
    assert!(!reports.exists(), "a report exists before the first fill");

    // The planted bug books the commission of this fill a second time, but only in the strategy's
    // ledger. So that ledger contradicts the account's.
    let id = rows(&orders).next().unwrap()["client_order_id"].clone();
    venue.control(
        "/act",
        &json!({"act": "fill", "symbol": "BTCUSDT", "client_order_id": id}),
    );
    instance.until("status", &|status| status["state"] == "halted");
    instance.until("orders", &|orders| rows(orders).count() == 0);
    while !instance.log().contains("attach this file to a bug report") {
        assert!(instance.ended().is_none(), "{}", instance.log());
    }
    let kept: Vec<_> = std::fs::read_dir(&reports).unwrap().collect();
    assert_eq!(kept.len(), 1);
    let snapshot = kept.into_iter().next().unwrap().unwrap();
    assert!(snapshot.metadata().unwrap().len() > 0);

    // A resume accepts the books until they are compared again. Then the halt comes back.
    assert!(instance.verb("resume").status.success());
    instance.until("status", &|status| status["state"] == "halted");
    assert_eq!(instance.terminate().code(), Some(0));
}
