//! The state of a strategy is recorded together with its own order events and its answers.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod guests;
#[path = "../../engine/tests/support/mod.rs"]
mod support;

use guests::{NOW, Script, Scripted};
use support::{BTC, config, limit, live_config, update};
use windvane_engine::{Callback, Engine};
use windvane_model::codec::{RecordBody, RecordedInput};
use windvane_model::input::FaultKind;
use windvane_model::live::{LiveConfig, LiveInput};
use windvane_model::{
    Event, EventKind, Input, Intent, Level, MarketEvent, OrderStatus, Side, StrategyId, Time,
};
use windvane_session::{Action, Driver};

/// A strategy whose state is the number of book and order events that it received, padded to
/// `bytes`.
struct CounterScript {
    received: u8,
    bytes: usize,
    /// `save` traps.
    fails: bool,
    /// The states that were saved and not recorded yet, and the work with them in all.
    unrecorded: usize,
    recorded: usize,
    /// How many orders without a valid price it submits at each book event.
    refused: usize,
    intents: Vec<Intent>,
}

/// It places an order when the bid of the book is this.
const ORDERS_AT: i64 = 900;

type Counter = Scripted<CounterScript>;

impl Script for CounterScript {
    fn receive(&mut self, strategy: StrategyId, engine: &Engine, event: &Event) {
        if matches!(event.kind, EventKind::BookTop | EventKind::OrderUpdate) {
            self.received = self.received.wrapping_add(1);
        }
        self.intents.clear();
        if event.kind == EventKind::BookTop && event.fields[0] == ORDERS_AT {
            let mut callback = Callback::default();
            callback.begin(engine, strategy);
            callback
                .submit(engine, limit(Side::Buy, ORDERS_AT, 1))
                .unwrap();
            self.intents = callback.intents().to_vec();
        }
        if event.kind == EventKind::BookTop && self.refused > 0 {
            let mut callback = Callback::default();
            callback.begin(engine, strategy);
            for _ in 0..self.refused {
                callback.submit(engine, limit(Side::Buy, 0, 1)).unwrap_err();
            }
            self.intents = callback.intents().to_vec();
        }
    }

    fn intents(&self) -> &[Intent] {
        &self.intents
    }

    fn save(&mut self, _: StrategyId) -> Result<Option<Vec<u8>>, FaultKind> {
        if self.fails {
            return Err(FaultKind::Trap);
        }
        self.unrecorded += 1;
        // The host also starts a new callback here, which clears the intents.
        self.intents.clear();
        let mut state = vec![0; self.bytes];
        state.insert(0, self.received);
        Ok(Some(state))
    }

    fn recorded(&mut self) {
        self.unrecorded -= 1;
        self.recorded += 1;
    }
}

struct Run {
    driver: Driver<Counter>,
    now: Time,
    /// The recorded states and answers, for each block.
    blocks: Vec<Vec<String>>,
}

impl Run {
    fn with_state_of(bytes: usize) -> Self {
        let mut config = config();
        config.keep_journal = true;
        config.strategies.truncate(1);
        // No instrument is on a surface, so the engine is ready at once.
        config.live = Some(LiveConfig {
            surfaces: Vec::new(),
            ..live_config()
        });
        let guests = Scripted(CounterScript {
            received: 0,
            bytes,
            fails: false,
            unrecorded: 0,
            recorded: 0,
            refused: 0,
            intents: Vec::new(),
        });
        let mut run = Self {
            driver: Driver::new(Engine::new(config).unwrap(), guests, true),
            now: NOW,
            blocks: Vec::new(),
        };
        run.driver.start(run.now, &[None], &[]).unwrap();
        run.handle(Input::Live(&LiveInput::Begin));
        run.seal();
        run.blocks.clear();
        run.now = run.now.plus_ms(2_000);
        run
    }

    fn handle(&mut self, input: Input<'_>) {
        self.now = self.now.plus_ms(1);
        self.driver.handle(self.now, input);
        self.read();
    }

    fn top(&mut self, bid: i64) {
        let level = |price| Level { price, qty: 1_000 };
        self.handle(Input::Market {
            instrument: BTC,
            event: MarketEvent::Top {
                update_id: 0,
                bid: level(bid),
                ask: level(bid + 2),
            },
        });
    }

    fn seal(&mut self) {
        self.driver.save(self.now);
        self.driver.seal();
        self.read();
    }

