//! `windvane run` with a simulated account, as a real process: on the public data of a venue and on
//! recordings. The engine agrees with the simulated account after a kill at any moment. A recording
//! gives the same run each time, and the same fills as the backtest.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use windvane_tests::binary;
use windvane_tests::checker;
use windvane_tests::guest::Guest;
use windvane_tests::instance::verb_in;
use windvane_tests::launch::Launch;
use windvane_tests::results::Results;
use windvane_tests::venue::Venue;

/// Log texts that show that the engine and the simulated account did not agree. An order that never
/// arrived does not count: a kill may come between the record of an intent and the record of
/// its request, or while an order waits for the dead man's switch.
const DISAGREEMENTS: [&str; 3] = [
    "position overwritten with the venue's value",
    "a fill that the user stream missed",
    "differs from it",
];

fn agrees(log: &str, starts: usize) {
    for text in DISAGREEMENTS {
        assert!(!log.contains(text), "{text}\n{log}");
    }
    // In an empty folder the engine learns the start balance once. No later correction is allowed.
    let corrected = log
        .matches("balance overwritten with the venue's value")
        .count();
    assert_eq!(corrected, 1, "{log}");
    // A busy machine may stall the disk. Each stall degrades the account and then makes it ready
    // again.
    let stalls = log.matches("the journal stalls").count();
    let ready = log.matches("to=\"ready\"").count();
    assert!(
        ready <= starts + stalls,
        "the run became ready {ready} times in {starts} starts with {stalls} stalls\n{log}"
    );
}

fn verified(data: &Path) -> Value {
    let mut arguments: Vec<&Path> = ["replay", "--verify", "--json"].map(Path::new).to_vec();
    arguments.push(data);
    serde_json::from_str(&binary::succeed(&arguments)).unwrap()
}

fn is_not_empty(rows: &Value) -> bool {
    rows.as_array().is_some_and(|rows| !rows.is_empty())
}

#[test]
fn a_simulated_account_survives_kills_exactly() {
    let venue = Venue::start(&["--seed", "21"]);
    let data = venue.folder().join("paper");
    let mut instance = Launch::paper(&venue, &data).start();
    instance.ready();
    assert_eq!(instance.answer("status")["mode"], "paper");
    instance.until("positions", &is_not_empty);
    instance.kill();

    // The first kill came in the middle of trading. The second one comes soon after the restart.
    let mut instance = Launch::paper(&venue, &data).start();
    instance.until("status", &|status| status["epoch"] != json!(0));
    instance.kill();

    let mut instance = Launch::paper(&venue, &data).start();
    instance.ready();
    instance.until("orders", &is_not_empty);
    instance.answer("halt");
    instance.until("orders", &|orders| *orders == json!([]));
    let verbs = ["positions", "balances", "orders"];
    // The available balance comes from the last account snapshot, so it may differ.
    let reported = |instance: &windvane_tests::instance::Instance, verb: &str| {
        let mut rows = instance.answer(verb);
        for row in rows.as_array_mut().unwrap() {
            row.as_object_mut().unwrap().remove("available");
        }
        rows
    };
    let before = verbs.map(|verb| reported(&instance, verb));
    let log = instance.log();
    instance.kill();

    let mut instance = Launch::paper(&venue, &data).start();
    instance.until("status", &|status| {
        status["state"] == "halted" && status["degraded_reasons"] == json!([])
    });
    assert_eq!(verbs.map(|verb| reported(&instance, verb)), before, "{log}");
    agrees(&instance.log(), 4);
    assert_eq!(instance.terminate().code(), Some(0));
    assert_eq!(verified(&data)["equal"], true);
    // The simulated account must not touch the venue's account.
    let account = venue.account();
    assert_eq!(account["orders"], json!([]));
    assert_eq!(account["positions"], json!([]));
}

/// Copies everything in a folder.
fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, to) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if path.is_dir() {
            copied(&path, &to);
        } else if path.is_file() {
            // A killed run leaves its sockets too.
            std::fs::copy(&path, &to).unwrap();
        }
    }
}

