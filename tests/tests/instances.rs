//! Two instances of the real binary on one account, each with its own data folder, and a data
//! folder that was wiped.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use windvane_tests::binary;
use windvane_tests::fixture::rows;
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::modules;
use windvane_tests::venue::Venue;

/// Longest wait for a state; it includes one build of the strategies.
const PATIENCE: Duration = Duration::from_mins(1);
/// The watch for another instance takes two of these intervals.
const RECONCILE: &str = "reconcile.interval_ms=5000";

fn launch(venue: &Venue, folder: &str) -> Launch {
    Launch::new(venue, &venue.folder().join(folder))
        .modules(&["market_maker", "ema_cross"])
        .set(RECONCILE)
}

fn state(is: &'static str) -> impl Fn(&Value) -> bool {
    move |status| status["state"] == is
}

fn until(instance: &mut Instance, is: &'static str) -> Value {
    let admin = instance.admin();
    instance
        .until_shown(&admin, "/api/status", PATIENCE, &state(is))
        .0
}

/// Waits until a start watches the account for another instance, with this reason.
fn until_watches(instance: &mut Instance, why: &str) {
    let admin = instance.admin();
    let watches = |status: &Value| {
        let reason = status["reason"].as_str().unwrap_or_default();
        status["state"] == "syncing" && reason.contains(why)
    };
    instance.until_shown(&admin, "/api/status", PATIENCE, &watches);
}

/// Places an order that the instance did not send, with an id from a recent second.
fn place(venue: &Venue, id: &str) {
    venue.control(
        "/act",
        &json!({
            "act": "place", "symbol": "BTCUSDT", "side": "BUY", "price": "50000",
            "quantity": "0.01", "client_order_id": id,
        }),
    );
}

/// Whether the start is complete.
fn has_begun(status: &Value) -> bool {
    status["state"] == "ready" || status["state"] == "degraded"
}

fn sees_another(status: &Value) -> bool {
    status["degraded_reasons"]
        .to_string()
        .contains("another instance")
}

fn status_of(venue: &Venue, id: &str) -> String {
    let account = venue.account();
    let mut orders = rows(&account["orders"]);
    let order = orders.find(|order| order["client_order_id"] == id).unwrap();
    order["status"].as_str().unwrap().to_owned()
}

/// An id of a strategy whose epoch is the current second, as a start would use it.
fn own_form(strategy: &str) -> String {
    let mut second = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let mut digits = Vec::new();
    while second > 0 {
        digits.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[(second % 36) as usize]);
        second /= 36;
    }
    let epoch: String = digits
        .iter()
        .rev()
        .map(|digit| char::from(*digit))
        .collect();
    format!("{strategy}.{epoch}.900")
}

fn check(venue: &Venue, data: &Path) -> (Option<i32>, String) {
    check_with(venue, data, "configs/live-sim.toml")
}

fn check_with(venue: &Venue, data: &Path, config: &str) -> (Option<i32>, String) {
    let setting = format!("run.data_dir={}", data.display());
    let file = venue.file();
    let output = binary::run([
        "check",
        "--config",
        config,
        "--venue",
        file.to_str().unwrap(),
        "--set",
        &setting,
    ]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), printed)
}

