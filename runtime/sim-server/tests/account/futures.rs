//! Futures orders, positions and settings (docs/interface/orders.md#futures-order,
//! docs/interface/futures.md#futures, docs/interface/account.md#futures-account-routes).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::fixture::{Venue, fields};

const ORDER: &str = "/fapi/v1/order";
const LIMIT: &str = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=50000";
const MARKET: &str = "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=0.01";

#[tokio::test]
async fn an_order_has_the_documented_fields_on_each_route() {
    let venue = Venue::new().await;
    let common = BTreeSet::from([
        "clientOrderId",
        "cumQuote",
        "executedQty",
        "orderId",
        "avgPrice",
        "origQty",
        "price",
        "reduceOnly",
        "side",
        "positionSide",
        "status",
        "stopPrice",
        "closePosition",
        "symbol",
        "timeInForce",
        "type",
        "updateTime",
        "workingType",
        "priceProtect",
    ]);
    let with =
        |extra: &[&'static str]| common.iter().chain(extra).copied().collect::<BTreeSet<_>>();
    let placed = venue
        .v1("POST", ORDER, &format!("{LIMIT}&newClientOrderId=f1"))
        .await
        .ok();
    assert_eq!(fields(&placed), with(&["cumQty", "origType"]));
    let one = "symbol=BTCUSDT&origClientOrderId=f1";
    for path in ["/fapi/v1/order", "/fapi/v1/openOrder", "/fapi/v3/order"] {
        let result = if path.contains("v3") {
            venue.v3("GET", path, one).await
        } else {
            venue.v1("GET", path, one).await
        };
        assert_eq!(fields(&result.ok()), with(&["time"]), "{path}");
    }
    let trailing =
        "symbol=BTCUSDT&side=SELL&type=TRAILING_STOP_MARKET&quantity=0.01&callbackRate=1.5";
    let trailing = venue.v3("POST", "/fapi/v3/order", trailing).await.ok();
    let extra = ["cumQty", "origType", "activatePrice", "priceRate"];
    assert_eq!(fields(&trailing), with(&extra));
    assert_eq!(trailing["priceRate"], "1.5");
}

#[tokio::test]
async fn ack_is_the_default_and_result_has_the_final_state() {
    let venue = Venue::new().await;
    let ack = venue.v1("POST", ORDER, MARKET).await.ok();
    assert_eq!(
        (&ack["status"], &ack["executedQty"]),
        (&"NEW".into(), &"0".into())
    );
    let one = format!("symbol=BTCUSDT&orderId={}", ack["orderId"]);
    assert_eq!(venue.v1("GET", ORDER, &one).await.ok()["status"], "FILLED");
    let result = venue
        .v1("POST", ORDER, &format!("{MARKET}&newOrderRespType=RESULT"))
        .await
        .ok();
    assert_eq!(
        (&result["status"], &result["executedQty"]),
        (&"FILLED".into(), &"0.01".into())
    );
    let ioc = LIMIT.replace("GTC", "IOC") + "&newOrderRespType=RESULT";
    assert_eq!(
        venue.v1("POST", ORDER, &ioc).await.ok()["status"],
        "EXPIRED"
    );
    let gone = venue.v1("GET", "/fapi/v1/openOrder", &one).await;
    assert_eq!(gone.refusal(), (400, -2013));
}

#[tokio::test]
async fn a_batch_answers_entry_by_entry_in_its_order() {
    let venue = Venue::new().await;
    let entry = |price: &str, id: &str| {
        format!(
            r#"{{"symbol":"BTCUSDT","side":"BUY","type":"LIMIT","quantity":"0.01","price":"{price}","timeInForce":"GTC","newClientOrderId":"{id}"}}"#
        )
    };
    let encoded = |text: &str| -> String {
        percent_encoding::percent_encode(text.as_bytes(), percent_encoding::NON_ALPHANUMERIC)
            .to_string()
    };
    let list = format!("[{},{}]", entry("50000", "one"), entry("1", "two"));
    let batch = format!("batchOrders={}", encoded(&list));
    let result = venue.v1("POST", "/fapi/v1/batchOrders", &batch).await;
    let answers = result.ok();
    assert_eq!(result.headers["x-mbx-order-count-1m"], "2");
    assert_eq!(answers[0]["clientOrderId"], "one");
    assert!(answers[0].get("closePosition").is_none());
    assert_eq!(answers[1]["code"], -4164);
    let six = vec![entry("50000", "x"); 6].join(",");
    let batch = format!("batchOrders={}", encoded(&format!("[{six}]")));
    let refused = venue.v1("POST", "/fapi/v1/batchOrders", &batch).await;
    assert_eq!(refused.refusal(), (400, -1130));
    let list = encoded(r#"["one","two"]"#);
    let query = format!("symbol=BTCUSDT&origClientOrderIdList={list}");
    let canceled = venue
        .v1("DELETE", "/fapi/v1/batchOrders", &query)
        .await
        .ok();
    assert_eq!(canceled[0]["status"], "CANCELED");
    assert_eq!(canceled[1]["code"], -2011);
    let both = format!("{query}&orderIdList={}", encoded("[1]"));
    let refused = venue.v1("DELETE", "/fapi/v1/batchOrders", &both).await;
    assert_eq!(refused.refusal(), (400, -1128));
    let eleven = encoded("[1,2,3,4,5,6,7,8,9,10,11]");
    let query = format!("symbol=BTCUSDT&orderIdList={eleven}");
    let refused = venue.v1("DELETE", "/fapi/v1/batchOrders", &query).await;
    assert_eq!(refused.refusal(), (400, -4032));
}

#[tokio::test]
async fn numbers_of_a_batch_are_checked_by_their_original_digits() {
    let venue = Venue::new().await;
    let entry = |quantity: &str, more: &str| {
        format!(
            r#"{{"symbol":"BTCUSDT","side":"BUY","type":"LIMIT","quantity":{quantity},"price":50000,"timeInForce":"GTC"{more}}}"#
        )
    };
    let list = [
        entry("0.01", ""),
        entry("0.0100000000000000000000001", ""),
        entry("1e-2", ""),
        entry("0.01", r#","price":40000"#),
    ];
    let list = format!("[{}]", list.join(","));
    let encoded =
        percent_encoding::percent_encode(list.as_bytes(), percent_encoding::NON_ALPHANUMERIC);
    let batch = format!("batchOrders={encoded}");
    let answers = venue.v1("POST", "/fapi/v1/batchOrders", &batch).await.ok();
    assert!(answers[0]["orderId"].is_u64(), "{answers}");
    let codes: Vec<_> = (1..4).map(|n| answers[n]["code"].as_i64()).collect();
    assert_eq!(codes, [Some(-1111), Some(-1100), Some(-1101)], "{answers}");
}

#[tokio::test]
async fn cancel_all_spells_its_code_as_text() {
    let venue = Venue::new().await;
    let done = venue
        .v1("DELETE", "/fapi/v1/allOpenOrders", "symbol=BTCUSDT")
        .await
        .ok();
    assert_eq!(done["code"], "200");
}

#[tokio::test]
async fn hedge_mode_has_its_rules() {
    let venue = Venue::new().await;
    let mode = "/fapi/v1/positionSide/dual";
    assert_eq!(
        venue.v1("GET", mode, "").await.ok()["dualSidePosition"],
        false
    );
    let same = venue.v1("POST", mode, "dualSidePosition=false").await;
    assert_eq!(same.refusal(), (400, -4059));
    assert_eq!(
        venue.v1("POST", mode, "dualSidePosition=true").await.ok()["code"],
        200
    );
    assert_eq!(venue.v1("POST", ORDER, LIMIT).await.refusal(), (400, -4061));
    let long = format!("{LIMIT}&positionSide=LONG");
    venue.v1("POST", ORDER, &long).await.ok();
    let reduce = format!("{long}&reduceOnly=false");
    assert_eq!(
        venue.v1("POST", ORDER, &reduce).await.refusal(),
        (400, -1106)
    );
    let odd = format!("{LIMIT}&positionSide=UP");
    assert_eq!(venue.v1("POST", ORDER, &odd).await.refusal(), (400, -4060));
}

#[tokio::test]
async fn a_position_shows_in_risk_account_trades_and_income() {
    let venue = Venue::new().await;
    venue.v1("POST", ORDER, MARKET).await.ok();
    let risk = venue
        .v1("GET", "/fapi/v2/positionRisk", "symbol=BTCUSDT")
        .await
        .ok();
    let position = &risk[0];
    assert_eq!(
        (&position["positionAmt"], &position["leverage"]),
        (&"0.01".into(), &"20".into())
    );
    assert_eq!(position["isAutoAddMargin"], "false");
    assert_eq!(position["marginType"], "cross");
    for path in ["/fapi/v3/account", "/fapi/v3/accountWithJoinMargin"] {
        let account = venue.v3("GET", path, "").await.ok();
        assert_eq!(account["assets"][0]["asset"], "USDT");
        assert!(account["totalPositionInitialMargin"].as_str().unwrap() > "0");
    }
    let trades = venue
        .v1("GET", "/fapi/v1/userTrades", "symbol=BTCUSDT")
        .await
        .ok();
    assert_eq!(trades[0]["positionSide"], "BOTH");
    let income = venue
        .v1("GET", "/fapi/v1/income", "incomeType=COMMISSION")
        .await
        .ok();
    assert!(income[0]["income"].as_str().unwrap().starts_with('-'));
    // A reduce-only order never opens a position on the other side.
    let more = "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=0.01&reduceOnly=true";
    assert_eq!(venue.v1("POST", ORDER, more).await.refusal(), (400, -2022));
}

#[tokio::test]
async fn leverage_margin_type_and_position_margin() {
    let venue = Venue::new().await;
    let set = venue
        .v1("POST", "/fapi/v1/leverage", "symbol=BTCUSDT&leverage=10")
        .await
        .ok();
    assert_eq!(set["leverage"], 10);
    assert!(set["maxNotionalValue"].is_string());
    let over = venue
        .v1("POST", "/fapi/v1/leverage", "symbol=BTCUSDT&leverage=126")
        .await;
    assert_eq!(over.refusal(), (400, -4028));
    let path = "/fapi/v1/marginType";
    let same = venue
        .v1("POST", path, "symbol=BTCUSDT&marginType=CROSSED")
        .await;
    assert_eq!(same.refusal(), (400, -4046));
    venue.v1("POST", ORDER, LIMIT).await.ok();
    let isolated = "symbol=BTCUSDT&marginType=ISOLATED";
    assert_eq!(
        venue.v1("POST", path, isolated).await.refusal(),
        (400, -4047)
    );
    venue
        .v1("DELETE", "/fapi/v1/allOpenOrders", "symbol=BTCUSDT")
        .await
        .ok();
    venue.v1("POST", path, isolated).await.ok();
    venue.v1("POST", ORDER, MARKET).await.ok();
    let crossed = "symbol=BTCUSDT&marginType=CROSSED";
    assert_eq!(
        venue.v1("POST", path, crossed).await.refusal(),
        (400, -4048)
    );
    let margin = "/fapi/v1/positionMargin";
    let added = venue
        .v1("POST", margin, "symbol=BTCUSDT&amount=10.5&type=1")
        .await
        .ok();
    assert!(added["amount"].is_number());
    let history = venue
        .v1("GET", "/fapi/v1/positionMargin/history", "symbol=BTCUSDT")
        .await
        .ok();
    assert_eq!(
        (&history[0]["amount"], &history[0]["type"]),
        (&"10.5".into(), &1.into())
    );
    let bad = venue
        .v1("POST", margin, "symbol=BTCUSDT&amount=10&type=3")
        .await;
    assert_eq!(bad.refusal(), (400, -1130));
}

#[tokio::test]
async fn a_countdown_cancels_open_orders() {
    let venue = Venue::new().await;
    venue.v1("POST", ORDER, LIMIT).await.ok();
    let path = "/fapi/v1/countdownCancelAll";
    let armed = venue
        .v1("POST", path, "symbol=BTCUSDT&countdownTime=30")
        .await
        .ok();
    assert_eq!(
        (&armed["symbol"], &armed["countdownTime"]),
        (&"BTCUSDT".into(), &30.into())
    );
    for _ in 0..1_000 {
        let open = venue
            .v1("GET", "/fapi/v1/openOrders", "symbol=BTCUSDT")
            .await
            .ok();
        if open.as_array().unwrap().is_empty() {
            return;
        }
    }
    panic!("the countdown cancelled nothing");
}

#[tokio::test]
async fn brackets_are_an_object_for_one_symbol_and_an_array_for_all() {
    let venue = Venue::new().await;
    let path = "/fapi/v1/leverageBracket";
    let one = venue.v1("GET", path, "symbol=BTCUSDT").await.ok();
    assert_eq!(one["brackets"][0]["initialLeverage"], 125);
    assert!(
        venue
            .v1("GET", path, "")
            .await
            .ok()
            .as_array()
            .unwrap()
            .len()
            > 1
    );
    let left = "symbol=BTCUSDT&leverage=20";
    let left = venue
        .v1("GET", "/fapi/v1/remainingOpenableNotionalValue", left)
        .await
        .ok();
    assert!(left["remainingOpenableNotionalValue"].is_string());
}

#[tokio::test]
async fn accounts_report_the_time_of_their_last_change() {
    let venue = Venue::new().await;
    let usdt = |list: &Value| {
        let list = list.as_array().unwrap();
        let found = list.iter().find(|entry| entry["asset"] == "USDT");
        found.unwrap()["updateTime"].as_i64().unwrap()
    };
    let own = |account: &Value| account["updateTime"].as_i64().unwrap();
    let before = venue.v1("GET", "/fapi/v4/account", "").await.ok();
    assert_eq!((own(&before), usdt(&before["assets"])), (0, 0));
    // A resting order changes no balance and no position.
    venue.v1("POST", ORDER, LIMIT).await.ok();
    let rested = venue.v1("GET", "/fapi/v4/account", "").await.ok();
    assert_eq!(own(&rested), 0);
    let result = format!("{MARKET}&newOrderRespType=RESULT");
    let filled = venue.v1("POST", ORDER, &result).await.ok();
    let at = filled["updateTime"].as_i64().unwrap();
    for _ in 0..2 {
        let after = venue.v1("GET", "/fapi/v4/account", "").await.ok();
        assert_eq!((own(&after), usdt(&after["assets"])), (at, at));
        let balance = venue.v1("GET", "/fapi/v2/balance", "").await.ok();
        assert_eq!(usdt(&balance), at);
    }
    let spot = venue.v1("GET", "/api/v1/account", "").await.ok();
    assert_eq!(own(&spot), 0);
    venue.v1("POST", "/api/v1/order", LIMIT).await.ok();
    let locked = venue.v1("GET", "/api/v1/account", "").await.ok();
    assert!(own(&locked) > 0, "balance was locked");
}
