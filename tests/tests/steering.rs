//! The operator controls a running instance: one strategy at a time, through a reload, and out of
//! quarantine. Commands come from its verbs, from a signal, and from a service manager.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windvane_tests::binary;
use windvane_tests::guest::Guest;
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::venue::Venue;

/// The strategy with this id in the output of `strategies`.
fn strategy<'a>(strategies: &'a Value, id: &str) -> &'a Value {
    let mut rows = strategies.as_array().unwrap().iter();
    rows.find(|row| row["id"] == id).unwrap()
}

/// Waits until a strategy is in this state and returns its row.
fn until_state(instance: &mut Instance, id: &str, state: &str) -> Value {
    let shown = instance.until("strategies", &|all| {
        all.as_array()
            .is_some_and(|_| strategy(all, id)["state"] == state)
    });
    strategy(&shown, id).clone()
}

fn orders_of(orders: &Value, id: &str) -> usize {
    let rows = orders.as_array().unwrap().iter();
    rows.filter(|row| row["strategy"] == id).count()
}

/// A configuration with two guests: the test controls one and does not touch the other.
struct Own {
    file: PathBuf,
    module: PathBuf,
}

/// Traps at its first event if its parameters are longer than ten bytes.
const ARMED: Guest<'static> = Guest {
    start: "(global.set $armed (i32.gt_u (local.get 1) (i32.const 10)))",
    refusal: "",
    on_event: "(if (global.get $armed) (then unreachable))",
    save: "",
    load: "",
    load_refusal: "",
    imports: "",
    more: "(global $armed (mut i32) (i32.const 0))",
};

impl Own {
    fn new(folder: &Path) -> Self {
        let (calm, module) = (folder.join("calm.wasm"), folder.join("steered.wasm"));
        Guest::default().write(&calm);
        ARMED.write(&module);
        let file = folder.join("own.toml");
        let own = Self { file, module };
        own.write("{}");
        own
    }

    /// Writes the configuration with these parameters for the controlled strategy.
    fn write(&self, params: &str) {
        let base = include_str!("../../configs/live-sim.toml");
        let base = base.split("[[strategy]]").next().unwrap();
        let folder = self.file.parent().unwrap().display();
        let module = self.module.display();
        let text = format!(
            r#"{base}
[[strategy]]
id = "calm"
module = "{folder}/calm.wasm"
instruments = ["futures:BTCUSDT"]

[[strategy]]
id = "steered"
module = "{module}"
instruments = ["futures:BTCUSDT"]
params = {params}
"#
        );
        std::fs::write(&self.file, text).unwrap();
    }
}

