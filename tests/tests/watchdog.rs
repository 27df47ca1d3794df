//! The watchdog process of spot orders, with real processes and a real clock. After any failure of
//! the run, its spot orders must be cancelled soon, and orders of others must stay.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::processes::{self, Which};
use windvane_tests::resting;
use windvane_tests::venue::Venue;

/// Longest wait for anything, on a machine that also runs other work.
const PATIENCE: Duration = Duration::from_secs(90);

/// A venue with an order of another client, and the launch of a run on it.
struct Setup {
    venue: Venue,
    launch: Launch,
}

impl Setup {
    /// The strategy keeps this many orders at rest.
    fn new(seed: &str, orders: u32) -> Self {
        let venue = Venue::start(&["--seed", seed]);
        let foreign = json!({"act": "place", "surface": "spot", "symbol": "BTCUSDT", "side": "BUY",
            "price": "55000", "quantity": "0.001", "client_order_id": "web_a"});
        venue.control("/act", &foreign);
        let launch = resting::launch(&venue, orders, "");
        Self { venue, launch }
    }

    /// Starts a run and waits until its orders rest.
    fn start(&self, orders: usize) -> Instance {
        let mut instance = self.launch.start();
        instance.ready();
        self.until("the run's orders rest", &|own| own >= orders);
        instance
    }

    fn open(&self) -> Vec<String> {
        resting::open(&self.venue)
    }

    fn accepted(&self) -> u64 {
        resting::accepted(&self.venue)
    }

    fn watchdogs(&self) -> Vec<String> {
        processes::of(self.launch.data(), Which::Watchdog)
    }

    fn until_watchdogs_ended(&self) {
        processes::wait_until_ended(self.launch.data(), &[Which::Watchdog]);
    }

    /// Waits until this condition is true for the number of own resting orders.
    fn until(&self, what: &str, is_it: &dyn Fn(usize) -> bool) {
        wait(what, || {
            let open = self.open();
            assert!(open.contains(&"web_a".to_owned()), "{what}: {open:?}");
            is_it(open.len() - 1)
        });
    }

    /// Waits until no order of the run rests and its watchdog has ended.
    fn until_swept(&self) {
        self.until("no order of the run rests", &|own| own == 0);
        self.until_watchdogs_ended();
        self.until(
            "no order of the run rests after its watchdog ended",
            &|own| own == 0,
        );
    }
}

