//! `windvane run` on each kind of venue and account that the documents allow. It trades, is killed,
//! is restarted, and then agrees with the venue about the account.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rust_decimal::Decimal;
use serde_json::{Value, json};
use windvane_tests::binary;
use windvane_tests::guest::Guest;
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::processes;
use windvane_tests::venue::Venue;

/// Longest wait for anything, on a machine that also runs other work.
const PATIENCE: Duration = Duration::from_secs(90);

/// The differences between the variants.
#[derive(Clone, Copy)]
struct Variant {
    seed: &'static str,
    brand: &'static str,
    /// Additional lines of `[venue]`, and below of `[account]`.
    venue: &'static str,
    account: &'static str,
    instruments: &'static [&'static str],
    /// Position sides of a buy and of a sell, in the encoding of `submit`.
    sides: [u32; 2],
    /// Routes that this venue does not have.
    without: &'static [&'static str],
}

const PLAIN: Variant = Variant {
    seed: "61",
    brand: "svc",
    venue: "",
    account: "",
    instruments: &["futures:BTCUSDT"],
    sides: [0, 0],
    without: &[],
};

/// Buys and sells at market in turn, and keeps one order at rest.
fn trades(sides: [u32; 2]) -> String {
    let submit = |flags: u32, price: &str| {
        format!(
            "(drop (call $submit (i32.const 0) (i32.const {flags}) (i64.const 100) {price}
               (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))"
        )
    };
    let (market, nothing) = (2, "(i64.const 0)");
    let buy = submit(market | sides[0] << 7, nothing);
    let sell = submit(market | 1 | sides[1] << 7, nothing);
    let rest = submit(
        0x10 | sides[0] << 7,
        "(i64.sub (local.get $bid) (i64.rem_s (local.get $bid) (i64.const 1000)))",
    );
    let every = |place: u32, of: u32, what: &str| {
        format!(
            "(if (i64.eq (i64.rem_s (global.get $tops) (i64.const {of})) (i64.const {place}))
               (then {what}))"
        )
    };
    format!(
        "(if (i32.eq (local.get $kind) (i32.const 2)) (then
           (global.set $tops (i64.add (global.get $tops) (i64.const 1)))
           (local.set $bid (i64.sub (local.get $a) (i64.div_s (local.get $a) (i64.const 20))))
           {} {} {}))",
        every(2, 12, &buy),
        every(7, 12, &sell),
        every(5, 36, &rest),
    )
}

struct Setup {
    venue: Venue,
    launch: Launch,
    instruments: &'static [&'static str],
}

impl Setup {
    fn new(variant: &Variant) -> Self {
        let brand = format!("venue.brand={}", variant.brand);
        let venue = Venue::start(&["--seed", variant.seed, "--set", &brand]);
        for route in variant.without {
            let absent = json!({"fault": "refuse", "status": 404, "code": -1020,
                "msg": "Path is invalid.", "route": route});
            venue.control("/faults", &absent);
        }
        let (module, file) = (
            venue.folder().join("trades.wasm"),
            venue.folder().join("run.toml"),
        );
        let guest = Guest {
            on_event: &trades(variant.sides),
            more: "(global $tops (mut i64) (i64.const 0))",
            ..Guest::default()
        };
        guest.write(&module);
        std::fs::write(&file, configuration(variant, &module)).unwrap();
        let launch = Launch::new(&venue, &venue.folder().join("data")).config(&file);
        Self {
            venue,
            launch,
            instruments: variant.instruments,
        }
    }

    /// Starts the run and waits until the venue has accepted this many more orders.
    fn trade(&self, orders: u64) -> Instance {
        let before = self.accepted();
        let mut instance = self.launch.start();
        instance.ready();
        wait("the run trades", || self.accepted() >= before + orders);
        instance
    }

    fn accepted(&self) -> u64 {
        let account = self.venue.account();
        assert_eq!(account["accepted"]["repeated"], json!({}));
        account["accepted"]["total"].as_u64().unwrap()
    }

