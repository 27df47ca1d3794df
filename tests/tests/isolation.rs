//! A failing strategy harms only itself. Beside guests that loop, allocate, trap, recurse and
//! flood, `market_maker` must produce exactly the same results as without them. Also tests what
//! happens to the orders and the position of a failing strategy.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use windvane_tests::binary::{self, root, succeed};
use windvane_tests::guest::Guest;
use windvane_tests::results::{Order, Results};

/// A buy of 0.01 BTC, post-only, more than a tenth below the bid.
const REST: &str = "(drop (call $submit (i32.const 0) (i32.const 0x40) (i64.const 10)
    (i64.sub (i64.sub (local.get $a) (i64.rem_s (local.get $a) (i64.const 1000)))
      (i64.const 100000))
    (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))";

/// A buy of 0.01 BTC at market.
const BUY: &str = "(drop (call $submit (i32.const 0) (i32.const 2) (i64.const 10) (i64.const 0)
    (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))";

/// Id of the strategy, kind of its fault, and the guest.
const FAULTY: [(&str, &str, Guest<'static>); 6] = [
    ("loops", "fuel", on_event("(loop $again (br $again))")),
    (
        "grows",
        "memory",
        on_event(
            "(loop $again
               (br_if $again (i32.ge_s (memory.grow (i32.const 16)) (i32.const 0))))",
        ),
    ),
    (
        "tenth",
        "trap",
        on_event("(if (i64.eq (global.get $count) (i64.const 10)) (then (unreachable)))"),
    ),
    (
        "floods",
        "intents",
        on_event(
            "(loop $again
               (drop (call $submit (i32.const 0) (i32.const 0x40) (i64.const 10)
                 (i64.const 500000) (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))
               (local.set $i (i32.add (local.get $i) (i32.const 1)))
               (br_if $again (i32.lt_u (local.get $i) (i32.const 10000))))",
        ),
    ),
    (
        "recurses",
        "stack",
        Guest {
            on_event: "(call $deeper (i64.const 0))",
            more: "(func $deeper (param i64)
               (call $deeper (i64.add (local.get 0) (i64.const 1)))
               (global.set $count (local.get 0)))",
            ..Guest::EMPTY
        },
    ),
    (
        "no-start",
        "trap",
        Guest {
            start: "(unreachable)",
            ..Guest::EMPTY
        },
    ),
];

const fn on_event(on_event: &str) -> Guest<'_> {
    Guest {
        on_event,
        ..Guest::EMPTY
    }
}

/// The instrument rules and the account of all runs in this file.
const COMMON: &str = r#"
[[instrument]]
name = "futures:BTCUSDT"
tick = "0.10"
step = "0.001"
min_qty = "0.001"
min_notional = "5"

[sim]
start_balance = { "futures:USDT" = "100000" }
leverage = 20
latency_ms = { feed = 1, order = 5 }
"#;

/// A generated session and runs on it.
struct Bench {
    folder: TempDir,
}

/// The folder and the parsed results of a run.
struct Run {
    folder: PathBuf,
    results: Results,
}

