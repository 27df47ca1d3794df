//! A run that cannot trade reports the reason: a ban, a key without the trading right, a stopped
//! symbol, an empty wallet, or its only strategy in quarantine. The tests run the real binary
//! against the simulated venue.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use serde_json::{Value, json};
use windvane_tests::binary;
use windvane_tests::guest::Guest;
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::venue::Venue;

/// Longest wait for anything; it includes one build of the strategies.
const PATIENCE: Duration = Duration::from_mins(4);

fn launch(venue: &Venue) -> Launch {
    let modules = ["market_maker", "ema_cross"];
    Launch::new(venue, &venue.folder().join("data")).modules(&modules)
}

fn wait(instance: &mut Instance, is_it: &dyn Fn(&Value) -> bool) -> Value {
    let admin = instance.admin();
    instance
        .until_shown(&admin, "/api/status", PATIENCE, is_it)
        .0
}

/// The row of a blocked account, instrument or asset; `None` while it can trade.
fn block<'a>(status: &'a Value, what: &str) -> Option<&'a Value> {
    let mut rows = status["trading"].as_array().into_iter().flatten();
    rows.find(|row| row["what"] == what && row["open"] == false)
}

/// Checks that a row of the trading status has a reason, a time and an instruction.
fn is_explained(row: &Value, reason: &str) {
    let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
    assert!(text("reason").contains(reason), "{row:#}");
    assert!(text("what_to_do").len() > 20, "{row:#}");
    assert!(row["since_ms"].as_i64().is_some(), "{row:#}");
}

/// Checks that a status names the reason and does not report that all is well.
fn is_honest(status: &Value, reason: &str) {
    let printed = status["reason"].as_str().unwrap();
    assert!(printed.contains(reason), "{status:#}");
    assert!(!printed.contains("no problem is known"), "{status:#}");
}

fn metric(instance: &Instance, name: &str) -> Option<f64> {
    let text = instance.get("/metrics");
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn rights(venue: &Venue, trades: bool) {
    let act = json!({"act": "rights", "spot_trade": trades, "perp_trade": trades});
    venue.control("/act", &act);
}

fn orders_of(venue: &Venue) -> usize {
    venue.account()["orders"].as_array().unwrap().len()
}

/// How often the log contains a text.
fn logged(instance: &Instance, text: &str) -> usize {
    instance.log().matches(text).count()
}

#[test]
fn a_key_without_the_trading_right_is_detected_without_an_order() {
    let venue = Venue::start(&["--seed", "501"]);
    rights(&venue, false);
    let launch = launch(&venue);
    let data = format!("run.data_dir={}", launch.data().display());
    let file = venue.file().display().to_string();
    let check = || {
        let arguments = ["check", "--config", "configs/live-sim.toml", "--set", &data];
        let output = binary::run(arguments.into_iter().chain(["--venue", &file]));
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), printed)
    };
    let (code, printed) = check();
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("cannot trade") && printed.contains("-2015"),
        "{printed}"
    );
    assert!(
        printed.contains("give the key or agent the trading right"),
        "{printed}"
    );

    let mut instance = launch.start();
    let what = "futures account";
    let status = wait(&mut instance, &|status| block(status, what).is_some());
    is_explained(block(&status, what).unwrap(), "-2015");
    let status = wait(&mut instance, &|status| status["state"] == "degraded");
    is_honest(&status, "cannot trade");
    assert_eq!(
        orders_of(&venue),
        0,
        "an order was sent to detect the missing right"
    );
    let arguments = [
        "status",
        "--config",
        "configs/live-sim.toml",
        "--set",
        &data,
    ];
    let text = binary::succeed(arguments);
    assert!(text.contains("-2015") && text.contains(what), "{text}");
    assert_eq!(
        metric(
            &instance,
            "windvane_trading_blocked{what=\"futures account\"}"
        ),
        Some(1.0)
    );

    rights(&venue, true);
    assert_eq!(
        check().0,
        Some(1),
        "check fails because the folder is in use"
    );
    assert!(!check().1.contains("cannot trade"));
    wait(&mut instance, &|status| status["state"] == "ready");
    wait(&mut instance, &|status| status["open_orders"] != 0);
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn halt_and_stop_name_orders_the_venue_refuses_to_cancel() {
    let venue = Venue::start(&["--seed", "507"]);
    let launch = launch(&venue);
    let log = launch.data().with_extension("log");
    let mut instance = launch.start();
    wait(&mut instance, &|status| status["open_orders"] != 0);
    rights(&venue, false);
    instance.answer("halt");
    let status = wait(&mut instance, &|status| {
        let reason = status["reason"].as_str().unwrap_or_default();
        status["state"] == "halted" && reason.contains("the venue refuses to cancel")
    });
    is_honest(&status, "check the key's rights");
    instance.signal("TERM");
    assert_eq!(instance.end_within(PATIENCE).code(), Some(1));
    let log = std::fs::read_to_string(log).unwrap();
    let printed = log.lines().last().unwrap();
    for text in [
        "the stop was not finished",
        "may be open at the venue: maker.",
        "The venue refuses to cancel",
    ] {
        assert!(printed.contains(text), "{text}: {printed}");
    }
}

