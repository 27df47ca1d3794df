//! Weights, order counts, 429 and 418 (docs/interface/limits.md#429-418-and-bans).

use windvane_sim_server::LimitSettings;

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
    // If a new minute starts during the test, the count restarts, and there are more responses of
    // each kind.
    let mut statuses = Vec::new();
    for _ in 0..20 {
        let result = depth(&venue).await;
        assert!(
            result.headers.contains_key("x-mbx-used-weight-1m"),
            "{result:?}"
        );
        if result.status != 200 {
            let wait: u64 = result.headers["retry-after"].parse().unwrap();
            assert_eq!(result.json()["code"], -1003);
            assert!(result.status == 418 || wait <= 60, "{result:?}");
            assert!(
                result.status == 429 || (100..=120).contains(&wait),
                "{result:?}"
            );
        }
        statuses.push(result.status);
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
        let result = venue.v1("POST", "/fapi/v1/order", order).await;
        if result.status == 200 {
            assert!(result.headers.contains_key("x-mbx-order-count-1m"));
        }
        last = Some(result);
    }
    let last = last.unwrap();
    assert_eq!(last.refusal(), (429, -1015));
    assert!(!last.headers.contains_key("retry-after"));
    // A cancel does not count as an order.
    venue
        .v1("DELETE", "/fapi/v1/allOpenOrders", "symbol=BTCUSDT")
        .await
        .ok();
}

#[tokio::test]
async fn a_depth_limit_outside_the_list_is_refused() {
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
async fn orders_after_429_lead_to_a_ban_that_covers_websockets() {
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

#[tokio::test]
async fn bans_grow_and_state_their_length() {
    let venue = Venue::with(|settings| {
        settings.limits.futures_weight = 1;
        settings.limits.patience = 0;
    })
    .await;
    // The limit is 1 and the patience is 0, so the first request is already banned.
    let mut lengths = Vec::new();
    for _ in 0..3 {
        let banned = depth(&venue).await;
        assert_eq!(banned.refusal(), (418, -1003));
        lengths.push(banned.headers["retry-after"].parse::<u64>().unwrap());
        // Requests during a ban do not prolong it.
        let again = depth(&venue).await;
        assert_eq!(again.status, 418);
        let left: u64 = again.headers["retry-after"].parse().unwrap();
        assert!(left <= *lengths.last().unwrap(), "{again:?}");
        expire_ban(&venue).await;
    }
    assert_eq!(lengths, [120, 480, 1_920]);
}

/// Ends the ban now through the control port. The number of bans is kept.
async fn expire_ban(venue: &Venue) {
    let address = venue.running.addresses.control;
    let body = r#"{"act":"ban","for_ms":0}"#;
    let request = format!(
        "POST /act HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let result = raw(address, request.as_bytes()).await;
    assert_eq!(result.status, 200, "{result:?}");
}

#[tokio::test]
async fn every_refusal_has_the_used_weight() {
    let venue = Venue::new().await;
    let cases = [
        ("/fapi/v1/depth", "symbol=BTCUSDT&limit=0"),
        ("/fapi/v1/klines", "symbol=BTCUSDT&interval=1m&limit=1501"),
        ("/fapi/v1/depth", "symbol=%zz"),
        ("/fapi/v1/nothing", ""),
        ("/api/v3/klines", "symbol=BTCUSDT&interval=2m"),
        ("/api/v1/account", ""),
    ];
    for (path, query) in cases {
        let sent = Sent {
            method: "GET",
            path,
            query: query.to_owned(),
            ..Sent::default()
        };
        let refused = venue.send(sent).await;
        assert!(refused.status >= 400, "{path}: {refused:?}");
        let used = &refused.headers["x-mbx-used-weight-1m"];
        assert!(used.parse::<u32>().unwrap() > 0, "{path}: {refused:?}");
    }
    let sent = Sent {
        method: "POST",
        path: "/fapi/v1/order",
        body: "x".repeat(70_000),
        ..Sent::default()
    };
    let long = venue.send(sent).await;
    assert_eq!(long.refusal(), (413, -1130));
    assert!(long.headers.contains_key("x-mbx-used-weight-1m"));
}