#[test]
fn a_strategy_kill_switch_survives_a_lost_journal() {
    let venue = Venue::start(&["--seed", "21"]);
    let data = venue.folder().join("data");
    let mut instance = Instance::start(&venue, &data);
    instance.ready();
    instance.until("orders", &|orders| orders_of(orders, "maker") > 0);
    let refused = instance.run_verb(&["halt", "--strategy", "nobody"]);
    assert_eq!(refused.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(printed.contains("no strategy nobody"), "{printed}");

    let paused = instance.done(&["pause", "--strategy", "ema"]);
    assert_eq!(paused["state"], "ready");
    assert_eq!(paused["strategy"]["state"], "paused");
    let halted = instance.done(&["flatten", "--strategy", "maker"]);
    assert_eq!(halted["strategy"]["state"], "halted");
    instance.until("orders", &|orders| orders_of(orders, "maker") == 0);
    instance.until("positions", &|rows| orders_of(rows, "maker") == 0);
    let status = instance.answer("status");
    assert_eq!(status["state"], "ready");
    let counts = json!({"running": 0, "paused": 1, "halted": 1, "quarantined": 0});
    assert_eq!(status["strategies"], counts);
    instance.kill();

    std::fs::remove_dir_all(data.join("journal")).unwrap();
    let mut instance = Instance::start(&venue, &data);
    instance.ready();
    let strategies = instance.answer("strategies");
    let maker = strategy(&strategies, "maker");
    assert_eq!(maker["state"], "halted", "{strategies}");
    assert_eq!(maker["reason"], "the operator asked for it");
    assert_eq!(strategy(&strategies, "ema")["state"], "paused");

    let resumed = instance.done(&["resume"]);
    let pending = resumed["pending"].as_str().unwrap();
    assert!(pending.contains("maker stays halted"), "{pending}");
    let resumed = instance.done(&["resume", "--strategy", "maker"]);
    assert_eq!(resumed["strategy"]["state"], "running");
    assert_eq!(resumed["strategy"]["reason"], Value::Null);
    instance.until("orders", &|orders| orders_of(orders, "maker") > 0);
    assert_eq!(instance.terminate().code(), Some(0));
    // The restart reports a stored pause or halt to strategies that have already started. A replay
    // must report them too.
    let replay = binary::run(["replay".as_ref(), data.as_os_str(), "--verify".as_ref()]);
    assert_eq!(replay.status.code(), Some(0), "{replay:?}");
}

#[test]
fn a_quarantine_lasts_until_the_strategy_is_resumed_by_name() {
    let venue = Venue::start(&["--seed", "22"]);
    let own = Own::new(venue.folder());
    let data = venue.folder().join("data");
    let mut instance = Instance::start_with(&venue, &data, &own.file, &[]);
    instance.ready();
    until_state(&mut instance, "steered", "running");

    own.write(r#"{ arm = "it traps" }"#);
    let reloaded = instance.done(&["reload"]);
    assert_eq!(reloaded["changes"], json!(["steered: params"]));
    let shown = until_state(&mut instance, "steered", "quarantined");
    assert_eq!(shown["fault"], "trap");
    let reason = shown["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("unreachable"), "{reason}");
    assert_eq!(
        strategy(&instance.answer("strategies"), "calm")["state"],
        "running"
    );
    // The engine's thread does not wait for the kill switch file, so that the file may come later.
    let kill_switches = || std::fs::read_to_string(data.join("latch")).unwrap_or_default();
    instance.until("status", &|_| kill_switches().contains("unreachable"));
    instance.kill();

    let mut instance = Instance::start_with(&venue, &data, &own.file, &[]);
    instance.ready();
    let shown = until_state(&mut instance, "steered", "quarantined");
    assert_eq!(shown["reason"], reason.as_str(), "the reason is unchanged");
    let resumed = instance.done(&["resume"]);
    let pending = resumed["pending"].as_str().unwrap();
    assert!(pending.contains("steered stays quarantined"), "{pending}");
    until_state(&mut instance, "steered", "quarantined");

    own.write("{}");
    instance.done(&["reload"]);
    until_state(&mut instance, "steered", "quarantined");
    let freed = instance.done(&["resume", "--strategy", "steered"]);
    assert_eq!(freed["strategy"]["state"], "running", "{freed}");
    assert_eq!(freed["pending"], "", "the strategy kept its state");
    assert_eq!(instance.terminate().code(), Some(0));
    let verified = windvane_tests::binary::run(["replay", data.to_str().unwrap(), "--verify"]);
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn a_quarantine_known_only_from_the_file_replays() {
    let venue = Venue::start(&["--seed", "27"]);
    let own = Own::new(venue.folder());
    let data = venue.folder().join("data");
    let mut instance = Instance::start_with(&venue, &data, &own.file, &[]);
    instance.ready();
    own.write(r#"{ arm = "it traps" }"#);
    instance.done(&["reload"]);
    until_state(&mut instance, "steered", "quarantined");
    let kill_switches = || std::fs::read_to_string(data.join("latch")).unwrap_or_default();
    instance.until("status", &|_| kill_switches().contains("unreachable"));
    instance.kill();

    std::fs::remove_dir_all(data.join("journal")).unwrap();
    let mut instance = Instance::start_with(&venue, &data, &own.file, &[]);
    instance.ready();
    until_state(&mut instance, "steered", "quarantined");
    assert_eq!(instance.terminate().code(), Some(0));
    let verified = windvane_tests::binary::run(["replay", data.to_str().unwrap(), "--verify"]);
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn a_reload_is_applied_completely_or_not_at_all() {
    let venue = Venue::start(&["--seed", "23"]);
    let own = Own::new(venue.folder());
    let data = venue.folder().join("data");
    let mut instance = Instance::start_with(&venue, &data, &own.file, &[]);
    instance.ready();
    let sha256 = |instance: &Instance| {
        let shown = instance.answer("strategies");
        strategy(&shown, "steered")["module_sha256"].clone()
    };
    let first = sha256(&instance);
    // The next segment begins with the states that the strategies saved.
    instance.done(&["reload"]);
    instance.until_logged("a new segment of the journal", Duration::from_mins(2));
    let refused = |instance: &Instance, text: &str| {
        let output = instance.run_verb(&["reload"]);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(printed.contains(text), "{printed}");
        assert_eq!(sha256(instance), first);
    };

    let other = std::fs::read_to_string(&own.file).unwrap();
    let other = other.replace("countdown_ms = 30000", "countdown_ms = 60000");
    std::fs::write(&own.file, other).unwrap();
    refused(&instance, "heartbeat cannot change while running");

    // The new module refuses the state of the previous one.
    own.write("{}");
    let picky = Guest {
        load_refusal: "this is not mine",
        ..ARMED
    };
    picky.write(&own.module);
    refused(&instance, "this is not mine");
    until_state(&mut instance, "steered", "running");

    // A restart loads the same module: quarantine, until the operator lets it start without its
    // state.
    instance.kill();
    let mut instance = Instance::start_with(&venue, &data, &own.file, &[]);
    instance.ready();
    let shown = until_state(&mut instance, "steered", "quarantined");
    assert_eq!(shown["fault"], "state");
    let freed = instance.done(&["resume", "--strategy", "steered"]);
    let pending = freed["pending"].as_str().unwrap();
    assert!(pending.contains("without its saved state"), "{pending}");

    let next = Guest {
        more: "(global $armed (mut i32) (i32.const 0)) (global $next i32 (i32.const 1))",
        ..ARMED
    };
    next.write(&own.module);
    instance.signal("HUP");
    instance.until("strategies", &|all| {
        all.as_array()
            .is_some_and(|_| strategy(all, "steered")["module_sha256"] != first)
    });
    assert!(instance.log().contains("reloaded"));
    assert_eq!(instance.terminate().code(), Some(0));
    let verified = windvane_tests::binary::run(["replay", data.to_str().unwrap(), "--verify"]);
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn a_reload_with_another_configuration_file_is_refused() {
    let venue = Venue::start(&["--seed", "28"]);
    let own = Own::new(venue.folder());
    let data = venue.folder().join("data");
    let mut instance = Instance::start_with(&venue, &data, &own.file, &[]);
    instance.ready();
    let other = venue.folder().join("other.toml");
    std::fs::copy(&own.file, &other).unwrap();
    let data = format!("run.data_dir={}", data.display());
    let reload = |file: &Path| {
        let file = file.as_os_str();
        let set = ["--set".as_ref(), data.as_ref()];
        binary::run(
            ["reload".as_ref(), "--config".as_ref(), file]
                .into_iter()
                .chain(set),
        )
    };
    let refused = reload(&other);
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("was started with") && printed.contains("own.toml"),
        "{printed}"
    );
    assert!(reload(&own.file).status.success());
}

/// The sides of a strategy's orders that rest at the venue, sorted.
fn sides_at(venue: &Venue, strategy: &str) -> Vec<String> {
    let account = venue.account();
    let orders = account["orders"].as_array().unwrap().iter();
    let word = |order: &Value, field: &str| order[field].as_str().unwrap().to_owned();
    let own = orders.filter(|order| {
        let id = word(order, "client_order_id");
        order["open"] == json!(true) && id.starts_with(&format!("{strategy}."))
    });
    let mut sides: Vec<_> = own.map(|order| word(order, "side")).collect();
    sides.sort();
    sides
}

/// Waits until a strategy has exactly one order on each side.
fn until_one_a_side(venue: &Venue, strategy: &str) {
    let begin = Instant::now();
    while sides_at(venue, strategy) != ["BUY", "SELL"] {
        let rest = sides_at(venue, strategy);
        assert!(begin.elapsed() < Duration::from_secs(20), "{rest:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn reloads_leave_no_unknown_order_behind() {
    let venue = Venue::start(&["--seed", "30"]);
    let data = venue.folder().join("data");
    let file = venue.folder().join("maker.toml");
    let base = include_str!("../../configs/live-sim.toml");
    std::fs::write(&file, base).unwrap();
    let mut instance = Instance::start_with(&venue, &data, &file, &[]);
    instance.ready();
    instance.until("orders", &|orders| orders_of(orders, "maker") == 2);
    for ticks in 6..10 {
        let changed = format!("half_spread_ticks = {ticks}\n");
        let text = base.replace("half_spread_ticks = 5\n", &changed);
        std::fs::write(&file, text).unwrap();
        until_one_a_side(&venue, "maker");
        let reloaded = instance.done(&["reload"]);
        assert_eq!(reloaded["changes"], json!(["maker: params"]));
    }
    until_one_a_side(&venue, "maker");
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn state_saved_at_an_orderly_end_is_loaded_at_the_next_start() {
    let venue = Venue::start(&["--seed", "29"]);
    let own = Own::new(venue.folder());
    let data = venue.folder().join("data");
    let mut instance = Instance::start_with(&venue, &data, &own.file, &[]);
    instance.ready();
    assert_eq!(instance.terminate().code(), Some(0));

    // Only a strategy that gets a saved state can refuse it.
    let picky = Guest {
        load_refusal: "this is not mine",
        ..ARMED
    };
    picky.write(&own.module);
    let mut instance = Instance::start_with(&venue, &data, &own.file, &[]);
    instance.ready();
    let shown = until_state(&mut instance, "steered", "quarantined");
    assert_eq!(shown["fault"], "state");
    assert_eq!(instance.terminate().code(), Some(0));
    let verified = windvane_tests::binary::run(["replay", data.to_str().unwrap(), "--verify"]);
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn limits_of_a_reload_apply_at_once() {
    let venue = Venue::start(&["--seed", "24"]);
    let data = venue.folder().join("data");
    let file = venue.folder().join("limits.toml");
    let base = include_str!("../../configs/live-sim.toml");
    std::fs::write(&file, base).unwrap();
    let mut instance = Instance::start_with(&venue, &data, &file, &[]);
    instance.ready();
    instance.until("orders", &|orders| orders_of(orders, "maker") > 0);
    let tight = base.replace("max_open_orders = 50", "max_open_orders = 0");
    std::fs::write(&file, tight).unwrap();
    let reloaded = instance.done(&["reload"]);
    assert_eq!(reloaded["changes"], json!(["risk"]));
    assert_eq!(reloaded["state"], "ready");
    // The strategy replaces its resting orders, and the new limit rejects the replacements.
    instance.until("orders", &|orders| orders_of(orders, "maker") == 0);
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_start_that_waits_for_the_venue_reports_it() {
    let mut venue = Venue::start(&["--seed", "25"]);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    venue.stop();
    let mut instance = Instance::start(&venue, &data);
    let status = instance.until("status", &|status| {
        status["reason"] == "reading the venue's clock and instruments; no order is sent yet"
    });
    assert_eq!(status["state"], "booting");
    assert!(status["since_ms"].as_i64().unwrap() > 1_600_000_000_000);
    let later = instance.until("status", &|later| later["as_of_ms"] != status["as_of_ms"]);
    assert_eq!(later["since_ms"], status["since_ms"]);
    assert_eq!(instance.terminate().code(), Some(0));
}

/// A service manager that reads all the time, because its socket buffers only a few messages.
struct Manager(mpsc::Receiver<String>);

impl Manager {
    fn listen(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap();
        let (sender, text) = mpsc::channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length) = socket.recv(&mut buffer) {
                let word = String::from_utf8_lossy(&buffer[..length]).into_owned();
                if sender.send(word).is_err() {
                    return;
                }
            }
        });
        Self(text)
    }

    /// The next message.
    fn received(&self) -> String {
        self.0.recv_timeout(Duration::from_mins(3)).unwrap()
    }

    fn expect_message(&self, word: &str) {
        let begin = Instant::now();
        while self.received() != word {
            assert!(
                begin.elapsed() < Duration::from_mins(3),
                "{word} did not arrive"
            );
        }
    }
}

#[test]
fn the_service_manager_gets_ready_watchdog_reload_and_stop() {
    let venue = Venue::start(&["--seed", "26"]);
    let own = Own::new(venue.folder());
    let path = venue.folder().join("notify");
    let manager = Manager::listen(&path);
    let data = venue.folder().join("data");
    let environment = [
        ("NOTIFY_SOCKET", path.to_str().unwrap()),
        ("WATCHDOG_USEC", "2000000"),
    ];
    let mut instance = Instance::start_with(&venue, &data, &own.file, &environment);
    assert_eq!(
        manager.received(),
        "READY=1",
        "sent once the admin server listens"
    );
    instance.ready();
    manager.expect_message("STATUS=live, ready: no problem is known; orders are sent");
    manager.expect_message("WATCHDOG=1");
    instance.signal("HUP");
    manager.expect_message("RELOADING=1");
    manager.expect_message("READY=1");
    assert_eq!(instance.terminate().code(), Some(0));
    manager.expect_message("STOPPING=1");
}

#[test]
fn flatten_names_a_position_that_no_strategy_opened() {
    let venue = Venue::start(&["--seed", "73"]);
    let own = Own::new(venue.folder());
    let data = venue.folder().join("data");
    let mut instance = Launch::new(&venue, &data).config(&own.file).start();
    instance.ready();
    venue.control(
        "/act",
        &json!({"act": "place", "symbol": "BTCUSDT", "side": "BUY", "type": "MARKET", "quantity": "0.01"}),
    );
    instance.until("positions", &|positions| *positions != json!([]));
    let flattened = instance.done(&["flatten"]);
    let pending = flattened["pending"].as_str().unwrap();
    assert!(
        pending.contains("0.01 futures:BTCUSDT that no strategy opened"),
        "{pending}"
    );
    assert_eq!(instance.terminate().code(), Some(0));
}
