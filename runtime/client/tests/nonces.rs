//! Tests nonces, which belong to the whole process: nothing else may draw one while this test runs.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use common::{Scripted, answer};
use windvane_client::Client;
use windvane_client::clock::LocalTime;
use windvane_protocol::route::Surface;

#[tokio::test]
async fn a_clock_sync_with_a_fast_local_clock_keeps_nonces_valid() {
    let time = answer(200, "", r#"{"serverTime":5000}"#);
    let server = Scripted::start(vec![time]).await;
    let mut settings = server.settings();
    let hour_us = 3_600_000_000;
    let now_us = Arc::new(AtomicI64::new(hour_us));
    let local = Arc::clone(&now_us);
    settings.local_time = LocalTime::from_fn(move || local.load(Ordering::Relaxed));
    let client = Client::new(settings).unwrap();
    client.sync_clock(Surface::Futures, 1).await.unwrap();
    assert_eq!(server.requests().len(), 1);
    let nonce_us = client.stamp(Surface::Futures).nonce_us;
    assert!((4_990_000..5_010_000).contains(&nonce_us), "{nonce_us}");
}
