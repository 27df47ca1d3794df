//! From a market event received to the signed order request handed to the connection, through the
//! whole runtime on loopback: `windvane venue` in a process of its own, the run in this one, with
//! one strategy that orders at every change of sign.
//!
//! ```sh
//! cargo bench -p windvane --bench latency -- --seconds 60
//! cargo bench -p windvane --bench latency -- --seconds 60 --rate 2800
//! ```
//!
//! `--busy-poll` measures a run with `run.busy_poll`, whose engine's thread never sleeps,
//! `--keep-awake` one with `run.keep_awake`, during which no processor does.
//!
//! `--rate` is how much happens at the venue. By default that is little, some tens of events in a
//! second: every order finds processors asleep and caches cold, which is the worst case. With 2800
//! the market is that of the soak.
//!
//! Three ways: `durable`, data folder on the disk of `target/`; `memory`, data folder on
//! `/dev/shm`, so that all is done but the disk's work; `unwaited`, on `/dev/shm` too, where orders
//! leave without waiting for the journal, which still writes everything. No configuration can ask
//! for the last. The figures are those of `/metrics`, as a running instance shows them. Beside them
//! stands what the disk itself takes: one write and one `fdatasync`, with pauses as between orders.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a bench fails"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use windvane_config::{Config, Overrides};
use windvane_live::connection::VenueLine;
use windvane_live::watchdog;
use windvane_live::{self as live, Market};

/// The role of the process that is measured: which way, and where its data is.
const ROLE: &str = "WINDVANE_BENCH_ROLE";
const WAYS: [&str; 3] = ["durable", "memory", "unwaited"];
/// Words for options of `[run]`.
const OPTIONS: [(&str, &str); 2] = [("--busy-poll", "busy_poll"), ("--keep-awake", "keep_awake")];
/// What the measured process is configured with.
const CONFIGURATION: &str = r#"
[run]
mode = "live"
on_stop = "flatten"

[account]
position_mode = "one-way"

[risk]
max_order_notional = "10000"
max_position_notional = "50000"
max_open_orders = 50
max_orders_per_minute = 1100
price_collar = "0.05"

[[strategy]]
id = "ema"
module = "strategies/ema_cross"
instruments = ["futures:BTCUSDT"]
streams = ["trade"]
on_fault = "flatten"

[strategy.params]
qty = "0.002"
fast = 1
slow = 2
"#;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::set_current_dir(root).expect("the root of the repository");
    if let Ok(role) = std::env::var(ROLE) {
        measured(&role);
        return;
    }
    let words: Vec<_> = std::env::args().collect();
    let after = |word: &str| {
        let place = words.iter().position(|known| known == word)?;
        words.get(place + 1).cloned()
    };
    let seconds = after("--seconds").map_or(30, |text| text.parse().expect("seconds"));
    let only = after("--way");
    let has = |flag: &str| words.iter().any(|word| word == flag);
    let options: Vec<_> = OPTIONS.iter().filter(|(flag, _)| has(flag)).collect();
    let options: Vec<_> = options.iter().map(|(_, option)| *option).collect();
    let rate = after("--rate").unwrap_or_else(|| "400".to_owned());
    for way in WAYS {
        if only.as_ref().is_none_or(|only| only == way) {
            measure(way, &options, &rate, Duration::from_secs(seconds));
        }
    }
}

/// Runs one way and prints what it measured.
fn measure(way: &str, options: &[&str], rate: &str, length: Duration) {
    let shm = Path::new("/dev/shm");
    let folder = if way == "durable" || !shm.is_dir() {
        tempfile::tempdir_in("target").or_else(|_| tempfile::tempdir())
    } else {
        tempfile::tempdir_in(shm)
    };
    let folder = folder.expect("a folder");
    let line = folder.path().join("venue.json");
    let venue = Process(venue(&line, rate));
    let data = folder.path().join("data");
    let options = options.join(" ");
    let role = format!("{way}\n{options}\n{}\n{}", line.display(), data.display());
    let this = std::env::current_exe().expect("this program");
    let run = Command::new(this)
        .env(ROLE, role)
        .env("WINDVANE_LOG", "warn")
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut run = Process(run);
    let begin = Instant::now();
    while begin.elapsed() < length {
        std::thread::sleep(Duration::from_millis(200));
        assert!(run.0.try_wait().expect("its state").is_none(), "it ended");
    }
    let page = metrics(&data);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let events = value(&page, "windvane_market_events_total{surface=\"futures\"}");
    let events = events / length.as_secs_f64();
    println!(
        "{way} {options}: {events:.0} events/s, load {}",
        load.trim()
    );
    println!(
        "  bare write and sync: median {} us",
        bare_sync(folder.path()).as_micros()
    );
    for name in ["order_latency", "journal_durable"] {
        println!("  {}", figures(&page, name));
    }
    // The run first, for it ends in order.
    drop(run);
    drop(venue);
}

