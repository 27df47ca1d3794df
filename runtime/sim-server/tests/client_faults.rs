//! This project's client against a venue with active fault switches. Each outcome has the right
//! kind, and one query resolves an unknown outcome.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

#[path = "common/http.rs"]
mod http;
#[path = "common/keys.rs"]
mod keys;
#[path = "common/own_client.rs"]
mod own_client;

use std::time::Duration;

use keys::credentials;
use own_client::settings;
use windvane_client::streams::{GapReason, StreamItem, UserStream};
use windvane_client::{Client, Outcome, Settings as ClientSettings, UnknownReason, WaitReason};
use windvane_protocol::Brand;
use windvane_protocol::route::Surface;
use windvane_protocol::user_stream::UserStreamEvent;
use windvane_protocol::wire::enums::{OrderType, Side, TimeInForce};
use windvane_protocol::wire::futures;
use windvane_sim_server::{Running, Settings, start};

struct Bench {
    running: Running,
    client: Client,
}

impl Bench {
    async fn start(change: impl FnOnce(&mut ClientSettings)) -> Self {
        let running = start(Settings::default()).await.unwrap();
        let credentials = credentials(&running.accounts[0]);
        let mut settings = settings(&running, Brand::new("svc").unwrap(), credentials);
        settings.timeouts.request = Duration::from_secs(2);
        settings.streams.backoff = (Duration::from_millis(1), Duration::from_millis(50));
        change(&mut settings);
        let client = Client::new(settings).unwrap();
        Self { running, client }
    }

    /// Sends a request to the control port.
    async fn control(&self, path: &str, body: &str) {
        http::succeed(self.running.addresses.control, "POST", path, body).await;
    }

    async fn place(&self, id: &str) -> Outcome<futures::Order> {
        let order = futures::NewOrder::new("BTCUSDT", Side::Buy, OrderType::Limit)
            .time_in_force(TimeInForce::Gtc)
            .quantity(rust_decimal::Decimal::new(1, 2))
            .price(self.price().await)
            .client_order_id(id);
        self.client.futures().new_order(&order).await
    }

    async fn price(&self) -> rust_decimal::Decimal {
        let depth = futures::GetDepth::new("BTCUSDT").limit(5);
        let depth = self.client.futures().depth(&depth).await.done().unwrap();
        let resting = depth.bids[0].price.0 * rust_decimal::Decimal::new(98, 2);
        resting.trunc()
    }

    async fn is_there(&self, id: &str) -> bool {
        let query = futures::QueryOrder::new("BTCUSDT").client_order_id(id);
        match self.client.futures().query_order(&query).await {
            Outcome::Done(order) => order.client_order_id == id,
            Outcome::Refused(refusal) => {
                assert_eq!(refusal.code(), Some(-2013), "{refusal}");
                false
            }
            other => panic!("{other:?}"),
        }
    }

    async fn user_stream(&self) -> UserStream {
        let mut stream = self.client.user_stream(Surface::Futures).unwrap();
        let item = next(&mut stream).await;
        assert_eq!(item, StreamItem::Connected { connection: 0 });
        stream
    }
}

async fn next(stream: &mut UserStream) -> StreamItem<UserStreamEvent> {
    loop {
        let item = tokio::time::timeout(Duration::from_secs(30), stream.next());
        match item.await.expect("an item in 30 s").unwrap() {
            StreamItem::Alive { .. } | StreamItem::Failed { .. } => {}
            item => return item,
        }
    }
}

#[tokio::test]
async fn unknown_orders_are_settled_by_their_client_order_id() {
    let bench = Bench::start(|_| {}).await;
    for (at, how) in ["503", "-1006", "-1007", "cut", "half_open"]
        .into_iter()
        .enumerate()
    {
        for accepted in [true, false] {
            let fault = format!(
                r#"{{"fault":"unknown","how":"{how}","accepted":{accepted},"route":"futures.new_order","count":1}}"#
            );
            bench.control("/faults", &fault).await;
            let id = format!("doubt:{at}{accepted}");
            let outcome = bench.place(&id).await;
            assert!(matches!(outcome, Outcome::Unknown(_)), "{how}: {outcome:?}");
            assert_eq!(bench.is_there(&id).await, accepted, "{how}");
        }
    }
}

