//! The client of this project against the server of this project: orders on both surfaces with both
//! kinds of keys, both user streams, public streams, and limits. This does not show that the two
//! follow the documents, only that they work together.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

#[path = "common/keys.rs"]
mod keys;
#[path = "common/own_client.rs"]
mod own_client;

use std::time::Duration;

use keys::credentials;
use own_client::done;
use windvane_client::budget::Lane;
use windvane_client::streams::{GapReason, MarketStream, StreamItem, UserStream};
use windvane_client::{Api, Client, Outcome, Settings as ClientSettings, WaitReason};
use windvane_protocol::market_stream::{Feed, MarketStreamEvent, Topic};
use windvane_protocol::route::Surface;
use windvane_protocol::user_stream::UserStreamEvent;
use windvane_protocol::wire::enums::{OrderType, Side, TimeInForce};
use windvane_protocol::wire::{futures, spot};
use windvane_protocol::{BookLevels, Brand};
use windvane_sim_server::{Running, Settings, Source, start};

async fn server() -> Running {
    let settings = Settings {
        source: Source::Seeded { per_second: 200 },
        ..Settings::default()
    };
    start(settings).await.unwrap()
}

fn client(running: &Running, api: Api) -> Client {
    Client::new(settings(running, api)).unwrap()
}

fn settings(running: &Running, api: Api) -> ClientSettings {
    let brand = Brand::new("svc").unwrap();
    let mut settings = own_client::settings(running, brand, credentials(&running.accounts[0]));
    settings.spot_api = api;
    settings.futures_api = api;
    settings.streams.backoff = (Duration::from_millis(1), Duration::from_millis(50));
    settings
}

async fn user(stream: &mut UserStream) -> StreamItem<UserStreamEvent> {
    loop {
        let item = tokio::time::timeout(Duration::from_secs(30), stream.next());
        match item.await.expect("an item in 30 s").unwrap() {
            StreamItem::Alive { .. } | StreamItem::Failed { .. } => {}
            item => return item,
        }
    }
}

async fn market_event(stream: &mut MarketStream) -> String {
    loop {
        let item = tokio::time::timeout(Duration::from_secs(30), stream.next());
        if let StreamItem::Event(frame) = item.await.expect("an item in 30 s").unwrap() {
            return frame.text().to_owned();
        }
    }
}

/// A price at which an order rests: half of the best bid, in whole units.
async fn resting_price(client: &Client, surface: Surface, symbol: &str) -> i64 {
    let name = format!("{surface}.book_ticker");
    let route = windvane_protocol::route::named(&name).unwrap();
    let mut parameters = windvane_protocol::wire::Parameters::new();
    parameters.push("symbol", symbol);
    let raw = done(client.call(route, None, &parameters).await);
    let top: serde_json::Value = serde_json::from_str(&raw.text).unwrap();
    let bid: rust_decimal::Decimal = top["bidPrice"].as_str().unwrap().parse().unwrap();
    i64::try_from((bid * rust_decimal::Decimal::new(98, 2)).trunc()).unwrap()
}

