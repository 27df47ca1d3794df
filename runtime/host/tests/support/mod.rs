//! Guests written as WebAssembly text, and an engine for them.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary has its own copy and uses only a part"
)]

use windvane_engine::Engine;
use windvane_host::{Capabilities, Fault, Host, HostOptions, Limits, PathChoice, Strategy};
use windvane_model::config::{EngineConfig, OnFault, StrategyConfig, Streams, Subscription};
use windvane_model::ids::StrategyName;
use windvane_model::instrument::{Filters, LotSize, PriceFilter};
use windvane_model::risk::RiskLimits;
use windvane_model::{
    Amount, AssetId, Event, EventKind, Input, Instrument, InstrumentId, Level, MarketEvent,
    StrategyId, Surface, Time,
};

/// The answer of `describe` of every guest here.
const DESCRIPTION: &str =
    r#"{"name":"guest","version":"0.1.0","state_schema":1,"capabilities":["orders"]}"#;

/// All imports of the contract with their core signatures.
pub const IMPORTS: &str = r#"
  (import "windvane:strategy/orders@0.2.0" "submit"
    (func $submit (param i32 i32 i64 i64 i64 i64 i32 i64 i64 i64) (result i64)))
  (import "windvane:strategy/orders@0.2.0" "cancel" (func $cancel (param i64) (result i64)))
  (import "windvane:strategy/orders@0.2.0" "cancel-all"
    (func $cancel_all (param i32) (result i64)))
  (import "windvane:strategy/orders@0.2.0" "amend"
    (func $amend (param i64 i64 i64 i64 i64) (result i64)))
  (import "windvane:strategy/orders@0.2.0" "begin-group"
    (func $begin_group (param i32 i32 i32) (result i64)))
  (import "windvane:strategy/orders@0.2.0" "cancel-group"
    (func $cancel_group (param i64 i32) (result i64)))
  (import "windvane:strategy/account@0.2.0" "open-groups"
    (func $open_groups (param i32) (result i64)))
  (import "windvane:strategy/account@0.2.0" "open-group"
    (func $open_group (param i32 i32) (result i64)))
  (import "windvane:strategy/account@0.2.0" "group" (func $group (param i64 i32) (result i64)))
  (import "windvane:strategy/market@0.2.0" "history"
    (func $history (param i32 i64 i32) (result i64)))
  (import "windvane:strategy/fault@0.2.0" "report" (func $report (param i32 i32)))
  (import "windvane:strategy/account@0.2.0" "position"
    (func $position (param i32 i32 i32) (result i64)))
  (import "windvane:strategy/account@0.2.0" "open-orders"
    (func $open_orders (param i32) (result i64)))
  (import "windvane:strategy/account@0.2.0" "open-order"
    (func $open_order (param i32 i32) (result i64)))
  (import "windvane:strategy/account@0.2.0" "order" (func $order (param i64 i32) (result i64)))
  (import "windvane:strategy/account@0.2.0" "balance"
    (func $balance (param i32 i32 i32) (result i64)))
  (import "windvane:strategy/market@0.2.0" "book"
    (func $book (param i32 i32 i32 i32) (result i64)))
  (import "windvane:strategy/market@0.2.0" "last" (func $last (param i32 i32) (result i64)))
  (import "windvane:strategy/market@0.2.0" "rule" (func $rule (param i32 i32) (result i64)))
  (import "windvane:strategy/timers@0.2.0" "set"
    (func $set_timer (param i64 i32 i64) (result i64)))
  (import "windvane:strategy/timers@0.2.0" "cancel"
    (func $cancel_timer (param i64) (result i64)))
  (import "windvane:strategy/log@0.2.0" "log" (func $log (param i32 i32 i32)))
  (import "windvane:strategy/plot@0.2.0" "plot" (func $plot (param i32 i32 i64 i32)))
"#;

