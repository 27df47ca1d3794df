//! Measures the time from a request to its signature: in the process itself, and through the signer's
//! socket with the signer in another process. The client waits as the engine's thread does: it polls
//! for a moment.
//!
//! ```sh
//! cargo bench -p windvane-signer --bench signing
//! cargo bench -p windvane-signer --bench signing -- --count 50000
//! ```
//!
//! Each line has the median and the 99th percentile in microseconds, and how much the socket adds.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a benchmark fails"
)]

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rust_decimal::Decimal;
use secrecy::SecretString;
use windvane_client_core::CalledRoute;
use windvane_client_core::gateway::Unsigned;
use windvane_protocol::Brand;
use windvane_protocol::route::{self, Surface, Version};
use windvane_protocol::sign::{ApiKey, Credentials, Dialect, Network, Stamp, Wallet};
use windvane_signer::{Client, Limits, Policy, Signer};

/// Environment variable of the signer's process: the path of its socket.
const SOCKET: &str = "WINDVANE_BENCH_SOCKET";

fn signer() -> Signer {
    let dialect = Dialect {
        brand: Brand::new("svc").unwrap(),
        network: Network::Mainnet,
        recv_window_ms: Some(5_000),
    };
    let key =
        || SecretString::from("4fd0a42218f3eae43a6ce26d22544e986139a01e5b34a62db53757ffca81bae1");
    let wallet = Wallet::from_hex(&key()).unwrap();
    let credentials = Credentials {
        api_key: Some(ApiKey::new("name", key())),
        user: Some(wallet.address()),
        signer: Some(wallet),
        ..Credentials::default()
    };
    let limits = Limits {
        max_notional: Some(Decimal::from(1_000_000)),
        ..Limits::default()
    };
    let symbol = (Surface::Futures, "BTCUSDT".to_owned());
    Signer::new(dialect, credentials, Policy::new([(symbol, limits)], None))
}

fn order(version: Version, number: u64) -> Unsigned {
    let id = format!("maker.{number}");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now_us = now.as_micros() as u64;
    let pairs = [
        ("symbol", "BTCUSDT"),
        ("side", "BUY"),
        ("type", "LIMIT"),
        ("timeInForce", "GTX"),
        ("quantity", "0.002"),
        ("price", "60123.4"),
        ("newClientOrderId", &id),
        ("newOrderRespType", "RESULT"),
    ];
    Unsigned {
        called_route: CalledRoute {
            route: route::named("futures.new_order").unwrap(),
            version: Some(version),
        },
        parameters: pairs.into_iter().collect(),
        stamp: Stamp {
            timestamp_ms: (now_us / 1_000) as i64,
            nonce_us: now_us + number,
            inner_nonce_us: 0,
        },
    }
}

fn serve(socket: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let control = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    control.set_nonblocking(true).unwrap();
    runtime.block_on(async {
        let listener = tokio::net::UnixListener::bind(socket).unwrap();
        let control = tokio::net::UnixStream::from_std(control).unwrap();
        signer().serve(listener, control, |_| true).await.unwrap();
    });
}

/// The median and the 99th percentile, microseconds.
fn figures(mut took: Vec<Duration>) -> (f64, f64) {
    took.sort_unstable();
    let at = |part: usize| took[took.len() * part / 100].as_secs_f64() * 1e6;
    (at(50), at(99))
}

/// Pause between two requests: orders are rare.
const PAUSE: Duration = Duration::from_micros(300);

fn main() {
    if let Ok(socket) = std::env::var(SOCKET) {
        return serve(Path::new(&socket));
    }
    let arguments: Vec<_> = std::env::args().collect();
    let count = arguments.iter().position(|word| word == "--count");
    let count = count.and_then(|place| arguments.get(place + 1)?.parse().ok());
    let count: u64 = count.unwrap_or(5_000);
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("signer.sock");
    let (control, theirs) = UnixStream::pair().unwrap();
    let mut server = Command::new(std::env::current_exe().unwrap())
        .env(SOCKET, &socket)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (answers, answered) = mpsc::channel();
    let client = Client::start(
        socket,
        runtime.handle(),
        move |id, result| answers.send((id, result.unwrap())).unwrap(),
        |_| {},
    );
    let local = signer();
    for (name, version) in [("v1 (HMAC)", Version::V1), ("v3 (wallet)", Version::V3)] {
        let mut here = Vec::new();
        let mut there = Vec::new();
        for number in 0..count {
            let request = order(version, number);
            std::thread::sleep(PAUSE);
            let begin = Instant::now();
            let own = local.sign(&request, |_| true).unwrap();
            here.push(begin.elapsed());
            std::thread::sleep(PAUSE);
            let id = number + 1 + (u64::from(version == Version::V3) << 32);
            let begin = Instant::now();
            client.sign(id, &request);
            let (_, result) = runtime.block_on(async {
                loop {
                    if let Ok(answer) = answered.try_recv() {
                        break answer;
                    }
                    tokio::task::yield_now().await;
                }
            });
            there.push(begin.elapsed());
            assert_eq!((own.query, own.body), (result.query, result.body));
        }
        let ((here_50, here_99), (there_50, there_99)) = (figures(here), figures(there));
        println!(
            "{name}: in process p50 {here_50:.1} us, p99 {here_99:.1} us; signer process p50 \
             {there_50:.1} us, p99 {there_99:.1} us; added p50 {:.1} us (x{:.1}), p99 {:.1} us",
            there_50 - here_50,
            there_50 / here_50,
            there_99 - here_99,
        );
    }
    drop(client);
    drop(runtime);
    drop(control);
    server.wait().unwrap();
}