#[test]
fn a_kill_switch_known_only_from_its_file_replays() {
    let venue = Venue::start(&["--seed", "23"]);
    let data = venue.folder().join("paper");
    let launch = |data: &Path| {
        // With these parameters a position comes sooner.
        let quick = ["strategy.1.params.fast=5", "strategy.1.params.slow=20"];
        let launch = Launch::paper(&venue, data).modules(&["market_maker", "ema_cross"]);
        launch.set(quick[0]).set(quick[1]).start()
    };
    let mut instance = launch(&data);
    instance.ready();
    instance.until("positions", &is_not_empty);
    instance.until("orders", &is_not_empty);
    instance.kill();
    for word in ["halt", "flatten"] {
        // The kill comes right after the command: its kill switch is durable, its journal record is
        // not.
        let lost = data.with_extension([word, "lost"].join("-"));
        copied(&data, &lost);
        let kill_switches = (0..20).find_map(|nth| {
            let printed = data.with_extension(format!("{word}-said-{nth}"));
            copied(&data, &printed);
            let mut instance = launch(&printed);
            instance.until("status", &|status| status["epoch"] != json!(0));
            instance.answer(word);
            instance.kill();
            let kill_switches = std::fs::read_to_string(printed.join("latch")).unwrap();
            // Everything may be closed before the kill. Then no flatten is pending.
            (word == "halt" || kill_switches.contains("flatten")).then_some(kill_switches)
        });
        let kill_switches =
            kill_switches.expect("one kill of twenty comes before everything is closed");
        std::fs::write(lost.join("latch"), kill_switches).unwrap();

        let mut instance = launch(&lost);
        instance.until("status", &|status| {
            status["state"] == "halted" && status["degraded_reasons"] == json!([])
        });
        instance.until("orders", &|orders| *orders == json!([]));
        if word == "flatten" {
            instance.until("positions", &|positions| *positions == json!([]));
        }
        assert_eq!(instance.terminate().code(), Some(0));
        assert_eq!(verified(&lost)["equal"], true, "{word}");
    }
}

#[test]
fn no_order_fills_without_public_data() {
    let venue = Venue::start(&["--seed", "22"]);
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("paper");
    let mut instance = Launch::paper(&venue, &data).start();
    instance.ready();
    instance.until("orders", &is_not_empty);
    drop(venue);
    // Public data ends. From the next gap on, the simulated book is empty for each new order.
    instance.until_logged("public events may be missed", Duration::from_mins(1));
    let log = || std::fs::read_to_string(data.with_extension("log")).unwrap_or_default();
    let fills = |log: &str| log.matches(" filled ").count();
    let positions = instance.answer("positions");
    let known = fills(&log());
    instance.answer("flatten");
    instance.until("orders", &|orders| *orders == json!([]));
    assert_eq!(fills(&log()), known, "{}", log());
    assert_eq!(instance.answer("positions"), positions);
    assert_eq!(instance.terminate().code(), Some(0));
}

struct Played {
    folder: TempDir,
    tape: PathBuf,
}

impl Played {
    fn new(seed: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let tape = folder.path().join("tape.gz");
        let out = tape.display().to_string();
        binary::succeed([
            "data",
            "generate",
            "--minutes",
            "3",
            "--seed",
            seed,
            "--out",
            &out,
        ]);
        Self { folder, tape }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, name: &str, more: &[&str]) -> Output {
        let data = format!("run.data_dir={}", self.path(name).display());
        let (tape, out) = (self.tape.display().to_string(), self.path(name).join("out"));
        let out = out.display().to_string();
        let arguments = [
            "run",
            "--config",
            "configs/paper.toml",
            "--data",
            &tape,
            "--pace",
            "max",
            "--out",
            &out,
            "--json",
            "--set",
            &data,
        ];
        binary::run(arguments.iter().chain(more))
    }

    fn results(&self, name: &str) -> Results {
        Results::load(&self.path(name).join("out")).unwrap()
    }
}

