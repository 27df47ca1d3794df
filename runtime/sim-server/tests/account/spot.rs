//! Spot orders and account (docs/interface/orders.md#spot-order,
//! docs/interface/account.md#spot-account).

use std::collections::BTreeSet;

use crate::fixture::{Venue, fields};

const LIMIT: &str = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=50000";

#[tokio::test]
async fn an_order_has_the_documented_fields_on_each_route() {
    let venue = Venue::new().await;
    let common = BTreeSet::from([
        "symbol",
        "orderId",
        "clientOrderId",
        "price",
        "avgPrice",
        "origQty",
        "executedQty",
        "cumQuote",
        "status",
        "timeInForce",
        "type",
        "origType",
        "side",
        "stopPrice",
        "updateTime",
    ]);
    let with = |extra| {
        common
            .iter()
            .copied()
            .chain([extra])
            .collect::<BTreeSet<_>>()
    };
    let text = format!("{LIMIT}&newClientOrderId=a.1");
    let placed = venue.v1("POST", "/api/v1/order", &text).await.ok();
    assert_eq!(fields(&placed), with("cumQty"));
    assert!(placed["orderId"].is_u64() && placed["price"].is_string());
    let one = "symbol=BTCUSDT&origClientOrderId=a.1";
    let queried = venue.v1("GET", "/api/v1/order", one).await.ok();
    assert_eq!(fields(&queried), with("time"));
    let open = venue.v3("GET", "/api/v3/openOrders", "").await.ok();
    assert_eq!(fields(&open[0]), with("time"));
    let canceled = venue.v3("DELETE", "/api/v3/order", one).await.ok();
    assert_eq!(
        (fields(&canceled), &canceled["status"]),
        (with("cumQty"), &"CANCELED".into())
    );
    let all = venue
        .v1("GET", "/api/v1/allOrders", "symbol=BTCUSDT")
        .await
        .ok();
    assert_eq!(fields(&all[0]), with("time"));
}

#[tokio::test]
async fn a_market_order_fills_and_shows_in_trades_and_balances() {
    let venue = Venue::new().await;
    let order = "symbol=BTCUSDT&side=SELL&type=MARKET&quantity=0.01";
    let filled = venue.v1("POST", "/api/v1/order", order).await.ok();
    assert_eq!(filled["status"], "FILLED", "{filled}");
    let query = format!("symbol=BTCUSDT&orderId={}", filled["orderId"]);
    let trades = venue.v1("GET", "/api/v1/userTrades", &query).await.ok();
    assert_eq!(
        fields(&trades[0]),
        BTreeSet::from([
            "symbol",
            "id",
            "orderId",
            "side",
            "price",
            "qty",
            "quoteQty",
            "commission",
            "commissionAsset",
            "time",
            "counterpartyId",
            "createUpdateId",
            "maker",
            "buyer",
        ])
    );
    let account = venue.v1("GET", "/api/v1/account", "").await.ok();
    let balances = account["balances"].as_array().unwrap();
    let btc = balances
        .iter()
        .find(|balance| balance["asset"] == "BTC")
        .unwrap();
    assert_eq!(btc["free"], "99.99");
    // By quote amount, then by quantity.
    for amount in ["quoteOrderQty=100", "quantity=0.01"] {
        let order = format!("symbol=BTCUSDT&side=BUY&type=MARKET&{amount}");
        let bought = venue.v1("POST", "/api/v1/order", &order).await.ok();
        assert_eq!(bought["status"], "FILLED", "{bought}");
    }
}

#[tokio::test]
async fn refusals_of_orders_have_their_codes() {
    let venue = Venue::new().await;
    let cases = [
        (
            "symbol=BTCUSDT&side=BUY&type=LIMIT&quantity=0.01&price=50000",
            -1102,
        ),
        (
            "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&price=50000",
            -1102,
        ),
        ("symbol=BTCUSDT&side=UP&type=LIMIT", -1117),
        ("symbol=BTCUSDT&side=BUY&type=ODD", -1116),
        ("symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=ODD", -1115),
        ("symbol=NOPE&side=BUY&type=MARKET&quantity=1", -1121),
        (
            "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=1&quoteOrderQty=5",
            -1106,
        ),
        (
            "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=5e4",
            -1100,
        ),
        (
            "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=50000.01",
            -4014,
        ),
        (
            "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=50000.000000001",
            -1111,
        ),
        (
            "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=-1",
            -4001,
        ),
        (
            "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0&price=50000",
            -4003,
        ),
        (
            "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.00001&price=50000",
            -4164,
        ),
        (
            "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=9&price=50000",
            -2018,
        ),
    ];
    for (text, code) in cases {
        let refused = venue.v1("POST", "/api/v1/order", text).await;
        assert_eq!(refused.refusal(), (400, code), "{text}");
    }
    let ids = [
        ("", -1118),
        ("a%20b", -1100),
        ("a2345678901234567890123456789012345678", -4015),
    ];
    for (id, code) in ids {
        let text = format!("{LIMIT}&newClientOrderId={id}");
        let refused = venue.v1("POST", "/api/v1/order", &text).await;
        assert_eq!(refused.refusal(), (400, code), "{id}");
    }
    let bad = format!("{LIMIT}&newOrderRespType=ALL");
    let refused = venue.v1("POST", "/api/v1/order", &bad).await;
    assert_eq!(refused.refusal(), (400, -1136));
}

