//! The JSON-RPC info endpoint.

use serde_json::{Value, json};
use windvane_protocol::route::{Method, Surface};
use windvane_protocol::sign::Prepared;

use crate::fixture::{V1, V3, Venue};

async fn post(venue: &Venue, body: &str) -> Value {
    let prepared = Prepared {
        method: Method::Post,
        path: "/info".to_owned(),
        query: None,
        headers: vec![("Content-Type", "application/json".to_owned())],
        body: Some(body.to_owned()),
        signed: None,
    };
    venue.send(Surface::Rpc, &prepared).await.ok()
}

async fn rpc_call(venue: &Venue, method: &str, params: Value) -> Value {
    let body = json!({ "id": 1, "jsonrpc": "2.0", "method": method, "params": params });
    post(venue, &body.to_string()).await
}

fn order<'a>(side: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut pairs = vec![("symbol", "BTCUSDT"), ("side", side), ("quantity", "0.01")];
    pairs.extend(more);
    pairs
}

#[tokio::test]
async fn any_id_is_returned_unchanged() {
    let venue = Venue::new().await;
    let user = venue.keys(0).user.clone();
    for id in [
        "7",
        "\"seven\"",
        "null",
        "{\"a\":[1]}",
        "1.50",
        "12345678901234567890123",
    ] {
        let body = format!(
            r#"{{"id":{id},"jsonrpc":"2.0","method":"svc_getBalance","params":["{user}","latest"]}}"#
        );
        let answer = post(&venue, &body).await;
        let expected: Value = serde_json::from_str(id).unwrap();
        assert_eq!(answer["id"], expected);
        assert_eq!(answer["jsonrpc"], "2.0");
        assert_eq!(answer["result"]["accountPrivacy"], "disabled");
        let assets = answer["result"]["perpAssets"].as_array().unwrap();
        assert!(
            assets
                .iter()
                .all(|asset| asset["walletBalance"].is_number()),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn errors_are_error_objects() {
    let venue = Venue::new().await;
    let user = venue.keys(0).user.clone();
    let cases = [
        (
            r#"{"id":1,"jsonrpc":"2.0","method":"svc_nothing","params":[]}"#.to_owned(),
            -32601,
        ),
        (
            r#"{"id":1,"jsonrpc":"2.0","method":"getBalance","params":[]}"#.to_owned(),
            -32601,
        ),
        (
            r#"{"id":1,"jsonrpc":"1.0","method":"svc_getBalance","params":[]}"#.to_owned(),
            -32600,
        ),
        (
            r#"{"id":1,"jsonrpc":"2.0","method":"svc_getBalance"}"#.to_owned(),
            -32602,
        ),
        (
            r#"{"id":1,"jsonrpc":"2.0","method":"svc_getBalance","params":["x","latest"]}"#
                .to_owned(),
            -32602,
        ),
        (
            format!(r#"{{"id":1,"jsonrpc":"2.0","method":"svc_getBalance","params":["{user}"]}}"#),
            -32602,
        ),
        ("[{}]".to_owned(), -32600),
        (r#"[1,"2.0","svc_getBalance",[]]"#.to_owned(), -32600),
        ("[".to_owned(), -32700),
        ("{".to_owned(), -32700),
        ("[]".to_owned(), -32600),
    ];
    for (body, code) in cases {
        let answer = post(&venue, &body).await;
        assert_eq!(answer["error"]["code"], code, "{body}: {answer}");
        assert!(answer.get("result").is_none() && answer["error"]["message"].is_string());
    }
    let week = 7 * 24 * 60 * 60 * 1_000_i64;
    let params = json!([
        user,
        "",
        1_772_678_119_418_i64,
        1_772_678_119_419_i64 + week,
        "latest"
    ]);
    let answer = rpc_call(&venue, "svc_userFills", params).await;
    assert_eq!(answer["error"]["code"], -32602);
}

#[tokio::test]
async fn orders_fills_and_positions_show_until_the_account_is_private() {
    let venue = Venue::new().await;
    let user = venue.keys(0).user.clone();
    let market = [("type", "MARKET"), ("newOrderRespType", "RESULT")];
    for side in ["BUY", "BUY", "SELL"] {
        venue
            .call("futures.new_order", V3, &order(side, &market))
            .await
            .ok();
    }
    let book = venue
        .call("futures.premium_index", V1, &[("symbol", "BTCUSDT")])
        .await
        .ok();
    let mark: f64 = book["markPrice"].as_str().unwrap().parse().unwrap();
    let price = format!("{:.1}", mark * 0.97);
    let limit = [
        ("type", "LIMIT"),
        ("timeInForce", "GTC"),
        ("price", price.as_str()),
    ];
    venue
        .call("futures.new_order", V3, &order("BUY", &limit))
        .await
        .ok();

    let fills = rpc_call(
        &venue,
        "svc_userFills",
        json!([user, "BTCUSDT", null, null, "latest"]),
    )
    .await;
    let fills = fills["result"]["fills"].as_array().unwrap().clone();
    assert!(fills.len() >= 3, "{fills:?}");
    assert_eq!(fills[0]["side"], "SELL", "newest first");
    let times: Vec<i64> = fills
        .iter()
        .map(|fill| fill["time"].as_i64().unwrap())
        .collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    let old = json!([user, null, 1_772_678_119_417_i64, null, "latest"]);
    let old = rpc_call(&venue, "svc_userFills", old).await;
    assert_eq!(old["result"]["fills"], json!([]), "a fill before block 1");

    let orders = rpc_call(&venue, "svc_openOrders", json!([user, null, "latest"])).await;
    assert_eq!(orders["result"]["openOrders"].as_array().unwrap().len(), 1);
    assert!(
        orders["result"]["openOrders"][0]["orderId"].is_string(),
        "{orders}"
    );
    let other = rpc_call(&venue, "svc_openOrders", json!([user, "ETHUSDT", "latest"])).await;
    assert_eq!(other["result"]["openOrders"], json!([]));
    let balance = rpc_call(&venue, "svc_getBalance", json!([user, "latest"])).await;
    let group = &balance["result"]["positions"][0];
    assert_eq!(group["tradingProduct"], "perps");
    assert_eq!(group["positions"][0]["positionAmount"], "0.01", "{balance}");

    let status = venue
        .call("chain.modify_account_status", V3, &[("status", "PRIVATE")])
        .await
        .ok();
    assert_eq!(status["status"], "PRIVATE");
    let hidden = rpc_call(&venue, "svc_openOrders", json!([user, null, "latest"])).await;
    assert_eq!(hidden["result"]["accountPrivacy"], "enabled");
    assert_eq!(hidden["result"]["openOrders"], json!([]));
    let status = venue.call("chain.account_status", V3, &[]).await.ok();
    assert_eq!(status["status"], "PRIVATE");
}