/// What a write of a small block and its sync take in a folder, in the median, while the run goes
/// on beside it.
fn bare_sync(folder: &Path) -> Duration {
    let file = std::fs::File::create(folder.join("bare")).expect("a file");
    let filled = vec![1; 1 << 20];
    file.write_all_at(&filled, 0).expect("it is written");
    file.sync_all().expect("it is synced");
    let sync = |place: u64| {
        std::thread::sleep(Duration::from_millis(20));
        let begin = Instant::now();
        file.write_all_at(&[2; 600], place * 600)
            .expect("it is written");
        file.sync_data().expect("it is synced");
        begin.elapsed()
    };
    let mut took: Vec<_> = (0..200).map(sync).collect();
    took.sort_unstable();
    took[took.len() / 2]
}

/// The instance, in this process.
fn measured(role: &str) {
    let mut lines = role.lines();
    let mut next = || lines.next().expect("four lines").to_owned();
    let (way, options) = (next(), next());
    let (line, data) = (next(), PathBuf::from(next()));
    let overrides = Overrides::from_process(vec![format!("run.data_dir={}", data.display())]);
    let mut config = Config::parse(CONFIGURATION, "the bench", &overrides).expect("it is sound");
    config.run.busy_poll = options.contains("busy_poll");
    config.run.keep_awake = options.contains("keep_awake");
    config.run.unwaited = way == "unwaited";
    let line = VenueLine::read(Path::new(&line)).expect("a line");
    let settings = line.settings(&config, 0).expect("settings");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let market = Market::Venue(Box::new(settings));
    let watchdog = watchdog::Begin {
        arguments: Vec::new(),
    };
    let reread =
        std::sync::Arc::new(|_: Option<&std::path::Path>| Err("nobody reloads a bench".to_owned()));
    runtime
        .block_on(live::run(&config, market, watchdog, reread, false))
        .expect("it ran");
}

fn venue(line: &Path, rate: &str) -> Child {
    let mut venue = Command::new(env!("CARGO_BIN_EXE_windvane"))
        .args([
            "venue", "--port", "0", "--seed", "5", "--rate", rate, "--weight", "100000",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the venue starts");
    let mut text = String::new();
    let stdout = venue.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut text).expect("a line");
    std::fs::write(line, text).expect("the line is kept");
    venue
}

/// A process that ends with this value, whatever happens.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(15) {
            if self.0.try_wait().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The metrics page of the instance.
fn metrics(data: &Path) -> String {
    let address = std::fs::read_to_string(data.join("admin.addr")).expect("it listens");
    let address = address.trim();
    let mut stream = TcpStream::connect(address).expect("it answers");
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .expect("it is asked");
    let mut page = Vec::new();
    // A server that closes at once may reset what was read already.
    let _ = stream.read_to_end(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}

/// A value of the page.
fn value(page: &str, name: &str) -> f64 {
    let key = format!("{name} ");
    let line = page.lines().find_map(|line| line.strip_prefix(&key));
    line.and_then(|text| text.trim().parse().ok())
        .unwrap_or(f64::NAN)
}

/// A summary in microseconds.
fn figures(page: &str, name: &str) -> String {
    let name = format!("windvane_{name}_seconds");
    let value = |suffix: &str| value(page, &format!("{name}{suffix}"));
    let quantile = |share: &str| value(&format!("{{quantile=\"{share}\"}}")) * 1e6;
    format!(
        "{name}: median {:.0} us, p99 {:.0} us, {} samples",
        quantile("0.5"),
        quantile("0.99"),
        value("_count")
    )
}
