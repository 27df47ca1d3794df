//! Everything at once: traders, listeners, and every switch and action of `CONTROL.md` at random.
//! The server must not panic, and afterwards its state must be consistent.
//!
//! The test takes a few seconds by default. `SOAK_SECONDS=600 cargo test --release -p
//! windvane-sim-server --test soak -- --nocapture` runs longer and shows the memory of the process,
//! which includes the clients.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

#[path = "../common/http.rs"]
mod http;

mod chaos;
mod client;
mod state_report;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use windvane_sim_server::{LimitSettings, Settings, Source, start};

use client::{Client, Fates};

static PANICS: AtomicUsize = AtomicUsize::new(0);

fn seconds() -> u64 {
    let wanted = std::env::var("SOAK_SECONDS").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// Resident memory of this process in kilobytes; 0 if it is unknown.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_stays_consistent_under_all_faults_at_once() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        usual(info);
    }));
    let settings = Settings {
        source: Source::Seeded { per_second: 100 },
        // The limits are off, because the faults already refuse enough.
        limits: LimitSettings {
            spot_weight: u32::MAX,
            spot_orders: u32::MAX,
            spot_orders_10s: u32::MAX,
            futures_weight: u32::MAX,
            futures_orders: u32::MAX,
            patience: u32::MAX,
            connections: 4_096,
        },
        ..Settings::default()
    };
    let running = Arc::new(start(settings).await.unwrap());
    let until = Instant::now() + Duration::from_secs(seconds());
    let fates = Arc::new(Fates::default());
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..3 {
        let client = Client::new(Arc::clone(&running), n, Arc::clone(&fates));
        tasks.spawn(client.trade(until));
    }
    for n in 3..5 {
        let client = Client::new(Arc::clone(&running), n, Arc::clone(&fates));
        tasks.spawn(client.listen(until));
    }
    tasks.spawn(chaos::rage(Arc::clone(&running), until));
    tasks.spawn(async move {
        while Instant::now() < until {
            eprintln!("resident {} kB", resident_kb());
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    });
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tasks.shutdown().await;
    state_report::check(&running, &fates).await;
    eprintln!("resident {} kB at the end", resident_kb());
    assert_eq!(PANICS.load(Ordering::Relaxed), 0, "the server panicked");
}