    fn read(&mut self) {
        while let Some(action) = self.driver.poll() {
            let Action::Append(block) = action else {
                continue;
            };
            let records = block.records().map(|(_, record)| record.unwrap());
            let words = records.filter_map(|record| match record.body {
                RecordBody::Input(RecordedInput::Saved { state, .. }) => Some(match state {
                    Some(state) => format!("saved {}", state[0]),
                    None => "saved the same".to_owned(),
                }),
                RecordBody::Input(RecordedInput::Answer { .. }) => Some("answer".to_owned()),
                RecordBody::Input(RecordedInput::Fault { .. }) => Some("fault".to_owned()),
                _ => None,
            });
            self.blocks.push(words.collect());
        }
    }
}

#[test]
fn a_state_is_in_the_same_block_as_its_order() {
    let mut run = Run::with_state_of(100);
    run.top(998);
    run.top(ORDERS_AT);
    // One count for the first book and one for the second.
    assert_eq!(run.blocks, [["saved 2", "answer"]]);
    run.seal();
    assert_eq!(
        run.blocks[1..],
        [Vec::<String>::new()],
        "nothing changed since the last save"
    );
}

#[test]
fn a_state_is_recorded_with_an_own_order_event() {
    let mut run = Run::with_state_of(100);
    run.top(ORDERS_AT);
    run.blocks.clear();
    let id = run.driver.engine().orders().iter().next().unwrap();
    let id = id.client_order_id;
    let event = windvane_model::UserEvent::Order(update(id, Side::Buy, OrderStatus::New, 0));
    run.handle(Input::User(&event));
    run.driver.seal();
    run.read();
    assert_eq!(run.blocks, [["saved 2"]]);
}

#[test]
fn other_changes_are_recorded_when_a_block_ends_by_age() {
    let mut run = Run::with_state_of(100);
    run.top(998);
    run.top(997);
    run.seal();
    run.seal();
    assert_eq!(run.blocks, [["saved 2"]]);
}

#[test]
fn a_large_state_is_recorded_after_pauses() {
    let mut run = Run::with_state_of(64 << 10);
    run.top(998);
    run.seal();
    assert_eq!(run.blocks, [["saved 1"]]);
    run.blocks.clear();
    run.top(ORDERS_AT);
    run.seal();
    assert_eq!(
        run.blocks.concat(),
        ["answer"],
        "an order does not wait for a large state"
    );
    run.now = run.now.plus_ms(1_100);
    run.seal();
    assert_eq!(run.blocks.concat(), ["answer", "saved 2"]);
}

#[test]
fn small_states_beyond_the_share_of_the_journal_are_recorded_less_often() {
    let mut run = Run::with_state_of(4_000);
    for _ in 0..3_000 {
        run.top(ORDERS_AT);
    }
    run.driver.seal();
    run.read();
    let words = run.blocks.concat();
    let count = |word: &str| words.iter().filter(|one| one.starts_with(word)).count();
    assert_eq!(count("answer"), 3_000, "its orders still leave");
    // 8 MiB at once, and 256 KiB for each of three seconds.
    let saved = count("saved");
    assert!((2_050..2_300).contains(&saved), "{saved}");
    run.blocks.clear();
    run.now = run.now.plus_ms(1_000);
    run.seal();
    assert_eq!(run.blocks.concat().len(), 1, "the newest state");
}

#[test]
fn a_strategy_that_fills_the_journal_is_quarantined() {
    let mut run = Run::with_state_of(1);
    run.driver.guests_mut().refused = 1_000;
    let mut events = 0;
    while run.driver.engine().fault(StrategyId(0)).is_none() {
        run.top(998);
        events += 1;
        assert!(events < 400);
    }
    // 1,000 refused orders of 64 bytes an event, 16 MiB at once.
    assert!(events > 250, "{events}");
    let fault = run.driver.engine().fault(StrategyId(0));
    assert_eq!(fault, Some(FaultKind::Intents));
}

#[test]
fn the_work_of_recording_a_state_ends_with_its_record() {
    let mut run = Run::with_state_of(100);
    run.top(ORDERS_AT);
    run.top(998);
    run.seal();
    run.driver.state(run.now, StrategyId(0)).unwrap();
    run.driver.snapshot();
    let guests = run.driver.guests();
    assert_eq!(guests.unrecorded, 0);
    assert!(guests.recorded >= 4);
}

#[test]
fn a_failed_save_quarantines_and_drops_the_intents() {
    for bid in [ORDERS_AT, 998] {
        let mut run = Run::with_state_of(100);
        run.driver.guests_mut().fails = true;
        run.top(bid);
        run.seal();
        assert_eq!(run.blocks, [["fault"]], "{bid}");
        assert!(run.driver.engine().orders().is_empty());
        assert_eq!(
            run.driver.engine().fault(StrategyId(0)),
            Some(FaultKind::Trap)
        );
    }
}
