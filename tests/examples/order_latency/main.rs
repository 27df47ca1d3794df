//! Measures the latency of an order from outside. The time starts when a trade's frame is written
//! to the run's socket. It ends when the request of the order that follows from the trade has been
//! read there.
//!
//! ```sh
//! cargo run --release -p windvane-tests --example order_latency
//! cargo run --release -p windvane-tests --example order_latency -- --memory
//! ```
//!
//! `windvane run` trades on `windvane venue` through a relay in this program, which takes the two
//! times. One strategy sends about 16 orders a second, each at a trade, and encodes the trade in
//! the order's quantity. Options:
//!
//! - `--orders N`: number of orders (5000)
//! - `--rate N`: market actions per second (2800)
//! - `--memory`: keep the data folder in memory
//! - `--busy-poll`: run with `run.busy_poll`
//! - `--beside NAME`: a hostile strategy of `windvane_tests::hostile` runs beside, such as `timers`
//! - `--csv FILE`: write one line per order: milliseconds since the start, microseconds of latency
//!
//! For comparison, a thread of this program measures a bare write and sync on the same disk at the
//! same time.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a measurement fails"
)]

mod relay;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use relay::{Relay, SYMBOLS};
use windvane_tests::guest::Guest;
use windvane_tests::hostile;
use windvane_tests::launch::Launch;
use windvane_tests::venue::Venue;

/// At a trade, at least 60 ms after the last order: a buy far below the market that expires at
/// once. Its quantity is 0.001 times (the trade's id modulo [`SYMBOLS`], plus one).
const ON_EVENT: &str = "
    (if (i32.and (i32.eq (local.get $kind) (i32.const 1))
          (i64.gt_s (i64.sub (local.get $ms) (global.get $last)) (i64.const 60)))
      (then
        (global.set $last (local.get $ms))
        (drop (call $submit (i32.const 0) (i32.const 0x20)
          (i64.add (i64.rem_u (local.get $id) (i64.const SYMBOLS)) (i64.const 1))
          (i64.sub (i64.sub (local.get $a) (i64.rem_s (local.get $a) (i64.const 1000)))
            (i64.const 100000))
          (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))))";

const CONFIGURATION: &str = r#"
[run]
mode = "live"
on_stop = "cancel"

[account]
api_key = { env = "WINDVANE_API_KEY" }
api_secret = { env = "WINDVANE_API_SECRET" }

[risk]
max_orders_per_minute = 1100

[[strategy]]
id = "fast"
module = "MODULE"
instruments = ["futures:BTCUSDT"]
streams = ["trade"]
"#;

/// The words of the command line.
struct Arguments(Vec<String>);

impl Arguments {
    fn after(&self, word: &str) -> Option<&str> {
        let place = self.0.iter().position(|known| known == word)?;
        self.0.get(place + 1).map(String::as_str)
    }

    fn has(&self, word: &str) -> bool {
        self.0.iter().any(|known| known == word)
    }
}

fn main() {
    let arguments = Arguments(std::env::args().collect());
    let orders: usize = arguments
        .after("--orders")
        .unwrap_or("5000")
        .parse()
        .unwrap();
    let rate = arguments.after("--rate").unwrap_or("2800");
    let memory = arguments.has("--memory");
    let folder = if memory {
        tempfile::tempdir_in("/dev/shm").unwrap()
    } else {
        fs::create_dir_all("target").unwrap();
        tempfile::tempdir_in("target").unwrap()
    };
    let venue = Venue::start(&["--seed", "5", "--rate", rate, "--weight", "100000"]);
    let address = venue.line()["futures"]["rest"].as_str().unwrap();
    let relay = Relay::start(address.trim_start_matches("http://"));

    let module = folder.path().join("fast.wasm");
    let on_event = ON_EVENT.replace("SYMBOLS", &SYMBOLS.to_string());
    Guest {
        on_event: &on_event,
        more: "(global $last (mut i64) (i64.const 0))",
        ..Guest::default()
    }
    .write(&module);
    let config = folder.path().join("fast.toml");
    let mut text = CONFIGURATION.replace("MODULE", module.to_str().unwrap());
    if let Some(name) = arguments.after("--beside") {
        let known = hostile::ALL.iter().find(|(known, _)| *known == name);
        let (_, hostile) = known.expect("a name of `hostile::ALL`");
        let file = folder.path().join("hostile.wasm");
        hostile.write(&file);
        text.push_str(&hostile.section(&file));
    }
    fs::write(&config, text).unwrap();

    let mut instance = Launch::new(&venue, &folder.path().join("data"))
        .apart(&venue)
        .config(&config)
        .set(&format!("venue.futures.rest=http://{}", relay.address))
        .set(&format!("venue.futures.ws=ws://{}", relay.address))
        .set(&format!("run.busy_poll={}", arguments.has("--busy-poll")))
        .env("WINDVANE_LOG", "warn")
        .start();
    instance.ready();

    let done = Arc::new(AtomicBool::new(false));
    let bare = bare(folder.path(), &done);
    let begin = Instant::now();
    // The first orders meet cold caches and new connections, so they are not counted.
    let warm = 100;
    while relay.received() < orders + warm {
        std::thread::sleep(Duration::from_millis(200));
        assert!(instance.ended().is_none(), "the run ended");
        let shown = (relay.received(), begin.elapsed().as_secs());
        assert!(
            shown.0 > 0 || shown.1 < 60,
            "the run sent no order within a minute"
        );
    }
    done.store(true, Ordering::Relaxed);
    let bare = bare.join().unwrap();
    let measured = relay.measured();
    let admin = instance.admin();
    if let Some(row) = admin.must_show("/api/strategies").get(1) {
        println!("the hostile strategy: {} {}", row["state"], row["reason"]);
    }
    let halt = Instant::now();
    admin.command("/api/halt");
    println!("halt was answered after {:?}", halt.elapsed());
    assert_eq!(instance.terminate().code(), Some(0));

    let measured = &measured[warm..][..orders];
    let took: Vec<_> = measured.iter().map(|one| one.took).collect();
    let place = if memory { "in memory" } else { "durable" };
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "{place}, {rate} market actions/s, {:.1} orders/s, load {}",
        orders as f64 / (measured[orders - 1].at - measured[0].at).as_secs_f64(),
        load.trim()
    );
    println!("  order, from outside   {}", figures(&took));
    println!("  bare write and sync   {}", figures(&bare));
    if let Some(file) = arguments.after("--csv") {
        let mut text = String::from("at_ms,took_us\n");
        for one in measured {
            let at = one.at.duration_since(begin).as_millis();
            writeln!(text, "{at},{}", one.took.as_micros()).unwrap();
        }
        fs::write(file, text).unwrap();
    }
}

