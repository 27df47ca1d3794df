//! Streams with a WebSocket server that each test controls. Only the stream itself waits for time
//! to pass, and its times are milliseconds here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

mod common;

use std::time::Duration;

use common::{Scripted, Step, answer};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};
use windvane_client::streams::{
    GapReason, MarketStream, Obstacle, StreamItem, StreamStartError, UserStream,
};
use windvane_client::{Client, MarketData, NotDone, Settings};
use windvane_protocol::BookLevels;
use windvane_protocol::market_stream::{Feed, MarketStreamEvent, Topic};
use windvane_protocol::route::Surface;
use windvane_protocol::user_stream::UserStreamEvent;

/// Fails instead of waiting forever.
async fn within<F: Future>(future: F) -> F::Output {
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, future).await.expect("in time")
}

/// One accepted WebSocket. It answers PINGs as long as the test reads it.
struct Peer {
    path: String,
    socket: WebSocketStream<TcpStream>,
}

impl Peer {
    async fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    async fn text(&mut self) -> String {
        loop {
            let message = within(self.socket.next()).await.unwrap().unwrap();
            if let Message::Text(text) = message {
                return text.to_string();
            }
        }
    }
}

/// A server that passes its accepted sockets to the test.
async fn sockets() -> (String, mpsc::UnboundedReceiver<Peer>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("ws://{}", listener.local_addr().unwrap());
    let (peers, accepted) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut path = String::new();
            #[expect(clippy::result_large_err, reason = "the library's signature")]
            let note = |request: &Request, response: Response| {
                path = request.uri().to_string();
                Ok(response)
            };
            let Ok(socket) = accept_hdr_async(stream, note).await else {
                continue;
            };
            if peers.send(Peer { path, socket }).is_err() {
                return;
            }
        }
    });
    (address, accepted)
}

fn settings(rest: &Scripted, ws: &str) -> Settings {
    let mut settings = rest.settings();
    for surface in [Surface::Spot, Surface::Futures] {
        settings.addresses = settings.addresses.ws(surface, ws).unwrap();
    }
    settings.streams.backoff = (Duration::from_millis(1), Duration::from_millis(2));
    settings
}

fn key(key: &str) -> Step {
    answer(200, "", &format!("{{\"listenKey\":\"{key}\"}}"))
}

/// The next item that is not only a status.
async fn user(stream: &mut UserStream) -> StreamItem<UserStreamEvent> {
    loop {
        match within(stream.next()).await.unwrap() {
            StreamItem::Alive { .. } | StreamItem::Failed { .. } => {}
            item => return item,
        }
    }
}

async fn market(stream: &mut MarketStream) -> StreamItem<String> {
    loop {
        match within(stream.next()).await.unwrap() {
            StreamItem::Alive { .. } | StreamItem::Failed { .. } => {}
            StreamItem::Event(frame) => return StreamItem::Event(frame.text().to_owned()),
            StreamItem::Connected { connection } => return StreamItem::Connected { connection },
            StreamItem::Gap { connection, reason } => {
                return StreamItem::Gap { connection, reason };
            }
            StreamItem::Unreadable { text, error, .. } => panic!("{error}: {text}"),
        }
    }
}

/// The duration for which the client's requests stop, as soon as they do.
async fn stopped(client: &Client) -> Duration {
    loop {
        match client.stopped_for(Surface::Spot) {
            Some(stop) => return stop,
            None => tokio::task::yield_now().await,
        }
    }
}

const BALANCES: &str = r#"{"e":"outboundAccountPosition","E":5,"T":5,"m":"ORDER","B":[]}"#;