impl Bench {
    fn new() -> Self {
        let bench = Self {
            folder: TempDir::new().unwrap(),
        };
        let session = bench.file("session.gz");
        let arguments = ["data", "generate", "--minutes", "5", "--seed", "7", "--out"];
        succeed(arguments.iter().map(Path::new).chain([session.as_path()]));
        bench
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The configuration text of a guest.
    fn guest(&self, id: &str, guest: &Guest<'_>, more: &str) -> String {
        let module = self.file(&format!("{id}.wasm"));
        guest.write(&module);
        let mut text = String::new();
        writeln!(
            text,
            "[[strategy]]\nid = \"{id}\"\nmodule = '{}'\ninstruments = [\"futures:BTCUSDT\"]\n\
             streams = [\"book\"]\n{more}",
            module.display()
        )
        .unwrap();
        text
    }

    /// Runs a backtest with these strategies. If a strategy was quarantined, the run must exit with
    /// code 1, and the output must name that first.
    fn run(&self, name: &str, strategies: &str) -> Run {
        let config = self.file(&format!("{name}.toml"));
        std::fs::write(&config, format!("{strategies}{COMMON}")).unwrap();
        let folder = self.file(name);
        let mut arguments = vec![PathBuf::from("backtest")];
        for (flag, path) in [
            ("--config", &config),
            ("--data", &self.file("session.gz")),
            ("--cache", &self.file("cache")),
            ("--out", &folder),
        ] {
            arguments.push(flag.into());
            arguments.push(path.clone());
        }
        let output = binary::run(arguments);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let summary = std::fs::read_to_string(folder.join("summary.json")).unwrap();
        let summary: Value = serde_json::from_str(&summary).unwrap();
        let quarantined = summary["quarantined"].as_array().map_or(0, Vec::len);
        let code = i32::from(quarantined > 0);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_eq!(
            printed.starts_with("QUARANTINED: strategy "),
            quarantined > 0
        );
        let report = std::fs::read_to_string(folder.join("report.html")).unwrap();
        let first = report.split("<main>").nth(1).unwrap().trim_start();
        let reported = first.starts_with("<p><strong>Quarantined: strategy ");
        assert_eq!(reported, quarantined > 0, "{first:.200}");
        let results = Results::load(&folder).unwrap();
        Run { folder, results }
    }
}

/// The configuration text of `market_maker`, which quotes at the touch so that it has fills.
fn maker() -> String {
    let module = root().join("strategies/market_maker");
    format!(
        "[[strategy]]\nid = \"maker\"\nmodule = '{}'\ninstruments = [\"futures:BTCUSDT\"]\n\
         streams = [\"book\"]\n[strategy.params]\nqty = \"0.01\"\nreference = \"touch\"\n\
         half_spread_ticks = 0\nreplace_threshold_ticks = 10\nskew_ticks_per_qty = 2\n\
         max_position = \"0.1\"\n",
        module.display()
    )
}

impl Run {
    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.join(file)).unwrap()
    }

    fn strategy(&self, id: &str) -> &Value {
        let all = self.results.summary["strategies"].as_array().unwrap();
        all.iter().find(|strategy| strategy["id"] == id).unwrap()
    }

    /// All values of the account, without those that list the strategies or measure the machine.
    fn account(&self) -> Value {
        let mut summary = self.results.summary.clone();
        let fields = summary.as_object_mut().unwrap();
        for own in [
            "config",
            "events_per_second",
            "fingerprint",
            "module_sha256",
            "strategies",
            "time_share",
            "wall_seconds",
        ] {
            fields.remove(own).unwrap();
        }
        // This field lists the other strategies.
        fields.remove("quarantined");
        // Only the first run on a recording decodes it.
        let data = fields["data"].as_object_mut().unwrap();
        data.remove("from_cache").unwrap();
        summary
    }

    /// The orders of a guest, oldest first.
    fn orders(&self, id: &str) -> Vec<&Order> {
        let orders = self.results.orders.iter();
        orders.filter(|order| order.strategy == id).collect()
    }
}

#[test]
fn failing_strategies_do_not_change_a_market_maker() {
    let bench = Bench::new();
    let maker = maker();
    let alone = bench.run("alone", &maker);
    let fills = alone.strategy("maker")["fills"].as_u64().unwrap();
    assert!(
        fills >= 5,
        "the run has too few fills to prove anything: {fills}"
    );
    let guests: Vec<_> = FAULTY
        .iter()
        .map(|(id, _, guest)| bench.guest(id, guest, ""))
        .collect();
    let guests = guests.concat();
    for (name, strategies) in [
        ("before", format!("{guests}{maker}")),
        ("after", format!("{maker}{guests}")),
    ] {
        let run = bench.run(name, &strategies);
        for file in ["fills.csv", "orders.csv", "equity.csv"] {
            assert!(run.text(file) == alone.text(file), "{name}: {file} differs");
        }
        assert_eq!(run.strategy("maker"), alone.strategy("maker"), "{name}");
        assert_eq!(run.account(), alone.account(), "{name}");
        for (id, kind, _) in FAULTY {
            let state = format!("quarantined: {kind}");
            assert_eq!(run.strategy(id)["state"], state.as_str(), "{name}: {id}");
            assert_eq!(run.strategy(id)["orders_submitted"], 0, "{name}: {id}");
        }
        assert_eq!(run.strategy("tenth")["events"], 10, "{name}");
    }
}

