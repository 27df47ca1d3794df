//! `windvane backtest` as a user calls it, with results proven by the checker: on generated
//! sessions of both surfaces, and on recordings of a real venue if `WINDVANE_RECORDINGS` names their
//! folder (CONTRIBUTING.md).

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use windvane_tests::binary::{root, succeed};
use windvane_tests::checker::{self, Finding};
use windvane_tests::recording::Recording;
use windvane_tests::results::{Fill, Results};

/// Quotes at the best price, so that a short session has many fills.
const AT_TOUCH: &str = "strategy.0.params.half_spread_ticks=0";

/// Recordings and results of one test.
struct Bench {
    folder: TempDir,
    runs: u32,
}

/// A finished run.
struct Run {
    folder: PathBuf,
    printed: Value,
    results: Results,
}

impl Bench {
    fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            runs: 0,
        }
    }

    /// Generates a session of a surface.
    fn session(&self, surface: &str, minutes: u32) -> PathBuf {
        let file = self.folder.path().join(format!("{surface}.gz"));
        let minutes = minutes.to_string();
        let arguments = [
            "data",
            "generate",
            "--surface",
            surface,
            "--minutes",
            &minutes,
            "--out",
        ];
        succeed(arguments.iter().map(Path::new).chain([file.as_path()]));
        file
    }

    /// Runs a backtest with a configuration of `configs/` on a recording.
    fn run(&mut self, config: &str, data: &Path, set: &[&str]) -> Run {
        self.play(config, &[data], set)
    }

    /// Runs a backtest on several recordings at once.
    fn play(&mut self, config: &str, data: &[&Path], set: &[&str]) -> Run {
        self.runs += 1;
        let folder = self.folder.path().join(format!("run-{}", self.runs));
        let cache = self.folder.path().join("cache");
        let mut arguments = vec!["backtest".into(), "--json".into(), "--config".into()];
        // `join` keeps an absolute path unchanged.
        arguments.push(root().join("configs").join(config));
        let files = data.iter().map(|file| ("--data", *file));
        let folders = [("--out", folder.as_path()), ("--cache", &cache)];
        for (flag, path) in files.chain(folders) {
            arguments.push(flag.into());
            arguments.push(path.to_owned());
        }
        for set in set {
            arguments.push("--set".into());
            arguments.push(set.into());
        }
        let printed = serde_json::from_str(&succeed(arguments)).unwrap();
        let results = Results::load(&folder).unwrap();
        Run {
            folder,
            printed,
            results,
        }
    }
}

impl Run {
    fn fingerprint(&self) -> &str {
        self.results.summary["fingerprint"].as_str().unwrap()
    }

    /// Checks the results against one another and the maker fills against the recording.
    #[track_caller]
    fn prove(&self, data: &Path) {
        assert_none(&checker::check(&self.results));
        let recording = Recording::at_maker_fills(&self.results, data).unwrap();
        assert_none(&recording.check(&self.results));
        assert!(self.folder.join("report.html").exists());
    }

    /// Requires a minimum of fills: a run without fills proves nothing.
    #[track_caller]
    fn has_fills(&self, strategy: &str, maker: bool, at_least: usize) {
        let fills = self.results.fills.iter();
        let count = fills
            .filter(|fill| fill.strategy == strategy && fill.maker == maker)
            .count();
        let word = if maker { "maker" } else { "taker" };
        assert!(count >= at_least, "{count} {word} fills of {strategy}");
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap()
    }
}

#[track_caller]
fn assert_none(findings: &[Finding]) {
    let lines: Vec<_> = findings.iter().take(20).map(ToString::to_string).collect();
    assert!(
        lines.is_empty(),
        "{} findings:\n{}",
        findings.len(),
        lines.join("\n")
    );
}