/// Quantiles on one line, with the ratio of p99 to p50.
fn figures(took: &[Duration]) -> String {
    let mut sorted = took.to_vec();
    sorted.sort_unstable();
    let at = |share: f64| {
        let place = (sorted.len() - 1) as f64 * share;
        sorted[place.round() as usize].as_secs_f64() * 1e3
    };
    format!(
        "p50 {:.3} ms  p90 {:.3}  p99 {:.3}  p99.9 {:.3}  max {:.3}  p99/p50 {:.1}  ({} samples)",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0),
        at(0.99) / at(0.5),
        sorted.len()
    )
}

/// Writes and syncs small blocks of a file, ten a second, until the measurement is done.
fn bare(folder: &Path, done: &Arc<AtomicBool>) -> std::thread::JoinHandle<Vec<Duration>> {
    const BYTES: u64 = 1 << 20;
    const BLOCK: usize = 600;
    let file = File::create(folder.join("bare")).unwrap();
    file.write_all_at(&vec![1; BYTES as usize], 0).unwrap();
    file.sync_all().unwrap();
    let done = Arc::clone(done);
    std::thread::spawn(move || {
        let mut took = Vec::new();
        while !done.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
            let place = took.len() as u64 * BLOCK as u64 % (BYTES - BLOCK as u64);
            let begin = Instant::now();
            file.write_all_at(&[2; BLOCK], place).unwrap();
            file.sync_data().unwrap();
            took.push(begin.elapsed());
        }
        took
    })
}
