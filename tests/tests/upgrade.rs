//! Data folders of earlier versions: the current binary must open them, recover positions, orders
//! and kill switches, and continue to trade.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rust_decimal::Decimal;
use serde_json::{Value, json};
use windvane_tests::agreement;
use windvane_tests::binary;
use windvane_tests::fixture::{self, Fixture, rows};
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::parallel;
use windvane_tests::venue::Venue;

const MODULES: [&str; 3] = ["market_maker", "ema_cross", "grid"];
/// Longest wait for a state; it includes one build of the strategies.
const PATIENCE: Duration = Duration::from_mins(4);
/// How long positions and the log may disagree.
const SETTLES: Duration = Duration::from_secs(30);
/// Fixtures that are checked at the same time in each of the two tests.
const WORKERS: usize = 6;
/// Log texts that show that the journal was not used.
const LOST: [&str; 4] = [
    "cannot be used",
    "cannot be trusted and is not used",
    "does not know every order",
    "cannot be read",
];

/// Quantities of the strategies' positions, by strategy and instrument.
fn positions(own: &Value) -> BTreeMap<(String, String), String> {
    let word = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
    let owned = rows(&own["positions"]).filter(|row| !row["strategy"].is_null());
    let held = owned.map(|row| {
        let key = (word(row, "strategy"), word(row, "instrument"));
        (key, word(row, "qty"))
    });
    held.collect()
}

/// Client order ids with their strategies.
fn owners(own: &Value) -> BTreeMap<String, Value> {
    let orders = rows(&own["orders"]).map(|row| {
        let id = row["client_order_id"].as_str().unwrap();
        (id.to_owned(), row["strategy"].clone())
    });
    orders.collect()
}

/// Checks that nothing of the journal was lost and that the epoch increased.
fn recovered(instance: &mut Instance, left: &Value) -> Value {
    let admin = instance.admin();
    let paused = |status: &Value| status["state"] == "paused";
    let (status, _) = instance.until_shown(&admin, "/api/status", PATIENCE, &paused);
    let log = instance.log();
    for text in LOST {
        assert!(!log.contains(text), "{text}\n{log}");
    }
    let epoch = |status: &Value| status["epoch"].as_u64().unwrap();
    assert!(epoch(&status) > epoch(&left["status"]), "{status}");
    status
}

/// Checks that a new order is placed with the new epoch after `resume`.
fn trades_on(instance: &mut Instance, epoch: &Value) {
    let epoch = base36(epoch.as_u64().unwrap());
    instance.admin().command("/api/resume");
    let admin = instance.admin();
    instance.until_shown(&admin, "/api/orders", PATIENCE, &|orders| {
        rows(orders).any(|order| {
            let id = order["client_order_id"].as_str().unwrap_or_default();
            is_of_epoch(id, &epoch) && order["status"] == "NEW"
        })
    });
}

fn base36(mut value: u64) -> String {
    let mut digits = Vec::new();
    while value > 0 {
        digits.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[(value % 36) as usize]);
        value /= 36;
    }
    digits
        .iter()
        .rev()
        .map(|digit| char::from(*digit))
        .collect()
}

/// Checks that `replay --verify` names the versions of the engine rules. The journal holds segments
/// of the old program, which the current program does not verify.
fn names_the_rules(data: &Path) {
    let output = binary::run(["replay", data.to_str().unwrap(), "--verify", "--json"]);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rules = &printed["engine_rules"];
    let stderr = String::from_utf8_lossy(&output.stderr);
    if rules["other"].is_null() {
        assert_eq!(output.status.code(), Some(0), "{printed:#}\n{stderr}");
        return;
    }
    assert_eq!(output.status.code(), Some(4), "{printed:#}\n{stderr}");
    assert_eq!(printed["equal"], json!(false));
    let program = rules["program"].to_string();
    let journal = rules["other"]["rules"][0].to_string();
    for (side, version) in [("program has", program), ("written under", journal)] {
        let text = format!("{side} engine rules {version}");
        assert!(stderr.contains(&text), "{text}: {stderr}");
    }
}

