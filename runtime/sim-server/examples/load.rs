//! Puts load on a running venue and prints each second what it delivered: `cargo run --release -p
//! windvane-sim-server --example load SPOT_ADDRESS FUTURES_ADDRESS SECONDS CONNECTIONS REQUESTS`.
//! Addresses have the form `127.0.0.1:PORT`. On each surface, CONNECTIONS connections subscribe to
//! the trades, tops and books of all symbols. REQUESTS market data requests are sent per second.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const STREAMS: [&str; 5] = ["trade", "aggTrade", "bookTicker", "depth@100ms", "kline_1m"];
const SYMBOLS: [&str; 3] = ["btcusdt", "ethusdt", "dogeusdt"];
const PATHS: [(&str, &str); 4] = [
    (
        "/api/v3/depth?symbol=BTCUSDT",
        "/fapi/v1/depth?symbol=BTCUSDT&limit=100",
    ),
    (
        "/api/v3/ticker/24hr?symbol=ETHUSDT",
        "/fapi/v1/premiumIndex",
    ),
    (
        "/api/v3/klines?symbol=BTCUSDT&interval=1m&limit=100",
        "/fapi/v1/ticker/bookTicker",
    ),
    (
        "/api/v3/trades?symbol=DOGEUSDT&limit=50",
        "/fapi/v1/aggTrades?symbol=BTCUSDT&limit=50",
    ),
];
/// Number of keep-alive connections that share the requests.
const WORKERS: u64 = 10;

#[derive(Default)]
struct Counts {
    messages: AtomicU64,
    bytes: AtomicU64,
    answers: AtomicU64,
    failures: AtomicU64,
    slowest_us: AtomicU64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [spot, futures, seconds, connections, requests] = arguments.as_slice() else {
        return Err("load SPOT_ADDRESS FUTURES_ADDRESS SECONDS CONNECTIONS REQUESTS".into());
    };
    let counts = Arc::new(Counts::default());
    for _ in 0..connections.parse::<u64>()? {
        for address in [spot, futures] {
            tokio::spawn(listen(address.clone(), Arc::clone(&counts)));
        }
    }
    let requests: u64 = requests.parse()?;
    for worker in 0..WORKERS.min(requests) {
        let pause = Duration::from_micros(1_000_000 * WORKERS / requests);
        let address = if worker.is_multiple_of(2) {
            spot
        } else {
            futures
        }
        .clone();
        tokio::spawn(poll(address, worker, pause, Arc::clone(&counts)));
    }
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    tick.tick().await;
    for _ in 0..seconds.parse::<u64>()? {
        tick.tick().await;
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        println!(
            "messages {} bytes {} answers {} failures {} slowest {} us",
            take(&counts.messages),
            take(&counts.bytes),
            take(&counts.answers),
            take(&counts.failures),
            take(&counts.slowest_us),
        );
    }
    Ok(())
}

async fn listen(address: String, counts: Arc<Counts>) {
    let names = SYMBOLS
        .iter()
        .flat_map(|s| STREAMS.map(|kind| format!("{s}@{kind}")));
    let names: Vec<_> = names.collect();
    let url = format!("ws://{address}/stream?streams={}", names.join("/"));
    let Ok((mut socket, _)) = tokio_tungstenite::connect_async(url).await else {
        counts.failures.fetch_add(1, Ordering::Relaxed);
        return;
    };
    while let Some(Ok(message)) = socket.next().await {
        counts.messages.fetch_add(1, Ordering::Relaxed);
        counts
            .bytes
            .fetch_add(message.len() as u64, Ordering::Relaxed);
    }
    eprintln!("a connection ended");
    counts.failures.fetch_add(1, Ordering::Relaxed);
}

async fn poll(address: String, worker: u64, pause: Duration, counts: Arc<Counts>) {
    let Ok(mut stream) = TcpStream::connect(&address).await else {
        return;
    };
    let mut tick = tokio::time::interval(pause);
    let mut buffer = vec![0; 256 * 1024];
    for n in worker.. {
        tick.tick().await;
        let (spot, futures) = PATHS[(n % 4) as usize];
        let path = if worker.is_multiple_of(2) {
            spot
        } else {
            futures
        };
        let started = Instant::now();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let ok = stream.write_all(request.as_bytes()).await.is_ok()
            && read_answer(&mut stream, &mut buffer).await;
        let count = if ok {
            &counts.answers
        } else {
            &counts.failures
        };
        count.fetch_add(1, Ordering::Relaxed);
        let elapsed_us = started.elapsed().as_micros() as u64;
        counts.slowest_us.fetch_max(elapsed_us, Ordering::Relaxed);
        if !ok {
            return;
        }
    }
}

/// Reads one response with a content length; true if its status is 200.
async fn read_answer(stream: &mut TcpStream, buffer: &mut [u8]) -> bool {
    let mut read = 0;
    loop {
        match stream.read(&mut buffer[read..]).await {
            Ok(more) if more > 0 => read += more,
            _ => return false,
        }
        let text = String::from_utf8_lossy(&buffer[..read]);
        let Some((head, _)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let mut lines = head.lines();
        let ok = lines.next().is_some_and(|line| line.contains(" 200 "));
        let length = lines.find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|text| text.parse().ok()).unwrap_or(0);
        if read >= head.len() + 4 + length {
            return ok;
        }
    }
}
