//! Puts load on a server in the same process with signed requests and stream messages. Every ten
//! seconds it prints latency and the process's memory.
//!
//! `cargo run --release -p windvane-sim-server --example order_load [SECONDS] [REQUESTS/S]
//! [CONNECTIONS]`

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::StreamExt;
use secrecy::SecretString;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_tungstenite::connect_async;
use windvane_protocol::sign::hmac::hex_hmac;
use windvane_sim_server::{AccountKeys, LimitSettings, Running, Settings, Source, start};

/// Number of keep-alive connections that send requests.
const WORKERS: u64 = 8;

/// Measurements since the last printed line.
#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    refused: AtomicU64,
    micros: AtomicU64,
    micros_max: AtomicU64,
    messages: AtomicU64,
}

/// One connection that sends orders.
#[derive(Clone, Debug)]
struct Worker {
    n: u64,
    spot: bool,
    account: AccountKeys,
}

type Failed = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let argument = |n: usize, default: u64| {
        let text = std::env::args().nth(n);
        text.map_or(Ok(default), |text| text.parse())
    };
    let (seconds, per_second) = (argument(1, 300)?, argument(2, 500)?);
    let connections = argument(3, 20)?;
    let running = start(Settings {
        source: Source::Seeded { per_second: 100 },
        limits: LimitSettings {
            spot_weight: u32::MAX,
            spot_orders: u32::MAX,
            spot_orders_10s: u32::MAX,
            futures_weight: u32::MAX,
            futures_orders: u32::MAX,
            patience: 10,
            connections: 4_096,
        },
        ..Settings::default()
    })
    .await?;
    let counts = Arc::new(Counts::default());
    for n in 0..connections {
        tokio::spawn(listen(running.addresses, n, Arc::clone(&counts)));
    }
    for n in 0..WORKERS {
        let pause = Duration::from_secs_f64(WORKERS as f64 / per_second as f64);
        let account = running.accounts[n as usize % running.accounts.len()].clone();
        let spot = n % 2 == 0;
        let address = if spot {
            running.addresses.spot
        } else {
            running.addresses.futures
        };
        let worker = Worker { n, spot, account };
        tokio::spawn(request(address, worker, pause, Arc::clone(&counts)));
    }
    report(&running, seconds, &counts).await;
    Ok(())
}

async fn report(_running: &Running, seconds: u64, counts: &Counts) {
    println!("seconds  req/s  refused  mean_us  max_us  msg/s  rss_kb");
    let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
    for n in 1..=seconds.div_ceil(10) {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let requests = take(&counts.requests);
        println!(
            "{:7}  {:5}  {:7}  {:7}  {:6}  {:5}  {}",
            n * 10,
            requests / 10,
            take(&counts.refused),
            take(&counts.micros) / requests.max(1),
            take(&counts.micros_max),
            take(&counts.messages) / 10,
            resident_kb(),
        );
    }
}

/// Memory of this process, which contains both server and clients.
fn resident_kb() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.map_or_else(String::new, |line| {
        line.chars().filter(char::is_ascii_digit).collect()
    })
}

/// Reads public streams of all symbols.
async fn listen(
    addresses: windvane_sim_server::Addresses,
    n: u64,
    counts: Arc<Counts>,
) -> Result<(), Failed> {
    let (address, trade) = if n.is_multiple_of(2) {
        (addresses.spot, "trade")
    } else {
        (addresses.futures, "aggTrade")
    };
    let topics: Vec<String> = ["btcusdt", "ethusdt", "dogeusdt"]
        .iter()
        .flat_map(|symbol| {
            [trade, "bookTicker", "depth@100ms", "tradepro", "kline_1m"]
                .map(|kind| format!("{symbol}@{kind}"))
        })
        .collect();
    let url = format!("ws://{address}/stream?streams={}", topics.join("/"));
    let (mut socket, _) = connect_async(url).await?;
    while let Some(message) = socket.next().await {
        if message?.is_text() {
            counts.messages.fetch_add(1, Ordering::Relaxed);
        }
    }
    Err("a stream ended".into())
}

/// Places, queries and cancels orders, one after another on one connection.
async fn request(
    address: SocketAddr,
    worker: Worker,
    pause: Duration,
    counts: Arc<Counts>,
) -> Result<(), Failed> {
    let Worker {
        n: own,
        spot,
        account,
    } = worker;
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    let path = if spot {
        "/api/v1/order"
    } else {
        "/fapi/v1/order"
    };
    let mut due = tokio::time::interval(pause);
    let secret = SecretString::from(account.api_secret.as_str());
    for n in 0_u64.. {
        due.tick().await;
        let id = format!("{own}-{}", n / 3);
        let (method, text) = match n % 3 {
            0 => {
                let order = "side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=50000";
                (
                    "POST",
                    format!("symbol=BTCUSDT&{order}&newClientOrderId={id}"),
                )
            }
            1 => ("GET", format!("symbol=BTCUSDT&origClientOrderId={id}")),
            _ => ("DELETE", format!("symbol=BTCUSDT&origClientOrderId={id}")),
        };
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
        let text = format!("{text}&timestamp={now_ms}");
        let signature = hex_hmac(&secret, &[text.as_bytes()]);
        let head = format!(
            "{method} {path}?{text}&signature={signature} HTTP/1.1\r\nHost: {address}\r\n\
             X-MBX-APIKEY: {}\r\nContent-Length: 0\r\n\r\n",
            account.api_key
        );
        let started = Instant::now();
        stream.get_mut().write_all(head.as_bytes()).await?;
        let status = answer(&mut stream).await?;
        let micros = u64::try_from(started.elapsed().as_micros())?;
        counts.requests.fetch_add(1, Ordering::Relaxed);
        counts.micros.fetch_add(micros, Ordering::Relaxed);
        counts.micros_max.fetch_max(micros, Ordering::Relaxed);
        if status != 200 {
            counts.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Reads one response and returns its status.
async fn answer(stream: &mut BufReader<TcpStream>) -> Result<u16, Failed> {
    let (mut status, mut length) = (0, 0);
    for n in 0_u32.. {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let line = line.trim_end().to_ascii_lowercase();
        if n == 0 {
            status = line.split(' ').nth(1).unwrap_or_default().parse()?;
        } else if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        } else if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(status)
}
