//! A whole session on a second exchange. The exchange is one crate with a different protocol.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../../engine/tests/support/mod.rs"]
mod support;
mod toy;

use std::sync::Arc;
use std::time::Duration;

use support::{MM, config, limit, live_config};
use toy::{Toy, reply};
use windvane_client_core::budget::Shares;
use windvane_client_core::gateway::{Answer, Identity};
use windvane_client_core::nonce::Nonces;
use windvane_client_core::streams::StreamSettings;
use windvane_client_core::{Api, Gateway};
use windvane_engine::{Callback, Engine};
use windvane_model::input::Command;
use windvane_model::kill_switch::StoredKillSwitches;
use windvane_model::live::LiveInput;
use windvane_model::{Input as EngineInput, Side, Surface, Time};
use windvane_protocol::Brand;
use windvane_protocol::sign::{Credentials, Dialect, Network};
use windvane_session::{
    Account, Action, BLOCKS_UNDER_WAY, CallAnswer, CallId, Clock, Driver, Input, JournalEvent,
    KillSwitchState, NoGuests, Output, Parts, RequestTerms, Requests, Session, SocketAction,
    SocketEvent,
};

/// A run on the toy exchange with a fast disk.
struct Run {
    session: Session<NoGuests>,
    now: Time,
    /// The words of the calls that were sent.
    sent: Vec<String>,
    /// Paths of the opened streams.
    paths: Vec<String>,
    /// The last record that was passed to the journal.
    appended: u64,
    /// For each segment: the last record that its checkpoint contains, and the last record that the
    /// journal had.
    checkpoints: Vec<(u64, u64)>,
}

impl Run {
    fn new() -> Self {
        let identity = Identity {
            dialect: Dialect {
                brand: Brand::new("toy").unwrap(),
                network: Network::Mainnet,
                recv_window_ms: None,
            },
            credentials: Credentials::default(),
            spot_api: Api::V1,
            futures_api: Api::V1,
            hosts: [const { None }; 4],
        };
        let gateway = Gateway::new(identity, Shares::default(), Arc::new(Nonces::new()));
        let exchange = Toy::new(gateway);
        let now = Time(1_700_000_000_000_000_000);
        let surfaces = vec![Surface::Futures];
        let terms = RequestTerms {
            request: Duration::from_secs(10),
            countdown: Duration::from_secs(1),
        };
        let requests = Requests::new(Box::new(exchange), terms, now, surfaces.clone(), 0);
        let mut config = config();
        config.keep_journal = true;
        config.live = Some(live_config());
        let engine = Engine::new(config).unwrap();
        let driver = with_order(Driver::new(engine, NoGuests, true), now);
        let parts = Parts {
            driver,
            account: Account::Venue,
            requests: Some(requests),
            clock: Clock::counted(now.plus_ms(100), now.plus_ms(100)),
            modules: Vec::new(),
            surfaces,
            streams: StreamSettings::default(),
            public: None,
            kill_switch: KillSwitchState::new(StoredKillSwitches::default(), std::iter::empty()),
            flattens: false,
            blocks_under_way: BLOCKS_UNDER_WAY,
        };
        let mut run = Self {
            session: Session::new(now.plus_ms(100), parts),
            now: now.plus_ms(100),
            sent: Vec::new(),
            paths: Vec::new(),
            appended: 0,
            checkpoints: Vec::new(),
        };
        run.perform();
        run
    }

    fn handle(&mut self, input: Input<'_>) {
        self.session.handle(self.now, input);
        self.perform();
    }

    fn perform(&mut self) {
        while let Some(output) = self.session.poll_output() {
            match output {
                Output::Roll(_, at) => {
                    self.checkpoints.push((at.last_record, self.appended));
                    let rolled = Input::Journal(JournalEvent::Rolled(at.last_record));
                    self.session.handle(self.now, rolled);
                }
                Output::Append(block) => {
                    self.appended = block.last_record;
                    let durable = Input::Journal(JournalEvent::Durable(block.last_record));
                    self.session.handle(self.now, durable);
                }
                Output::Send(call) => {
                    let text = call.prepared.body.unwrap();
                    self.sent.push(text.clone());
                    self.answer(call.id, &text);
                }
                Output::Socket(surface, link, SocketAction::Open(path)) => {
                    self.paths.push(path);
                    for event in [SocketEvent::Opened, SocketEvent::Text("hello", self.now)] {
                        let input = Input::Socket(surface, link, event);
                        self.session.handle(self.now, input);
                    }
                }
                _ => {}
            }
        }
    }

    fn answer(&mut self, id: CallId, text: &str) {
        let now_ms = self.now.millis();
        let clock = format!("it is {now_ms}");
        let text = match text {
            "clock" => clock.as_str(),
            "key" => "the key is k",
            _ => "yes",
        };
        let answer = Answer {
            status: 200,
            headers: &[],
            text,
        };
        let answer = Input::Answer(id, CallAnswer::Received(answer));
        self.session.handle(self.now, answer);
    }
}

/// A run that is ready. Its strategy placed an order, which waits for its countdown.
fn with_order(mut driver: Driver<NoGuests>, mut now: Time) -> Driver<NoGuests> {
    let surface = Surface::Futures;
    let clock = LiveInput::Clock {
        surface,
        offset_ns: 0,
        error_ns: 1,
    };
    for input in [LiveInput::Begin, clock, LiveInput::StreamUp { surface }] {
        now = now.plus_ms(1);
        driver.handle(now, EngineInput::Live(&input));
        while let Some(action) = driver.poll() {
            if let Action::Request(request) = action {
                now = now.plus_ms(1);
                driver.handle(now, EngineInput::Reply(&reply(&request)));
            }
        }
    }
    let mut callback = Callback::default();
    callback.begin(driver.engine(), MM);
    let submitted = callback.submit(driver.engine(), limit(Side::Buy, 990, 1));
    submitted.unwrap();
    let answer = EngineInput::Answer {
        strategy: MM,
        intents: callback.intents(),
    };
    driver.handle(now.plus_ms(1), answer);
    driver
}

#[test]
fn a_session_trades_on_an_exchange_with_another_protocol() {
    let mut run = Run::new();
    for _ in 0..120 {
        run.now = run.now.plus_ms(100);
        run.handle(Input::Timeout);
    }
    assert_eq!(run.paths, ["/listen?k"]);
    for text in ["clock", "key", "place", "countdown", "read"] {
        assert!(
            run.sent.iter().any(|sent| sent == text),
            "{text}: {:?}",
            run.sent
        );
    }
    let placed = run.sent.iter().filter(|sent| *sent == "place").count();
    assert_eq!(placed, 1);
}

/// The shell may pass two inputs before it takes the outputs. If the second input ends a block, the
/// block goes to the journal first. The checkpoint that the first input made is then out of date.
#[test]
fn a_checkpoint_contains_every_block_before_it() {
    // A segment ends because of its age, with the first or the second input of a pair.
    for first_ms in [0, 260] {
        let mut run = Run::new();
        run.now = run.now.plus_ms(first_ms);
        for _ in 0..700 {
            run.now = run.now.plus_ms(260);
            run.session.handle(run.now, Input::Timeout);
            let resume = Input::Command(Command::Resume, None);
            run.session.handle(run.now, resume);
            run.now = run.now.plus_ms(260);
            run.handle(Input::Timeout);
        }
        assert!(!run.checkpoints.is_empty());
        for (checkpoint, appended) in &run.checkpoints {
            assert_eq!(checkpoint, appended, "{first_ms}");
        }
    }
}
