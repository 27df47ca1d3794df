//! Switches for requests and the clock.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use crate::http;
use crate::venue::Venue;

#[tokio::test]
async fn unknown_outcomes_follow_the_accepted_switch() {
    let venue = Venue::start().await;
    let cases = [
        ("503", 503, -1000),
        ("-1006", 400, -1006),
        ("-1007", 400, -1007),
    ];
    for (n, (how, status, code)) in cases.into_iter().enumerate() {
        for accepted in [true, false] {
            let switch = json!({
                "fault": "unknown", "how": how, "accepted": accepted,
                "route": "futures.new_order", "count": 1,
            });
            venue.fault(switch).await;
            let id = format!("a{n}{accepted}");
            let answer = venue.place(&id).await.unwrap();
            assert_eq!(answer.status, status, "{how}");
            assert_eq!(answer.json()["code"], code, "{how}");
            assert_eq!(venue.accepted(&id).await, usize::from(accepted), "{how}");
        }
    }
    // The counts of the switches are used up.
    let answer = venue.place("b").await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn a_connection_is_cut_or_left_half_open() {
    let venue = Venue::start().await;
    let switch = |how: &str| json!({ "fault": "unknown", "how": how, "accepted": true, "account": 0, "count": 1 });
    venue.fault(switch("cut")).await;
    assert!(venue.place("a").await.is_none());
    assert_eq!(venue.accepted("a").await, 1);
    venue.fault(switch("half_open")).await;
    let waited = timeout(Duration::from_millis(300), venue.place("b")).await;
    assert!(waited.is_err(), "got a response: {waited:?}");
    assert_eq!(venue.accepted("b").await, 1);
}

#[tokio::test]
async fn bodies_can_be_html_empty_or_half() {
    let venue = Venue::start().await;
    let switch = json!({ "fault": "html", "status": 403, "surface": "futures", "count": 1 });
    venue.fault(switch).await;
    let answer = venue.place("a").await.unwrap();
    assert_eq!(answer.status, 403);
    assert_eq!(answer.header("content-type"), Some("text/html"));
    assert!(answer.body.starts_with("<!DOCTYPE html>"));
    assert_eq!(venue.accepted("a").await, 0);

    venue.fault(json!({ "fault": "empty", "count": 1 })).await;
    let answer = venue.place("b").await.unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    assert_eq!(venue.accepted("b").await, 1);

    venue
        .fault(json!({ "fault": "truncate", "count": 1 }))
        .await;
    let answer = venue.place("c").await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.body.starts_with('{') && !answer.body.ends_with('}'));
    assert_eq!(venue.accepted("c").await, 1);
}

#[tokio::test]
async fn a_switch_applies_to_its_route_surface_and_account() {
    let venue = Venue::start().await;
    let refuse = json!({ "fault": "refuse", "code": -1001, "msg": "Busy." });
    let with = |field: &str, value: serde_json::Value| {
        let mut switch = refuse.clone();
        switch[field] = value;
        switch
    };
    for (field, value, hits) in [
        ("route", json!("futures.new_order"), true),
        ("route", json!("futures.*"), true),
        ("route", json!("futures.cancel_order"), false),
        ("surface", json!("spot"), false),
        ("account", json!(0), true),
        ("account", json!(1), false),
        ("skip", json!(1), false),
        ("probability", json!(0), false),
        ("for_ms", json!(0), false),
    ] {
        let switch = with(field, value.clone());
        let id = venue.fault(switch).await;
        let name = format!("{field}{}", u8::from(hits));
        let name = format!("{name}-{id}");
        let answer = venue.place(&name).await.unwrap();
        assert_eq!(answer.json()["code"] == -1001, hits, "{field} {value}");
        venue.control("DELETE", "/faults", "").await;
    }
}

#[tokio::test]
async fn a_ban_states_its_length_like_a_real_one() {
    let venue = Venue::start().await;
    let time = async || {
        let address = venue.running.addresses.futures;
        http::send(address, "GET", "/fapi/v1/time", "", "")
            .await
            .unwrap()
    };
    venue.fault(json!({ "fault": "ban", "count": 1 })).await;
    let answer = time().await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, None));
    assert_eq!(answer.json()["code"], -1003);
    let switch = json!({ "fault": "ban", "retry_after_s": 3, "count": 1 });
    venue.fault(switch).await;
    assert_eq!(time().await.header("retry-after"), Some("3"));
    let switch = json!({ "fault": "ban", "status": 418, "for_ms": 60_000, "count": 1 });
    venue.fault(switch).await;
    let answer = time().await;
    assert_eq!(answer.status, 418);
    let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((55..=60).contains(&seconds), "{seconds}");

    venue.act(json!({ "act": "ban", "for_ms": 60_000 })).await;
    assert_eq!(time().await.status, 418);
    venue.act(json!({ "act": "pardon" })).await;
    assert_eq!(time().await.status, 200);
}

#[tokio::test]
async fn delays_add_up() {
    let venue = Venue::start().await;
    let switch = json!({ "fault": "delay", "before_ms": 40, "after_ms": 60 });
    venue.fault(switch.clone()).await;
    venue.fault(switch).await;
    let start = std::time::Instant::now();
    assert_eq!(venue.place("a").await.unwrap().status, 200);
    assert!(start.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn a_skewed_clock_is_visible_and_refuses_correct_timestamps() {
    let venue = Venue::start().await;
    venue.fault(json!({ "fault": "skew", "ms": -60_000 })).await;
    let state = venue.state().await;
    let (time, clock) = (&state["time_ms"], &state["clock_ms"]);
    assert_eq!(time.as_i64().unwrap() - clock.as_i64().unwrap(), 60_000);
    let answer = venue.place("a").await.unwrap();
    assert_eq!(answer.json()["code"], -1021, "{answer:?}");
    venue.control("DELETE", "/faults", "").await;
    assert_eq!(venue.place("b").await.unwrap().status, 200);
}

#[tokio::test]
async fn the_same_seed_affects_the_same_requests() {
    let mut stories = Vec::new();
    for _ in 0..2 {
        let venue = Venue::start().await;
        let switch = json!({
            "fault": "refuse", "code": -1001, "route": "futures.time",
            "probability": "0.5", "seed": 7,
        });
        venue.fault(switch).await;
        let mut story = Vec::new();
        for _ in 0..24 {
            let address = venue.running.addresses.futures;
            let answer = http::send(address, "GET", "/fapi/v1/time", "", "").await;
            story.push(answer.unwrap().status);
        }
        stories.push(story);
    }
    assert_eq!(stories[0], stories[1]);
    assert!(stories[0].contains(&200) && stories[0].contains(&400));
}

#[tokio::test]
async fn a_handshake_counts_as_a_request_of_the_route_stream() {
    let venue = Venue::start().await;
    let switch = json!({ "fault": "html", "status": 502, "route": "stream", "count": 1 });
    venue.fault(switch).await;
    let url = format!("ws://{}/ws/btcusdt@trade", venue.running.addresses.futures);
    let refused = tokio_tungstenite::connect_async(&url).await;
    assert!(refused.is_err());
    assert!(tokio_tungstenite::connect_async(&url).await.is_ok());
}
