//! A whole session on a second exchange, which is one crate: this one speaks another language.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../../engine/tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use support::{BTC, MM, config, instrument, limit};
use windvane_client_core::budget::{Cost, Departed, Shares};
use windvane_client_core::gateway::{Answer, Failure, Identity, Now, Unsigned};
use windvane_client_core::nonce::Nonces;
use windvane_client_core::outcome::NotDone;
use windvane_client_core::streams::StreamSettings;
use windvane_client_core::{Api, Gateway};
use windvane_engine::input::Command;
use windvane_engine::latches::Latches;
use windvane_engine::live::{LiveConfig, LiveInput, OnStart, OnStop};
use windvane_engine::protocol::Refusal;
use windvane_engine::truth::{AccountTruth, Subject, Truth};
use windvane_engine::{
    Amount, Callback, Engine, Input as EngineInput, Instrument, InstrumentId, Outcome, Reply,
    Request, Side, Surface, Time, UserEvent,
};
use windvane_session::{
    Account, Action, BLOCKS_UNDER_WAY, CallAnswer, CallId, Capabilities, Clock, Driver, Exchange,
    Input, InstrumentName, JournalEvent, LatchState, NoGuests, Output, Parts, Question,
    RequestTerms, Requests, Session, SocketAction, SocketEvent, StartError,
};
use windvane_venue::route::{
    Counted, Listing, Method, Route, Scheme, Security, Source, Surface as RouteSurface, Weight,
};
use windvane_venue::sign::{Credentials, Dialect, Network, PrepareError, Prepared};
use windvane_venue::speak::{Asked, FuturesAccount, Heard, Names, Said, SpeakError};
use windvane_venue::wire::Parameters;
use windvane_venue::{Assets, Brand};

/// Everything is said to one address of the toy exchange, in words.
const ROUTE: Route = Route {
    name: "toy",
    surface: RouteSurface::Futures,
    method: Method::Post,
    security: Security::Trade,
    weight: Weight::Fixed(1),
    counted: Counted::WeightOnly,
    params: &[],
    listings: &[Listing {
        version: None,
        path: "/toy",
        scheme: Scheme::Open,
        inner: None,
    }],
    answer: "words",
    source: Source::Spec1,
    changes: true,
};

/// It answers `yes`, and its user stream says `hello`.
#[derive(Debug)]
struct Toy {
    gateway: Gateway,
    names: Names,
}

fn call(words: &str) -> Asked {
    let mut parameters = Parameters::new();
    parameters.push("words", words);
    Asked {
        route: &ROUTE,
        parameters,
    }
}

fn words_of(request: &Request) -> &'static str {
    match request {
        Request::Place(_) => "place",
        Request::Cancel { .. } => "cancel",
        Request::Countdown { .. } => "countdown",
        Request::Read(_) => "read",
        _ => "other",
    }
}