#[tokio::test]
async fn spot_orders_work_with_both_kinds_of_keys() {
    let running = server().await;
    for (api, id) in [(Api::V1, "both:1"), (Api::V3, "both:3")] {
        let client = client(&running, api);
        let mut stream = client.user_stream(Surface::Spot).unwrap();
        assert_eq!(
            user(&mut stream).await,
            StreamItem::Connected { connection: 0 }
        );
        let price = resting_price(&client, Surface::Spot, "BTCUSDT").await;
        let order = spot::NewOrder::new("BTCUSDT", Side::Buy, OrderType::Limit)
            .time_in_force(TimeInForce::Gtc)
            .quantity(rust_decimal::Decimal::new(1, 2))
            .price(price)
            .client_order_id(id);
        done(client.spot().new_order(&order).await);
        let found = spot::QueryOrder::new("BTCUSDT").client_order_id(id);
        let found = done(client.spot().query_order(&found).await);
        assert_eq!(found.client_order_id, id);
        let open = done(client.spot().open_orders(&spot::OpenOrders::new()).await);
        assert_eq!(open.len(), 1);
        let cancel = spot::CancelOrder::new("BTCUSDT").client_order_id(id);
        done(client.spot().cancel_order(&cancel).await);

        let mut reports = 0;
        while reports < 2 {
            match user(&mut stream).await {
                StreamItem::Event(UserStreamEvent::ExecutionReport(report)) => {
                    assert_eq!(report.client_order_id, id);
                    reports += 1;
                }
                StreamItem::Event(UserStreamEvent::OutboundAccountPosition(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn futures_orders_work_with_both_kinds_of_keys() {
    let running = server().await;
    for (api, id) in [(Api::V1, "both:1"), (Api::V3, "both:3")] {
        let client = client(&running, api);
        let mut stream = client.user_stream(Surface::Futures).unwrap();
        assert_eq!(
            user(&mut stream).await,
            StreamItem::Connected { connection: 0 }
        );
        let price = resting_price(&client, Surface::Futures, "BTCUSDT").await;
        let order = futures::NewOrder::new("BTCUSDT", Side::Buy, OrderType::Limit)
            .time_in_force(TimeInForce::Gtc)
            .quantity(rust_decimal::Decimal::new(1, 2))
            .price(price)
            .client_order_id(id);
        done(client.futures().new_order(&order).await);
        let found = futures::QueryOrder::new("BTCUSDT").client_order_id(id);
        let found = done(client.futures().query_order(&found).await);
        assert_eq!(found.client_order_id, id);
        let cancel = futures::CancelOrder::new("BTCUSDT").client_order_id(id);
        done(client.futures().cancel_order(&cancel).await);
        let mut updates = 0;
        while updates < 2 {
            match user(&mut stream).await {
                StreamItem::Event(UserStreamEvent::OrderTradeUpdate(update)) => {
                    assert_eq!(update.order.client_order_id, id);
                    updates += 1;
                }
                StreamItem::Event(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn clock_limits_and_market_streams_work_on_both_surfaces() {
    let running = server().await;
    let client = client(&running, Api::V1);
    for surface in [Surface::Spot, Surface::Futures] {
        let offset = client.sync_clock(surface, 3).await.unwrap();
        // Client and server read the same clock.
        assert!(offset.offset_us.abs() <= offset.error_us, "{offset:?}");
        let mut stream = client
            .market_stream(
                surface,
                &[
                    Topic::of("BTCUSDT", Feed::TradePro),
                    Topic::of("BTCUSDT", Feed::BookTicker),
                ],
            )
            .unwrap();
        let (mut trades, mut tops) = (0, 0);
        let mut levels = BookLevels::default();
        while trades == 0 || tops == 0 {
            let text = market_event(&mut stream).await;
            let decoded = windvane_protocol::market_stream::decode(&text, &mut levels).unwrap();
            match decoded.event {
                MarketStreamEvent::TradePro(_) => trades += 1,
                MarketStreamEvent::Top(_) => tops += 1,
                MarketStreamEvent::Answer(answer) => assert!(answer.result.is_ok()),
                other => panic!("{other:?}"),
            }
        }
    }
    let info = windvane_protocol::route::named("spot.exchange_info").unwrap();
    done(
        client
            .call(info, None, &windvane_protocol::wire::Parameters::new())
            .await,
    );
}

#[tokio::test]
async fn a_closed_listen_key_is_replaced_and_the_stream_reconnects() {
    let running = server().await;
    let client = client(&running, Api::V1);
    let mut stream = client.user_stream(Surface::Futures).unwrap();
    assert_eq!(
        user(&mut stream).await,
        StreamItem::Connected { connection: 0 }
    );
    done(client.futures().close_listen_key().await);
    loop {
        match user(&mut stream).await {
            StreamItem::Gap { reason, .. } => {
                assert!(matches!(reason, GapReason::Closed | GapReason::KeyExpired));
                break;
            }
            StreamItem::Event(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        user(&mut stream).await,
        StreamItem::Connected { connection: 0 }
    );
}

#[tokio::test]
async fn the_budget_stops_before_the_venue_does() {
    let running = server().await;
    let client = client(&running, Api::V1).in_lane(Lane::Query);
    let depth = spot::GetDepth::new("BTCUSDT").limit(1_000);
    let mut sent = 0;
    let wait = loop {
        match client.spot().depth(&depth).await {
            Outcome::Done(_) => sent += 1,
            Outcome::Wait(wait) => break wait,
            other => panic!("{other:?}"),
        }
    };
    assert!(matches!(wait.why, WaitReason::Budget(_)), "{wait}");
    assert!(sent > 0);
}

#[tokio::test]
async fn a_replaced_user_stream_delivers_each_event_once() {
    let running = server().await;
    let mut settings = settings(&running, Api::V1);
    settings.streams.age_max = Duration::from_millis(300);
    settings.streams.overlap = Duration::from_millis(100);
    let client = Client::new(settings).unwrap();
    let mut stream = client.user_stream(Surface::Futures).unwrap();
    assert_eq!(
        user(&mut stream).await,
        StreamItem::Connected { connection: 0 }
    );
    let price = resting_price(&client, Surface::Futures, "BTCUSDT").await;
    // Long enough for two replacements of the connection.
    let end = std::time::Instant::now() + Duration::from_secs(2);
    let mut placed = 0;
    while std::time::Instant::now() < end && placed < 150 {
        placed += 1;
        let id = format!("once:{placed}");
        let order = futures::NewOrder::new("BTCUSDT", Side::Buy, OrderType::Limit)
            .time_in_force(TimeInForce::Gtc)
            .quantity(rust_decimal::Decimal::new(1, 2))
            .price(price)
            .client_order_id(&id);
        done(client.futures().new_order(&order).await);
        let cancel = futures::CancelOrder::new("BTCUSDT").client_order_id(&id);
        done(client.futures().cancel_order(&cancel).await);
        for status in ["NEW", "CANCELED"] {
            match user(&mut stream).await {
                StreamItem::Event(UserStreamEvent::OrderTradeUpdate(update)) => {
                    assert_eq!(update.order.client_order_id, id);
                    assert_eq!(update.order.status.to_string(), status);
                }
                other => panic!("{id} {status}: {other:?}"),
            }
        }
    }
    assert!(placed > 1);
}
