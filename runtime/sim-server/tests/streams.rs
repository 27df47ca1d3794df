//! Public streams over real sockets, read by a client that is written from the documents alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

#[path = "common/http.rs"]
mod http;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use http::{act, get};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use windvane_sim_server::{Running, Settings, Source, start};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A server whose market has so many events that no test waits long.
async fn server(change: impl FnOnce(&mut Settings)) -> Running {
    let mut settings = Settings {
        source: Source::Seeded { per_second: 200 },
        ..Settings::default()
    };
    change(&mut settings);
    start(settings).await.unwrap()
}

async fn connect(address: impl std::fmt::Display, path: &str) -> Socket {
    connect_async(format!("ws://{address}{path}"))
        .await
        .unwrap()
        .0
}

async fn message(socket: &mut Socket) -> Message {
    let next = tokio::time::timeout(Duration::from_secs(30), socket.next());
    next.await.expect("a message in 30 s").unwrap().unwrap()
}

/// The next text message. Pings are answered in between.
async fn text(socket: &mut Socket) -> Value {
    loop {
        if let Message::Text(text) = message(socket).await {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

/// The next text message that answers a request.
async fn answer(socket: &mut Socket) -> Value {
    loop {
        let value = text(socket).await;
        if value.get("id").is_some() {
            return value;
        }
    }
}

async fn send_text(socket: &mut Socket, request: Value) -> Value {
    socket
        .send(Message::text(request.to_string()))
        .await
        .unwrap();
    answer(socket).await
}

async fn close_code(socket: &mut Socket) -> CloseCode {
    loop {
        if let Message::Close(frame) = message(socket).await {
            return frame.unwrap().code;
        }
    }
}

fn keys(value: &Value) -> String {
    let mut keys: Vec<_> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys.join(" ")
}

/// Each topic and its sorted keys on spot and on futures.
const TOPICS: &[(&str, &str, &str)] = &[
    ("aggTrade", "E T a e f l m p q s", "E T a e f l m p q s"),
    ("trade", "E T e m p q s t", ""),
    ("tradepro", "E T e h m p q s t", "E T e h m p q s t"),
    ("kline_1m", "E e k s", "E e k s"),
    ("miniTicker", "E c e h l o q s v", "E c e h l o q s v"),
    (
        "ticker",
        "A B C E F L O P Q a b c e h l n o p q s v w x",
        "C E F L O P Q c e h l n o p q s v w",
    ),
    ("bookTicker", "A B a b s u", "A B E T a b e s u"),
    ("depth5", "E T U a b e pu s u", "E T U a b e pu s u"),
    ("depth20@100ms", "E T U a b e pu s u", "E T U a b e pu s u"),
    ("depth", "E T U a b e s u", "E T U a b e pu s u"),
    ("depth@100ms", "E T U a b e s u", "E T U a b e pu s u"),
    ("markPrice", "", "E P T e i p r s"),
    ("markPrice@1s", "", "E P T e i p r s"),
];

#[tokio::test]
async fn every_topic_has_its_documented_keys_bare_and_wrapped() {
    let server = server(|_| {}).await;
    let addresses = server.addresses;
    for (address, futures) in [(addresses.spot, false), (addresses.futures, true)] {
        let mut wanted: BTreeMap<String, &str> = BTreeMap::new();
        for (topic, spot_keys, futures_keys) in TOPICS {
            let expected = if futures { futures_keys } else { spot_keys };
            if !expected.is_empty() {
                wanted.insert(format!("ethusdt@{topic}"), expected);
            }
        }
        let streams = wanted.keys().cloned().collect::<Vec<_>>().join("/");
        let mut socket = connect(address, &format!("/stream?streams={streams}")).await;
        let mut missing = wanted.clone();
        while !missing.is_empty() {
            let frame = text(&mut socket).await;
            assert_eq!(keys(&frame), "data stream");
            let stream = frame["stream"].as_str().unwrap();
            assert_eq!(keys(&frame["data"]), wanted[stream], "{stream} {frame}");
            if missing.remove(stream).is_some() && stream.ends_with("kline_1m") {
                let bar = &frame["data"]["k"];
                assert_eq!(keys(bar), "L Q T V c f h i l n o q s t v x");
            }
        }
        let mut bare = connect(address, "/ws/ethusdt@bookTicker").await;
        let expected = wanted["ethusdt@bookTicker"];
        assert_eq!(keys(&text(&mut bare).await), expected);
        let mut pro = connect(address, "/ws").await;
        let request = json!({"method": "SUBSCRIBE", "params": ["ethusdt@tradepro"], "id": 1});
        assert_eq!(
            send_text(&mut pro, request).await,
            json!({"result": null, "id": 1})
        );
        let frame = text(&mut pro).await;
        assert_eq!(frame["stream"], "ethusdt@tradepro");
        assert_eq!(frame["data"]["m"].as_array().unwrap().len(), 2);
    }
    let mut marks = connect(addresses.futures, "/ws/!markPrice@arr@1s").await;
    assert_eq!(text(&mut marks).await.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_liquidation_is_public() {
    let server = server(|_| {}).await;
    let (control, futures) = (server.addresses.control, server.addresses.futures);
    let mut socket = connect(futures, "/ws/btcusdt@forceOrder").await;
    let order = json!({
        "act": "place", "symbol": "BTCUSDT", "side": "BUY", "type": "MARKET", "quantity": "0.02"
    });
    act(control, &order).await;
    act(control, &json!({"act": "liquidate", "symbol": "BTCUSDT"})).await;
    // One frame per fill; the order fills once per level that it takes.
    let order = loop {
        let frame = text(&mut socket).await;
        assert_eq!(
            (keys(&frame).as_str(), &frame["e"]),
            ("E e o", &json!("forceOrder"))
        );
        let order = &frame["o"];
        assert_eq!(keys(order), "S T X ap f l o p q s z");
        assert_eq!(
            (&order["s"], &order["S"]),
            (&json!("BTCUSDT"), &json!("SELL"))
        );
        assert_eq!(order["q"], "0.020");
        if order["z"] == order["q"] {
            break order.clone();
        }
    };
    assert!(order["ap"].as_str().unwrap().parse::<f64>().unwrap() > 0.0);
}

#[tokio::test]
async fn subscriptions_are_answered_listed_and_ended() {
    let server = server(|s| s.spot_streams.messages_per_second = 100).await;
    let mut socket = connect(server.addresses.spot, "/ws/btcusdt@kline_1M").await;
    let subscribe = json!({"method": "SUBSCRIBE", "params": ["btcusdt@ticker"], "id": 7});
    assert_eq!(
        send_text(&mut socket, subscribe).await,
        json!({"result": null, "id": 7})
    );
    let list = json!({"method": "LIST_SUBSCRIPTIONS", "id": "seven"});
    let listed = json!({"result": ["btcusdt@kline_1M", "btcusdt@ticker"], "id": "seven"});
    assert_eq!(send_text(&mut socket, list).await, listed);
    let end = json!({"method": "UNSUBSCRIBE", "params": ["btcusdt@ticker", "btcusdt@kline_1M"]});
    assert_eq!(
        send_text(&mut socket, end).await,
        json!({"result": null, "id": null})
    );
    let list = json!({"method": "LIST_SUBSCRIPTIONS", "id": 1});
    assert_eq!(
        send_text(&mut socket, list).await,
        json!({"result": [], "id": 1})
    );
    let set = json!({"method": "SET_PROPERTY", "params": ["combined", true], "id": 2});
    assert_eq!(
        send_text(&mut socket, set).await,
        json!({"result": null, "id": 2})
    );
    let get = json!({"method": "GET_PROPERTY", "params": ["combined"], "id": 3});
    assert_eq!(
        send_text(&mut socket, get).await,
        json!({"result": true, "id": 3})
    );
    for (request, code) in [
        (
            json!({"method": "SUBSCRIBE", "params": ["nope@trade"], "id": 4}),
            2,
        ),
        (json!({"method": "SUBSCRIBE", "params": [], "id": 4}), 2),
        (json!({"method": "SUBSCRIBE", "id": 4}), 2),
        (
            json!({"method": "SUBSCRIBE", "params": ["btcusdt@trade"], "id": [4]}),
            2,
        ),
        (json!({"method": "DANCE", "id": 4}), 1),
    ] {
        assert_eq!(send_text(&mut socket, request).await["error"]["code"], code);
    }
    socket.send(Message::text("{")).await.unwrap();
    let refused = answer(&mut socket).await;
    assert_eq!(
        (&refused["error"]["code"], &refused["id"]),
        (&json!(3), &Value::Null)
    );
}

#[tokio::test]
async fn streams_per_connection_are_limited() {
    let server = server(|s| s.futures_streams.streams_max = 2).await;
    let address = server.addresses.futures;
    let mut socket = connect(address, "/stream?streams=btcusdt@ticker").await;
    let two =
        json!({"method": "SUBSCRIBE", "params": ["btcusdt@ticker", "btcusdt@trade"], "id": 1});
    assert_eq!(send_text(&mut socket, two).await["result"], Value::Null);
    let third = json!({"method": "SUBSCRIBE", "params": ["btcusdt@depth"], "id": 2});
    assert_eq!(send_text(&mut socket, third).await["error"]["code"], 2);
    for path in [
        "/ws/a@b",
        "/stream?streams=btcusdt@ticker/btcusdt@trade/btcusdt@depth",
        "/x",
    ] {
        match connect_async(format!("ws://{address}{path}")).await {
            Err(Error::Http(response)) => assert!(response.status().is_client_error(), "{path}"),
            other => panic!("{path}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn the_sixth_message_in_a_second_ends_the_connection() {
    let server = server(|_| {}).await;
    for address in [server.addresses.spot, server.addresses.futures] {
        let mut socket = connect(address, "/ws").await;
        for id in 0..5 {
            let list = json!({"method": "LIST_SUBSCRIPTIONS", "id": id});
            assert_eq!(send_text(&mut socket, list).await["id"], id);
        }
        socket.send(Message::Ping("x".into())).await.unwrap();
        assert_eq!(close_code(&mut socket).await, CloseCode::Policy);
    }
}

#[tokio::test]
async fn a_flood_gets_a_reason_and_a_close_is_answered() {
    let server = server(|_| {}).await;
    let mut socket = connect(server.addresses.spot, "/ws").await;
    for _ in 0..200 {
        socket.feed(Message::text("{}")).await.unwrap();
    }
    socket.flush().await.unwrap();
    assert_eq!(close_code(&mut socket).await, CloseCode::Policy);
    let mut socket = connect(server.addresses.spot, "/ws").await;
    socket.close(None).await.unwrap();
    assert!(matches!(message(&mut socket).await, Message::Close(_)));
}

#[tokio::test]
async fn a_connection_that_answers_pings_lives_to_its_maximum_age() {
    let server = server(|s| {
        s.spot_streams.ping_every = Duration::from_millis(250);
        s.spot_streams.pong_within = Duration::from_millis(800);
        s.spot_streams.life = Duration::from_millis(2_500);
    })
    .await;
    let mut socket = connect(server.addresses.spot, "/ws").await;
    let mut pings = 0;
    let code = loop {
        match message(&mut socket).await {
            Message::Ping(_) => pings += 1,
            Message::Close(frame) => break frame.unwrap().code,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(code, CloseCode::Away);
    assert!(pings >= 4, "{pings}");
}

#[tokio::test]
async fn a_connection_that_does_not_answer_pings_is_closed() {
    let server = server(|s| {
        s.spot_streams.ping_every = Duration::from_millis(50);
        s.spot_streams.pong_within = Duration::from_millis(200);
    })
    .await;
    let address = server.addresses.spot;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let handshake = format!(
        "GET /ws HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(handshake.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let end = stream.read_to_end(&mut bytes);
    tokio::time::timeout(Duration::from_secs(20), end)
        .await
        .unwrap()
        .unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.starts_with("HTTP/1.1 101"), "{text}");
    assert!(text.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{text}");
    assert!(text.contains("Pong timeout"), "{text}");
}

/// A local book by docs/interface/market-data.md#joining-a-local-book, compared with the partial
/// book of the same update.
#[tokio::test]
async fn a_book_from_snapshot_and_differences_equals_the_venues() {
    let server = server(|_| {}).await;
    let addresses = server.addresses;
    for (address, prefix, futures) in [
        (addresses.spot, "/api/v3", false),
        (addresses.futures, "/fapi/v1", true),
    ] {
        let streams = "/stream?streams=btcusdt@depth@100ms/btcusdt@depth20@100ms";
        let mut socket = connect(address, streams).await;
        let first = text(&mut socket).await;
        let path = format!("{prefix}/depth?symbol=BTCUSDT&limit=1000");
        let snapshot = get(address, &path).await;
        let id = snapshot["lastUpdateId"].as_i64().unwrap();
        let mut book = [BTreeMap::new(), BTreeMap::new()];
        apply(&mut book, &snapshot["bids"], &snapshot["asks"]);
        let (mut last, mut compared) = (None, 0);
        let mut next = Some(first);
        while compared < 15 {
            let frame = match next.take() {
                Some(frame) => frame,
                None => text(&mut socket).await,
            };
            let data = &frame["data"];
            let number = |key: &str| data[key].as_i64().unwrap();
            if frame["stream"] == "btcusdt@depth@100ms" {
                let joins = match (futures, last) {
                    (true, None) if number("u") < id => continue,
                    (false, None) if number("u") <= id => continue,
                    (true, None) => number("U") <= id && id <= number("u"),
                    (false, None) => number("U") <= id + 1 && id < number("u"),
                    (true, Some(last)) => number("pu") == last,
                    (false, Some(last)) => number("U") == last + 1,
                };
                assert!(joins, "{frame} after {last:?}, snapshot {id}");
                last = Some(number("u"));
                apply(&mut book, &data["b"], &data["a"]);
            } else if last.is_some() {
                assert_eq!(data["u"].as_i64(), last);
                assert_eq!(best(&book[0], true), data["b"]);
                assert_eq!(best(&book[1], false), data["a"]);
                compared += 1;
            }
        }
    }
}

type Ladder = BTreeMap<i64, (String, String)>;

fn apply(book: &mut [Ladder; 2], bids: &Value, asks: &Value) {
    for (side, levels) in book.iter_mut().zip([bids, asks]) {
        for level in levels.as_array().unwrap() {
            let (price, qty) = (level[0].as_str().unwrap(), level[1].as_str().unwrap());
            let key = price.replace('.', "").parse().unwrap();
            if qty.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
                side.remove(&key);
            } else {
                side.insert(key, (price.to_owned(), qty.to_owned()));
            }
        }
    }
}

fn best(side: &Ladder, bids: bool) -> Value {
    let levels: Vec<_> = if bids {
        side.values().rev().take(20).collect()
    } else {
        side.values().take(20).collect()
    };
    json!(levels)
}

#[tokio::test]
async fn an_id_is_any_number_or_text_and_is_returned_unchanged() {
    let running = server(|_| ()).await;
    let mut socket = connect(running.addresses.spot, "/ws").await;
    for id in ["-3", "1.50", "18446744073709551616", "\"text\""] {
        let text = format!(r#"{{"method":"LIST_SUBSCRIPTIONS","id":{id}}}"#);
        socket.send(Message::text(text)).await.unwrap();
        let answer = message(&mut socket).await.into_text().unwrap();
        assert_eq!(answer.as_str(), format!(r#"{{"result":[],"id":{id}}}"#));
    }
    let mut socket = connect(running.addresses.spot, "/ws").await;
    for id in ["[1]", "{}", "true"] {
        let text = format!(r#"{{"method":"LIST_SUBSCRIPTIONS","id":{id}}}"#);
        socket.send(Message::text(text)).await.unwrap();
        let answer = message(&mut socket).await.into_text().unwrap();
        assert!(answer.starts_with(r#"{"error":{"code":2"#), "{answer}");
    }
}

#[tokio::test]
async fn a_websocket_counts_toward_the_connection_limit() {
    let running = server(|settings| settings.limits.connections = 1).await;
    let address = running.addresses.spot;
    let socket = connect(address, "/ws").await;
    let mut waiting = TcpStream::connect(address).await.unwrap();
    let request =
        format!("GET /api/v3/ping HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    waiting.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    let mut read = Box::pin(waiting.read_to_string(&mut response));
    let early = tokio::time::timeout(Duration::from_millis(300), &mut read).await;
    assert!(early.is_err(), "a response despite the limit");
    drop(socket);
    tokio::time::timeout(Duration::from_secs(10), read)
        .await
        .expect(
            "the closed WebSocket frees the only connection, so the waiting request must be \
             answered",
        )
        .unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}

#[tokio::test]
async fn incomplete_requests_and_idle_clients_do_not_block_a_port() {
    let ping = "GET /api/v3/ping HTTP/1.1\r\nHost: h\r\n";
    let half = "POST /api/v1/order HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nsymbol=";
    let idle = format!("{ping}\r\n");
    for (held, head_ms, body_ms) in [(half, 60_000, 100), (idle.as_str(), 100, 60_000)] {
        let running = server(|settings| {
            settings.limits.connections = 2;
            settings.head_within = Duration::from_millis(head_ms);
            settings.body_within = Duration::from_millis(body_ms);
        })
        .await;
        let address = running.addresses.spot;
        let mut kept = Vec::new();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(held.as_bytes()).await.unwrap();
            kept.push(stream);
        }
        let mut waiting = TcpStream::connect(address).await.unwrap();
        let request = format!("{ping}Connection: close\r\n\r\n");
        waiting.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        tokio::time::timeout(
            Duration::from_secs(20),
            waiting.read_to_string(&mut response),
        )
        .await
        .expect("an answer once the others are cut")
        .unwrap();
        assert!(response.starts_with("HTTP/1.1 200"), "{held}: {response}");
    }
}

#[tokio::test]
async fn earlier_requests_are_answered_before_a_close_with_its_reason() {
    let running = server(|_| ()).await;
    for address in [running.addresses.spot, running.addresses.futures] {
        for _ in 0..10 {
            let mut socket = connect(address, "/ws").await;
            for id in 1..=6 {
                let text = format!(r#"{{"method":"LIST_SUBSCRIPTIONS","id":{id}}}"#);
                socket.feed(Message::text(text)).await.unwrap();
            }
            socket.flush().await.unwrap();
            for id in 1..=5 {
                assert_eq!(text(&mut socket).await["id"], id);
            }
            let Message::Close(Some(frame)) = message(&mut socket).await else {
                panic!("expected a close frame");
            };
            assert_eq!(frame.code, CloseCode::Policy);
        }
        let mut socket = connect(address, "/ws").await;
        let long = "x".repeat(70_000);
        socket.send(Message::text(long)).await.unwrap();
        let Message::Close(Some(frame)) = message(&mut socket).await else {
            panic!("a close frame");
        };
        assert_eq!(frame.code, CloseCode::Size);
    }
}
