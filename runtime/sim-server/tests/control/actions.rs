//! Actions, and their effect on the exact state.

use serde_json::{Value, json};

use crate::http;
use crate::venue::Venue;

async fn account(venue: &Venue) -> Value {
    venue.state().await["accounts"][0].clone()
}

fn statuses(account: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let orders = account["orders"].as_array().unwrap().iter();
    orders
        .map(|order| (text(&order["client_order_id"]), text(&order["status"])))
        .collect()
}

#[tokio::test]
async fn outside_orders_and_fills_are_in_the_state() {
    let venue = Venue::start().await;
    let place = json!({
        "act": "place", "symbol": "BTCUSDT", "side": "BUY", "price": "30000",
        "quantity": "0.01", "client_order_id": "web_a",
    });
    venue.act(place.clone()).await;
    let again = venue.control("POST", "/act", &place.to_string()).await;
    assert_eq!(again.json()["code"], -4116, "the venue's own refusal");
    let fill = json!({
        "act": "fill", "symbol": "BTCUSDT", "client_order_id": "web_a", "quantity": "0.004",
    });
    assert_eq!(venue.act(fill).await["quantity"], "0.004");
    let account = account(&venue).await;
    assert_eq!(account["orders"][0]["executed_qty"], "0.004");
    assert_eq!(account["orders"][0]["open"], true);
    assert_eq!(account["positions"][0]["qty"], "0.004");
    assert_eq!(account["positions"][0]["entry_price"], "30000");
    assert_eq!(account["trades"][0]["qty"], "0.004");
    assert_eq!(account["trades"][0]["maker"], true);
    assert_eq!(account["accepted"]["total"], 1);
    assert_eq!(account["accepted"]["orders"][0]["client_order_id"], "web_a");
    assert_eq!(account["accepted"]["repeated"], json!({}));
    let cancel = json!({ "act": "cancel", "order_id": account["orders"][0]["order_id"] });
    venue.act(cancel).await;
    let brief = venue
        .control("GET", "/state?account=0&brief=true", "")
        .await;
    let brief = &brief.json()["accounts"][0];
    assert_eq!(brief["orders"], json!([]));
    assert_eq!(brief["trades"], json!([]));
    assert_eq!(brief["accepted"]["total"], 1);
    assert_eq!(brief["positions"][0]["qty"], "0.004");
}

#[tokio::test]
async fn a_reused_client_order_id_is_listed() {
    let venue = Venue::start().await;
    for _ in 0..2 {
        assert_eq!(venue.place("a").await.unwrap().status, 200);
        let cancel = json!({ "act": "cancel", "symbol": "BTCUSDT", "client_order_id": "a" });
        venue.act(cancel).await;
    }
    let account = account(&venue).await;
    assert_eq!(account["accepted"]["repeated"], json!({ "a": 2 }));
    let canceled = ("a".to_owned(), "CANCELED".to_owned());
    assert_eq!(statuses(&account), [canceled.clone(), canceled]);
}

#[tokio::test]
async fn liquidation_and_deleveraging_leave_their_orders() {
    let venue = Venue::start().await;
    let buy = json!({
        "act": "place", "symbol": "BTCUSDT", "side": "BUY", "type": "MARKET", "quantity": "0.02",
    });
    venue.act(buy).await;
    let adl = json!({ "act": "adl", "symbol": "BTCUSDT", "quantity": "0.005" });
    assert_eq!(venue.act(adl).await["quantity"], "0.005");
    venue
        .act(json!({ "act": "liquidate", "symbol": "BTCUSDT" }))
        .await;
    let account = account(&venue).await;
    assert_eq!(account["positions"], json!([]));
    let names: Vec<_> = statuses(&account)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert!(names[0].starts_with("web_"));
    assert_eq!(names[1], "adl_autoclose");
    assert!(names[2].starts_with("autoclose-"));
}

#[tokio::test]
async fn money_and_settings_change_from_outside() {
    let venue = Venue::start().await;
    let wallet = async || account(&venue).await["balances"]["futures"][0]["wallet"].clone();
    let before = wallet().await;
    let deposit = json!({ "act": "deposit", "asset": "USDT", "amount": "0.5" });
    venue.act(deposit).await;
    assert_eq!(wallet().await, format!("{}.5", before.as_str().unwrap()));
    let all = json!({ "act": "withdraw", "asset": "USDT", "amount": "99999999" });
    let refused = venue.control("POST", "/act", &all.to_string()).await;
    assert_eq!(refused.json()["code"], -2018);
    let leverage = json!({ "act": "leverage", "symbol": "BTCUSDT", "leverage": 3 });
    venue.act(leverage).await;
    venue
        .act(json!({ "act": "position_mode", "hedge": true }))
        .await;
    let account = account(&venue).await;
    assert_eq!(account["hedge_mode"], true);
    let settings = account["settings"].as_array().unwrap();
    let of = |symbol: &str| settings.iter().find(|s| s["symbol"] == symbol).unwrap();
    assert_eq!(of("BTCUSDT")["leverage"], 3);
}

#[tokio::test]
async fn new_rules_apply_to_exchange_information_and_orders() {
    let venue = Venue::start().await;
    let rules = json!({ "act": "rules", "symbol": "BTCUSDT", "min_notional": "1000" });
    venue.act(rules).await;
    assert_eq!(venue.place("a").await.unwrap().json()["code"], -4164);
    let address = venue.running.addresses.futures;
    let info = http::send(address, "GET", "/fapi/v1/exchangeInfo", "", "").await;
    let info = info.unwrap().json();
    let symbols = info["symbols"].as_array().unwrap();
    let symbol = symbols.iter().find(|s| s["symbol"] == "BTCUSDT").unwrap();
    let filters = symbol["filters"].as_array().unwrap();
    let filter = filters.iter().find(|f| f["filterType"] == "MIN_NOTIONAL");
    let notional = filter.unwrap()["notional"].as_str().unwrap();
    let notional: rust_decimal::Decimal = notional.parse().unwrap();
    assert_eq!(notional, rust_decimal::Decimal::from(1_000));
    let halt = json!({ "act": "rules", "symbol": "BTCUSDT", "status": "SETTLING" });
    venue.act(halt).await;
    assert_eq!(venue.place("b").await.unwrap().json()["code"], -4022);
}

#[tokio::test]
async fn the_state_has_the_same_text_while_nothing_happens() {
    let venue = Venue::start().await;
    venue.place("a").await.unwrap();
    let (one, two) = (account(&venue).await, account(&venue).await);
    assert_eq!(one.to_string(), two.to_string());
    let counters = venue.state().await["counters"].clone();
    assert_eq!(counters["requests"]["futures.new_order"], 1);
    assert_eq!(counters["answers"]["200"], 1);
}
