//! `windvane run` against the simulated venue, with real processes. Its reported orders match the
//! venue's, a kill loses nothing, and an orderly end leaves no order behind.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rust_decimal::Decimal;
use serde_json::{Value, json};
use windvane_tests::binary;
use windvane_tests::instance::{Instance, verb_in};
use windvane_tests::venue::Venue;

/// Open orders of the venue's account.
fn venue_orders(account: &Value) -> Vec<&Value> {
    let orders = account["orders"].as_array().unwrap().iter();
    orders
        .filter(|order| order["open"] == json!(true))
        .collect()
}

fn decimal(value: &Value) -> Decimal {
    value.as_str().unwrap().parse().unwrap()
}

/// The account's positions, by instrument.
fn own_positions(positions: &Value) -> BTreeMap<String, Decimal> {
    let positions = positions.as_array().unwrap().iter();
    let accounts = positions.filter(|position| position["strategy"].is_null());
    accounts
        .map(|row| {
            let name = row["instrument"].as_str().unwrap().to_owned();
            (name, decimal(&row["qty"]))
        })
        .collect()
}

fn venue_positions(account: &Value) -> BTreeMap<String, Decimal> {
    let positions = account["positions"].as_array().unwrap().iter();
    positions
        .map(|row| {
            let name = format!("futures:{}", row["symbol"].as_str().unwrap());
            (name, decimal(&row["qty"]))
        })
        .collect()
}

/// The futures wallet in USDT, as the instance reports it.
fn own_wallet(balances: &Value) -> Option<Decimal> {
    let mut rows = balances.as_array().unwrap().iter();
    let row = rows.find(|row| row["surface"] == "futures" && row["asset"] == "USDT");
    row.map(|row| decimal(&row["total"]))
}

fn wallet_of(account: &Value) -> Decimal {
    let mut rows = account["balances"]["futures"].as_array().unwrap().iter();
    let row = rows.find(|row| row["asset"] == "USDT").unwrap();
    decimal(&row["wallet"])
}

/// All files and folders below a folder.
fn all_in(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(all_in(&path));
        }
        all.push(path);
    }
    all
}

/// Checks that only the owner can read the files in the data folder.
fn only_the_owners(data: &Path) {
    let all = all_in(data);
    assert!(all.len() > 10, "{all:?}");
    for path in all {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let private = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, private, "{mode:o} {}", path.display());
    }
}

fn open_to_all(data: &Path) {
    for path in all_in(data) {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
}

#[test]
fn a_kill_loses_nothing_and_an_orderly_end_leaves_nothing() {
    let venue = Venue::start(&["--seed", "7"]);
    let data = venue.folder().join("data");
    let mut instance = Instance::start(&venue, &data);
    instance.ready();
    instance.until("orders", &|orders| {
        orders
            .as_array()
            .is_some_and(|orders| orders.iter().any(|order| order["status"] == "NEW"))
    });
    assert!(!venue_orders(&venue.account()).is_empty());

    let second = Instance::refused(&venue, &data);
    let printed = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{printed}");
    assert!(printed.contains("another instance, pid "), "{printed}");

    let epoch = instance.answer("status")["epoch"].as_u64().unwrap();
    instance.kill();
    only_the_owners(&data);
    // An earlier version left files with these permissions.
    open_to_all(&data);
    assert_eq!(verb_in(&data, "status").status.code(), Some(3));

    let mut instance = Instance::start(&venue, &data);
    instance.ready();
    only_the_owners(&data);
    assert!(instance.answer("status")["epoch"].as_u64().unwrap() > epoch);
    instance.answer("halt");
    instance.until("orders", &|orders| *orders == json!([]));
    let account = venue.account();
    assert!(venue_orders(&account).is_empty(), "{}", account["orders"]);
    assert_eq!(account["accepted"]["repeated"], json!({}));
    let positions = instance.answer("positions");
    assert_eq!(own_positions(&positions), venue_positions(&account));
    let wallet = wallet_of(&account);
    instance.until("balances", &|balances| own_wallet(balances) == Some(wallet));
    let ended = instance.terminate();
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn a_halt_survives_a_kill_until_resume() {
    let venue = Venue::start(&["--seed", "8"]);
    let data = venue.folder().join("data");
    let mut instance = Instance::start(&venue, &data);
    instance.ready();
    let halted = instance.answer("halt");
    assert_eq!(halted["state"], "halted", "{halted}");
    instance.kill();

    let mut instance = Instance::start(&venue, &data);
    let started = instance.until("status", &|status| {
        status["state"] == "halted" && status["degraded_reasons"] == json!([])
    });
    assert_eq!(started["open_orders"], 0);
    instance.answer("resume");
    instance.ready();
    instance.until("orders", &|orders| *orders != json!([]));
    let ended = instance.terminate();
    assert_eq!(ended.code(), Some(0));
    assert!(venue_orders(&venue.account()).is_empty());
}

#[test]
fn a_folder_of_another_venue_is_paused_until_resume() {
    let (first, second) = (
        Venue::start(&["--seed", "9"]),
        Venue::start(&["--seed", "9"]),
    );
    let data = first.folder().join("data");
    let mut instance = Instance::start(&first, &data);
    instance.ready();
    let account_file = std::fs::read_to_string(data.join("account")).unwrap();
    let account = &first.line()["accounts"][0];
    for secret in ["apiKey", "user"] {
        assert!(
            !account_file.contains(account[secret].as_str().unwrap()),
            "{account_file}"
        );
    }
    instance.kill();

    let check = |venue: &Venue| {
        let output = Command::new(binary::path())
            .current_dir(binary::root())
            .args(["check", "--config", "configs/live-sim.toml", "--venue"])
            .arg(venue.file())
            .arg("--set")
            .arg(format!("run.data_dir={}", data.display()))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // A different port is not a different venue.
    assert!(!check(&second).contains("another venue"));
    let moved = account_file.replace("127.0.0.1", "elsewhere.example");
    std::fs::write(data.join("account"), moved).unwrap();
    assert!(check(&second).contains("run.data_dir belongs to another venue"));

    let mut instance = Instance::start(&second, &data);
    let started = instance.until("status", &|status| {
        status["state"] == "paused" && status["degraded_reasons"] == json!([])
    });
    let reason = started["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("run.data_dir belongs to another venue"),
        "{reason}"
    );
    assert!(reason.contains("windvane resume"), "{reason}");
    assert!(
        instance
            .log()
            .contains("run.data_dir belongs to another venue")
    );
    instance.kill();
    // The operator has not resumed yet, so the next start must be paused too.
    let mut instance = Instance::start(&second, &data);
    instance.until("status", &|status| {
        status["state"] == "paused" && status["degraded_reasons"] == json!([])
    });
    assert_eq!(second.account()["accepted"]["total"], 0);
    instance.answer("resume");
    instance.ready();
    assert!(!check(&second).contains("another venue"));
    instance.kill();
    let mut instance = Instance::start(&second, &data);
    instance.ready();
    assert_eq!(instance.terminate().code(), Some(0));
}