/// A recording of a real venue. Recordings are not in this repository: `WINDVANE_RECORDINGS` names
/// their folder. Without the variable, this prints so directly to stderr, because the test harness
/// captures normal output.
fn recorded(file: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("WINDVANE_RECORDINGS") else {
        let line = format!("SKIPPED: WINDVANE_RECORDINGS names no folder with {file}\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return None;
    };
    let path = Path::new(&folder).join(file);
    assert!(path.exists(), "{} does not exist", path.display());
    Some(path)
}

#[test]
fn a_futures_market_maker_reconciles() {
    let mut bench = Bench::new();
    let data = bench.session("futures", 10);
    let run = bench.run("backtest-usdm.toml", &data, &[AT_TOUCH]);
    run.prove(&data);
    run.has_fills("mm-btc", true, 10);
}

#[test]
fn a_spot_maker_reconciles_with_and_without_start_holdings() {
    let mut bench = Bench::new();
    let data = bench.session("spot", 10);
    let run = bench.run("backtest-spot.toml", &data, &[AT_TOUCH]);
    run.prove(&data);
    run.has_fills("mm-spot", true, 5);
    let holding = r#"sim.start_balance={"spot:USDT"="5000","spot:BTC"="0.25"}"#;
    let run = bench.run("backtest-spot.toml", &data, &[AT_TOUCH, holding]);
    run.prove(&data);
}

#[test]
fn two_strategies_on_one_account_reconcile() {
    let mut bench = Bench::new();
    let data = bench.session("futures", 10);
    let run = bench.run("demo.toml", &data, &[]);
    run.prove(&data);
    run.has_fills("maker", true, 5);
    run.has_fills("ema", false, 2);
}

/// Both surfaces in one run: each strategy gets events of its own instrument only, and trades as it
/// would alone.
#[test]
fn strategies_on_different_instruments_are_independent() {
    let mut bench = Bench::new();
    let (futures, spot) = (bench.session("futures", 10), bench.session("spot", 10));
    let config = bench.folder.path().join("both.toml");
    let maker = |id: &str, instrument: &str| {
        format!(
            "[[strategy]]\nid = '{id}'\nmodule = '{}'\ninstruments = ['{instrument}']\n\
             params = {{ qty = '0.01', half_spread_ticks = 0 }}\n",
            root().join("strategies/market_maker").display()
        )
    };
    let balance = "[sim]\nstart_balance = { 'futures:USDT' = 10000, 'spot:USDT' = 10000 }\n";
    let (first, second) = (
        maker("fut", "futures:BTCUSDT"),
        maker("spot", "spot:BTCUSDT"),
    );
    let mut fills = |strategies: &[&str]| {
        std::fs::write(&config, [&[balance], strategies].concat().concat()).unwrap();
        let run = bench.play(config.to_str().unwrap(), &[&futures, &spot], &[]);
        assert_none(&checker::check(&run.results));
        let count = |id: &str| {
            run.results
                .fills
                .iter()
                .filter(|fill| fill.strategy == id)
                .count()
        };
        (count("fut"), count("spot"))
    };
    let alone = (fills(&[&first]).0, fills(&[&second]).1);
    assert!(alone.0 > 5 && alone.1 > 5, "{alone:?}");
    assert_eq!(fills(&[&first, &second]), alone);
    assert_eq!(fills(&[&second, &first]), alone);
}

/// The maintenance margin is above the initial margin, so that the first position is liquidated.
#[test]
fn a_liquidation_has_its_fills_and_its_order() {
    let mut bench = Bench::new();
    let data = bench.session("futures", 10);
    let module = format!(
        "strategy.0.module={}",
        root().join("strategies/ema_cross").display()
    );
    let set = [
        &module,
        r#"strategy.0.params={qty="0.2",mode="flip_each_sign"}"#,
        r#"strategy.0.streams=["trade"]"#,
        "risk={}",
        "strategy.0.limits={}",
        "sim.leverage=125",
        "sim.maintenance_rate=0.0088",
        r#"sim.start_balance={"futures:USDT"="112"}"#,
    ];
    let run = bench.run("backtest-usdm.toml", &data, &set);
    let results = &run.results;
    let orders: Vec<_> = results
        .orders
        .iter()
        .filter(|order| order.strategy.is_empty())
        .collect();
    assert!(!orders.is_empty(), "nothing was liquidated");
    for order in orders {
        assert!(order.client_order_id.starts_with("autoclose-"));
        assert_eq!(order.status, "FILLED");
        let own = |fill: &&Fill| fill.client_order_id == order.client_order_id;
        let filled: i128 = results.fills.iter().filter(own).map(|fill| fill.qty).sum();
        assert_eq!(filled, order.executed_qty);
    }
    let of_strangers = |fill: &&Fill| fill.strategy.is_empty();
    assert!(results.fills.iter().filter(of_strangers).count() > 0);
    assert_eq!(run.printed["fills"], results.fills.len());
}

#[test]
fn every_queue_model_fills_only_what_the_recording_allows() {
    let mut bench = Bench::new();
    let data = bench.session("futures", 10);
    let mut fills = Vec::new();
    for model in ["risk-averse", "probabilistic", "none"] {
        let set = format!("sim.queue={model}");
        let run = bench.run("backtest-usdm.toml", &data, &[AT_TOUCH, &set]);
        run.prove(&data);
        fills.push(run.results.fills.len());
    }
    assert!(
        fills[2] >= fills[0],
        "without a queue there must be at least as many fills: {fills:?}"
    );
}

#[test]
fn latency_drawn_from_the_recording_reconciles() {
    let mut bench = Bench::new();
    let data = bench.session("futures", 5);
    let constant = std::fs::read_to_string(root().join("configs/backtest-usdm.toml")).unwrap();
    let line = constant
        .lines()
        .find(|line| line.starts_with("latency_ms"))
        .unwrap();
    let config = bench.folder.path().join("recorded.toml");
    std::fs::write(&config, constant.replace(line, "latency = \"recorded\"")).unwrap();
    let run = bench.run(config.to_str().unwrap(), &data, &[AT_TOUCH]);
    assert_none(&checker::check(&run.results));
    run.has_fills("mm-btc", true, 5);
}

#[test]
fn repeated_runs_are_equal_and_changes_alter_the_fingerprint() {
    let mut bench = Bench::new();
    let data = bench.session("futures", 5);
    let one = bench.run("backtest-usdm.toml", &data, &[AT_TOUCH]);
    let two = bench.run("backtest-usdm.toml", &data, &[AT_TOUCH]);
    assert_eq!(one.fingerprint(), two.fingerprint());
    for file in ["fills.csv", "orders.csv", "equity.csv"] {
        assert!(one.file(file) == two.file(file), "{file} differs");
    }
    assert_eq!(
        one.printed, one.results.summary,
        "--json must print summary.json"
    );
    for set in [
        "sim.seed=2",
        "strategy.0.params.qty=0.02",
        "sim.fees.maker=0.0003",
    ] {
        let other = bench.run("backtest-usdm.toml", &data, &[AT_TOUCH, set]);
        assert_ne!(one.fingerprint(), other.fingerprint(), "{set}");
    }
}

#[test]
fn recorded_futures_reconcile_with_both_strategies() {
    let Some(data) = recorded("usdm-btcusdt-20240808.gz") else {
        return;
    };
    let mut bench = Bench::new();
    let run = bench.run("backtest-usdm.toml", &data, &[]);
    run.prove(&data);
    run.has_fills("mm-btc", true, 5);
    let again = bench.run("backtest-usdm.toml", &data, &[]);
    assert_eq!(run.fingerprint(), again.fingerprint());
    let run = bench.run("backtest-usdm.toml", &data, &[AT_TOUCH]);
    run.prove(&data);
    run.has_fills("mm-btc", true, 100);
    let run = bench.run("demo.toml", &data, &[]);
    run.prove(&data);
    run.has_fills("maker", true, 5);
    run.has_fills("ema", false, 2);
}

#[test]
fn recorded_spot_reconciles() {
    let Some(data) = recorded("spot-btcusdt-20240808.gz") else {
        return;
    };
    let mut bench = Bench::new();
    let run = bench.run("backtest-spot.toml", &data, &[]);
    run.prove(&data);
    run.has_fills("mm-spot", true, 1);
    let run = bench.run("backtest-spot.toml", &data, &[AT_TOUCH]);
    run.prove(&data);
    run.has_fills("mm-spot", true, 100);
}