#[test]
fn a_second_instance_exits_with_2_and_the_first_trades_on() {
    let venue = Venue::start(&["--seed", "61", "--weight", "24000"]);
    let mut first = launch(&venue, "first").start();
    until(&mut first, "ready");
    let admin = first.admin();
    let quotes = |orders: &Value| rows(orders).any(|order| order["strategy"] == "maker");
    first.until_shown(&admin, "/api/orders", PATIENCE, &quotes);

    let (code, printed) = check(&venue, &venue.folder().join("second"));
    assert_eq!(code, Some(1), "{printed}");
    let instances = printed.lines().find(|line| line.contains("instances"));
    assert!(
        instances.is_some_and(|line| line.starts_with("NO-GO")),
        "{printed}"
    );
    let (_, printed) = check(&venue, &venue.folder().join("first"));
    assert!(
        !printed.contains("did not create"),
        "the first instance's own folder must pass: {printed}"
    );

    let mut second = launch(&venue, "second").start();
    until_watches(&mut second, "another instance");
    // A fill makes the first instance place its next order.
    let orders = first.admin().must_show("/api/orders");
    let order = rows(&orders).find(|order| order["strategy"] == "maker");
    let id = &order.unwrap()["client_order_id"];
    let fill = json!({"act": "fill", "symbol": "BTCUSDT", "client_order_id": id});
    venue.control("/act", &fill);
    let log = venue.folder().join("second.log");
    let ended = second.end_within(PATIENCE);
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(ended.code(), Some(2), "{log}");
    assert!(
        log.contains("another instance trades on this account"),
        "{log}"
    );
    until(&mut first, "ready");
    assert!(!first.log().contains("another instance"), "{}", first.log());

    // The service manager must not start it again.
    let unit = std::fs::read_to_string(binary::root().join("configs/windvane.service")).unwrap();
    assert!(
        unit.lines()
            .any(|line| line == "RestartPreventExitStatus=2")
    );
    assert_eq!(first.terminate().code(), Some(0));
}

