//! A strategy may take seconds to start. Other strategies and the dead man's switch go on meanwhile.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use windvane_tests::admin::Admin;
use windvane_tests::guest::Guest;
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::parallel::{self, Core};
use windvane_tests::venue::Venue;

/// Longest wait for anything, on a machine that also runs other work.
const PATIENCE: Duration = Duration::from_mins(2);
/// Time between two looks at the metrics, so that looking leaves the processor to the strategies.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The log of a run has this when the starts of a reload begin.
const STARTING: &str = "the changed strategies start";

/// Burns 0.8e9 of the 2e9 fuel of a `start` if its parameters are longer than ten bytes. Each of its
/// divisions waits for the one before, so that they take seconds on a fast processor too. Its state
/// begins with the length of the parameters, so that each instance has a state of its own.
const SLOW: Guest<'static> = Guest {
    start: "(i32.store8 (i32.const 1024) (local.get 1))
      (if (i32.gt_u (local.get 1) (i32.const 10)) (then (call $burn)))",
    more: "(global $result (mut f64) (f64.const 0))
      (func $burn (local $left i32) (local $x f64)
        (local.set $left (i32.const 30000000))
        (local.set $x (f64.const 3))
        (loop $again
          (local.set $x
            (f64.div (f64.const 7) (f64.div (f64.const 7) (f64.div (f64.const 7) (f64.div (f64.const 7)
            (f64.div (f64.const 7) (f64.div (f64.const 7) (f64.div (f64.const 7) (f64.div (f64.const 7)
            (f64.div (f64.const 7) (f64.div (f64.const 7) (local.get $x))))))))))))
          (local.set $left (i32.sub (local.get $left) (i32.const 1)))
          (br_if $again (local.get $left)))
        (global.set $result (local.get $x)))",
    ..Guest::EMPTY
};

/// Starts on an empty data folder and refuses every later start: by then, a balance is known.
const REFUSES_RESTARTS: Guest<'static> = Guest {
    imports: r#"(import "windvane:strategy/account@0.2.0" "balance"
      (func $balance (param i32 i32 i32) (result i64)))"#,
    start: "(if (i32.or
        (i64.gt_s (call $balance (i32.const 1) (i32.const 0) (i32.const 0)) (i64.const 0))
        (i64.gt_s (call $balance (i32.const 1) (i32.const 1) (i32.const 0)) (i64.const 0)))
      (then (return (call $answer (i32.const 4096) (i32.const 6)))))",
    more: r#"(data (i32.const 4096) "not me")"#,
    ..Guest::EMPTY
};

/// Sends an order that never fills, at each top of the book.
const TRADER: Guest<'static> = Guest {
    on_event: "(if (i32.eq (local.get $kind) (i32.const 2)) (then
      (local.set $bid (i64.sub (local.get $a) (i64.div_s (local.get $a) (i64.const 32))))
      (drop (call $submit (i32.const 0) (i32.const 0x20) (i64.const 10)
        (i64.sub (local.get $bid) (i64.rem_s (local.get $bid) (i64.const 1000)))
        (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))))",
    ..Guest::EMPTY
};

/// A run with a strategy that trades and one that can be slow to start.
struct Run {
    venue: Venue,
    file: PathBuf,
    data: PathBuf,
    /// The slow strategy starts first, and the parameters are those of both.
    changes_both: bool,
    /// A start burns a core.
    _core: Core,
}

impl Run {
    fn new(seed: &str) -> (Self, Instance) {
        Self::with(seed, false)
    }

    fn with(seed: &str, changes_both: bool) -> (Self, Instance) {
        let core = parallel::core();
        let venue = Venue::start(&["--seed", seed]);
        let folder = venue.folder();
        TRADER.write(&folder.join("trader.wasm"));
        SLOW.write(&folder.join("slow.wasm"));
        let run = Self {
            file: folder.join("starts.toml"),
            data: folder.join("data"),
            changes_both,
            _core: core,
            venue,
        };
        run.write("{}");
        let mut instance = Instance::start_with(&run.venue, &run.data, &run.file, &[]);
        instance.ready();
        (run, instance)
    }

    /// Writes the configuration with these parameters.
    fn write(&self, params: &str) {
        let base = include_str!("../../configs/live-sim.toml");
        let base = base.split("[[strategy]]").next().unwrap();
        let base = base.replace("countdown_ms = 30000", "countdown_ms = 5000");
        let base = base.replace("interval_ms = 10000", "interval_ms = 700");
        let folder = self.venue.folder().display();
        let strategy = |id: &str, params: &str| {
            format!(
                r#"
[[strategy]]
id = "{id}"
module = "{folder}/{id}.wasm"
instruments = ["futures:BTCUSDT"]
streams = ["book"]
params = {params}
"#
            )
        };
        let slow = strategy("slow", params);
        let text = if self.changes_both {
            [base, slow, strategy("trader", params)].concat()
        } else {
            [base, strategy("trader", "{}"), slow].concat()
        };
        std::fs::write(&self.file, text).unwrap();
    }
}