    /// Trades, kills the run, restarts it and halts it. Then no order may be open, and the account
    /// must equal the venue's.
    fn lives(&self) {
        self.trade(6).kill();
        let mut instance = self.trade(6);
        instance.answer("halt");
        instance.until("orders", &|orders| *orders == json!([]));
        let account = self.venue.account();
        let orders = account["orders"].as_array().unwrap();
        assert!(orders.iter().all(|order| order["open"] == json!(false)));
        self.compare(&mut instance);
        assert_eq!(instance.terminate().code(), Some(0));
        let data = self.launch.data().display().to_string();
        let replayed = binary::run(["replay", &data, "--verify"]);
        assert!(replayed.status.success(), "{replayed:?}");
    }

    fn compare(&self, instance: &mut Instance) {
        let account = self.venue.account();
        let mut venue = venue_state(&account);
        venue.retain(|name, _| {
            let surface = name.split([':', ' ']).next().unwrap();
            self.instruments
                .iter()
                .any(|configured| configured.starts_with(surface))
        });
        let mut own = BTreeMap::new();
        let begin = Instant::now();
        while own != venue {
            assert!(begin.elapsed() < PATIENCE, "{own:?}\n{venue:?}");
            own = own_state(&instance.answer("positions"), &instance.answer("balances"));
            own.retain(|name, qty| venue.contains_key(name) || !qty.is_zero());
        }
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // The venue ends with this value, and the watchdogs would wait for it.
        processes::kill_watchdogs(self.launch.data());
    }
}

fn configuration(variant: &Variant, module: &Path) -> String {
    let mut text = format!(
        "[run]\nmode = \"live\"\n\n[venue]\nbrand = \"{}\"\n{}\n\n[account]\n{}\n\n\
         [reconcile]\ninterval_ms = 5000\n",
        variant.brand, variant.venue, variant.account
    );
    for (place, instrument) in variant.instruments.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n[[strategy]]\nid = \"s{place}\"\nmodule = \"{}\"\ninstruments = [\"{instrument}\"]\n\
             streams = [\"book\"]\n",
            module.display()
        );
    }
    text
}

fn decimal(value: &Value) -> Decimal {
    value.as_str().unwrap().parse().unwrap()
}

/// Futures positions and all balances, as the venue reports them.
fn venue_state(account: &Value) -> BTreeMap<String, Decimal> {
    let mut state = BTreeMap::new();
    for row in account["positions"].as_array().unwrap() {
        let (symbol, side) = (row["symbol"].as_str(), row["position_side"].as_str());
        let name = format!("futures:{} {}", symbol.unwrap(), side.unwrap());
        state.insert(name, decimal(&row["qty"]));
    }
    for row in account["balances"]["futures"].as_array().unwrap() {
        let name = format!("futures {}", row["asset"].as_str().unwrap());
        state.insert(name, decimal(&row["wallet"]));
    }
    for row in account["balances"]["spot"].as_array().unwrap() {
        let name = format!("spot {}", row["asset"].as_str().unwrap());
        state.insert(name, decimal(&row["free"]) + decimal(&row["locked"]));
    }
    state
}

/// Futures positions and all balances, as the run reports them.
fn own_state(positions: &Value, balances: &Value) -> BTreeMap<String, Decimal> {
    let mut state = BTreeMap::new();
    for row in positions.as_array().unwrap() {
        let (name, side) = (row["instrument"].as_str(), row["position_side"].as_str());
        if row["strategy"].is_null() && name.unwrap().starts_with("futures:") {
            let name = format!("{} {}", name.unwrap(), side.unwrap());
            state.insert(name, decimal(&row["qty"]));
        }
    }
    for row in balances.as_array().unwrap() {
        let (surface, asset) = (row["surface"].as_str(), row["asset"].as_str());
        let name = format!("{} {}", surface.unwrap(), asset.unwrap());
        state.insert(name, decimal(&row["total"]));
    }
    state
}

