//! Orders that wait for the journal until their dead man's countdown has run out.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../../engine/tests/support/mod.rs"]
mod support;

use support::{BTC, MM, config, limit, live_config};
use windvane_engine::{Callback, Engine};
use windvane_model::live::LiveInput;
use windvane_model::state_report::{AccountSnapshot, StateReport, Subject};
use windvane_model::{Amount, Input, Intent, Notice, Outcome, Reply, Request, Side, Surface, Time};
use windvane_session::{Action, Driver, NoGuests};

const FUTURES: Surface = Surface::Futures;

/// A run whose journal becomes durable only on request.
struct Run {
    driver: Driver<NoGuests>,
    now: Time,
    record: u64,
    requests: Vec<Request>,
    /// The reasons why orders were not placed.
    reasons: Vec<String>,
}

impl Run {
    /// A run that is ready. The countdown of its only symbol is confirmed, and an order waits for
    /// the journal.
    fn waiting() -> Self {
        let mut config = config();
        config.keep_journal = true;
        config.live = Some(live_config());
        let mut run = Self {
            driver: Driver::new(Engine::new(config).unwrap(), NoGuests, true),
            now: Time(1_700_000_000_000_000_000),
            record: 0,
            requests: Vec::new(),
            reasons: Vec::new(),
        };
        for input in [
            LiveInput::Begin,
            LiveInput::Clock {
                surface: FUTURES,
                offset_ns: 0,
                error_ns: 1,
            },
            LiveInput::StreamUp { surface: FUTURES },
        ] {
            run.handle(Input::Live(&input));
        }
        let mut callback = Callback::default();
        callback.begin(run.driver.engine(), MM);
        let submitted = callback.submit(run.driver.engine(), limit(Side::Buy, 990, 1));
        submitted.unwrap();
        run.handle(Input::Answer {
            strategy: MM,
            intents: callback.intents(),
        });
        run
    }

    /// Handles an input, and replies to the requests that follow.
    fn handle(&mut self, input: Input<'_>) {
        self.now = self.now.plus_ms(1);
        self.driver.handle(self.now, input);
        self.act();
    }

    fn act(&mut self) {
        while let Some(action) = self.driver.poll() {
            match action {
                Action::Append(block) => self.record = block.last_record,
                Action::Request(request) => self.answer(request),
                Action::Notice(notice) => {
                    if let Notice::NotPlaced { words, .. } = *notice {
                        self.reasons.push(words.reason);
                    }
                }
                _ => {}
            }
        }
    }

    fn answer(&mut self, request: Request) {
        let reply = match &request {
            Request::Read(subject) => {
                let state_report = match subject {
                    Subject::OpenOrders { .. } => StateReport::OpenOrders(Vec::new()),
                    Subject::Account { .. } => StateReport::Account(AccountSnapshot::default()),
                    Subject::ForcedOrders { .. } => StateReport::ForcedOrders(Vec::new()),
                    Subject::Income { .. } => StateReport::Income {
                        entries: Vec::new(),
                        more: false,
                    },
                    Subject::Rules { .. } => StateReport::Rules(Vec::new()),
                    Subject::AssetPrice { .. } => StateReport::AssetPrice(Amount::ZERO),
                    Subject::OutsideOrder { .. } | Subject::TradedOrder { .. } => return,
                    Subject::NewestOrders { .. } => StateReport::NewestOrders(Vec::new()),
                    Subject::Trades { .. } => StateReport::Trades {
                        trades: Vec::new(),
                        more: false,
                    },
                };
                Reply::Read {
                    subject: *subject,
                    outcome: Outcome::Done(state_report),
                }
            }
            Request::Countdown { countdown_ms, .. } => Reply::Countdown {
                instrument: BTC,
                outcome: Outcome::Done(*countdown_ms),
            },
            _ => return self.requests.push(request),
        };
        self.driver.handle(self.now, Input::Reply(&reply));
    }

    fn pass(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.now = self.now.plus_ms(998);
            self.handle(Input::Live(&LiveInput::StreamAlive { surface: FUTURES }));
            self.handle(Input::Timeout);
        }
    }

    fn cancel_all(&mut self) {
        let intents = [Intent::CancelAll { instrument: None }];
        self.handle(Input::Answer {
            strategy: MM,
            intents: &intents,
        });
    }

    /// Makes everything durable. Returns the number of orders that leave.
    fn durable(&mut self) -> usize {
        self.driver.seal();
        self.act();
        self.requests.clear();
        self.driver.durable(self.now, self.record);
        self.act();
        let places = self.requests.iter();
        places
            .filter(|request| matches!(request, Request::Place(_)))
            .count()
    }
}

#[test]
fn an_order_is_sent_when_its_record_is_durable() {
    let mut run = Run::waiting();
    let id = run.driver.engine().orders().iter().next().unwrap();
    let id = id.client_order_id;
    assert_eq!(run.driver.waiting(), 1);
    assert!(run.driver.is_waiting(&id), "the venue cannot have it yet");
    assert_eq!(run.durable(), 1);
    assert!(!run.driver.is_waiting(&id));
}

#[test]
fn an_order_with_an_expired_countdown_is_not_sent() {
    let mut run = Run::waiting();
    run.handle(Input::Live(&LiveInput::Journal { healthy: false }));
    run.pass(32);
    run.cancel_all();
    assert_eq!(run.durable(), 0);
    assert_eq!(run.requests, [], "the order never left the process");
    assert_eq!(run.driver.waiting(), 0);
    assert!(
        run.driver.engine().orders().is_empty(),
        "the order has ended"
    );
}

#[test]
fn an_order_is_not_sent_under_a_later_countdown() {
    let mut run = Run::waiting();
    run.handle(Input::Live(&LiveInput::Journal { healthy: false }));
    run.pass(32);
    run.handle(Input::Live(&LiveInput::Journal { healthy: true }));
    run.pass(3);
    assert!(run.driver.engine().covered_until(BTC).is_some());
    assert_eq!(run.durable(), 0);
}

#[test]
fn each_reason_why_a_waiting_order_is_not_sent_has_its_own_text() {
    let reason = |wait: fn(&mut Run)| {
        let mut run = Run::waiting();
        wait(&mut run);
        assert_eq!(run.durable(), 0);
        run.reasons.join("; ")
    };
    let cancelled = reason(Run::cancel_all);
    assert!(cancelled.contains("it was cancelled"), "{cancelled}");
    let late = reason(|run| run.pass(4));
    assert!(late.contains("for more than 3 s"), "{late}");
    let halted = reason(|run| run.handle(Input::Command(windvane_model::input::Command::Halt)));
    assert!(halted.contains("was halted"), "{halted}");
    let uncovered = reason(|run| {
        run.handle(Input::Live(&LiveInput::Journal { healthy: false }));
        run.pass(32);
    });
    assert!(
        uncovered.contains("countdown of the symbol ran out"),
        "{uncovered}"
    );
}