/// The orders of the trader, and the renewals of countdowns.
fn counts(admin: &Admin) -> (f64, f64) {
    let samples = admin.metrics();
    let sum = |name: &str, label: &str| -> f64 {
        let wanted = samples.iter().filter(|sample| {
            let of_metric = sample.name.starts_with(name);
            of_metric && sample.name.contains(label)
        });
        wanted.map(|sample| sample.value).sum()
    };
    (
        sum("windvane_orders_total", "trader"),
        sum("windvane_heartbeats_total", "renewed"),
    )
}

fn verify(data: &Path) {
    let verified = windvane_tests::binary::run(["replay", data.to_str().unwrap(), "--verify"]);
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn others_trade_while_a_strategy_starts() {
    let (run, mut instance) = Run::new("61");
    trades_during_a_reload(&run, &mut instance, &json!(["slow: params"]));
    assert_eq!(instance.terminate().code(), Some(0));
    verify(&run.data);
}

#[test]
fn a_changed_strategy_trades_on_until_its_own_start() {
    let (run, mut instance) = Run::with("64", true);
    let changes = json!(["slow: params", "trader: params"]);
    trades_during_a_reload(&run, &mut instance, &changes);
    assert_eq!(instance.terminate().code(), Some(0));
    verify(&run.data);
}

fn until_an_order_is_sent(instance: &mut Instance) {
    let admin = instance.admin();
    let is_sent = |_: &serde_json::Value| counts(&admin).0 >= 1.0;
    instance.until_shown(&admin, "/api/status", PATIENCE, &is_sent);
}

/// Reloads the slow strategy. The other one must trade meanwhile, and the countdown must be renewed.
fn trades_during_a_reload(run: &Run, instance: &mut Instance, changes: &serde_json::Value) {
    until_an_order_is_sent(instance);
    let admin = instance.admin();
    let instance = &*instance;
    run.write("{ burns = true }");
    let (mut first, mut last) = (None, (0.0, 0.0));
    let reloaded = std::thread::scope(|scope| {
        let reload = scope.spawn(|| instance.done(&["reload"]));
        while !reload.is_finished() {
            let now = counts(&admin);
            // Before this line the new instances are tested, and the old ones run in any case.
            let is_starting = instance.log().contains(STARTING);
            if is_starting && !reload.is_finished() {
                first.get_or_insert(now);
                last = now;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        reload.join().unwrap()
    });
    assert_eq!(&reloaded["changes"], changes);
    let first = first.unwrap();
    let (orders, renewals) = (last.0 - first.0, last.1 - first.1);
    assert!(
        orders >= 4.0,
        "{orders} orders during the start\n{}",
        instance.log()
    );
    assert!(
        renewals >= 1.0,
        "{renewals} renewals during the start\n{}",
        instance.log()
    );
}

#[test]
fn a_stop_does_not_wait_for_a_strategy_that_starts() {
    let (run, mut instance) = Run::new("62");
    run.write("{ burns = true }");
    instance.signal("HUP");
    instance.until_logged(STARTING, PATIENCE);
    assert_eq!(instance.terminate().code(), Some(0));
    verify(&run.data);
    // The next process starts with what was saved.
    run.write("{}");
    let mut instance = Instance::start_with(&run.venue, &run.data, &run.file, &[]);
    instance.ready();
    assert_eq!(instance.terminate().code(), Some(0));
    verify(&run.data);
}

#[test]
fn a_kill_during_a_start_loses_nothing() {
    let (run, mut instance) = Run::new("63");
    run.write("{ burns = true }");
    instance.signal("HUP");
    instance.until_logged(STARTING, PATIENCE);
    instance.kill();
    run.write("{}");
    let mut instance = Instance::start_with(&run.venue, &run.data, &run.file, &[]);
    instance.ready();
    assert_eq!(instance.terminate().code(), Some(0));
    verify(&run.data);
}

#[test]
fn a_strategy_that_refuses_a_restart_cannot_hold_up_the_others() {
    let (run, instance) = Run::new("64");
    REFUSES_RESTARTS.write(&run.venue.folder().join("slow.wasm"));
    assert_eq!(instance.terminate().code(), Some(0));
    // The folder has a state already, so the module is refused while it is new.
    let refused = Launch::new(&run.venue, &run.data)
        .config(&run.file)
        .output();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let data = run.venue.folder().join("other");
    for faults in [json!(null), json!("contract")] {
        let mut instance = Instance::start_with(&run.venue, &data, &run.file, &[]);
        instance.ready();
        until_an_order_is_sent(&mut instance);
        let shown = instance.answer("strategies");
        let mut rows = shown.as_array().unwrap().iter();
        let slow = rows.find(|row| row["id"] == "slow").unwrap();
        assert_eq!(slow["fault"], faults, "{slow}");
        assert_eq!(instance.terminate().code(), Some(0));
        verify(&data);
    }
}
