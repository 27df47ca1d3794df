//! Measures the time from the receipt of a market event to the hand-over of the signed order
//! request to the connection, through the whole runtime on loopback. `windvane venue` is one
//! process. The run is another process of this program, with one strategy that sends an order at
//! every change of sign.
//!
//! ```sh
//! cargo bench -p windvane --bench latency -- --seconds 60
//! cargo bench -p windvane --bench latency -- --seconds 60 --rate 2800
//! ```
//!
//! Options:
//!
//! - `--busy-poll` sets `run.busy_poll`, so the event loop never sleeps.
//! - `--keep-awake` sets `run.keep_awake`, so no CPU enters a sleep state.
//! - `--signer` signs in the signer process, as a run does by default. Without it, the measured process
//!   signs itself.
//! - `--rate` is the activity at the venue. The default gives some tens of events per second: each
//!   order finds sleeping CPUs and cold caches, which is the worst case. 2800 gives the market of
//!   the soak test.
//! - `--way` selects one of three ways. Without it, all three are measured.
//!
//! `durable` has its data folder on the disk of `target/`. `memory` has it on `/dev/shm`, so
//! everything is measured except the disk. `unwaited` also uses `/dev/shm`, but orders do not wait
//! for the journal, which is still written; no configuration can set this.
//!
//! The figures come from `/metrics`, like those of any running instance. The time of the disk alone
//! is printed too: one write and one `fdatasync`, with pauses as between orders.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a benchmark fails"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use windvane_config::{Config, Overrides};
use windvane_live::connection::VenueLine;
use windvane_live::{self as live, Market};
use windvane_live::{signer, watchdog};
use windvane_protocol::sign::Credentials;

/// Environment variable of the measured process: the way, its options, and where its data is.
const ROLE: &str = "WINDVANE_BENCH_ROLE";
const WAYS: [&str; 3] = ["durable", "memory", "unwaited"];
/// Command-line flags, and the names of the options in the role.
const OPTIONS: [(&str, &str); 3] = [
    ("--busy-poll", "busy_poll"),
    ("--keep-awake", "keep_awake"),
    ("--signer", "signer"),
];
/// Configuration of the measured process.
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
    std::env::set_current_dir(root).expect("cannot change to the root of the repository");
    if let Ok(role) = std::env::var(ROLE) {
        measured(&role);
        return;
    }
    let arguments: Vec<_> = std::env::args().collect();
    let after = |word: &str| {
        let place = arguments.iter().position(|known| known == word)?;
        arguments.get(place + 1).cloned()
    };
    let seconds =
        after("--seconds").map_or(30, |text| text.parse().expect("--seconds must be a number"));
    let only = after("--way");
    let has = |flag: &str| arguments.iter().any(|word| word == flag);
    let options: Vec<_> = OPTIONS.iter().filter(|(flag, _)| has(flag)).collect();
    let options: Vec<_> = options.iter().map(|(_, option)| *option).collect();
    let rate = after("--rate").unwrap_or_else(|| "400".to_owned());
    for way in WAYS {
        if only.as_ref().is_none_or(|only| only == way) {
            measure(way, &options, &rate, Duration::from_secs(seconds));
        }
    }
}