/// Runs a guest that executes `first` at the first top of book and traps much later.
fn fails_later(bench: &Bench, on_fault: &str, first: &str) -> Run {
    let body = format!(
        "(if (i32.and (i32.eq (local.get $kind) (i32.const 2)) (i32.eqz (global.get $placed)))
           (then (global.set $placed (i32.const 1)) {first}))
         (if (i64.eq (global.get $count) (i64.const 500)) (then (unreachable)))"
    );
    let guest = Guest {
        on_event: &body,
        more: "(global $placed (mut i32) (i32.const 0))",
        ..Guest::EMPTY
    };
    let text = bench.guest("late", &guest, &format!("on_fault = \"{on_fault}\""));
    let run = bench.run(on_fault, &text);
    assert_eq!(run.strategy("late")["state"], "quarantined: trap");
    assert_eq!(run.strategy("late")["orders_rejected"], 0);
    run
}

#[test]
fn orders_of_a_failed_strategy_are_cancelled_or_kept() {
    let bench = Bench::new();
    for (on_fault, status) in [("cancel", "CANCELED"), ("keep", "NEW")] {
        let run = fails_later(&bench, on_fault, REST);
        let orders = run.orders("late");
        assert_eq!(orders.len(), 1, "{on_fault}: {orders:?}");
        assert_eq!(orders[0].status, status, "{on_fault}");
        assert_eq!(orders[0].time_in_force, "GTX");
        assert_eq!(orders[0].executed_qty, 0);
    }
}

#[test]
fn the_position_of_a_failed_strategy_is_kept_or_closed() {
    let bench = Bench::new();
    let both = format!("{BUY} {REST}");
    let run = fails_later(&bench, "cancel", &both);
    let statuses: Vec<_> = run
        .orders("late")
        .iter()
        .map(|o| o.status.clone())
        .collect();
    assert_eq!(statuses, ["FILLED", "CANCELED"]);
    assert_eq!(
        run.results.summary["instruments"][0]["final_position"],
        "0.01"
    );

    let run = fails_later(&bench, "flatten", &both);
    let orders = run.orders("late");
    let statuses: Vec<_> = orders.iter().map(|o| o.status.as_str()).collect();
    assert_eq!(statuses, ["FILLED", "CANCELED", "FILLED"]);
    let closing = orders[2];
    assert!(!closing.buy, "the closing order sells the position");
    assert_eq!(closing.order_type, "MARKET");
    assert_eq!(closing.executed_qty, orders[0].executed_qty);
    assert_eq!(run.results.summary["instruments"][0]["final_position"], "0");
    assert_eq!(
        run.results.fills.last().unwrap().client_order_id,
        closing.client_order_id
    );
}

#[test]
fn a_flood_of_orders_leaves_the_share_of_another_strategy() {
    let bench = Bench::new();
    // Buys far below the bid that rest until the end: 999 at each of three events.
    let flood = "(if (i64.le_u (global.get $count) (i64.const 3)) (then
        (loop $again
          (drop (call $submit (i32.const 0) (i32.const 0x40) (i64.const 10)
            (i64.const 500000) (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $i) (i32.const 999))))))";
    let late = format!("(if (i64.eq (global.get $count) (i64.const 100)) (then {REST}))");
    let asks = Guest {
        on_event: &late,
        ..Guest::EMPTY
    };
    let fuel = "limits.fuel_per_event = 50000000\n";
    let floods = bench.guest("floods", &on_event(flood), fuel);
    let strategies = floods + &bench.guest("asks", &asks, "");
    // An instrument takes 200 open orders by default.
    let run = bench.run("shared", &strategies);
    let placed = |id: &str| {
        let orders = run.orders(id).into_iter();
        orders.filter(|order| order.reject_rule.is_empty()).count()
    };
    assert_eq!(placed("asks"), 1, "it has its share");
    // 200 without the share of 50 and 20 for orders that only reduce.
    assert_eq!(placed("floods"), 130);
    let rejections = run.results.summary["rejections"].as_array().unwrap();
    let of_share = |one: &&Value| one["rule"] == "QUOTA.MAX_NUM_ORDERS";
    let refused = rejections.iter().find(of_share);
    let refused = refused.unwrap_or_else(|| panic!("{rejections:?}"));
    assert_eq!(
        (&refused["strategy"], &refused["count"]),
        (&"floods".into(), &(2997 - 130).into())
    );
}
