//! Tests of the read routes and of their values.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use windvane_admin::view::{State, Status};

use crate::instance::{published, start, start_with};

#[tokio::test]
async fn each_route_shows_its_published_part() {
    let instance = start().await;
    let status = instance.request("GET", "/api/status", "").await;
    assert_eq!(status.status, 200);
    assert_eq!(status.header("content-type"), Some("application/json"));
    let json = status.json();
    assert_eq!(json["state"], "ready");
    assert_eq!(json["reason"], "everything is known");
    assert_eq!(json["mode"], "live");
    assert_eq!(json["since_ms"], 1_700_000_000_000_i64);
    for (route, expected) in [
        (
            "orders",
            json!([{
                "instrument": "futures:BTCUSDT", "strategy": "mm", "client_order_id": "mm.a.1",
                "order_id": 7, "side": "BUY", "price": "59000.1", "qty": "0.010",
                "executed_qty": "0", "status": "NEW",
            }]),
        ),
        (
            "positions",
            json!([{
                "instrument": "futures:BTCUSDT", "strategy": null, "position_side": "BOTH",
                "qty": "-0.5", "entry_price": "60000",
            }]),
        ),
        (
            "balances",
            json!([{
                "surface": "futures", "asset": "USDT", "total": "10000", "available": "9000.5",
            }]),
        ),
    ] {
        let answer = instance.request("GET", &format!("/api/{route}"), "").await;
        assert_eq!((answer.status, answer.json()), (200, expected), "{route}");
    }
    let strategies = instance.request("GET", "/api/strategies", "").await.json();
    assert_eq!(strategies[0]["id"], "mm");
    assert_eq!(strategies[0]["state"], "running");
    assert_eq!(strategies[0]["fault"], json!(null));
}

#[tokio::test]
async fn degraded_reasons_also_have_their_old_name() {
    let instance = start().await;
    let mut next = published();
    next.status.degraded_reasons = vec!["a margin call".to_owned(), "a slow disk".to_owned()];
    let status = next.status.clone();
    instance.publish.send_replace(Arc::new(next));
    let mut answer = instance.request("GET", "/api/status", "").await.json();
    let reasons = json!(["a margin call", "a slow disk"]);
    assert_eq!(answer["degraded_reasons"], reasons);
    assert_eq!(answer["doubts"], reasons);

    // A client reads the status of an older or a newer instance.
    assert_eq!(
        serde_json::from_value::<Status>(answer.clone()).unwrap(),
        status
    );
    for name in ["degraded_reasons", "doubts"] {
        let mut one = answer.clone();
        one.as_object_mut().unwrap().remove(name);
        assert_eq!(serde_json::from_value::<Status>(one).unwrap(), status);
    }
    for name in ["degraded_reasons", "doubts"] {
        answer.as_object_mut().unwrap().remove(name);
    }
    let error = serde_json::from_value::<Status>(answer).unwrap_err();
    assert!(error.to_string().contains("degraded_reasons"), "{error}");
}

#[tokio::test]
async fn the_next_published_state_is_shown() {
    let instance = start().await;
    let mut next = published();
    next.status.state = State::Degraded;
    next.orders.clear();
    instance.publish.send_replace(Arc::new(next));
    let status = instance.request("GET", "/api/status", "").await;
    assert_eq!(status.json()["state"], "degraded");
    let orders = instance.request("GET", "/api/orders", "").await;
    assert_eq!(orders.json(), json!([]));
}

#[tokio::test]
async fn only_the_state_ready_gives_200_without_a_token() {
    let instance = start().await;
    for state in State::ALL {
        let mut next = published();
        next.status.state = state;
        instance.publish.send_replace(Arc::new(next));
        let host = instance.host();
        let answer = instance.query_with("GET", "/ready", &[&host], "").await;
        let expected = if state == State::Ready { 200 } else { 503 };
        assert_eq!(answer.status, expected, "{state}");
        assert_eq!(answer.json()["state"], state.as_str());
    }
}

#[tokio::test]
async fn health_fails_when_the_loop_makes_no_progress() {
    let instance = start_with(|settings| settings.stalled_after = Duration::ZERO).await;
    // Any age is over zero, except one below the resolution of a millisecond.
    let host = instance.host();
    let mut status = 200;
    while status == 200 {
        status = instance
            .query_with("GET", "/health", &[&host], "")
            .await
            .status;
    }
    assert_eq!(status, 503);

    let instance = start().await;
    instance.heartbeat.mark();
    let host = instance.host();
    let answer = instance.query_with("GET", "/health", &[&host], "").await;
    assert_eq!(
        (answer.status, answer.json()["healthy"].as_bool()),
        (200, Some(true))
    );
}