#[tokio::test]
async fn invalid_responses_leave_an_order_unknown() {
    let bench = Bench::start(|_| {}).await;
    for (fault, id) in [
        (r#""fault":"html","status":502,"accepted":true"#, "html:1"),
        (r#""fault":"truncate""#, "half:1"),
        (r#""fault":"empty""#, "none:1"),
    ] {
        let fault = format!(r#"{{{fault},"route":"futures.new_order","count":1}}"#);
        bench.control("/faults", &fault).await;
        let outcome = bench.place(id).await;
        assert!(matches!(outcome, Outcome::Unknown(_)), "{id}: {outcome:?}");
        assert!(bench.is_there(id).await, "{id}");
    }
    let fault = r#"{"fault":"empty","route":"futures.cancel_all_orders","count":1}"#;
    bench.control("/faults", fault).await;
    let cancel = futures::CancelAllOrders::new("BTCUSDT");
    let outcome = bench.client.futures().cancel_all_orders(&cancel).await;
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
}

#[tokio::test]
async fn reads_never_have_an_unknown_outcome() {
    let bench = Bench::start(|_| {}).await;
    for how in ["503", "-1007", "cut", "half_open"] {
        let fault = format!(
            r#"{{"fault":"unknown","how":"{how}","accepted":true,"route":"futures.open_orders","count":1}}"#
        );
        bench.control("/faults", &fault).await;
        let orders = futures::OpenOrders::new().symbol("BTCUSDT");
        let outcome = bench.client.futures().open_orders(&orders).await;
        assert!(matches!(outcome, Outcome::Wait(_)), "{how}: {outcome:?}");
    }
}

#[tokio::test]
async fn the_client_obeys_limits() {
    let bench = Bench::start(|_| {}).await;
    let limit = r#"{"fault":"refuse","status":429,"code":-1015,"msg":"Too many new orders.","route":"futures.new_order","count":1}"#;
    bench.control("/faults", limit).await;
    assert!(matches!(bench.place("limit:1").await, Outcome::Wait(_)));
    // The order limit stops orders in the client, but queries still pass.
    let Outcome::Wait(wait) = bench.place("limit:2").await else {
        panic!("the client must wait")
    };
    assert!(matches!(wait.why, WaitReason::Budget(_)), "{wait}");
    assert!(!bench.is_there("limit:1").await);
    let ban = r#"{"fault":"ban","status":418,"retry_after_s":600,"for_ms":1000}"#;
    bench.control("/faults", ban).await;
    let ping = bench.client.futures().ping().await;
    assert!(matches!(ping, Outcome::Wait(_)));
    let stop = bench.client.stopped_for(Surface::Futures).unwrap();
    assert!(stop > Duration::from_secs(590));
}

#[tokio::test]
async fn a_wrong_clock_is_detected() {
    let bench = Bench::start(|_| {}).await;
    bench
        .control("/faults", r#"{"fault":"skew","ms":-7500}"#)
        .await;
    let account = bench.client.futures().account().await;
    let Outcome::Refused(refusal) = account else {
        panic!("{account:?}")
    };
    assert_eq!(refusal.code(), Some(-1021));
    let offset = bench.client.sync_clock(Surface::Futures, 3).await.unwrap();
    assert!(
        (offset.offset_us + 7_500_000).abs() <= offset.error_us,
        "{offset:?}"
    );
    let account = bench.client.futures().account().await;
    assert!(matches!(account, Outcome::Done(_)), "{account:?}");
}

#[tokio::test]
async fn a_user_stream_survives_a_dead_key_and_a_frozen_connection() {
    let bench = Bench::start(|settings| {
        settings.streams.ping_every = Duration::from_millis(500);
        settings.streams.pong_within = Duration::from_millis(500);
    })
    .await;
    let mut stream = bench.user_stream().await;
    bench
        .control(
            "/act",
            r#"{"act":"expire_listen_key","surface":"futures","account":0}"#,
        )
        .await;
    assert_eq!(lost(&mut stream).await, GapReason::KeyExpired);
    assert_eq!(
        next(&mut stream).await,
        StreamItem::Connected { connection: 0 }
    );
    bench
        .control("/act", r#"{"act":"freeze","kind":"user","account":0}"#)
        .await;
    assert_eq!(lost(&mut stream).await, GapReason::NoPong);
    assert_eq!(
        next(&mut stream).await,
        StreamItem::Connected { connection: 0 }
    );
    bench.place("after:1").await.done().unwrap();
    let StreamItem::Event(UserStreamEvent::OrderTradeUpdate(update)) = next(&mut stream).await
    else {
        panic!("no order event")
    };
    assert_eq!(update.order.client_order_id, "after:1");
}

async fn lost(stream: &mut UserStream) -> GapReason {
    loop {
        match next(stream).await {
            StreamItem::Gap { reason, .. } => return reason,
            StreamItem::Event(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_cut_connection_makes_an_outcome_unknown() {
    let bench = Bench::start(|_| {}).await;
    let fault = r#"{"fault":"unknown","how":"cut","accepted":true,"route":"futures.cancel_order","count":1}"#;
    bench.place("cut:1").await.done().unwrap();
    bench.control("/faults", fault).await;
    let cancel = futures::CancelOrder::new("BTCUSDT").client_order_id("cut:1");
    let outcome = bench.client.futures().cancel_order(&cancel).await;
    assert!(matches!(
        outcome,
        Outcome::Unknown(UnknownReason::NoAnswer(_))
    ));
}

#[tokio::test]
async fn garbage_on_a_stream_is_reported_and_does_not_end_it() {
    let bench = Bench::start(|_| {}).await;
    let mut stream = bench.user_stream().await;
    for frame in ["binary", "truncated", "not_json", "empty"] {
        let act = format!(r#"{{"act":"garbage","frame":"{frame}","kind":"user","account":0}}"#);
        bench.control("/act", &act).await;
        let item = next(&mut stream).await;
        assert!(
            matches!(item, StreamItem::Unreadable { .. }),
            "{frame}: {item:?}"
        );
    }
    let act = r#"{"act":"garbage","frame":"unknown","kind":"user","account":0}"#;
    bench.control("/act", act).await;
    let item = next(&mut stream).await;
    assert!(
        matches!(item, StreamItem::Event(UserStreamEvent::Other(_))),
        "{item:?}"
    );
    bench.place("after:1").await.done().unwrap();
    let item = next(&mut stream).await;
    assert!(
        matches!(
            item,
            StreamItem::Event(UserStreamEvent::OrderTradeUpdate(_))
        ),
        "{item:?}"
    );
}