/// Runs one way and prints its figures.
fn measure(way: &str, options: &[&str], rate: &str, length: Duration) {
    let shm = Path::new("/dev/shm");
    let folder = if way == "durable" || !shm.is_dir() {
        tempfile::tempdir_in("target").or_else(|_| tempfile::tempdir())
    } else {
        tempfile::tempdir_in(shm)
    };
    let folder = folder.expect("cannot create a folder");
    let line = folder.path().join("venue.json");
    let venue = Process(venue(&line, rate));
    let data = folder.path().join("data");
    let options = options.join(" ");
    let role = format!("{way}\n{options}\n{}\n{}", line.display(), data.display());
    let this = std::env::current_exe().expect("cannot find this program");
    let run = Command::new(this)
        .env(ROLE, role)
        .env("WINDVANE_LOG", "warn")
        .stderr(Stdio::null())
        .spawn()
        .expect("cannot start the measured process");
    let mut run = Process(run);
    let begin = Instant::now();
    while begin.elapsed() < length {
        std::thread::sleep(Duration::from_millis(200));
        assert!(
            run.0.try_wait().expect("cannot query the run").is_none(),
            "the run ended"
        );
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
    // Stop the run before the venue, so that it stops without errors.
    drop(run);
    drop(venue);
}

/// The median time to write and sync a small block in a folder while the run goes on.
fn bare_sync(folder: &Path) -> Duration {
    let file = std::fs::File::create(folder.join("bare")).expect("cannot create a file");
    let filled = vec![1; 1 << 20];
    file.write_all_at(&filled, 0).expect("cannot write");
    file.sync_all().expect("cannot sync");
    let sync = |place: u64| {
        std::thread::sleep(Duration::from_millis(20));
        let begin = Instant::now();
        file.write_all_at(&[2; 600], place * 600)
            .expect("cannot write");
        file.sync_data().expect("cannot sync");
        begin.elapsed()
    };
    let mut took: Vec<_> = (0..200).map(sync).collect();
    took.sort_unstable();
    took[took.len() / 2]
}

/// Runs the measured instance in this process.
fn measured(role: &str) {
    let mut lines = role.lines();
    let mut next = || lines.next().expect("the role has four lines").to_owned();
    let (way, options) = (next(), next());
    let (line, data) = (next(), PathBuf::from(next()));
    let overrides = Overrides::from_process(vec![format!("run.data_dir={}", data.display())]);
    let mut config =
        Config::parse(CONFIGURATION, "the bench", &overrides).expect("invalid configuration");
    config.run.busy_poll = options.contains("busy_poll");
    config.run.keep_awake = options.contains("keep_awake");
    config.run.unwaited = way == "unwaited";
    let path = Path::new(&line);
    let read = VenueLine::read(path).expect("cannot read the venue's line");
    let mut settings = read.settings(&config, 0).expect("invalid settings");
    let signer = options.contains("signer").then(|| {
        let file = path.with_extension("toml");
        std::fs::write(&file, CONFIGURATION).expect("cannot write the configuration");
        let arguments = [
            "--config".as_ref(),
            file.as_os_str(),
            "--venue".as_ref(),
            path.as_os_str(),
        ];
        let program = Path::new(env!("CARGO_BIN_EXE_windvane"));
        let process = signer::Process::start(program, arguments.map(Into::into).to_vec(), &config)
            .expect("cannot start the signer");
        settings.credentials = Credentials::default();
        process.facts().name_user(&mut settings.credentials);
        process
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("cannot start the async runtime");
    let market = Market::Venue(Box::new(settings), signer.map(Box::new));
    let watchdog = watchdog::ProcessArguments {
        arguments: Vec::new(),
    };
    let reread = std::sync::Arc::new(|_: Option<&std::path::Path>| {
        Err("a benchmark has no reload".to_owned())
    });
    runtime
        .block_on(live::run(&config, market, watchdog, reread, false))
        .expect("the run failed");
}

fn venue(line: &Path, rate: &str) -> Child {
    let mut venue = Command::new(env!("CARGO_BIN_EXE_windvane"))
        .args([
            "venue", "--port", "0", "--seed", "5", "--rate", rate, "--weight", "100000",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .expect("cannot start the venue");
    let mut text = String::new();
    let stdout = venue.stdout.take().expect("stdout is piped");
    BufReader::new(stdout)
        .read_line(&mut text)
        .expect("the venue prints a line");
    std::fs::write(line, text).expect("cannot write the venue's line");
    venue
}

/// A process that is stopped when this value is dropped.
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

/// Reads the metrics page of the instance.
fn metrics(data: &Path) -> String {
    let mut stream =
        UnixStream::connect(data.join("admin.sock")).expect("cannot connect to the instance");
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    .expect("cannot send the request");
    let mut page = Vec::new();
    // If the server closes at once, reading may fail after the page was read.
    let _ = stream.read_to_end(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}

/// Reads one value from the page.
fn value(page: &str, name: &str) -> f64 {
    let key = format!("{name} ");
    let line = page.lines().find_map(|line| line.strip_prefix(&key));
    line.and_then(|text| text.trim().parse().ok())
        .unwrap_or(f64::NAN)
}

/// Formats a summary metric in microseconds.
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
