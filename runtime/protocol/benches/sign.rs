//! Measures the cost of a signature, and of a signed order request from parameters to bytes. Goal:
//! under 5 microseconds for an order with HMAC.

#![allow(
    clippy::expect_used,
    missing_docs,
    reason = "a bench; its macros create functions"
)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use secrecy::SecretString;
use windvane_protocol::Brand;
use windvane_protocol::route::{Version, named};
use windvane_protocol::sign::{
    ApiKey, Credentials, Dialect, MessageDomain, Network, Stamp, Wallet, hmac, prepare, signer_of,
};
use windvane_protocol::wire::Parameters;

const SECRET: &str = "2b5eb11e18796d12d88f13dc27dbbd02c2cc51ff7059765ed9821957d82bb4d9";
const TEXT: &[u8] = b"symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.010\
    &price=60000.10&newClientOrderId=mm%3A1&recvWindow=5000&timestamp=1591702613943";

fn sign(bench: &mut Criterion) {
    let brand = Brand::new("svc").expect("a word");
    let domain = MessageDomain::new(&brand, Network::Mainnet);
    let wallet = Wallet::from_bytes(&[7; 32]).expect("a key");
    let secret = SecretString::from(SECRET);
    bench.bench_function("hmac", |b| {
        b.iter(|| hmac::hex_hmac(&secret, &[black_box(TEXT)]));
    });
    bench.bench_function("message_digest", |b| {
        b.iter(|| domain.digest(black_box(TEXT)));
    });
    bench.bench_function("message_sign", |b| {
        b.iter(|| wallet.sign(&domain.digest(black_box(TEXT))));
    });
    let signature = wallet.sign(&domain.digest(TEXT));
    bench.bench_function("message_recover", |b| {
        b.iter(|| signer_of(&domain.digest(black_box(TEXT)), &signature));
    });
}

fn order(bench: &mut Criterion) {
    let dialect = Dialect {
        brand: Brand::new("svc").expect("a word"),
        network: Network::Mainnet,
        recv_window_ms: Some(5000),
    };
    let credentials = Credentials {
        api_key: Some(ApiKey::new("k".repeat(64), SecretString::from(SECRET))),
        wallet: Some(Wallet::from_bytes(&[7; 32]).expect("a key")),
        ..Credentials::default()
    };
    let stamp = Stamp {
        timestamp_ms: 1_591_702_613_943,
        nonce_us: 1_591_702_613_943_000,
        inner_nonce_us: 1_591_702_613_943_000,
    };
    let route = named("futures.new_order").expect("a route");
    let build = |version| {
        let mut order = Parameters::new();
        order.push("symbol", black_box("BTCUSDT"));
        order.push("side", "BUY");
        order.push("type", "LIMIT");
        order.push("timeInForce", "GTC");
        order.push("quantity", "0.010");
        order.push("price", "60000.10");
        order.push("newClientOrderId", "mm:1");
        prepare(route, Some(version), &order, &dialect, &credentials, stamp)
    };
    bench.bench_function("order_hmac", |b| b.iter(|| build(Version::V1)));
    bench.bench_function("order_message", |b| b.iter(|| build(Version::V3)));
}

criterion_group!(benches, sign, order);
criterion_main!(benches);