impl Exchange for Toy {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            surfaces: &[Surface::Futures],
            countdown: &[Surface::Futures],
            modes: &[],
        }
    }
    fn gateway(&self) -> &Gateway {
        &self.gateway
    }
    fn names(&self) -> &Names {
        &self.names
    }
    fn know(&mut self, names: Names, _: FuturesAccount) {
        self.names = names;
    }
    fn encode(&self, request: &Request) -> Result<Vec<Asked>, SpeakError> {
        Ok(vec![call(words_of(request))])
    }
    fn open_orders_by_symbol(&self, _: Surface) -> Result<Vec<Asked>, SpeakError> {
        Ok(vec![call("read")])
    }
    fn ask(&self, question: Question<'_>) -> Option<Asked> {
        Some(call(match question {
            Question::Clock(_) => "clock",
            Question::CreateKey(_) => "key",
            _ => "question",
        }))
    }
    fn cost(&self, _: &Asked) -> Cost {
        Cost::weight(1)
    }
    fn unsigned(&self, local_us: i64, call: &Asked) -> Unsigned {
        self.gateway
            .unsigned(local_us, (call.route, None), &call.parameters, None)
    }
    fn sign(&self, unsigned: &Unsigned) -> Option<Result<Prepared, PrepareError>> {
        Some(Ok(Prepared {
            method: Method::Post,
            path: "/toy".to_owned(),
            query: None,
            headers: Vec::new(),
            body: unsigned.parameters.get("words").map(str::to_owned),
            signed: None,
        }))
    }
    fn rehearse(&self, _: &Asked) -> Option<Prepared> {
        None
    }
    fn judge(
        &self,
        _: Now,
        _: &Unsigned,
        _: (&Cost, Departed),
        answer: Result<Answer<'_>, Failure>,
    ) -> Result<(), NotDone> {
        assert!(answer.is_ok(), "every call is answered here");
        Ok(())
    }
    fn is_of_clock(&self, _: &NotDone) -> bool {
        false
    }
    fn is_of_dead_key(&self, _: &NotDone) -> bool {
        false
    }
    fn reply(&self, request: &Request, heard: &[Heard<'_>]) -> Said<Reply> {
        assert_eq!(heard, [Heard::Done("yes")]);
        Said {
            said: vec![reply(request)],
            notes: Vec::new(),
        }
    }
    fn refuse(&self, request: &Request, error: &SpeakError) -> Vec<Reply> {
        panic!("{request:?} is refused: {error}")
    }
    fn clock_ms(&self, text: &str) -> Option<i64> {
        text.strip_prefix("it is ")?.parse().ok()
    }
    fn listen_key(&self, text: &str) -> Option<String> {
        text.strip_prefix("the key is ").map(str::to_owned)
    }
    fn user_stream(&self, key: &str) -> String {
        format!("/listen?{key}")
    }
    fn key_expiry_ms(&self, _: &str) -> Option<i64> {
        None
    }
    fn user_event(&self, _: Surface, text: &str) -> Result<Said<UserEvent>, String> {
        match text {
            "hello" => Ok(Said {
                said: Vec::new(),
                notes: Vec::new(),
            }),
            other => Err(other.to_owned()),
        }
    }
    fn check_listing(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
    fn instruments(
        &self,
        _: &[InstrumentName],
        _: &[(Surface, String)],
    ) -> Result<(Vec<Instrument>, Assets), StartError> {
        Ok((vec![instrument()], Assets::default()))
    }
    fn open_orders(&self, text: &str) -> Result<Vec<String>, String> {
        panic!("{text}: no watchdog asks here")
    }
    fn is_nothing_to_cancel(&self, _: &NotDone) -> bool {
        false
    }
    fn leverage(&self, _: &str) -> Vec<(InstrumentId, String)> {
        Vec::new()
    }
    fn is_account(&self, _: &str) -> bool {
        true
    }
    fn other_futures_account(&self) -> Option<FuturesAccount> {
        None
    }
}

fn reply(request: &Request) -> Reply {
    match request {
        Request::Read(subject) => Reply::Read {
            subject: *subject,
            outcome: Outcome::Done(truth(*subject)),
        },
        Request::Countdown { countdown_ms, .. } => Reply::Countdown {
            instrument: BTC,
            outcome: Outcome::Done(*countdown_ms),
        },
        Request::Place(order) => Reply::Placed {
            client_order_id: order.client_order_id,
            outcome: Outcome::Refused(Refusal {
                code: -1,
                msg: "no".to_owned(),
            }),
        },
        // A probe of the right to trade: no order has this id.
        Request::Cancel {
            client_order_id, ..
        } => Reply::Canceled {
            client_order_id: *client_order_id,
            outcome: Outcome::Refused(Refusal {
                code: -2011,
                msg: "none".to_owned(),
            }),
        },
        other => panic!("{other:?} is not asked here"),
    }
}

fn truth(subject: Subject) -> Truth {
    match subject {
        Subject::OpenOrders { .. } => Truth::OpenOrders(Vec::new()),
        Subject::Account { .. } => Truth::Account(AccountTruth::default()),
        Subject::ForcedOrders { .. } => Truth::ForcedOrders(Vec::new()),
        Subject::Income { .. } => Truth::Income {
            entries: Vec::new(),
            more: false,
        },
        Subject::Rules { .. } => Truth::Rules(Vec::new()),
        Subject::AssetPrice { .. } => Truth::AssetPrice(Amount::ZERO),
        Subject::NewestOrders { .. } => Truth::NewestOrders(Vec::new()),
        Subject::Trades { .. } => Truth::Trades {
            trades: Vec::new(),
            more: false,
        },
        other => panic!("{other:?} is not asked here"),
    }
}

/// A run on the toy exchange, whose disk is quick.
struct Run {
    session: Session<NoGuests>,
    now: Time,
    /// What left, in words.
    said: Vec<String>,
    /// Paths of streams.
    paths: Vec<String>,
    /// The last record that was given to the journal.
    appended: u64,
    /// Heads of segments: the last record that each stands for, and what the journal had by then.
    heads: Vec<(u64, u64)>,
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
        let exchange = Toy {
            gateway: Gateway::new(identity, Shares::default(), Arc::new(Nonces::new())),
            names: Names::new(&[instrument()], &["BTC".to_owned(), "USDT".to_owned()]),
        };
        let now = Time(1_700_000_000_000_000_000);
        let surfaces = vec![Surface::Futures];
        let terms = RequestTerms {
            request: Duration::from_secs(10),
            countdown: Duration::from_secs(1),
        };
        let requests = Requests::new(Box::new(exchange), terms, now, surfaces.clone(), 0);
        let mut config = config();
        config.keep_journal = true;
        config.live = Some(LiveConfig {
            surfaces: surfaces.clone(),
            countdown_ms: 30_000,
            renew_ms: 10_000,
            reconcile_ms: 30_000,
            absence_ms: 6_000,
            copy_ms: 6_000,
            on_start: OnStart::Adopt,
            on_stop: OnStop::Cancel,
            multi_assets: false,
            fee_estimate_ppm: 400,
            watchdog: false,
        });
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
            latches: LatchState::new(Latches::default(), std::iter::empty()),
            flattens: false,
            blocks_under_way: BLOCKS_UNDER_WAY,
        };
        let mut run = Self {
            session: Session::new(now.plus_ms(100), parts),
            now: now.plus_ms(100),
            said: Vec::new(),
            paths: Vec::new(),
            appended: 0,
            heads: Vec::new(),
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
                    self.heads.push((at.last_record, self.appended));
                    let rolled = Input::Journal(JournalEvent::Rolled(at.last_record));
                    self.session.handle(self.now, rolled);
                }
                Output::Append(block) => {
                    self.appended = block.last_record;
                    let durable = Input::Journal(JournalEvent::Durable(block.last_record));
                    self.session.handle(self.now, durable);
                }
                Output::Send(call) => {
                    let words = call.prepared.body.unwrap();
                    self.said.push(words.clone());
                    self.answer(call.id, &words);
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

    fn answer(&mut self, id: CallId, words: &str) {
        let now_ms = self.now.millis();
        let clock = format!("it is {now_ms}");
        let text = match words {
            "clock" => clock.as_str(),
            "key" => "the key is k",
            _ => "yes",
        };
        let answer = Answer {
            status: 200,
            headers: &[],
            text,
        };
        let answer = Input::Answer(id, CallAnswer::Came(answer));
        self.session.handle(self.now, answer);
    }
}

/// A run that is ready and whose strategy placed an order, which waits for its countdown.
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
fn a_session_trades_on_an_exchange_of_another_language() {
    let mut run = Run::new();
    for _ in 0..120 {
        run.now = run.now.plus_ms(100);
        run.handle(Input::Timeout);
    }
    assert_eq!(run.paths, ["/listen?k"]);
    for words in ["clock", "key", "place", "countdown", "read"] {
        assert!(
            run.said.iter().any(|said| said == words),
            "{words}: {:?}",
            run.said
        );
    }
    let placed = run.said.iter().filter(|said| *said == "place").count();
    assert_eq!(placed, 1);
}

/// The shell may give two inputs before it takes the outputs: a block that the second one ended goes to the journal
/// first, and the head of the first one is of another place by then.
#[test]
fn a_head_of_a_segment_stands_for_every_block_before_it() {
    // A segment ends by its age: with the first input of a pair, or with the second one.
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
        assert!(!run.heads.is_empty());
        for (head, appended) in &run.heads {
            assert_eq!(head, appended, "{first_ms}");
        }
    }
}
