//! User streams: order and exact form of the events
//! (docs/interface/user-stream.md#order-of-events).

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::fixture::{Sent, Venue, fields};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn stream(venue: &Venue, path: &str) -> Socket {
    let sent = Sent {
        method: "POST",
        path,
        key: Some(venue.keys().api_key.as_str()),
        ..Sent::default()
    };
    let key = venue.send(sent).await.ok()["listenKey"]
        .as_str()
        .unwrap()
        .to_owned();
    let url = format!("ws://{}/ws/{key}", venue.address(path));
    connect_async(url).await.unwrap().0
}

async fn next(socket: &mut Socket) -> Value {
    loop {
        let message = tokio::time::timeout(Duration::from_secs(30), socket.next());
        match message.await.expect("an event in 30 s").unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Close(_) => panic!("closed"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_spot_fill_is_new_then_trade_then_balances() {
    let venue = Venue::new().await;
    let mut events = stream(&venue, "/api/v1/listenKey").await;
    let order = "symbol=BTCUSDT&side=SELL&type=MARKET&quantity=0.001&newClientOrderId=s1";
    venue.v1("POST", "/api/v1/order", order).await.ok();
    let new = next(&mut events).await;
    let keys = BTreeSet::from([
        "e", "E", "s", "c", "S", "o", "f", "q", "p", "ap", "P", "x", "X", "i", "l", "z", "L", "n",
        "N", "T", "t", "m", "ot", "O", "Z", "Y", "Q",
    ]);
    assert_eq!(fields(&new), keys);
    assert_eq!(
        (&new["e"], &new["x"], &new["c"]),
        (&"executionReport".into(), &"NEW".into(), &"s1".into())
    );
    let mut trade = next(&mut events).await;
    while trade["X"] == "PARTIALLY_FILLED" || trade["e"] == "outboundAccountPosition" {
        trade = next(&mut events).await;
    }
    assert_eq!(
        (&trade["x"], &trade["X"]),
        (&"TRADE".into(), &"FILLED".into())
    );
    let account = next(&mut events).await;
    assert_eq!(fields(&account), BTreeSet::from(["e", "E", "T", "m", "B"]));
    assert_eq!(fields(&account["B"][0]), BTreeSet::from(["a", "f", "l"]));
}

#[tokio::test]
async fn a_futures_fill_is_new_then_trade_then_account() {
    let venue = Venue::new().await;
    let mut events = stream(&venue, "/fapi/v1/listenKey").await;
    let order = "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=0.001";
    venue.v1("POST", "/fapi/v1/order", order).await.ok();
    let new = next(&mut events).await;
    let keys = BTreeSet::from([
        "s", "c", "S", "o", "f", "q", "p", "ap", "sp", "x", "X", "i", "l", "z", "L", "T", "t", "b",
        "a", "m", "R", "wt", "ot", "ps", "rp",
    ]);
    assert_eq!(fields(&new["o"]), keys, "no commission yet");
    let trade = next(&mut events).await;
    assert_eq!(trade["o"]["x"], "TRADE");
    let paid = keys
        .iter()
        .chain(&["N", "n"])
        .copied()
        .collect::<BTreeSet<_>>();
    assert_eq!(fields(&trade["o"]), paid);
    let account = next(&mut events).await;
    assert_eq!(
        (&account["e"], &account["a"]["m"]),
        (&"ACCOUNT_UPDATE".into(), &"ORDER".into())
    );
    assert_eq!(
        fields(&account["a"]["B"][0]),
        BTreeSet::from(["a", "wb", "cw", "bc"])
    );
    let position = BTreeSet::from(["s", "pa", "ep", "cr", "up", "mt", "iw", "ps"]);
    assert_eq!(fields(&account["a"]["P"][0]), position);
}

#[tokio::test]
async fn the_event_new_has_its_own_order_and_the_activation_price() {
    let venue = Venue::new().await;
    let mut events = stream(&venue, "/fapi/v1/listenKey").await;
    let order = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=50000";
    venue.v1("POST", "/fapi/v1/order", order).await.ok();
    let new = next(&mut events).await;
    assert!(new["o"].get("cp").is_none(), "not a conditional order");
    assert_eq!(new["o"]["x"], "NEW");
    assert_eq!(
        (&new["o"]["b"], &new["o"]["a"]),
        (&"500".into(), &"0".into())
    );
    let trailing =
        "symbol=BTCUSDT&side=SELL&type=TRAILING_STOP_MARKET&quantity=0.01&callbackRate=1.5";
    let placed = venue.v1("POST", "/fapi/v1/order", trailing).await.ok();
    let new = next(&mut events).await;
    assert_eq!(
        (&new["o"]["x"], &new["o"]["i"]),
        (&"NEW".into(), &placed["orderId"])
    );
    let activation: f64 = new["o"]["AP"].as_str().unwrap().parse().unwrap();
    assert!(activation > 0.0, "{new}");
}

#[tokio::test]
async fn changes_of_settings_are_reported() {
    let venue = Venue::new().await;
    let mut events = stream(&venue, "/fapi/v1/listenKey").await;
    venue
        .v1("POST", "/fapi/v1/leverage", "symbol=BTCUSDT&leverage=9")
        .await
        .ok();
    let leverage = next(&mut events).await;
    assert_eq!(
        (&leverage["e"], &leverage["ac"]["l"]),
        (&"ACCOUNT_CONFIG_UPDATE".into(), &9.into())
    );
    venue
        .v1(
            "POST",
            "/fapi/v1/positionSide/dual",
            "dualSidePosition=true",
        )
        .await
        .ok();
    let mode = next(&mut events).await;
    assert_eq!(
        (&mode["ai"]["d"], &mode["ai"]["j"]),
        (&true.into(), &false.into())
    );
}

#[tokio::test]
async fn post_repeats_the_key_and_delete_closes_its_streams() {
    let venue = Venue::new().await;
    let key = Some(venue.keys().api_key.as_str());
    let ask = async |method: &str, query: &str| {
        let sent = Sent {
            method,
            path: "/api/v1/listenKey",
            query: query.to_owned(),
            key,
            ..Sent::default()
        };
        venue.send(sent).await
    };
    let mut events = stream(&venue, "/api/v1/listenKey").await;
    let first = ask("POST", "").await.ok();
    assert_eq!(first, ask("POST", "").await.ok());
    let own = format!("listenKey={}", first["listenKey"].as_str().unwrap());
    assert_eq!(ask("PUT", &own).await.ok(), serde_json::json!({}));
    assert_eq!(ask("PUT", "").await.refusal(), (400, -1102));
    assert_eq!(ask("PUT", "listenKey=x").await.refusal(), (400, -1125));
    ask("DELETE", &own).await.ok();
    let end = tokio::time::timeout(Duration::from_secs(30), async {
        while let Some(Ok(message)) = events.next().await {
            if message.is_close() {
                return;
            }
        }
    });
    end.await.expect("the stream ends");
    assert_eq!(ask("PUT", &own).await.refusal(), (400, -1125));
    assert_ne!(first, ask("POST", "").await.ok());
}

#[tokio::test]
async fn a_spot_order_refused_by_the_engine_is_rejected() {
    let venue = Venue::new().await;
    let mut events = stream(&venue, "/api/v1/listenKey").await;
    let order = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&price=50000";
    // The request is refused before the matching engine, so no event is sent.
    let bad = venue
        .v1("POST", "/api/v1/order", &format!("{order}&quantity=0"))
        .await;
    assert_eq!(bad.refusal(), (400, -4003));
    let dear = format!("{order}&quantity=9&newClientOrderId=dear");
    let refused = venue.v1("POST", "/api/v1/order", &dear).await;
    assert_eq!(refused.refusal(), (400, -2018));
    let event = next(&mut events).await;
    assert_eq!(event["e"], "executionReport");
    for (key, word) in [("x", "REJECTED"), ("X", "REJECTED"), ("c", "dear")] {
        assert_eq!(event[key], word, "{event}");
    }
    let id = event["i"].as_i64().unwrap();
    let query = format!("symbol=BTCUSDT&orderId={id}");
    let unknown = venue.v1("GET", "/api/v1/order", &query).await;
    assert_eq!(unknown.refusal(), (400, -2013));
    // The next order has a new id. An order with a client order id that is already used causes no
    // event.
    let good = format!("{order}&quantity=0.01&newClientOrderId=dear");
    let placed = venue.v1("POST", "/api/v1/order", &good).await.ok();
    assert!(placed["orderId"].as_i64().unwrap() > id, "{placed}");
    let twice = venue.v1("POST", "/api/v1/order", &good).await;
    assert_eq!(twice.refusal(), (400, -2010));
    let cancel = "symbol=BTCUSDT&origClientOrderId=dear";
    venue.v1("DELETE", "/api/v1/order", cancel).await.ok();
    let mut statuses = Vec::new();
    while statuses.last() != Some(&"CANCELED".to_owned()) {
        let event = next(&mut events).await;
        if event["e"] == "executionReport" {
            statuses.push(event["x"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(statuses, ["NEW", "CANCELED"]);
}

#[tokio::test]
async fn a_fill_has_the_same_trade_id_everywhere() {
    let venue = Venue::new().await;
    for (prefix, public) in [("/api/v1", "/api/v3"), ("/fapi/v1", "/fapi/v1")] {
        let mut events = stream(&venue, &format!("{prefix}/listenKey")).await;
        let order = "symbol=BTCUSDT&side=SELL&type=MARKET&quantity=0.001";
        let path = format!("{prefix}/order");
        venue.v1("POST", &path, order).await.ok();
        let fill = loop {
            let event = next(&mut events).await;
            let order = event.get("o").filter(|o| o.is_object()).unwrap_or(&event);
            if order["x"] == "TRADE" {
                break order.clone();
            }
        };
        let path = format!("{prefix}/userTrades");
        let own = venue.v1("GET", &path, "symbol=BTCUSDT").await.ok();
        assert_eq!(own[0]["id"], fill["t"]);
        let tape = Sent {
            method: "GET",
            path: &format!("{public}/trades"),
            query: "symbol=BTCUSDT&limit=1000".to_owned(),
            ..Sent::default()
        };
        let tape = venue.send(tape).await.ok();
        let trade = tape.as_array().unwrap().iter();
        let trade = trade.clone().find(|trade| trade["id"] == fill["t"]);
        let trade = trade.expect("the fill is on the tape");
        let number = |value: &Value| value.as_str().unwrap().parse::<f64>().unwrap();
        assert!((number(&trade["price"]) - number(&fill["L"])).abs() < 1e-9);
        assert!((number(&trade["qty"]) - number(&fill["l"])).abs() < 1e-9);
        assert_eq!(trade["isBuyerMaker"], true);
        assert_eq!(trade["time"], fill["T"]);
    }
}