/// Parameters of `on-event`.
pub const EVENT: &str = "(param $ms i64) (param $ns i32) (param $sequence i64) (param $kind i32)
    (param $instrument i32) (param $flags i32) (param $a i64) (param $b i64) (param $c i64)
    (param $d i64) (param $e i64) (param $f i64) (param $id i64)";

/// A buy of 0.002 at 1,000.0, post-only.
pub const SUBMIT: &str = "(call $submit (i32.const 0) (i32.const 0x40) (i64.const 2)
    (i64.const 10000) (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0) (i64.const 0)
    (i64.const 0))";

/// The text of a guest that counts events, saves the count and runs `on_event` at each event.
pub fn text(imports: &str, on_event: &str, more: &str) -> String {
    let description = DESCRIPTION.replace('"', "\\22");
    let length = DESCRIPTION.len();
    format!(
        r#"(module {imports}
  (memory (export "memory") 1)
  (data (i32.const 1024) "{description}")
  (data (i32.const 2048) "spread")
  (global $heap (mut i32) (i32.const 8192))
  (global $count (mut i64) (i64.const 0))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (global.get $heap))
    (global.set $heap (i32.add (global.get $heap) (local.get 3)))
    (local.get $at))
  (func $answer (param $pointer i32) (param $length i32) (result i32)
    (i32.store (i32.const 16) (local.get $pointer))
    (i32.store (i32.const 20) (local.get $length))
    (i32.const 16))
  (func (export "describe") (result i32)
    (call $answer (i32.const 1024) (i32.const {length})))
  (func (export "start") (param i32 i32 i32 i32) (result i32)
    (call $answer (i32.const 0) (i32.const 0)))
  (func (export "save") (result i32)
    (i64.store (i32.const 32) (global.get $count))
    (call $answer (i32.const 32) (i32.const 8)))
  (func (export "cabi_post_save") (param i32) (i32.store (i32.const 16) (i32.const -1)))
  (func (export "load") (param i32 i32) (result i32)
    (global.set $count (i64.load (local.get 0)))
    (call $answer (i32.const 0) (i32.const 0)))
  (func (export "on-event") {EVENT} (local $i i32)
    (global.set $count (i64.add (global.get $count) (i64.const 1)))
    {on_event})
  {more})"#
    )
}

/// The imports that contract 0.1 has too, in version 0.1.
pub fn imports_0_1() -> String {
    let new = [
        "amend",
        "begin-group",
        "cancel-group",
        "open-groups",
        "open-group",
        "group",
    ];
    let new = [&new[..], &["history", "report"]].concat();
    let imports = IMPORTS.split("(import ").skip(1);
    let old = imports.filter(|import| {
        !new.iter()
            .any(|name| import.contains(&format!("\"{name}\"")))
    });
    let old: Vec<_> = old.collect();
    format!("(import {}", old.join("(import "))
        .replace("@0.2.0", "@0.1.0")
        .replace("i32 i64 i64 i64) (result", "i32 i64) (result")
        .replace(
            "$set_timer (param i64 i32 i64)",
            "$set_timer (param i64 i64)",
        )
}

/// The text of a guest of contract 0.1.
pub fn text_0_1(on_event: &str, more: &str) -> String {
    let old = SUBMIT.replace(
        "(i64.const 0) (i64.const 0)\n    (i64.const 0))",
        "(i64.const 0))",
    );
    text(&imports_0_1(), on_event, more)
        .replace("(export \"start\")", "(export \"init\")")
        .replace("(param $ms i64) (param $ns i32)", "(param $time i64)")
        .replace(SUBMIT, &old)
}

/// A test strategy of contract 0.1 as a WebAssembly core module (no component). At each event it
/// executes the WAT code `on_event`.
pub fn guest_0_1(on_event: &str) -> Vec<u8> {
    wat::parse_str(text_0_1(on_event, "")).unwrap()
}

/// A test strategy of the present contract as a WebAssembly core module (no component). At each
/// event it executes the WAT code `on_event`.
pub fn guest(on_event: &str) -> Vec<u8> {
    wat::parse_str(text(IMPORTS, on_event, "")).unwrap()
}