#[test]
fn losing_the_trading_right_degrades_the_run_until_it_returns() {
    let venue = Venue::start(&["--seed", "502"]);
    let mut instance = launch(&venue).start();
    wait(&mut instance, &|status| status["open_orders"] != 0);
    rights(&venue, false);
    let what = "futures account";
    let status = wait(&mut instance, &|status| {
        status["state"] == "degraded" && block(status, what).is_some()
    });
    is_honest(&status, "-2015");
    is_explained(block(&status, what).unwrap(), "trading requests");
    rights(&venue, true);
    let open = |status: &Value| status["state"] == "ready" && block(status, what).is_none();
    wait(&mut instance, &open);
    wait(&mut instance, &|status| status["open_orders"] != 0);
    let rejected = logged(&instance, "the venue rejected an order");
    assert!(rejected <= 4, "{rejected} lines\n{}", instance.log());
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_ban_degrades_the_run_until_it_ends() {
    let venue = Venue::start(&["--seed", "503"]);
    let mut instance = launch(&venue).start();
    wait(&mut instance, &|status| status["open_orders"] != 0);
    venue.control("/act", &json!({"act": "ban", "for_ms": 8_000}));
    let what = "futures account";
    let status = wait(&mut instance, &|status| {
        status["state"] == "degraded" && block(status, what).is_some()
    });
    is_honest(&status, "banned this address");
    let row = block(&status, what).unwrap();
    is_explained(row, "418");
    assert!(
        row["until_ms"].as_i64() > row["since_ms"].as_i64(),
        "{row:#}"
    );
    wait(&mut instance, &|status| status["state"] == "ready");
    // The venue rejected the request that met the ban. Orders that were never sent must not be
    // logged as rejected.
    let rejected = logged(&instance, "the venue rejected an order");
    assert!(rejected <= 2, "{}", instance.log());
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_stopped_symbol_blocks_its_orders_and_is_reported() {
    let venue = Venue::start(&["--seed", "504"]);
    let status = |word| json!({"act": "rules", "symbol": "BTCUSDT", "status": word});
    let mut instance = launch(&venue).start();
    wait(&mut instance, &|status| status["open_orders"] != 0);
    venue.control("/act", &status("SETTLING"));
    let what = "futures:BTCUSDT";
    let shown = wait(&mut instance, &|status| block(status, what).is_some());
    is_explained(block(&shown, what).unwrap(), "symbol");
    let shown = wait(&mut instance, &|status| {
        status["reason"]
            .as_str()
            .unwrap()
            .contains("is blocked since")
    });
    is_honest(&shown, what);
    let not_sent = |status: &Value| block(status, what)?["not_sent"].as_u64();
    wait(&mut instance, &|status| not_sent(status) > Some(2));
    venue.control("/act", &status("TRADING"));
    wait(&mut instance, &|status| block(status, what).is_none());
    wait(&mut instance, &|status| status["open_orders"] != 0);
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn an_empty_wallet_is_reported_until_a_deposit() {
    let venue = Venue::start(&["--seed", "505"]);
    let money = |act: &str| json!({"act": act, "asset": "USDT", "amount": "100000"});
    venue.control("/act", &money("withdraw"));
    let mut instance = launch(&venue).start();
    let what = "futures USDT";
    let status = wait(&mut instance, &|status| block(status, what).is_some());
    is_explained(block(&status, what).unwrap(), "too small");
    is_honest(&status, "USDT");
    let rejected = |venue: &Venue| {
        let state = venue.whole_state();
        let refusals = state["counters"]["refusals"].as_object().unwrap();
        let codes = ["-2018", "-2019"]
            .iter()
            .filter_map(|code| refusals.get(*code));
        codes.filter_map(Value::as_u64).sum::<u64>()
    };
    let before = rejected(&venue);
    assert!((1..=6).contains(&before), "{before} rejected orders");
    venue.control("/act", &money("deposit"));
    wait(&mut instance, &|status| block(status, what).is_none());
    wait(&mut instance, &|status| status["open_orders"] != 0);
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn status_names_the_only_strategy_in_quarantine() {
    let venue = Venue::start(&["--seed", "506"]);
    let module = venue.folder().join("trap.wasm");
    let guest = Guest {
        on_event: "(if (i64.eq (global.get $count) (i64.const 10)) (then (unreachable)))",
        ..Guest::default()
    };
    guest.write(&module);
    let config = venue.folder().join("one.toml");
    let usual = std::fs::read_to_string(binary::root().join("configs/live-sim.toml")).unwrap();
    let (head, _) = usual.split_once("[[strategy]]").unwrap();
    let strategy = format!(
        "[[strategy]]\nid = \"trap\"\nmodule = '{}'\ninstruments = [\"futures:BTCUSDT\"]\n\
         streams = [\"book\"]\non_fault = \"cancel\"\n",
        module.display()
    );
    std::fs::write(&config, format!("{head}{strategy}")).unwrap();
    let data = venue.folder().join("data");
    let mut instance = Launch::new(&venue, &data).config(&config).start();
    let status = wait(&mut instance, &|status| {
        status["strategies"]["quarantined"] == 1 && status["state"] == "ready"
    });
    is_honest(&status, "strategy trap is in quarantine since");
    is_honest(&status, "windvane resume --strategy trap");
    let strategies = instance.answer("strategies");
    assert!(strategies[0]["quarantined_since_ms"].as_i64().is_some());
    assert_eq!(instance.terminate().code(), Some(0));
}
