//! The versions of the strategy contract. Modules of 0.1, which the data folders of earlier
//! programs hold, must always replay, but they can no longer trade.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;
use windvane_tests::binary::{self, succeed};
use windvane_tests::fixture::{self, Fixture, rows};
use windvane_tests::launch::Launch;

/// The newest data folder with modules of contract 0.1.
const OLD: &str = "0.1.0-rules-11";
/// From these engine rules on, a replay finds no difference.
const EQUAL_SINCE: u64 = 9;

fn old() -> Fixture {
    let mut all = fixture::all().into_iter();
    all.find(|fixture| fixture.name() == OLD).unwrap()
}

/// The first module file in a data folder.
fn module(data: &Path) -> PathBuf {
    let entries = std::fs::read_dir(data.join("modules")).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.swap_remove(0)
}

/// The client order ids of an account at the venue.
fn orders(account: &Value) -> BTreeSet<String> {
    let orders = rows(&account["orders"]);
    orders
        .map(|order| order["client_order_id"].to_string())
        .collect()
}

fn code_2_and_what_to_build(output: &Output, strategy: &str, file: &Path) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    for part in [
        &format!("strategy {strategy}:"),
        &file.display().to_string(),
        "strategy contract 0.1",
        "contract 0.2",
        "no order was touched",
        "`windvane build DIR`",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

#[test]
fn journals_of_0_1_replay_with_their_own_modules() {
    let mut answered = 0;
    for fixture in fixture::all() {
        let number = fixture.name().rsplit('-').next().unwrap().parse::<u64>();
        let number = number.unwrap();
        for run in ["live", "paper"] {
            let folder = TempDir::new().unwrap();
            fixture.unpack(run, folder.path());
            let data = folder.path().to_str().unwrap();
            let output = binary::run(["replay", data, "--verify", "--json"]);
            let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
            let name = format!("{} {run}: {printed:#}", fixture.name());
            assert_eq!(rows(&printed["modules"]).count(), 3, "{name}");
            for role in rows(&printed["modules"]) {
                assert_eq!(role["answers"], "module", "{name}");
                assert_eq!(role["altered"], json!(false), "{name}");
            }
            if number >= EQUAL_SINCE {
                // Under other engine rules the replay only counts differences; the count must be
                // zero.
                let count = &printed["engine_rules"]["other"]["count"];
                assert!(count.is_null() || *count == json!(0), "{name}");
                assert_eq!(printed["difference"], Value::Null, "{name}");
                answered += printed["module_answers"].as_u64().unwrap();
            }
        }
    }
    assert!(answered >= 80, "the modules gave only {answered} answers");
}

#[test]
fn a_backtest_refuses_a_module_of_0_1() {
    let folder = TempDir::new().unwrap();
    let fixture = old();
    fixture.unpack("live", folder.path());
    let session = folder.path().join("session.gz");
    let arguments = ["data", "generate", "--minutes", "1", "--out"];
    succeed(arguments.iter().map(Path::new).chain([session.as_path()]));
    let module = module(folder.path());
    let config = format!(
        "[[instrument]]\nname = \"futures:BTCUSDT\"\ntick = \"0.10\"\nstep = \"0.001\"\n\
         [[strategy]]\nid = \"old\"\nmodule = \"{}\"\ninstruments = [\"futures:BTCUSDT\"]\n\
         [sim]\nstart_balance = {{ \"futures:USDT\" = \"1000\" }}\n",
        module.display()
    );
    std::fs::write(folder.path().join("c.toml"), config).unwrap();
    let mut backtest = Command::new(binary::path());
    backtest.current_dir(folder.path()).args([
        "backtest",
        "--config",
        "c.toml",
        "--data",
        "session.gz",
    ]);
    code_2_and_what_to_build(&backtest.output().unwrap(), "old", &module);
}

#[test]
fn a_run_refuses_a_module_of_0_1_and_touches_no_order() {
    let fixture = old();
    let venue = fixture.venue();
    let data = venue.folder().join("data");
    fixture.unpack("live", &data);
    let module = module(&data);
    let epoch = std::fs::read(data.join("epoch")).unwrap();
    let before = orders(&venue.account());
    assert!(before.len() >= 5, "{before:?}");
    let run = Launch::new(&venue, &data)
        .config(&fixture.config("live"))
        .set(&format!("strategy.0.module={}", module.display()))
        .output();
    code_2_and_what_to_build(&run, "maker", &module);
    let after = venue.account();
    assert_eq!(orders(&after), before, "no order may be placed");
    let mut all = rows(&after["orders"]);
    assert!(all.all(|order| order["status"] != "CANCELED"), "{after:#}");
    assert_eq!(std::fs::read(data.join("epoch")).unwrap(), epoch);
}
