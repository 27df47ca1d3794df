//! Weights, order counts, 429 and 418 (spec 1, Limits).

use windvane_server::LimitSettings;

use crate::fixture::{Answered, Sent, Venue, raw};

async fn depth(venue: &Venue) -> Answered {
    let sent = Sent {
        method: "GET",
        path: "/fapi/v1/depth",
        query: "symbol=BTCUSDT&limit=1000".to_owned(),
        ..Sent::default()
    };
    venue.send(sent).await
}

#[tokio::test]
async fn too_much_weight_is_429_with_retry_after_and_then_a_ban() {
    let venue = Venue::with(|settings| {
        settings.limits = LimitSettings {
            futures_weight: 40,
            patience: 3,
            ..LimitSettings::default()
        };
    })
    .await;
    // At the turn of a minute the count begins anew: then there are more of each.
    let mut statuses = Vec::new();
    for _ in 0..20 {
        let answered = depth(&venue).await;
        assert!(
            answered.headers.contains_key("x-mbx-used-weight-1m"),
            "{answered:?}"
        );
        if answered.status != 200 {
            let wait: u64 = answered.headers["retry-after"].parse().unwrap();
            assert_eq!(answered.json()["code"], -1003);
            assert!(answered.status == 418 || wait <= 60, "{answered:?}");
            assert!(
                answered.status == 429 || (100..=120).contains(&wait),
                "{answered:?}"
            );
        }
        statuses.push(answered.status);
    }
    statuses.dedup();
    assert_eq!(statuses.last(), Some(&418), "{statuses:?}");
    assert!(
        statuses.contains(&200) && statuses.contains(&429),
        "{statuses:?}"
    );
}

#[tokio::test]
async fn too_many_orders_are_429_without_retry_after() {
    let venue = Venue::with(|settings| {
        settings.limits.futures_orders = 2;
    })
    .await;
    let order = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=50000";
    let mut last = None;
    for _ in 0..6 {
        let answered = venue.v1("POST", "/fapi/v1/order", order).await;
        if answered.status == 200 {
            assert!(answered.headers.contains_key("x-mbx-order-count-1m"));
        }
        last = Some(answered);
    }
    let last = last.unwrap();
    assert_eq!(last.refusal(), (429, -1015));
    assert!(!last.headers.contains_key("retry-after"));
    // Cancelling is no order.
    venue
        .v1("DELETE", "/fapi/v1/allOpenOrders", "symbol=BTCUSDT")
        .await
        .ok();
}

#[tokio::test]
async fn a_depth_limit_of_no_list_is_refused() {
    let venue = Venue::new().await;
    for path in [
        "/api/v1/depth",
        "/api/v3/depth",
        "/fapi/v1/depth",
        "/fapi/v3/depth",
    ] {
        let query = "symbol=BTCUSDT&limit=6".to_owned();
        let method = "GET";
        let sent = Sent {
            method,
            path,
            query,
            ..Sent::default()
        };
        assert_eq!(venue.send(sent).await.refusal(), (400, -4021), "{path}");
    }
}

#[tokio::test]
async fn orders_sent_on_after_429_end_in_a_ban_that_holds_for_websockets() {
    let venue = Venue::with(|settings| {
        settings.limits.futures_orders = 1;
        settings.limits.patience = 2;
    })
    .await;
    let order = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=50000";
    let mut statuses = Vec::new();
    for _ in 0..10 {
        statuses.push(venue.v1("POST", "/fapi/v1/order", order).await.status);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(statuses.last(), Some(&418), "{statuses:?}");
    let address = venue.running.addresses.futures;
    let handshake = format!(
        "GET /ws HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    let refused = raw(address, handshake.as_bytes()).await;
    assert_eq!(refused.refusal(), (418, -1003));
    for header in ["retry-after", "x-mbx-used-weight-1m"] {
        assert!(refused.headers.contains_key(header), "{refused:?}");
    }
}

#[tokio::test]
async fn the_limits_in_force_are_those_of_exchange_information() {
    let venue = Venue::with(|settings| settings.limits.spot_orders_10s = 17).await;
    let sent = Sent {
        method: "GET",
        path: "/api/v3/exchangeInfo",
        ..Sent::default()
    };
    let info = venue.send(sent).await.ok();
    let limits = info["rateLimits"].as_array().unwrap();
    let found = limits
        .iter()
        .find(|limit| limit["interval"] == "SECOND")
        .unwrap();
    assert_eq!(
        (found["intervalNum"].as_u64(), found["limit"].as_u64()),
        (Some(10), Some(17))
    );
    let order = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=50000";
    let placed = venue.v1("POST", "/api/v1/order", order).await;
    placed.ok();
    assert_eq!(placed.headers["x-mbx-order-count-10s"], "1");
    assert_eq!(placed.headers["x-mbx-order-count-1m"], "1");
}