/// The limit of a message's length does not see them: an empty fragment adds nothing to it.
#[tokio::test]
async fn a_stream_of_endless_empty_fragments_is_ended() {
    let rest = Scripted::start(vec![key("one"), key("one")]).await;
    let (ws, mut accepted) = sockets().await;
    let client = Client::new(settings(&rest, &ws)).unwrap();
    let mut stream = client.user_stream(Surface::Spot).unwrap();
    for _ in 0..2 {
        let peer = within(accepted.recv()).await.unwrap();
        assert_eq!(
            user(&mut stream).await,
            StreamItem::Connected { connection: 0 }
        );
        let mut venue = peer.socket.into_inner();
        venue.write_all(b"\x01\x01[").await.unwrap();
        let flood = async { while venue.write_all(&[0; 4_096]).await.is_ok() {} };
        within(flood).await;
        let reason = GapReason::Closed;
        let gap = StreamItem::Gap {
            connection: 0,
            reason,
        };
        assert_eq!(user(&mut stream).await, gap);
    }
}

#[tokio::test]
async fn pings_of_a_venue_that_reads_no_answer_do_not_fill_the_memory() {
    const PINGS: usize = 400_000;
    let rest = Scripted::start(vec![key("one"), key("one")]).await;
    let (ws, mut accepted) = sockets().await;
    let client = Client::new(settings(&rest, &ws)).unwrap();
    let _stream = client.user_stream(Surface::Spot).unwrap();
    let peer = within(accepted.recv()).await.unwrap();
    let (mut reads, mut writes) = peer.socket.into_inner().into_split();
    // A PING of 100 bytes. The answer has 6 bytes more, with its mask.
    let mut ping = [0x89, 100].to_vec();
    ping.extend([b'p'; 100]);
    let pings = ping.repeat(100);
    for _ in 0..PINGS / 100 {
        if writes.write_all(&pings).await.is_err() {
            break;
        }
    }
    writes.shutdown().await.unwrap();
    let mut answers = 0;
    let mut bytes = vec![0; 1 << 16];
    while let Ok(read @ 1..) = within(reads.read(&mut bytes)).await {
        answers += read / 106;
    }
    // What the buffers of the system and of the client hold, not one for each PING.
    assert!(answers < PINGS / 2, "{answers}");
}

#[tokio::test]
async fn a_user_stream_comes_back_after_its_connection_broke() {
    let rest = Scripted::start(vec![key("one"), key("one")]).await;
    let (ws, mut accepted) = sockets().await;
    let client = Client::new(settings(&rest, &ws)).unwrap();
    let mut stream = client.user_stream(Surface::Spot).unwrap();
    for _ in 0..2 {
        let mut peer = within(accepted.recv()).await.unwrap();
        assert_eq!(peer.path, "/ws/one");
        assert_eq!(
            user(&mut stream).await,
            StreamItem::Connected { connection: 0 }
        );
        peer.send(BALANCES).await;
        let StreamItem::Event(event) = user(&mut stream).await else {
            panic!("no event")
        };
        assert!(matches!(event, UserStreamEvent::OutboundAccountPosition(_)));
        drop(peer);
        let reason = GapReason::Closed;
        let gap = StreamItem::Gap {
            connection: 0,
            reason,
        };
        assert_eq!(user(&mut stream).await, gap);
    }
    let received = rest.requests();
    assert!(received[0].starts_with("POST /api/v1/listenKey HTTP/1.1\r\n"));
    assert_eq!(received[0].matches("content-length: 0\r\n").count(), 1);
}

#[tokio::test]
async fn a_message_over_the_limit_ends_the_connection() {
    let rest = Scripted::start(vec![key("one"), key("one")]).await;
    let (ws, mut accepted) = sockets().await;
    let client = Client::new(settings(&rest, &ws)).unwrap();
    let mut stream = client.user_stream(Surface::Spot).unwrap();
    let mut peer = within(accepted.recv()).await.unwrap();
    let connected = StreamItem::Connected { connection: 0 };
    assert_eq!(user(&mut stream).await, connected);
    let long = BALANCES.replace("[]", &format!("[{}]", " ".repeat(9 << 20)));
    // The client closes the connection before it has read all of it.
    let _ = peer.socket.send(Message::text(long)).await;
    let gap = StreamItem::Gap {
        connection: 0,
        reason: GapReason::Closed,
    };
    assert_eq!(user(&mut stream).await, gap);
    let _peer = within(accepted.recv()).await.unwrap();
    assert_eq!(user(&mut stream).await, connected);
}

