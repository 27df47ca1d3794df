//! The message, file and line of a panic in a strategy must be visible: in the log, in the status,
//! and in the summary and report of a backtest.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use serde_json::Value;
use tempfile::TempDir;
use windvane_tests::binary::{root, run, succeed};
use windvane_tests::launch::Launch;
use windvane_tests::venue::Venue;

const PLACE: &str = "panicked at tests/panics/src/lib.rs:";
const WORDS: &str = "no position for the first trade";

#[track_caller]
fn is_shown(text: &str) {
    assert!(text.contains(PLACE) && text.contains(WORDS), "{text}");
    assert!(!text.contains("rust_abort"), "{text}");
}

/// A configuration with this strategy only.
fn config(folder: &TempDir, base: &str, more: &str) -> String {
    let file = folder.path().join("panics.toml");
    let text = format!(
        "{base}\n[[strategy]]\nid = \"panics\"\nmodule = '{}'\ninstruments = \
         [\"futures:BTCUSDT\"]\nstreams = [\"trade\"]\n{more}",
        root().join("tests/panics").display()
    );
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[test]
fn a_backtest_shows_where_a_strategy_panicked() {
    let folder = TempDir::new().unwrap();
    let session = folder.path().join("session.gz").display().to_string();
    succeed(["data", "generate", "--minutes", "1", "--out", &session]);
    let base = "[sim]\nstart_balance = { \"futures:USDT\" = \"1000\" }\n[[instrument]]\n\
                name = \"futures:BTCUSDT\"\ntick = \"0.10\"\nstep = \"0.001\"";
    // The panic message must not need the `orders` capability.
    for more in ["", "capabilities = [\"orders\"]\n"] {
        let config = config(&folder, base, more);
        let out = folder.path().join("out").display().to_string();
        let shown = run([
            "backtest", "--config", &config, "--data", &session, "--out", &out,
        ]);
        is_shown(&String::from_utf8_lossy(&shown.stdout));
        is_shown(&String::from_utf8_lossy(&shown.stderr));
        let read = |name: &str| std::fs::read_to_string(format!("{out}/{name}")).unwrap();
        let summary: Value = serde_json::from_str(&read("summary.json")).unwrap();
        assert_eq!(summary["strategies"][0]["state"], "quarantined: trap");
        is_shown(summary["strategies"][0]["fault"].as_str().unwrap());
        is_shown(&read("report.html"));
    }
}

#[test]
fn log_and_status_of_a_run_show_where_a_strategy_panicked() {
    let venue = Venue::start(&["--seed", "41"]);
    let folder = TempDir::new().unwrap();
    let base = include_str!("../../configs/live-sim.toml");
    let base = base.split("[[strategy]]").next().unwrap();
    let config = config(&folder, base, "");
    let data = folder.path().join("data");
    let mut instance = Launch::new(&venue, &data).config(config.as_ref()).start();
    instance.ready();
    let shown = instance.until("strategies", &|all| all[0]["state"] == "quarantined");
    is_shown(shown[0]["reason"].as_str().unwrap());
    is_shown(&instance.log());
    assert_eq!(instance.terminate().code(), Some(0));
}
