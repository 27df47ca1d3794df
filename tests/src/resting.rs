//! A live run whose one strategy keeps orders at rest on spot, and what its venue has of them.

use serde_json::json;

use crate::guest::Guest;
use crate::launch::Launch;
use crate::venue::Venue;

/// Places a buy of 0.001 BTC that rests a twentieth below the bid, at each top of the book.
const REST: Guest<'static> = Guest {
    on_event: "(if (i32.eq (local.get $kind) (i32.const 2)) (then
        (local.set $bid (i64.sub (local.get $a) (i64.div_s (local.get $a) (i64.const 20))))
        (drop (call $submit (i32.const 0) (i32.const 0x10) (i64.const 100)
          (i64.sub (local.get $bid) (i64.rem_s (local.get $bid) (i64.const 1000)))
          (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))))",
    ..Guest::EMPTY
};

const CONFIG: &str = r#"
[run]
mode = "live"

[venue]
recv_window_ms = 1000

[heartbeat]
countdown_ms = 3000
interval_ms = 1000

[reconcile]
interval_ms = 5000

[[strategy]]
id = "rests"
module = "rests.wasm"
instruments = ["spot:BTCUSDT"]
streams = ["book"]
"#;

/// The launch of a run that keeps this many orders at rest. `more` is added to the configuration.
///
/// # Panics
/// If the venue's folder cannot be written.
#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
pub fn launch(venue: &Venue, orders: u32, more: &str) -> Launch {
    let module = venue.folder().join("rests.wasm");
    let file = venue.folder().join("spot.toml");
    REST.write(&module);
    std::fs::write(&file, format!("{CONFIG}{more}")).expect("the configuration is written");
    Launch::new(venue, &venue.folder().join("data"))
        .config(&file)
        .set(&format!("strategy.0.module={}", module.display()))
        .set(&format!("risk.max_open_orders={orders}"))
}

/// Client order ids of the account's open orders.
///
/// # Panics
/// If the venue's answer is another one.
#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
pub fn open(venue: &Venue) -> Vec<String> {
    let account = venue.account();
    let orders = account["orders"].as_array().expect("a list of orders");
    let open = orders.iter().filter(|order| order["open"] == json!(true));
    let id = |order: &serde_json::Value| order["client_order_id"].as_str().map(str::to_owned);
    open.filter_map(id).collect()
}

/// Number of orders that the venue ever accepted.
///
/// # Panics
/// If an order was accepted twice.
#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
pub fn accepted(venue: &Venue) -> u64 {
    let account = venue.account();
    assert_eq!(account["accepted"]["repeated"], json!({}));
    let total = account["accepted"]["total"].as_u64();
    total.expect("a number of orders")
}