fn succeeded(output: &Output) -> Value {
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn two_runs_on_a_recording_are_equal() {
    let played = Played::new("5");
    let one = succeeded(&played.run("one", &[]));
    let two = succeeded(&played.run("two", &[]));
    assert!(one["fills"].as_u64().unwrap() > 10, "{one}");
    assert_eq!(one["fingerprint"], two["fingerprint"]);
    for file in ["fills.csv", "orders.csv", "equity.csv"] {
        let read = |name: &str| std::fs::read(played.path(name).join("out").join(file)).unwrap();
        assert_eq!(read("one"), read("two"), "{file}");
    }
    let findings = checker::check(&played.results("one"));
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!(verified(&played.path("one"))["equal"], true);
}

/// One trend follower. It sends its first order long after the run is ready.
const FOLLOWER: &str = r#"
[run]
mode = "paper"

[[strategy]]
id = "ema"
module = "strategies/ema_cross"
instruments = ["futures:BTCUSDT"]
streams = ["trade"]
params = { qty = "0.01", fast = 20, slow = 80 }

[sim]
latency_ms = { feed = 1, order = 5 }
"#;

/// A paper run differs from its backtest in two delays. It is ready only after it has compared its
/// account, some milliseconds after the first event. The first order of a symbol also waits for the
/// dead man's switch, which takes two order latencies. The fills differ if a strategy trades within
/// the first delay, or if a price moves within the second. Otherwise they are equal to the
/// nanosecond, except for the orders that waited.
#[test]
fn a_paper_run_on_a_recording_fills_like_its_backtest() {
    let played = Played::new("5");
    let config = played.path("follower.toml");
    std::fs::write(&config, FOLLOWER).unwrap();
    let config = config.display().to_string();
    let tape = played.tape.display().to_string();
    let run = |verb: &str, name: &str, more: &[String]| {
        let out = played.path(name).join("out").display().to_string();
        let arguments = [verb, "--config", &config, "--data", &tape, "--out", &out];
        let arguments = arguments.map(str::to_owned);
        binary::succeed(arguments.iter().chain(more));
        played.results(name).fills
    };
    let set = format!("run.data_dir={}", played.path("run").display());
    let paper = run(
        "run",
        "run",
        &["--pace", "max", "--set", &set].map(str::to_owned),
    );
    let mut backtest = run("backtest", "backtest", &[]);
    assert!(backtest.len() >= 5, "{backtest:?}");
    assert_eq!(paper.len(), backtest.len());
    for (paper, backtest) in paper.iter().zip(&mut backtest) {
        let waited = paper.time_ns - backtest.time_ns;
        assert!((0..=20_000_000).contains(&waited), "{paper:?} {backtest:?}");
        backtest.time_ns = paper.time_ns;
    }
    assert_eq!(paper, backtest);
}

#[test]
fn a_strategy_that_fills_the_journal_is_quarantined_and_replays() {
    let played = Played::new("5");
    // An order without a price is refused at once, and each refusal is a record.
    let floods = Guest {
        on_event: "(loop $again
            (drop (call $submit (i32.const 0) (i32.const 0) (i64.const 10) (i64.const 0)
              (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $again (i32.lt_u (local.get $i) (i32.const 999))))",
        ..Guest::EMPTY
    };
    let module = played.path("floods.wasm");
    floods.write(&module);
    let config = played.path("floods.toml");
    let text = format!(
        "[run]\nmode = \"paper\"\n[[strategy]]\nid = \"floods\"\nmodule = '{}'\n\
         instruments = [\"futures:BTCUSDT\"]\nstreams = [\"book\"]\n\
         limits.fuel_per_event = 50000000\n",
        module.display()
    );
    std::fs::write(&config, text).unwrap();
    let data = played.path("data");
    let set = format!("run.data_dir={}", data.display());
    let (config, tape) = (
        config.display().to_string(),
        played.tape.display().to_string(),
    );
    let arguments = ["run", "--config", &config, "--data", &tape];
    let output = binary::run(arguments.iter().chain(&["--pace", "max", "--set", &set]));
    let log = String::from_utf8_lossy(&output.stderr);
    let why = "its orders, refused orders and timers fill the journal";
    assert!(log.contains(why), "{log}");
    assert_eq!(verified(&data)["equal"], true);
}

#[test]
fn a_recording_continues_after_a_kill_and_plays_once() {
    let played = Played::new("6");
    let data = played.path("killed");
    // Slow enough for a kill before its end, and fast enough to have fills by then.
    let mut instance = Launch::playing(&played.tape, "10", &data).start();
    instance.until("positions", &is_not_empty);
    instance.kill();
    let mut instance = Launch::playing(&played.tape, "20", &data).start();
    instance.ready();
    instance.until("orders", &is_not_empty);
    instance.kill();
    let instance = Launch::playing(&played.tape, "max", &data).start();
    let log = || std::fs::read_to_string(data.with_extension("log")).unwrap();
    let ended = instance.end_within(Duration::from_mins(2));
    assert_eq!(ended.code(), Some(0), "{}", log());
    agrees(&log(), 3);
    assert_eq!(verified(&data)["equal"], true);

    let again = played.run("killed", &[]);
    let printed = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(again.status.code(), Some(2), "{printed}");
    assert!(
        printed.contains("has received all events of the recordings"),
        "{printed}"
    );
    assert_eq!(verb_in(&data, "status").status.code(), Some(3));
}

#[test]
fn a_data_folder_of_one_mode_is_refused_by_the_other() {
    let played = Played::new("7");
    succeeded(&played.run("paper", &[]));
    let data = format!("run.data_dir={}", played.path("paper").display());
    let live = Command::new(binary::path())
        .current_dir(binary::root())
        .args(["run", "--config", "configs/live-sim.toml", "--set", &data])
        .env("WINDVANE_API_KEY", "key")
        .env("WINDVANE_API_SECRET", "secret")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&live.stderr).into_owned();
    assert_eq!(live.status.code(), Some(2), "{printed}");
    assert!(
        printed.contains("contains the journal of a paper run"),
        "{printed}"
    );
    let check = Command::new(binary::path())
        .current_dir(binary::root())
        .args(["check", "--config", "configs/live-sim.toml", "--set", &data])
        .env("WINDVANE_API_KEY", "key")
        .env("WINDVANE_API_SECRET", "secret")
        .output()
        .unwrap();
    assert_eq!(check.status.code(), Some(2), "{check:?}");
    let checked = String::from_utf8_lossy(&check.stderr).into_owned();
    let text = printed
        .lines()
        .find_map(|line| line.strip_prefix("error: "));
    let text = text.unwrap();
    assert!(checked.contains(&format!("no-go: {text}")), "{checked}");
    let live = played.run("fresh", &["--set", "run.mode=live"]);
    let printed = String::from_utf8_lossy(&live.stderr).into_owned();
    assert_eq!(live.status.code(), Some(2), "{printed}");
    assert!(printed.contains("set run.mode = \"paper\""), "{printed}");
}