#[tokio::test]
async fn an_expired_key_is_replaced() {
    let rest = Scripted::start(vec![key("one"), key("two")]).await;
    let (ws, mut accepted) = sockets().await;
    let client = Client::new(settings(&rest, &ws)).unwrap();
    let mut stream = client.user_stream(Surface::Futures).unwrap();
    let mut peer = within(accepted.recv()).await.unwrap();
    assert_eq!(
        user(&mut stream).await,
        StreamItem::Connected { connection: 0 }
    );
    peer.send(r#"{"e":"listenKeyExpired","E":7}"#).await;
    let StreamItem::Event(UserStreamEvent::ListenKeyExpired(_)) = user(&mut stream).await else {
        panic!("no event")
    };
    let reason = GapReason::KeyExpired;
    let gap = StreamItem::Gap {
        connection: 0,
        reason,
    };
    assert_eq!(user(&mut stream).await, gap);
    assert_eq!(within(accepted.recv()).await.unwrap().path, "/ws/two");
    assert_eq!(
        user(&mut stream).await,
        StreamItem::Connected { connection: 0 }
    );
}

#[tokio::test]
async fn a_key_may_have_any_characters() {
    let rest = Scripted::start(vec![key("a/b?c=%+d é")]).await;
    let (ws, mut accepted) = sockets().await;
    let client = Client::new(settings(&rest, &ws)).unwrap();
    let _stream = client.user_stream(Surface::Spot).unwrap();
    let path = within(accepted.recv()).await.unwrap().path;
    assert_eq!(path, "/ws/a%2Fb%3Fc%3D%25%2Bd%20%C3%A9");
}

#[tokio::test]
async fn a_refused_key_is_reported_with_the_refusal() {
    let refused = answer(401, "", r#"{"code":-2015,"msg":"Invalid API-key."}"#);
    let rest = Scripted::start(vec![key("one"), refused]).await;
    let (ws, mut accepted) = sockets().await;
    let client = Client::new(settings(&rest, &ws)).unwrap();
    let mut stream = client.user_stream(Surface::Spot).unwrap();
    drop(within(accepted.recv()).await.unwrap());
    let why = loop {
        if let StreamItem::Failed { why, .. } = within(stream.next()).await.unwrap() {
            break why;
        }
    };
    let Obstacle::NoKey(NotDone::Refused(refusal)) = &why else {
        panic!("{why}")
    };
    assert_eq!(refusal.code(), Some(-2015));
}

#[tokio::test]
async fn a_connection_that_ends_at_the_subscription_is_reported() {
    let rest = Scripted::start(Vec::new()).await;
    let (ws, mut accepted) = sockets().await;
    let client = Client::new(settings(&rest, &ws)).unwrap();
    let topics = [Topic::of("BTCUSDT", Feed::TradePro)];
    let mut stream = client.market_stream(Surface::Spot, &topics).unwrap();
    drop(within(accepted.recv()).await.unwrap());
    let item = within(stream.next()).await.unwrap();
    let why = Obstacle::NotSubscribed(GapReason::Closed);
    assert_eq!(item, StreamItem::Failed { connection: 0, why });
}

#[tokio::test]
async fn a_repeated_expiry_event_makes_one_new_key() {
    let steps = vec![key("one"), key("two"), key("three")];
    let rest = Scripted::start(steps).await;
    let (ws, mut accepted) = sockets().await;
    let client = Client::new(settings(&rest, &ws)).unwrap();
    let mut stream = client.user_stream(Surface::Spot).unwrap();
    let mut peer = within(accepted.recv()).await.unwrap();
    user(&mut stream).await;
    let expired = r#"{"e":"listenKeyExpired","E":7}"#;
    for _ in 0..2 {
        peer.socket.feed(Message::text(expired)).await.unwrap();
    }
    peer.socket.flush().await.unwrap();
    let mut next = within(accepted.recv()).await.unwrap();
    assert_eq!(next.path, "/ws/two");
    next.send(BALANCES).await;
    let mut gaps = 0;
    loop {
        match user(&mut stream).await {
            StreamItem::Gap { .. } => gaps += 1,
            StreamItem::Event(UserStreamEvent::OutboundAccountPosition(_)) => break,
            _ => {}
        }
    }
    assert_eq!((gaps, rest.requests().len()), (1, 2));
}

#[tokio::test]
async fn a_key_is_renewed_while_the_stream_runs() {
    let steps = vec![key("one"), answer(200, "", "{}"), answer(200, "", "{}")];
    let rest = Scripted::start(steps).await;
    let (ws, mut accepted) = sockets().await;
    let mut settings = settings(&rest, &ws);
    settings.streams.renew_every = Duration::from_millis(20);
    let client = Client::new(settings).unwrap();
    let _stream = client.user_stream(Surface::Spot).unwrap();
    let _peer = within(accepted.recv()).await.unwrap();
    let renewed = async {
        while rest.requests().len() < 3 {
            tokio::task::yield_now().await;
        }
    };
    within(renewed).await;
    let renewal = &rest.requests()[2];
    assert!(
        renewal.starts_with("PUT /api/v1/listenKey HTTP/1.1\r\n"),
        "{renewal}"
    );
    assert!(renewal.ends_with("\r\n\r\nlistenKey=one"), "{renewal}");
}

#[tokio::test]
async fn an_unreadable_frame_is_reported() {
    let rest = Scripted::start(vec![key("one")]).await;
    let (ws, mut accepted) = sockets().await;
    let client = Client::new(settings(&rest, &ws)).unwrap();
    let mut stream = client.user_stream(Surface::Spot).unwrap();
    let mut peer = within(accepted.recv()).await.unwrap();
    assert_eq!(
        user(&mut stream).await,
        StreamItem::Connected { connection: 0 }
    );
    for garbage in ["<html>", r#"{"e":"executionReport"}"#] {
        peer.send(garbage).await;
        let StreamItem::Unreadable { text, .. } = user(&mut stream).await else {
            panic!("read")
        };
        assert_eq!(text, garbage);
    }
}

#[tokio::test]
async fn a_venue_that_does_not_answer_pings_is_left() {
    let rest = Scripted::start(Vec::new()).await;
    let (ws, mut accepted) = sockets().await;
    let mut settings = settings(&rest, &ws);
    settings.streams.ping_every = Duration::from_millis(20);
    settings.streams.pong_within = Duration::from_millis(60);
    let client = Client::new(settings).unwrap();
    let topics = [Topic::of("BTCUSDT", Feed::TradePro)];
    let mut stream = client.market_stream(Surface::Spot, &topics).unwrap();
    let mut peer = within(accepted.recv()).await.unwrap();
    assert_eq!(peer.path, "/stream");
    peer.text().await;
    peer.send(r#"{"result":null,"id":1}"#).await;
    assert!(matches!(market(&mut stream).await, StreamItem::Event(_)));
    assert_eq!(
        market(&mut stream).await,
        StreamItem::Connected { connection: 0 }
    );
    // From here on nothing reads the socket, so nothing answers the pings.
    let reason = GapReason::NoPong;
    let gap = StreamItem::Gap {
        connection: 0,
        reason,
    };
    assert_eq!(market(&mut stream).await, gap);
}

#[tokio::test]
async fn topics_are_split_over_connections_and_subscribed_first() {
    let rest = Scripted::start(Vec::new()).await;
    let (ws, mut accepted) = sockets().await;
    let client = Client::new(settings(&rest, &ws)).unwrap();
    let topics: Vec<Topic> = (0..201)
        .map(|at| Topic::of(&format!("A{at}USDT"), Feed::TradePro))
        .collect();
    let mut stream = client.market_stream(Surface::Futures, &topics).unwrap();
    assert_eq!(stream.connections(), 2);
    let mut subscribed = 0;
    for _ in 0..2 {
        let mut peer = within(accepted.recv()).await.unwrap();
        let first = peer.text().await;
        subscribed += first.matches("@tradepro").count();
        if first.contains("\"a0usdt@tradepro\"") {
            let second = peer.text().await;
            subscribed += second.matches("@tradepro").count();
            peer.send(r#"{"result":null,"id":1}"#).await;
            peer.send(r#"{"result":null,"id":2}"#).await;
        } else {
            peer.send(r#"{"result":null,"id":1}"#).await;
        }
        while !matches!(market(&mut stream).await, StreamItem::Connected { .. }) {}
    }
    assert_eq!(subscribed, 201);
}

#[tokio::test]
async fn the_setting_limits_the_topics_of_a_connection() {
    let rest = Scripted::start(Vec::new()).await;
    let (ws, _accepted) = sockets().await;
    let topics: Vec<Topic> = (0..401)
        .map(|at| Topic::of(&format!("A{at}USDT"), Feed::TradePro))
        .collect();
    for (most, connections) in [(1_024, 1), (200, 3)] {
        let mut settings = settings(&rest, &ws);
        settings.streams.spot_streams_max = most;
        let client = Client::new(settings).unwrap();
        let stream = client.market_stream(Surface::Spot, &topics).unwrap();
        assert_eq!(stream.connections(), connections);
    }
}

#[tokio::test]
async fn a_connection_is_replaced_without_loss_or_duplicates() {
    let rest = Scripted::start(Vec::new()).await;
    let (ws, mut accepted) = sockets().await;
    let mut settings = settings(&rest, &ws);
    settings.streams.age_max = Duration::from_millis(40);
    settings.streams.overlap = Duration::from_millis(100);
    let client = Client::new(settings).unwrap();
    let topics = [Topic::of("BTCUSDT", Feed::TradePro)];
    let mut stream = client.market_stream(Surface::Spot, &topics).unwrap();

    // Every number goes to every connection. The next number follows when the client has received
    // the previous one.
    let (numbers, mut to_send) = mpsc::unbounded_channel::<u32>();
    let (joined, mut joins) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut peers: Vec<Peer> = Vec::new();
        loop {
            tokio::select! {
                Some(mut peer) = accepted.recv() => {
                    peer.text().await;
                    peer.send(r#"{"result":null,"id":1}"#).await;
                    peers.push(peer);
                    let _ = joined.send(());
                }
                Some(number) = to_send.recv() => for peer in &mut peers {
                    // Sending fails for connections that the client has closed.
                    let _ = peer.socket.send(Message::text(format!("{{\"n\":{number}}}"))).await;
                },
                else => return,
            }
        }
    });
    let (mut expected, mut connections) = (0, 0);
    numbers.send(0).unwrap();
    within(joins.recv()).await.unwrap();
    numbers.send(0).unwrap();
    while connections < 3 {
        match market(&mut stream).await {
            StreamItem::Event(text) if text.starts_with("{\"n\"") => {
                assert_eq!(text, format!("{{\"n\":{expected}}}"));
                expected += 1;
                numbers.send(expected).unwrap();
            }
            StreamItem::Gap { reason, .. } => panic!("gap: {reason:?}"),
            _ => {}
        }
        while joins.try_recv().is_ok() {
            connections += 1;
        }
    }
    assert!(expected > 10);
}

#[tokio::test]
async fn documented_market_data_allows_only_tradepro() {
    let rest = Scripted::start(Vec::new()).await;
    let (ws, _accepted) = sockets().await;
    let mut settings = settings(&rest, &ws);
    settings.market_data = MarketData::Documented;
    let client = Client::new(settings).unwrap();
    let topics = [Topic::of("BTCUSDT", Feed::BookTicker)];
    let refused = client.market_stream(Surface::Spot, &topics).unwrap_err();
    assert!(
        matches!(refused, StreamStartError::NotDocumented(_)),
        "{refused}"
    );
    assert!(client.market_stream(Surface::Spot, &[]).is_err());
    assert!(client.user_stream(Surface::Chain).is_err());
    let topics = [Topic::of("BTCUSDT", Feed::TradePro)];
    assert!(client.market_stream(Surface::Spot, &topics).is_ok());
}

#[tokio::test]
async fn frames_are_decoded_on_demand() {
    let rest = Scripted::start(Vec::new()).await;
    let (ws, mut accepted) = sockets().await;
    let client = Client::new(settings(&rest, &ws)).unwrap();
    let topics = [Topic::of("BTCUSDT", Feed::TradePro)];
    let mut stream = client.market_stream(Surface::Spot, &topics).unwrap();
    let mut peer = within(accepted.recv()).await.unwrap();
    peer.send(
        r#"{"stream":"btcusdt@tradepro","data":{"e":"tradepro","E":2,"T":1,"s":"BTCUSDT","t":9,
        "p":"60000.1","q":"0.5","h":"0xab","m":["hidden","0x01"]}}"#,
    )
    .await;
    let StreamItem::Event(frame) = within(stream.next()).await.unwrap() else {
        panic!("no event")
    };
    let mut levels = BookLevels::default();
    let decoded = frame.decode(&mut levels).unwrap();
    assert!(matches!(decoded.event, MarketStreamEvent::TradePro(_)));
}

#[tokio::test]
async fn a_ban_at_a_handshake_stops_requests_too() {
    // The WebSocket address of this venue answers like its REST address: 418.
    let banned = answer(418, "Retry-After: 600\r\n", "");
    let rest = Scripted::start(vec![banned]).await;
    let ws = format!("ws://{}", rest.address);
    let client = Client::new(settings(&rest, &ws)).unwrap();
    let topics = [Topic::of("BTCUSDT", Feed::TradePro)];
    let _stream = client.market_stream(Surface::Spot, &topics).unwrap();
    let stop = within(stopped(&client)).await;
    assert!(stop > Duration::from_secs(590), "{stop:?}");
    assert_eq!(rest.requests().len(), 1);
}

#[tokio::test]
async fn a_limit_at_a_handshake_stops_requests_as_long() {
    for (status, seconds) in [(429, 60), (418, 120)] {
        let rest = Scripted::start(vec![answer(status, "", "")]).await;
        let ws = format!("ws://{}", rest.address);
        let client = Client::new(settings(&rest, &ws)).unwrap();
        let topics = [Topic::of("BTCUSDT", Feed::TradePro)];
        let _stream = client.market_stream(Surface::Spot, &topics).unwrap();
        let stop = within(stopped(&client)).await;
        let most = Duration::from_secs(seconds);
        assert!(most / 2 < stop && stop <= most, "{status}: {stop:?}");
    }
}

#[tokio::test]
async fn a_tls_stream_to_a_plain_server_is_retried_with_pauses() {
    let rest = Scripted::start(Vec::new()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ws = format!("wss://{}", listener.local_addr().unwrap());
    let client = Client::new(settings(&rest, &ws)).unwrap();
    let topics = [Topic::of("BTCUSDT", Feed::TradePro)];
    let _stream = client.market_stream(Surface::Spot, &topics).unwrap();
    for _ in 0..3 {
        // The connection is accepted and dropped before the handshake is over.
        drop(within(listener.accept()).await.unwrap());
    }
}