/// Checks that the strategies hold the recorded positions. A paused strategy may close its position
/// at once at the prices of the new market. So the current position minus the fills since the start
/// must equal the recorded position.
fn holds_what_was_left(instance: &Instance, left: &Value) {
    let expected = quantities(&left["own"]);
    let started = Instant::now();
    loop {
        // The log may be a moment behind the positions.
        let (own, log) = (agreement::own(&instance.admin()), instance.log());
        let mut held = quantities(&own);
        for (strategy, bought) in fills(&log) {
            *held.entry(strategy).or_default() -= bought;
        }
        held.retain(|_, qty| !qty.is_zero());
        if held == expected {
            return;
        }
        let waited = started.elapsed();
        assert!(waited < SETTLES, "{held:?} {expected:?}\n{own:#}\n{log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Checks that the open orders are recorded ones and belong to the same strategies. A strategy trades
/// on meanwhile, also while it is paused: it may have ended recorded orders, and it may have placed
/// orders that reduce its position, which have the new epoch.
fn keeps_the_orders(
    instance: &Instance,
    open: &BTreeMap<String, Value>,
    left: &Value,
    epoch: &Value,
) {
    let epoch = base36(epoch.as_u64().unwrap());
    let before = owners(&left["own"]);
    let log = instance.log();
    let recorded = open.iter().filter(|(id, _)| !is_of_epoch(id, &epoch));
    for (id, strategy) in recorded {
        assert_eq!(before.get(id), Some(strategy), "{id}\n{log}");
    }
    let is_known = |id: &String| open.contains_key(id) || log.contains(id.as_str());
    assert!(before.keys().any(is_known), "no order was recovered\n{log}");
}

fn is_of_epoch(id: &str, epoch: &str) -> bool {
    id.split('.').nth(1) == Some(epoch)
}

/// The strategies and signed quantities of the fills in a log.
fn fills(log: &str) -> Vec<(String, Decimal)> {
    let reported = log
        .lines()
        .filter(|line| line.contains(" filled strategy="));
    reported
        .map(|line| {
            let field = |name: &str| {
                let rest = line.split_once(&format!(" {name}=")).unwrap().1;
                rest.split(' ').next().unwrap().trim_matches('"').to_owned()
            };
            let qty: Decimal = field("qty").parse().unwrap();
            let bought = if field("side") == "BUY" { qty } else { -qty };
            (field("strategy"), bought)
        })
        .collect()
}

/// The position of each strategy; each trades one instrument.
fn quantities(own: &Value) -> BTreeMap<String, Decimal> {
    let held = positions(own).into_iter();
    held.map(|((strategy, _), qty)| (strategy, qty.parse().unwrap()))
        .collect()
}

fn live(fixture: &Fixture) {
    let left = &fixture.manifest["live"];
    let venue = fixture.venue();
    let data = venue.folder().join("data");
    fixture.unpack("live", &data);
    let mut instance = Launch::new(&venue, &data)
        .config(&fixture.config("live"))
        .modules(&MODULES)
        .start();
    let status = recovered(&mut instance, left);
    let own = agreement::own(&instance.admin());
    holds_what_was_left(&instance, left);
    keeps_the_orders(&instance, &owners(&own), left, &status["epoch"]);
    trades_on(&mut instance, &status["epoch"]);
    instance.admin().command("/api/halt");
    let agreed = agreement::wait(&instance.admin(), &venue, PATIENCE);
    agreed.unwrap_or_else(|differing| panic!("{differing:#?}\n{}", instance.log()));
    assert_eq!(instance.terminate().code(), Some(0));
    names_the_rules(&data);
}

fn paper(fixture: &Fixture) {
    let left = &fixture.manifest["paper"];
    let venue = Venue::start(&["--seed", fixture::SEED]);
    let data = venue.folder().join("paper");
    fixture.unpack("paper", &data);
    let mut instance = Launch::paper(&venue, &data)
        .config(&fixture.config("paper"))
        .modules(&MODULES)
        .start();
    let status = recovered(&mut instance, left);
    holds_what_was_left(&instance, left);
    trades_on(&mut instance, &status["epoch"]);
    assert_eq!(instance.terminate().code(), Some(0));
    names_the_rules(&data);
}

/// Checks all fixtures, several at the same time. A check needs little of the processor: for up to a
/// minute it waits until the run is in agreement with the venue. Each check has its own venue and data
/// folder.
fn each_fixture(check: fn(&Fixture)) {
    let fixtures = fixture::all();
    assert!(!fixtures.is_empty());
    let failed = parallel::failed(&fixtures, WORKERS, Fixture::name, check);
    assert_eq!(failed, Vec::<String>::new());
}

#[test]
fn live_folders_of_earlier_versions_are_recovered_and_traded_on() {
    each_fixture(live);
}

#[test]
fn paper_folders_of_earlier_versions_are_recovered() {
    each_fixture(paper);
}
