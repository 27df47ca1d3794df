//! Measures the way from a typed order to the written bytes: parameters, time and nonce, signature,
//! URL and its check.

#![allow(missing_docs, reason = "the macro makes a public function")]
#![allow(clippy::expect_used, reason = "a panic is how a bench fails")]

use criterion::{Criterion, criterion_group, criterion_main};
use secrecy::SecretString;
use std::hint::black_box;
use windvane_client::{Addresses, Api, Client, Settings};
use windvane_protocol::Brand;
use windvane_protocol::route::{self, Surface};
use windvane_protocol::sign::{ApiKey, Credentials, Dialect, Network, Wallet};
use windvane_protocol::wire::Request;
use windvane_protocol::wire::enums::{OrderType, Side, TimeInForce};
use windvane_protocol::wire::spot::{NewOrder, QueryOrder};

/// A worthless public test key.
const AGENT: &str = "0x4fd0a42218f3eae43a6ce26d22544e986139a01e5b34a62db53757ffca81bae1";

fn client(api: Api) -> Client {
    let addresses = Addresses::default()
        .rest(Surface::Spot, "http://127.0.0.1:9")
        .expect("an address");
    let wallet = Wallet::from_hex(&SecretString::from(AGENT)).expect("a key");
    let secret = "2b5eb11e18796d12d88f13dc27dbbd02c2cc51ff7059765ed9821957d82bb4d9";
    let credentials = Credentials {
        api_key: Some(ApiKey::new("key", SecretString::from(secret))),
        user: Some(wallet.address()),
        signer: Some(wallet),
        ..Credentials::default()
    };
    let dialect = Dialect {
        brand: Brand::new("svc").expect("a word"),
        network: Network::Mainnet,
        recv_window_ms: Some(5_000),
    };
    let mut settings = Settings::new(addresses, dialect, credentials);
    settings.spot_api = api;
    Client::new(settings).expect("a client")
}

fn order() -> NewOrder {
    NewOrder::new("BTCUSDT", Side::Buy, OrderType::Limit)
        .time_in_force(TimeInForce::Gtc)
        .quantity(rust_decimal::Decimal::new(1, 2))
        .price(60_000)
        .client_order_id("mm-btc.s3k9f0.1a")
}

fn requests(c: &mut Criterion) {
    let place = route::named(NewOrder::ROUTE).expect("a route");
    let query = route::named(QueryOrder::ROUTE).expect("a route");
    let (hmac, wallet) = (client(Api::V1), client(Api::V3));
    let (order, poll) = (order(), QueryOrder::new("BTCUSDT").client_order_id("mm:1"));
    let mut group = c.benchmark_group("request");
    group.bench_function("new_order_hmac", |b| {
        b.iter(|| hmac.prepare(place, None, &black_box(&order).parameters(), None));
    });
    group.bench_function("query_order_hmac", |b| {
        b.iter(|| hmac.prepare(query, None, &black_box(&poll).parameters(), None));
    });
    group.bench_function("new_order_eip712", |b| {
        b.iter(|| wallet.prepare(place, None, &black_box(&order).parameters(), None));
    });
    group.finish();
}

criterion_group!(benches, requests);
criterion_main!(benches);