/// `futures:BTCUSDT` with a book of one level around 61,800, assigned to strategy 0.
pub fn engine() -> Box<Engine> {
    let instrument = Instrument {
        filters: Filters {
            price: Some(PriceFilter {
                min_price: 1,
                max_price: 10_000_000,
                tick_size: 1,
            }),
            lot_size: Some(LotSize {
                min_qty: 1,
                max_qty: 1_000_000,
                step_size: 1,
            }),
            ..Filters::default()
        },
        ..Instrument::unrestricted(
            Surface::Futures,
            "BTCUSDT",
            [AssetId(1), AssetId(0)],
            [1, 3],
        )
    };
    let engine = Engine::new(EngineConfig {
        assets: vec!["USDT".to_owned(), "BTC".to_owned()],
        instruments: vec![instrument],
        strategies: vec![StrategyConfig {
            name: StrategyName::new("guest").unwrap(),
            subscriptions: vec![Subscription {
                instrument: InstrumentId(0),
                streams: Streams::default(),
                bars_ms: Vec::new(),
            }],
            limits: RiskLimits::default(),
            on_fault: OnFault::Cancel,
        }],
        balances: vec![(Surface::Futures, AssetId(0), Amount(10_000 * 100_000_000))],
        ..EngineConfig::default()
    });
    let mut engine = Box::new(engine.unwrap());
    let level = |price, qty| Level { price, qty };
    let top = MarketEvent::Top {
        update_id: 1,
        bid: level(617_990, 1_500),
        ask: level(618_000, 2_500),
    };
    engine.handle(
        Time::from_millis(1_000),
        Input::Market {
            instrument: InstrumentId(0),
            event: top,
        },
    );
    engine
}

/// The event with this number: a trade.
pub fn event(number: i64) -> Event {
    Event {
        time: Time(Time::from_millis(1_000 + number).0 + 7),
        sequence: number,
        kind: EventKind::Trade,
        instrument: InstrumentId(0),
        flags: 1,
        fields: [617_995 + number, 20 + number, 0, 0, 0, 0],
        id: 1_000 + number,
    }
}

pub fn host(path: PathChoice) -> Host {
    Host::new(HostOptions {
        path,
        ..HostOptions::default()
    })
    .unwrap()
}

pub const PATHS: [PathChoice; 2] = [PathChoice::Direct, PathChoice::Component];

/// A started strategy with its engine. All capabilities are granted unless stated.
pub struct Bench {
    pub strategy: Strategy,
    engine: Option<Box<Engine>>,
}

impl Bench {
    pub fn new(path: PathChoice, module: &[u8], limits: Limits) -> Self {
        Self::granted(path, module, limits, Capabilities::ALL)
    }

    pub fn granted(path: PathChoice, module: &[u8], limits: Limits, granted: Capabilities) -> Self {
        let mut strategy = host(path).load(module, limits, granted).unwrap();
        let (engine, result) = strategy.start(engine(), StrategyId(0), b"{}", b"{}");
        result.unwrap();
        Self {
            strategy,
            engine: Some(engine),
        }
    }

    pub fn deliver(&mut self, number: i64) -> Result<(), Fault> {
        self.with_engine(|strategy, engine| strategy.deliver(engine, &event(number)))
    }

    pub fn deliver_event(&mut self, event: &Event) -> Result<(), Fault> {
        self.with_engine(|strategy, engine| strategy.deliver(engine, event))
    }

    pub fn restart(&mut self, state: Option<&[u8]>) -> Result<(), Fault> {
        self.with_engine(|strategy, engine| strategy.restart(engine, state))
    }

    fn with_engine(
        &mut self,
        call: impl FnOnce(&mut Strategy, Box<Engine>) -> (Box<Engine>, Result<(), Fault>),
    ) -> Result<(), Fault> {
        let engine = self.engine.take().unwrap();
        let (engine, result) = call(&mut self.strategy, engine);
        self.engine = Some(engine);
        result
    }
}
