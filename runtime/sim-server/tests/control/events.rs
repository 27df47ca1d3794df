//! Switches for user events and public frames, and actions on connections.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::venue::{Venue, changes, message};

#[tokio::test]
async fn events_come_twice_never_late_or_out_of_order() {
    let venue = Venue::start().await;
    let mut socket = venue.user_stream().await;
    for (switch, expected) in [
        (json!({ "fault": "twice", "count": 1 }), ["1", "1", "2"]),
        (
            json!({ "fault": "lost", "skip": 1, "count": 1 }),
            ["1", "3", "4"],
        ),
        (json!({ "fault": "swap", "count": 1 }), ["2", "1", "3"]),
        (
            json!({ "fault": "late", "ms": 60, "count": 1 }),
            ["2", "3", "1"],
        ),
        (
            json!({ "fault": "lost", "event": "ORDER_TRADE_UPDATE" }),
            ["1", "2", "3"],
        ),
        (json!({ "fault": "lost", "account": 1 }), ["1", "2", "3"]),
    ] {
        venue.fault(switch.clone()).await;
        let last = expected.iter().max().unwrap().parse().unwrap();
        venue.deposits(1..=last).await;
        assert_eq!(changes(&mut socket, 3).await, expected, "{switch}");
        venue.control("DELETE", "/faults", "").await;
    }
}

#[tokio::test]
async fn a_swap_without_a_count_swaps_every_two_events() {
    let venue = Venue::start().await;
    let mut socket = venue.user_stream().await;
    let switch = json!({ "fault": "swap", "within_ms": 60_000 });
    venue.fault(switch).await;
    venue.deposits(1..=4).await;
    assert_eq!(changes(&mut socket, 4).await, ["2", "1", "4", "3"]);
}