fn wait(what: &str, is_it: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_it() {
        assert!(begin.elapsed() < PATIENCE, "{what}: not in {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // The venue ends with this value, and the watchdogs would wait for it.
        processes::kill_watchdogs(self.launch.data());
    }
}

/// The strategy's orders in a list.
fn own(orders: &Value) -> Vec<&Value> {
    let orders = orders.as_array().unwrap().iter();
    orders
        .filter(|order| order["strategy"] == "rests")
        .collect()
}

#[test]
fn a_run_that_is_killed_leaves_no_spot_order() {
    let setup = Setup::new("41", 3);
    let instance = setup.start(3);
    instance.kill();
    setup.until_swept();
}

#[test]
fn a_run_that_is_killed_in_a_burst_leaves_no_spot_order() {
    let setup = Setup::new("42", 150);
    let instance = setup.start(20);
    instance.kill();
    setup.until_swept();
    // The watchdog of the previous run must not hinder the next run.
    let instance = setup.start(20);
    assert_eq!(instance.terminate().code(), Some(0));
    assert_eq!(setup.open(), ["web_a"]);
    setup.until_watchdogs_ended();
    setup.accepted();
}

#[test]
fn a_stopped_process_loses_its_orders_and_trades_again() {
    let setup = Setup::new("43", 3);
    let mut instance = setup.start(3);
    instance.signal("STOP");
    setup.until("no order of the run rests", &|own| own == 0);
    setup.until_watchdogs_ended();
    let accepted = setup.accepted();
    instance.signal("CONT");
    instance.until("status", &|status| status["state"] != "ready");
    instance.ready();
    setup.until("new orders rest", &|own| own == 3);
    assert_eq!(setup.accepted(), accepted + 3);
    instance.until("orders", &|orders| {
        let own = own(orders);
        own.len() == 3 && own.iter().all(|order| order["status"] == "NEW")
    });
    assert_eq!(instance.terminate().code(), Some(0));
    assert_eq!(setup.open(), ["web_a"]);
}

#[test]
fn a_killed_watchdog_is_replaced_before_new_orders_leave() {
    let setup = Setup::new("44", 3);
    let mut instance = setup.start(3);
    let first = setup.watchdogs();
    // With this fault the next watchdog cannot show that it is able to cancel orders.
    let away = json!({"fault": "html", "status": 502, "route": "spot.open_orders"});
    setup.venue.control("/faults", &away);
    processes::kill(&first[0]);
    let unwatched = |status: &Value| {
        let reasons = status["degraded_reasons"].as_array().unwrap();
        reasons.contains(&json!("no watchdog process covers spot orders"))
    };
    instance.until("status", &unwatched);
    let accepted = setup.accepted();
    let rests = setup.open().into_iter().find(|id| id != "web_a").unwrap();
    let cancel = json!({"act": "cancel", "surface": "spot", "symbol": "BTCUSDT",
        "client_order_id": rests});
    setup.venue.control("/act", &cancel);
    instance.until("orders", &|orders| own(orders).len() == 2);
    wait("another watchdog starts", || {
        let now = setup.watchdogs();
        now.len() == 1 && now != first
    });
    wait("the watchdog retries", || {
        instance.log().contains("not armed; it is tried again")
    });
    assert_eq!(
        setup.accepted(),
        accepted,
        "an order was sent without a watchdog"
    );
    setup.venue.control_delete("/faults");
    instance.ready();
    setup.until("a new order rests", &|own| own == 3);
    assert_eq!(setup.accepted(), accepted + 1);
    instance.kill();
    setup.until_swept();
}

#[test]
fn a_watchdog_retries_until_the_network_is_back() {
    let setup = Setup::new("45", 3);
    let instance = setup.start(3);
    let cut = json!({"fault": "unknown", "how": "cut", "accepted": false, "surface": "spot"});
    setup.venue.control("/faults", &cut);
    let log = instance.log().len();
    instance.signal("KILL");
    wait("it tries", || {
        instance.log()[log..]
            .matches("the request failed; it is repeated")
            .count()
            > 2
    });
    assert_eq!(setup.open().len(), 4);
    setup.venue.control_delete("/faults");
    let busy = json!({"fault": "unknown", "how": "503", "accepted": true, "count": 3,
        "route": "spot.cancel_order"});
    setup.venue.control("/faults", &busy);
    setup.until_swept();
}

#[test]
fn a_watchdog_honours_a_ban_that_its_run_received() {
    let setup = Setup::new("47", 1);
    let instance = setup.start(1);
    let ban = json!({"fault": "ban", "status": 418, "for_ms": 8_000, "surface": "spot"});
    setup.venue.control("/faults", &ban);
    let reported = setup.launch.data().join("bans");
    wait("the ban is written down", || reported.exists());
    instance.kill();
    let mut last = setup.venue.hits();
    let before = last;
    while let Some(hits) = setup.venue.hits() {
        last = Some(hits);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(last, before, "a request was sent during the ban");
    setup.until_swept();
}

#[test]
fn a_watchdog_cancels_above_the_documented_weight() {
    let setup = Setup::new("48", 3);
    let instance = setup.start(3);
    // The venue allows a weight of 6,000 a minute, the sample of
    // docs/interface/limits.md#limits-in-force is 1,200. Each of these requests costs 20.
    let depth = ["symbol=BTCUSDT".to_owned(), "limit=1000".to_owned()];
    for _ in 0..70 {
        setup.venue.answer("v1", "spot.depth", &depth);
    }
    instance.kill();
    setup.until_swept();
}

#[test]
fn an_orderly_end_with_keep_ends_the_watchdog() {
    let mut setup = Setup::new("46", 3);
    setup.launch = setup.launch.clone().set("run.on_stop=keep");
    let instance = setup.start(3);
    assert_eq!(instance.terminate().code(), Some(0));
    setup.until_watchdogs_ended();
    assert_eq!(setup.open().len(), 4, "the orders must be kept");
}
