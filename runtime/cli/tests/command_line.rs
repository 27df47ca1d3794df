//! Runs the real binary as a user does, and tests its messages and exit codes when something is
//! wrong.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::{Command, Output};

const CONFIG: &str = r#"
[[strategy]]
id = "mm"
module = "no/such/strategy"
instruments = ["futures:BTCUSDT"]
"#;

/// Runs `windvane` in `dir`.
fn windvane(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windvane"))
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap()
}

/// Asserts that the call ended with code 2 and one error sentence. Returns the sentence.
#[track_caller]
fn refused(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(output.stdout.is_empty(), "stdout must contain only results");
    let errors: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("error: "))
        .collect();
    assert_eq!(errors.len(), 1, "stderr must contain one error: {text}");
    errors[0].to_owned()
}

fn with_config(text: &str, arguments: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("c.toml"), text).unwrap();
    windvane(
        dir.path(),
        &[&["backtest", "--config", "c.toml"], arguments].concat(),
    )
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let sentence = refused(&with_config("[sim]\nsead = 1\n", &[]));
    assert_eq!(
        sentence,
        "error: c.toml line 2: unknown key `sim.sead`; the nearest known key is `sim.seed`"
    );
}

#[test]
fn a_wrong_value_is_named_with_its_rule() {
    let sentence = refused(&with_config("[sim]\nqueue = \"lifo\"\n", &[]));
    assert!(
        sentence.contains("c.toml line 2: `sim.queue` = \"lifo\": must be one of"),
        "{sentence}"
    );
    let sentence = refused(&with_config("", &["--set", "sim.leverage=0"]));
    assert!(
        sentence.contains("--set sim.leverage: `sim.leverage` = 0"),
        "{sentence}"
    );
}

#[test]
fn a_missing_configuration_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let sentence = refused(&windvane(
        dir.path(),
        &["backtest", "--config", "none.toml"],
    ));
    assert!(
        sentence.contains("cannot read configuration none.toml"),
        "{sentence}"
    );
}

#[test]
fn a_backtest_error_names_the_missing_arguments() {
    assert!(refused(&with_config("", &[])).contains("[[strategy]]"));
    let sentence = refused(&with_config(CONFIG, &[]));
    assert!(sentence.contains("windvane data generate"), "{sentence}");
}

#[test]
fn a_missing_recording_error_explains_how_to_get_one() {
    let sentence = refused(&with_config(CONFIG, &["--data", "none.gz"]));
    assert!(sentence.contains("none.gz"), "{sentence}");
    assert!(
        sentence.contains("windvane data generate --out none.gz"),
        "{sentence}"
    );
}

#[test]
fn wrong_usage_ends_with_code_2() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [&["backtest"][..], &["sail"], &["data", "generate"], &[]] {
        let output = windvane(dir.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(windvane(dir.path(), &["--help"]).status.code(), Some(0));
}

#[test]
fn a_folder_without_a_strategy_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let sentence = refused(&windvane(dir.path(), &["build", "."]));
    assert!(sentence.contains("Cargo.toml"), "{sentence}");
}

/// Runs a backtest with this configuration in a folder that contains one minute of recorded futures
/// market.
fn on_a_minute(config: &str) -> Output {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("c.toml"), config).unwrap();
    std::fs::write(dir.path().join("bad.wasm"), b"\0asm and nothing else").unwrap();
    std::fs::write(dir.path().join("empty.txt"), "").unwrap();
    let arguments = ["data", "generate", "--minutes", "1", "--out", "minute.gz"];
    assert_eq!(windvane(dir.path(), &arguments).status.code(), Some(0));
    windvane(
        dir.path(),
        &["backtest", "--config", "c.toml", "--cache", "cache"],
    )
}

#[test]
fn a_missing_or_broken_module_is_refused() {
    let data = "[backtest]\ndata = [\"minute.gz\"]\n";
    let sentence = refused(&on_a_minute(&format!("{data}{CONFIG}")));
    assert!(sentence.contains("no/such/strategy"), "{sentence}");
    let bad = CONFIG.replace("no/such/strategy", "bad.wasm");
    let sentence = refused(&on_a_minute(&format!("{data}{bad}")));
    assert!(sentence.contains("strategy mm"), "{sentence}");
}

#[test]
fn an_instrument_that_is_not_recorded_is_refused() {
    let config = CONFIG.replace("futures:BTCUSDT", "futures:ETHUSDT");
    let sentence = refused(&on_a_minute(&format!(
        "[backtest]\ndata = [\"minute.gz\"]\n{config}"
    )));
    assert!(sentence.contains("futures:ETHUSDT"), "{sentence}");
}

#[test]
fn a_recording_without_events_is_refused() {
    let rules = "[[instrument]]\nname = \"futures:BTCUSDT\"\ntick = 0.1\nstep = 0.001\n";
    let text = format!("[backtest]\ndata = [\"empty.txt\"]\n{rules}{CONFIG}");
    let sentence = refused(&on_a_minute(&text));
    assert!(sentence.contains("empty.txt"), "{sentence}");
}

#[test]
fn a_generated_recording_is_sound_and_the_same_each_time() {
    let dir = tempfile::tempdir().unwrap();
    for file in ["a.gz", "b.gz"] {
        let arguments = [
            "data",
            "generate",
            "--minutes",
            "1",
            "--surface",
            "spot",
            "--out",
            file,
        ];
        assert_eq!(windvane(dir.path(), &arguments).status.code(), Some(0));
    }
    let read = |file| std::fs::read(dir.path().join(file)).unwrap();
    assert!(read("a.gz") == read("b.gz"));
    let output = windvane(
        dir.path(),
        &["data", "verify", "--json", "--cache", "c", "a.gz"],
    );
    assert_eq!(output.status.code(), Some(0));
    let surveys: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(surveys[0]["survey"]["instruments"][0]["symbol"], "BTCUSDT");
    std::fs::write(dir.path().join("cut.gz"), &read("a.gz")[..2000]).unwrap();
    let output = windvane(dir.path(), &["data", "verify", "--cache", "c", "cut.gz"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_dry_run_needs_no_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let call = ["call", "svc_getBalance", "blockTag=latest", "--dry-run"];
    let sentence = refused(&windvane(dir.path(), &call));
    assert!(
        sentence.starts_with("error: svc_getBalance requires address"),
        "{sentence}"
    );
    let address = "address=0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
    let output = windvane(dir.path(), &[&call[..], &[address]].concat());
    assert_eq!(output.status.code(), Some(0));
    let request: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(request["url"], "https://rpc.invalid/info");
}