#[tokio::test]
async fn a_stall_delays_events_until_it_ends_or_is_cleared() {
    let venue = Venue::start().await;
    let mut socket = venue.user_stream().await;
    venue
        .fault(json!({ "fault": "stall", "for_ms": 200 }))
        .await;
    venue.deposits(1..=3).await;
    assert_eq!(venue.state().await["faults"]["held_events"], 3);
    assert_eq!(changes(&mut socket, 3).await, ["1", "2", "3"]);

    let switch = json!({ "fault": "stall", "for_ms": 3_600_000, "shuffle": true });
    venue.fault(switch).await;
    venue.deposits(1..=9).await;
    venue.control("DELETE", "/faults", "").await;
    let mut shuffled = changes(&mut socket, 9).await;
    assert_ne!(shuffled, ["1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    shuffled.sort();
    assert_eq!(shuffled, ["1", "2", "3", "4", "5", "6", "7", "8", "9"]);
}

#[tokio::test]
async fn a_swapped_event_is_sent_even_without_a_next_event() {
    let venue = Venue::start().await;
    let mut socket = venue.user_stream().await;
    venue
        .fault(json!({ "fault": "swap", "within_ms": 50, "count": 1 }))
        .await;
    venue.deposits(1..=1).await;
    assert_eq!(changes(&mut socket, 1).await, ["1"]);
}

#[tokio::test]
async fn a_gap_breaks_the_sequence_of_the_depth() {
    let venue = Venue::start().await;
    let url = format!(
        "ws://{}/ws/btcusdt@depth@100ms",
        venue.running.addresses.futures
    );
    let mut socket = connect_async(url).await.unwrap().0;
    let mut next = async || loop {
        if let Message::Text(text) = message(&mut socket).await {
            return serde_json::from_str::<Value>(&text).unwrap();
        }
    };
    let first = next().await;
    let second = next().await;
    assert_eq!(second["pu"], first["u"]);
    let switch = json!({ "fault": "gap", "topic": "btcusdt@depth*", "count": 2 });
    venue.fault(switch).await;
    let mut before = second;
    let broken = async {
        loop {
            let frame = next().await;
            if frame["pu"] != before["u"] {
                break;
            }
            before = frame;
        }
    };
    timeout(Duration::from_secs(10), broken)
        .await
        .expect("a gap in 10 s");
}

#[tokio::test]
async fn each_kind_of_garbage_is_sent() {
    let venue = Venue::start().await;
    let mut socket = venue.user_stream().await;
    for frame in ["binary", "truncated", "unknown", "not_json", "empty"] {
        let action = json!({ "act": "garbage", "frame": frame, "kind": "user", "account": 0 });
        let hit = venue.act(action).await;
        assert_eq!(hit["connections"].as_array().unwrap().len(), 1);
        let got = message(&mut socket).await;
        let parsed = got.to_text().map(serde_json::from_str::<Value>);
        match frame {
            "binary" => assert!(got.is_binary() && parsed.is_err()),
            "unknown" => assert_eq!(parsed.unwrap().unwrap()["e"], "SOMETHING_NEW"),
            _ => assert!(got.is_text() && parsed.unwrap().is_err(), "{frame}"),
        }
    }
    let action = json!({ "act": "garbage", "frame": "empty", "kind": "public" });
    let hit = venue.act(action).await;
    assert!(hit["connections"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn a_frozen_connection_stays_open_and_sends_nothing() {
    let venue = Venue::start().await;
    let mut socket = venue.user_stream().await;
    venue.act(json!({ "act": "freeze", "kind": "user" })).await;
    venue.deposits(1..=2).await;
    let _ = socket.send(Message::Ping("x".into())).await;
    let waited = timeout(Duration::from_millis(300), socket.next()).await;
    assert!(waited.is_err(), "unexpected frame: {waited:?}");
    let state = venue.state().await;
    assert_eq!(state["connections"].as_array().unwrap().len(), 1);
    // Another connection of the same key still receives the events.
    let mut other = venue.user_stream().await;
    venue.deposits(3..=3).await;
    assert_eq!(changes(&mut other, 1).await, ["3"]);
    venue.act(json!({ "act": "disconnect" })).await;
    assert!(matches!(socket.next().await, None | Some(Err(_))));
}

#[tokio::test]
async fn connections_end_with_a_close_frame_or_without() {
    let venue = Venue::start().await;
    let mut socket = venue.user_stream().await;
    venue
        .act(json!({ "act": "disconnect", "close_frame": true }))
        .await;
    assert!(matches!(
        socket.next().await,
        Some(Ok(Message::Close(Some(_))))
    ));
    let mut socket = venue.user_stream().await;
    venue.act(json!({ "act": "disconnect" })).await;
    let end = socket.next().await;
    let cut = matches!(end, Some(Err(Error::Protocol(_) | Error::Io(_))) | None);
    assert!(cut, "{end:?}");
}

#[tokio::test]
async fn a_listen_key_expires_on_request_and_the_next_one_differs() {
    let venue = Venue::start().await;
    let mut socket = venue.user_stream().await;
    let ended = venue
        .act(json!({ "act": "expire_listen_key", "surface": "futures" }))
        .await;
    let Message::Text(text) = message(&mut socket).await else {
        panic!("an event")
    };
    let event: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(event["e"], "listenKeyExpired");
    let keys: Vec<_> = event.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["E", "e"]);
    venue.deposits(1..=1).await;
    let waited = timeout(Duration::from_millis(100), socket.next()).await;
    assert!(waited.is_err(), "unexpected event: {waited:?}");
    let _again = venue.user_stream().await;
    let state = venue.state().await;
    let key = &state["accounts"][0]["listen_keys"]["futures"]["key"];
    assert_ne!(key, &ended["listen_keys"][0]);
}

#[tokio::test]
async fn a_paused_connection_sends_everything_afterwards() {
    let venue = Venue::start().await;
    let mut socket = venue.user_stream().await;
    let pause = json!({ "act": "pause", "kind": "user", "for_ms": 300 });
    venue.act(pause).await;
    venue.deposits(1..=3).await;
    let waited = timeout(Duration::from_millis(50), socket.next()).await;
    assert!(waited.is_err(), "{waited:?}");
    assert_eq!(changes(&mut socket, 3).await, ["1", "2", "3"]);
}