#[test]
fn a_wiped_folder_adopts_its_orders_after_the_watch() {
    let venue = Venue::start(&["--seed", "62", "--weight", "24000"]);
    let launch = launch(&venue, "data");
    let mut instance = launch.start();
    until(&mut instance, "ready");
    let admin = instance.admin();
    let quotes = |orders: &Value| rows(orders).any(|order| order["strategy"] == "maker");
    instance.until_shown(&admin, "/api/orders", PATIENCE, &quotes);
    instance.kill();
    std::fs::remove_dir_all(launch.data()).unwrap();
    // Also an order of a strategy that is not configured.
    let gone = own_form("gone");
    place(&venue, &gone);

    let mut instance = launch.start();
    let admin = instance.admin();
    until_watches(&mut instance, "was deleted");
    assert_eq!(
        status_of(&venue, &gone),
        "NEW",
        "no cancel is sent during the watch"
    );
    // A quote may have filled. Then the operator must resume, because no strategy is known to own
    // the position.
    let is_over = |status: &Value| status["state"] != "syncing";
    let (status, _) = instance.until_shown(&admin, "/api/status", PATIENCE, &is_over);
    if status["state"] == "degraded" {
        assert!(
            status["degraded_reasons"].to_string().contains("resume"),
            "{status}"
        );
        admin.command("/api/resume");
    }
    until(&mut instance, "ready");
    let log = instance.log();
    let adopts = ["still open are adopted", "still open is adopted"];
    let is_adopted = adopts.iter().any(|text| log.contains(text));
    // Both quotes may have filled during the watch. Then the log has a line for each fill.
    let (watch, _) = log
        .split_once("none of its orders is still open")
        .unwrap_or_default();
    let filled = watch
        .matches("an order or fill from outside this run on the account")
        .count();
    assert!(is_adopted || filled >= 2, "{log}");
    instance.until_shown(&admin, "/api/orders", PATIENCE, &|_| {
        status_of(&venue, &gone) == "CANCELED"
    });
    instance.until_shown(&admin, "/api/orders", PATIENCE, &quotes);
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_running_instance_degrades_when_it_sees_another() {
    let venue = Venue::start(&["--seed", "63", "--weight", "24000"]);
    let mut instance = launch(&venue, "data").argument("--take-over").start();
    until(&mut instance, "ready");
    let other = own_form("other");
    place(&venue, &other);
    let status = until(&mut instance, "degraded");
    let reasons = status["degraded_reasons"].to_string();
    assert!(
        reasons.contains("another instance") && reasons.contains(&other),
        "{reasons}"
    );
    assert_eq!(
        status_of(&venue, &other),
        "NEW",
        "the order of the other instance must stay"
    );
    instance.admin().command("/api/resume");
    until(&mut instance, "ready");
    let admin = instance.admin();
    instance.until_shown(&admin, "/api/orders", PATIENCE, &|_| {
        status_of(&venue, &other) == "CANCELED"
    });
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn take_over_skips_the_watch_for_another_instance() {
    let venue = Venue::start(&["--seed", "64", "--weight", "24000"]);
    let left = own_form("gone");
    place(&venue, &left);
    let mut instance = launch(&venue, "data").argument("--take-over").start();
    until(&mut instance, "ready");
    let log = instance.log();
    assert!(!log.contains("another instance"), "{log}");
    assert_eq!(status_of(&venue, &left), "CANCELED");
    assert_eq!(instance.terminate().code(), Some(0));
}

fn holds(positions: &Value) -> bool {
    rows(positions).any(|row| row["strategy"] == "maker")
}

/// Fills one quote of an instance, and waits until its strategy holds a position.
fn fill_quote(venue: &Venue, instance: &mut Instance) {
    let admin = instance.admin();
    let quote = |order: &&Value| order["strategy"] == "maker";
    let quotes = |orders: &Value| rows(orders).any(|order| quote(&order));
    let (orders, _) = instance.until_shown(&admin, "/api/orders", PATIENCE, &quotes);
    let id = rows(&orders).find(quote).unwrap()["client_order_id"].clone();
    let fill = json!({"act": "fill", "symbol": "BTCUSDT", "client_order_id": id});
    venue.control("/act", &fill);
    instance.until_shown(&admin, "/api/positions", PATIENCE, &holds);
}

#[test]
fn positions_of_two_instances_can_be_flattened() {
    let venue = Venue::start(&["--seed", "65", "--weight", "24000"]);
    let mut first = launch(&venue, "first").start();
    until(&mut first, "ready");
    fill_quote(&venue, &mut first);
    let mut second = launch(&venue, "second").argument("--take-over").start();
    let admin = second.admin();
    second.until_shown(&admin, "/api/status", PATIENCE, &has_begun);
    // The first instance may detect the second one before it places its next order.
    place(&venue, &own_form("other"));
    second.until_shown(&admin, "/api/status", PATIENCE, &sees_another);
    first.kill();
    admin.command("/api/resume");
    until(&mut second, "ready");
    fill_quote(&venue, &mut second);

    admin.command("/api/flatten");
    second.until_shown(&admin, "/api/positions", PATIENCE, &|positions| {
        !holds(positions)
    });
    second.until_shown(&admin, "/api/orders", PATIENCE, &|orders| {
        *orders == json!([])
    });
    let log = second.log();
    assert_eq!(second.terminate().code(), Some(0), "{log}");
}

/// `configs/live-sim.toml` with one strategy that uses only market orders, about one a second.
fn at_market(venue: &Venue) -> PathBuf {
    let whole = std::fs::read_to_string(binary::root().join("configs/live-sim.toml")).unwrap();
    let (head, _) = whole.split_once("[[strategy]]").unwrap();
    let module = modules::built("ema_cross");
    let strategy = format!(
        "[[strategy]]\nid = \"ema\"\nmodule = \"{}\"\ninstruments = [\"futures:BTCUSDT\"]\n\
         streams = [\"trade\"]\non_fault = \"flatten\"\n\n[strategy.params]\nqty = \"0.01\"\n\
         fast = 5\nslow = 10\nmode = \"flip_each_sign\"\n",
        module.display()
    );
    let file = venue.folder().join("at-market.toml");
    std::fs::write(&file, format!("{head}{strategy}")).unwrap();
    file
}

/// Epochs in the ids of the strategy's orders, by first use.
fn epochs(venue: &Venue) -> Vec<String> {
    let account = venue.account();
    let mut epochs = Vec::new();
    for order in rows(&account["orders"]) {
        let id = order["client_order_id"].as_str().unwrap();
        let mut parts = id.split('.');
        if let (Some("ema"), Some(epoch)) = (parts.next(), parts.next())
            && !epochs.iter().any(|known| known == epoch)
        {
            epochs.push(epoch.to_owned());
        }
    }
    epochs
}

fn launch_at_market(venue: &Venue, config: &Path, folder: &str) -> Launch {
    Launch::new(venue, &venue.folder().join(folder))
        .config(config)
        .set(RECONCILE)
}

/// Starts an instance that uses only market orders, and waits for its first order.
fn start_at_market(venue: &Venue, config: &Path) -> Instance {
    let mut first = launch_at_market(venue, config, "first").start();
    until(&mut first, "ready");
    let admin = first.admin();
    first.until_shown(&admin, "/api/status", PATIENCE, &|_| {
        !epochs(venue).is_empty()
    });
    first
}

/// `check` and `run` of a second instance detect the first one and place nothing. Returns the
/// output of `check` and the log of `run`.
fn refuse_second(venue: &Venue, config: &Path) -> (String, String) {
    let config_text = config.to_str().unwrap();
    let (code, found) = check_with(venue, &venue.folder().join("second"), config_text);
    assert_eq!(code, Some(1), "{found}");
    assert!(found.contains("this data folder did not create"), "{found}");
    let (_, printed) = check_with(venue, &venue.folder().join("first"), config_text);
    assert!(
        !printed.contains("this data folder did not create"),
        "the first instance's own folder must pass: {printed}"
    );
    let second = launch_at_market(venue, config, "second").start();
    let ended = second.end_within(PATIENCE);
    let log = std::fs::read_to_string(venue.folder().join("second.log")).unwrap();
    assert_eq!(ended.code(), Some(2), "{log}");
    assert_eq!(
        epochs(venue).len(),
        1,
        "the second instance placed an order"
    );
    (found, log)
}

#[test]
fn a_second_instance_detects_one_with_only_market_orders() {
    let venue = Venue::start(&["--seed", "66", "--weight", "24000"]);
    let config = at_market(&venue);
    let mut first = start_at_market(&venue, &config);
    let is_open = |order: &Value| order["open"] == true;
    assert!(!rows(&venue.account()["orders"]).any(is_open));

    let (printed, log) = refuse_second(&venue, &config);
    let instances = printed.lines().find(|line| line.contains("instances"));
    assert!(
        instances.is_some_and(|line| line.starts_with("NO-GO") && line.contains("ema.")),
        "{printed}"
    );
    assert!(
        log.contains("another instance trades on this account"),
        "{log}"
    );
    until(&mut first, "ready");
    assert!(!first.log().contains("another instance"), "{}", first.log());

    // The folder is wiped. No order may be placed during the watch.
    first.kill();
    std::fs::remove_dir_all(venue.folder().join("first")).unwrap();
    let mut first = launch_at_market(&venue, &config, "first").start();
    until_watches(&mut first, "was deleted");
    until(&mut first, "ready");
    let admin = first.admin();

    // Another instance begins to place market orders.
    let order = json!({
        "act": "place", "symbol": "BTCUSDT", "side": "BUY", "type": "MARKET", "quantity": "0.01",
        "client_order_id": own_form("other"),
    });
    venue.control("/act", &order);
    first.until_shown(&admin, "/api/status", PATIENCE, &sees_another);
    let log = first.log();
    let is_error = |line: &&str| line.contains("ERROR") && line.contains("another instance");
    assert_eq!(log.lines().filter(is_error).count(), 1, "{log}");
    assert_eq!(first.terminate().code(), Some(0));
}

#[test]
fn a_second_instance_is_detected_without_account_trades() {
    let venue = Venue::start(&["--seed", "68", "--weight", "24000"]);
    venue.control("/choices", &json!({"account-trades-route": "404"}));
    let config = at_market(&venue);
    let _first = start_at_market(&venue, &config);

    refuse_second(&venue, &config);

    let neither = json!({"account-trades-route": "404", "all-orders-route": "404"});
    venue.control("/choices", &neither);
    let config = config.to_str().unwrap();
    let (code, printed) = check_with(&venue, &venue.folder().join("second"), config);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("cannot be excluded"), "{printed}");
}