#[tokio::test]
async fn a_spot_id_is_taken_until_its_order_was_filled() {
    let venue = Venue::new().await;
    let text = format!("{LIMIT}&newClientOrderId=once");
    venue.v1("POST", "/api/v1/order", &text).await.ok();
    let again = venue.v1("POST", "/api/v1/order", &text).await;
    assert_eq!(again.refusal(), (400, -2010));
    venue
        .v1("DELETE", "/api/v1/allOpenOrders", "symbol=BTCUSDT")
        .await
        .ok();
    let again = venue.v1("POST", "/api/v1/order", &text).await;
    assert_eq!(again.refusal(), (400, -2010), "cancelled, not filled");
    let market = "symbol=BTCUSDT&side=SELL&type=MARKET&quantity=0.01&newClientOrderId=filled";
    venue.v1("POST", "/api/v1/order", market).await.ok();
    venue.v1("POST", "/api/v1/order", market).await.ok();
}

#[tokio::test]
async fn cancels_and_queries_of_unknown_orders_are_refused() {
    let venue = Venue::new().await;
    let gone = "symbol=BTCUSDT&orderId=999";
    let refused = venue.v1("DELETE", "/api/v1/order", gone).await;
    assert_eq!(refused.refusal(), (400, -2011));
    let refused = venue.v1("GET", "/api/v1/order", gone).await;
    assert_eq!(refused.refusal(), (400, -2013));
    let refused = venue.v1("GET", "/api/v1/order", "symbol=BTCUSDT").await;
    assert_eq!(refused.refusal(), (400, -1102));
}

#[tokio::test]
async fn a_list_cancels_only_its_orders() {
    let venue = Venue::new().await;
    for id in ["a", "b", "c"] {
        let text = format!("{LIMIT}&newClientOrderId={id}");
        venue.v1("POST", "/api/v1/order", &text).await.ok();
    }
    let list = "symbol=BTCUSDT&origClientOrderIdList=%5B%22a%22%2C%22c%22%5D";
    let done = venue.v1("DELETE", "/api/v1/allOpenOrders", list).await.ok();
    assert_eq!(done["code"], 200);
    let open = venue
        .v1("GET", "/api/v1/openOrders", "symbol=BTCUSDT")
        .await
        .ok();
    assert_eq!(
        (open.as_array().unwrap().len(), &open[0]["clientOrderId"]),
        (1, &"b".into())
    );
}

#[tokio::test]
async fn spans_over_seven_days_and_bad_combinations_are_refused() {
    let venue = Venue::new().await;
    let day = 86_400_000_i64;
    let long = format!("symbol=BTCUSDT&startTime=1&endTime={}", 8 * day);
    for path in ["/api/v1/allOrders", "/api/v1/userTrades"] {
        assert_eq!(
            venue.v1("GET", path, &long).await.refusal(),
            (400, -1127),
            "{path}"
        );
        let turned = "symbol=BTCUSDT&startTime=5&endTime=1";
        assert_eq!(
            venue.v1("GET", path, turned).await.refusal(),
            (400, -1023),
            "{path}"
        );
        let many = "symbol=BTCUSDT&limit=1001";
        assert_eq!(
            venue.v1("GET", path, many).await.refusal(),
            (400, -1130),
            "{path}"
        );
    }
    let week = format!("symbol=BTCUSDT&startTime=1&endTime={}", 7 * day + 1);
    venue.v1("GET", "/api/v1/allOrders", &week).await.ok();
    let refused = venue.v1("GET", "/fapi/v1/allOrders", &week).await;
    assert_eq!(refused.refusal(), (400, -1127), "under 7 days on futures");
    let mixed = "symbol=BTCUSDT&fromId=1&startTime=1";
    let refused = venue.v1("GET", "/api/v1/userTrades", mixed).await;
    assert_eq!(refused.refusal(), (400, -1128));
    let alone = venue.v1("GET", "/api/v1/userTrades", "orderId=1").await;
    assert_eq!(alone.refusal(), (400, -1128));
}

#[tokio::test]
async fn ids_and_client_order_ids_cannot_be_mixed() {
    let venue = Venue::new().await;
    let both = "symbol=BTCUSDT&orderIdList=%5B1%5D&origClientOrderIdList=%5B%22a%22%5D";
    for path in ["/api/v1/allOpenOrders", "/api/v3/allOpenOrders"] {
        let refused = if path.contains("v3") {
            venue.v3("DELETE", path, both).await
        } else {
            venue.v1("DELETE", path, both).await
        };
        assert_eq!(refused.refusal(), (400, -1128), "{path}");
    }
}