fn wait(what: &str, is_it: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_it() {
        assert!(begin.elapsed() < PATIENCE, "{what}: not in {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn both_surfaces_with_an_agent_of_a_wallet_and_another_brand() {
    let setup = Setup::new(&Variant {
        brand: "acme",
        venue: "api = \"v3\"",
        instruments: &["futures:BTCUSDT", "spot:BTCUSDT"],
        ..PLAIN
    });
    setup.lives();
}

#[test]
fn documented_mode_uses_only_routes_of_documents_1_to_3() {
    let setup = Setup::new(&Variant {
        seed: "62",
        venue: "market_data = \"documented\"",
        ..PLAIN
    });
    setup.lives();
    let requests = setup.venue.whole_state()["counters"]["requests"].clone();
    let routes = binary::succeed(["routes"]);
    for name in requests.as_object().unwrap().keys() {
        let line = routes
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")));
        let outside = line.is_some_and(|line| line.contains("public facts"));
        assert!(!outside, "the run called {name}");
    }
    assert!(requests["{rpc}getBalance"].as_u64() > Some(0), "{requests}");
}

#[test]
fn a_venue_without_account_and_trade_routes() {
    let setup = Setup::new(&Variant {
        seed: "63",
        without: &["futures.account", "futures.user_trades"],
        ..PLAIN
    });
    let lost = json!({"fault": "lost", "event": "ORDER_TRADE_UPDATE", "skip": 6, "count": 4});
    setup.venue.control("/faults", &lost);
    setup.lives();
}

#[test]
fn hedge_mode() {
    let setup = Setup::new(&Variant {
        seed: "64",
        account: "position_mode = \"hedge\"",
        sides: [1, 2],
        ..PLAIN
    });
    setup
        .venue
        .control("/act", &json!({"act": "position_mode", "hedge": true}));
    setup.lives();
}

/// The client order ids of a list.
fn ids(orders: &Value) -> Vec<Value> {
    let orders = orders.as_array().unwrap().iter();
    orders
        .map(|order| order["client_order_id"].clone())
        .collect()
}

#[test]
fn external_changes_are_reported_and_left_alone() {
    let setup = Setup::new(&Variant {
        seed: "65",
        ..PLAIN
    });
    let mut instance = setup.trade(4);
    let act = |act: Value| setup.venue.control("/act", &act);
    act(
        json!({"act": "place", "symbol": "BTCUSDT", "side": "BUY", "price": "55000",
        "quantity": "0.01", "client_order_id": "web_a"}),
    );
    act(
        json!({"act": "place", "symbol": "BTCUSDT", "side": "BUY", "type": "MARKET",
        "quantity": "1"}),
    );
    act(json!({"act": "funding", "symbol": "BTCUSDT", "rate": "0.001"}));
    act(json!({"act": "transfer", "from": "spot", "asset": "USDT", "amount": "250"}));
    act(json!({"act": "withdraw", "asset": "USDT", "amount": "10.5", "cause": "ADMIN_WITHDRAW"}));
    act(json!({"act": "adl", "symbol": "BTCUSDT", "quantity": "0.5"}));
    instance.answer("halt");
    instance.until("orders", &|orders| ids(orders) == [json!("web_a")]);
    setup.compare(&mut instance);
    let account = setup.venue.account();
    let orders = account["orders"].as_array().unwrap().iter();
    let open = orders.filter(|order| order["open"] == json!(true));
    let open: Vec<_> = open.map(|order| order["client_order_id"].clone()).collect();
    assert_eq!(open, [json!("web_a")]);
    act(json!({"act": "liquidate", "symbol": "BTCUSDT"}));
    setup.compare(&mut instance);
    act(json!({"act": "position_mode", "hedge": true}));
    instance.until("status", &|status| {
        let reasons = status["degraded_reasons"].as_array().unwrap();
        reasons.contains(&json!(
            "the account's position mode differs from the configured one"
        ))
    });
    assert_eq!(instance.terminate().code(), Some(0));
}
