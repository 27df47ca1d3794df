//! The steps of a start, against a venue whose responses each test gives.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::time::Duration;

use windvane_client_core::budget::Shares;
use windvane_client_core::gateway::{Answer, Identity};
use windvane_client_core::nonce::Nonces;
use windvane_client_core::settings::Api;
use windvane_client_core::{Gateway, Lost};
use windvane_model::{Instrument, Surface, Time};
use windvane_protocol::Brand;
use windvane_protocol::adapter::FuturesAccount;
use windvane_protocol::route;
use windvane_protocol::sign::{ApiKey, Credentials, Dialect, Network};
use windvane_session::{
    Call, CallAnswer, Documented, FindAccount, InstrumentName, RequestTerms, Requests, Signing,
    Startup, StartupError, StartupInput, StartupOutput, StartupResult, StartupTerms, surfaces,
};

const FUTURES: &str = include_str!("../../protocol/tests/exchange_info_futures.json");
const SPOT: &str = include_str!("../../protocol/tests/exchange_info_spot.json");
const USER: &str = "0x00000000000000000000000000000000000000aa";
/// Unix milliseconds.
const BEGIN_MS: i64 = 1_700_000_000_000;
/// How far the venue's clock is ahead.
const AHEAD_MS: i64 = 250;
/// Round-trip time of a request.
const TRIP_MS: i64 = 10;
const UNSUPPORTED: &str = r#"{"code":-1020,"msg":"This operation is not supported."}"#;

/// A start with its venue and the outputs so far.
struct Run {
    startup: Startup,
    gateway: Gateway,
    now: Time,
    limits_known: usize,
    ended: usize,
    /// The call in progress was given up.
    abandoned: bool,
    /// Calls that were sent, in order.
    requested: Vec<&'static str>,
    call: Option<Call>,
    result: Option<Result<StartupResult, StartupError>>,
}

fn terms(names: &[&str], futures_account: Option<FindAccount>) -> StartupTerms {
    let names = names
        .iter()
        .map(|name| InstrumentName::parse(name).unwrap());
    StartupTerms {
        instruments: names.collect(),
        reads_clocks: true,
        futures_account,
    }
}

impl Run {
    fn new(terms: StartupTerms) -> Self {
        Self::of(terms, Some(USER))
    }

    fn of(terms: StartupTerms, user: Option<&str>) -> Self {
        let identity = Identity {
            dialect: Dialect {
                brand: Brand::new("svc").unwrap(),
                network: Network::Mainnet,
                recv_window_ms: None,
            },
            credentials: Credentials {
                api_key: Some(ApiKey::new("key", "secret".to_owned().into())),
                user: user.map(|user| user.parse().unwrap()),
                ..Credentials::default()
            },
            spot_api: Api::V1,
            futures_api: Api::V1,
            hosts: [const { None }; 4],
        };
        let gateway = Gateway::new(identity, Shares::default(), Arc::new(Nonces::new()));
        let limits = RequestTerms {
            request: Duration::from_secs(10),
            countdown: Duration::from_secs(1),
        };
        let now = Time::from_millis(BEGIN_MS);
        let surfaces = surfaces(&terms.instruments);
        let exchange = Box::new(Documented::new(gateway.clone(), false, Signing::Here));
        let requests = Requests::new(exchange, limits, now, surfaces, 0);
        let mut run = Self {
            startup: Startup::new(now, terms, requests),
            gateway,
            now,
            limits_known: 0,
            ended: 0,
            abandoned: false,
            requested: Vec::new(),
            call: None,
            result: None,
        };
        run.perform();
        run
    }

    fn perform(&mut self) {
        while let Some(output) = self.startup.poll_output() {
            match output {
                StartupOutput::Sign(..) => panic!("a start must sign its own calls"),
                StartupOutput::Send(call) => {
                    self.requested.push(call.route.name);
                    assert!(self.call.replace(call).is_none(), "one call at a time");
                }
                StartupOutput::Abandon(id) => {
                    assert_eq!(self.call.as_ref().map(|call| call.id), Some(id));
                    self.abandoned = true;
                }
                StartupOutput::LimitsKnown => self.limits_known += 1,
                StartupOutput::CallEnded(_) => self.ended += 1,
            }
        }
        self.result = self.result.take().or_else(|| self.startup.take_result());
    }

    /// Gives the result of the call in progress.
    fn give_answer(&mut self, answer: CallAnswer<'_>) {
        self.now = self.now.plus_ms(TRIP_MS);
        let id = self.call.take().unwrap().id;
        self.startup
            .handle(self.now, StartupInput::Answer(id, answer));
        self.perform();
    }

    fn answer(&mut self, status: u16, headers: &[(&str, &str)], text: &str) {
        let answer = Answer {
            status,
            headers,
            text,
        };
        self.give_answer(CallAnswer::Received(answer));
    }

    fn ok(&mut self, text: &str) {
        self.answer(200, &[], text);
    }

    /// Waits until the start sends a request again. Returns how long that took, in milliseconds.
    fn wait(&mut self) -> i64 {
        assert!(self.call.is_none(), "a call is still in progress");
        let begin = self.now;
        while self.call.is_none() {
            self.time_passes();
        }
        (self.now.0 - begin.0) / 1_000_000
    }

    fn time_passes(&mut self) {
        self.now = self.startup.poll_timeout().unwrap();
        self.startup.handle(self.now, StartupInput::Timeout);
        self.perform();
        if std::mem::take(&mut self.abandoned) {
            let id = self.call.take().unwrap().id;
            let lost = CallAnswer::Lost(Lost::Cut("no answer".to_owned()));
            self.startup
                .handle(self.now, StartupInput::Answer(id, lost));
            self.perform();
        }
    }

    fn under_way(&self) -> Option<&'static str> {
        self.call.as_ref().map(|call| call.route.name)
    }

    fn read_clock(&mut self) {
        for _ in 0..3 {
            self.ok(&self.server_time());
        }
    }

    /// A clock response. The venue's clock is read halfway through the round trip.
    fn server_time(&self) -> String {
        let ms = self.now.millis() + TRIP_MS / 2 + AHEAD_MS;
        format!("{{\"serverTime\":{ms}}}")
    }

    /// A start that is about to find out where the futures account is read.
    fn at_the_account() -> Self {
        let mut run = Self::new(terms(&["futures:BTCUSDT"], Some(FindAccount::TryRoute)));
        run.ok(FUTURES);
        run.read_clock();
        assert_eq!(run.under_way(), Some("futures.account"));
        run
    }

    fn account(self) -> FuturesAccount {
        self.result.unwrap().unwrap().futures_account
    }
}

fn info() -> FuturesAccount {
    let run = Run::new(terms(&[], None));
    let user = run.gateway.identity().credentials.user.unwrap();
    FuturesAccount::Info {
        address: user.to_string(),
    }
}

#[test]
fn listings_come_first_then_clocks_then_the_account() {
    let names = ["futures:BTCUSDT", "spot:ADAUSDC"];
    let mut run = Run::new(terms(&names, Some(FindAccount::TryRoute)));
    run.ok(SPOT);
    run.ok(FUTURES);
    run.read_clock();
    assert_eq!(run.limits_known, 0);
    run.read_clock();
    assert_eq!(run.limits_known, 1);
    run.ok(r#"{"assets":[]}"#);
    let clock = |name| [name; 3];
    let wanted = [
        &["spot.exchange_info", "futures.exchange_info"][..],
        &clock("spot.time"),
        &clock("futures.time"),
        &["futures.account"],
    ];
    assert_eq!(run.requested, wanted.concat());
    assert_eq!(run.ended, run.requested.len(), "each call is counted once");
    for surface in [route::Surface::Spot, route::Surface::Futures] {
        let offset = run.gateway.offset(surface).unwrap();
        assert_eq!(offset.offset_us / 1_000, AHEAD_MS);
    }
    assert_eq!(run.startup.poll_timeout(), None);
    let known = run.result.unwrap().unwrap();
    let listed: Vec<_> = known.instruments.iter().map(Instrument::name).collect();
    assert_eq!(listed, names);
    assert_eq!(known.futures_account, FuturesAccount::Routes);
    let assets = known.assets.names();
    assert_eq!(assets[..4], ["BTC", "USDT", "ADA", "USDC"]);
    assert!(known.requests.is_idle());
}

#[test]
fn a_start_without_an_account_reads_only_the_rules() {
    let mut run = Run::new(StartupTerms {
        reads_clocks: false,
        ..terms(&["futures:BTCUSDT"], None)
    });
    run.ok(FUTURES);
    assert_eq!(run.requested, ["futures.exchange_info"]);
    assert_eq!(run.limits_known, 1);
    assert_eq!(run.account(), FuturesAccount::Routes);
}

#[test]
fn pauses_grow_and_reset_with_the_next_request() {
    let mut run = Run::new(terms(&["futures:BTCUSDT"], None));
    let mut pauses = Vec::new();
    for _ in 0..6 {
        run.give_answer(CallAnswer::NoConnection("refused".to_owned()));
        pauses.push(run.wait());
    }
    assert_eq!(pauses, [1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
    run.ok(FUTURES);
    run.answer(503, &[], "");
    assert_eq!(run.wait(), 1_000);
}

#[test]
fn a_request_without_a_response_is_given_up_and_repeated() {
    let mut run = Run::new(terms(&["futures:BTCUSDT"], None));
    run.time_passes();
    assert_eq!(run.now, Time::from_millis(BEGIN_MS + 10_000));
    assert_eq!(run.under_way(), None);
    assert_eq!(run.wait(), 1_000);
    run.give_answer(CallAnswer::Lost(Lost::Cut("cut".to_owned())));
    assert_eq!(run.wait(), 2_000);
}

#[test]
fn the_wait_of_a_limit_replaces_the_pause() {
    let mut run = Run::new(terms(&["futures:BTCUSDT"], None));
    run.answer(418, &[("Retry-After", "90")], "");
    let waited = run.wait();
    assert!((90_000..90_100).contains(&waited), "{waited}");
    run.answer(429, &[("Retry-After", "7")], "");
    let waited = run.wait();
    assert!((7_000..7_100).contains(&waited), "{waited}");
    assert_eq!(
        run.requested.len(),
        3,
        "no request was sent during the wait"
    );
    run.give_answer(CallAnswer::NoConnection("refused".to_owned()));
    assert_eq!(
        run.wait(),
        4_000,
        "the pauses must grow during named waits too"
    );
}

#[test]
fn a_listing_that_is_refused_three_times_ends_the_start() {
    let mut run = Run::new(terms(&["futures:BTCUSDT"], None));
    for pause in [1_000, 2_000] {
        run.answer(400, &[], r#"{"code":-1102,"msg":"no"}"#);
        assert_eq!(run.wait(), pause);
    }
    run.answer(400, &[], r#"{"code":-1102,"msg":"no"}"#);
    let surface = Surface::Futures;
    let error = run.result.unwrap().unwrap_err();
    assert!(
        matches!(error, StartupError::Refused { surface: of, .. } if of == surface),
        "{error}"
    );
    assert_eq!(run.startup.poll_timeout(), None);
}

#[test]
fn an_incomplete_listing_is_requested_again() {
    let mut run = Run::new(terms(&["futures:BTCUSDT"], None));
    for (text, pause) in [("", 1_000), ("<html>", 2_000), (&FUTURES[..200], 4_000)] {
        run.ok(text);
        assert_eq!(run.wait(), pause);
    }
    run.ok(FUTURES);
    assert_eq!(run.under_way(), Some("futures.time"));
}

#[test]
fn an_instrument_that_is_not_listed_ends_the_start() {
    let mut run = Run::new(terms(&["futures:NOUSDT"], None));
    for _ in 0..2 {
        run.ok(FUTURES);
        run.wait();
    }
    run.ok(FUTURES);
    let error = run.result.unwrap().unwrap_err();
    assert!(matches!(error, StartupError::NotListed(_)), "{error}");
}

#[test]
fn rules_that_cannot_be_used_end_the_start() {
    let mut run = Run::new(terms(&["futures:BTCUSDT"], None));
    for _ in 0..2 {
        run.ok(&spoilt_rules());
        run.wait();
    }
    run.ok(&spoilt_rules());
    let error = run.result.unwrap().unwrap_err();
    assert!(matches!(error, StartupError::Rules { .. }), "{error}");
}

/// Rules with more decimals than the engine supports.
fn spoilt_rules() -> String {
    let spoilt = FUTURES.replace("\"0.10\"", "\"0.0000000000001\"");
    assert_ne!(spoilt, FUTURES);
    spoilt
}

#[test]
fn possibly_corrupt_responses_are_requested_again() {
    let mut run = Run::new(terms(&["spot:ADAUSDC", "futures:BTCUSDT"], None));
    run.answer(400, &[], "<html>");
    assert_eq!(run.wait(), 1_000);
    run.ok(SPOT);
    run.ok(&spoilt_rules());
    assert_eq!(run.wait(), 1_000);
    assert_eq!(run.under_way(), Some("spot.exchange_info"));
    run.ok(SPOT);
    run.ok(FUTURES);
    assert_eq!(run.under_way(), Some("spot.time"));
    run.read_clock();
    run.read_clock();
    assert_eq!(run.result.unwrap().unwrap().instruments.len(), 2);
}

#[test]
fn a_failed_clock_read_starts_again_with_its_first_sample() {
    let mut run = Run::new(terms(&["futures:BTCUSDT"], None));
    run.ok(FUTURES);
    run.ok(&run.server_time());
    run.ok("{}");
    assert_eq!(run.wait(), 1_000);
    run.ok(&run.server_time());
    run.ok(&run.server_time());
    assert!(run.result.is_none());
    assert_eq!(run.gateway.offset(route::Surface::Futures), None);
    run.ok(&run.server_time());
    assert!(run.result.unwrap().is_ok());
}

#[test]
fn without_the_account_route_the_info_endpoint_is_used() {
    for (status, text) in [(404, ""), (404, UNSUPPORTED), (400, UNSUPPORTED)] {
        let mut run = Run::at_the_account();
        run.answer(status, &[], text);
        assert_eq!(run.account(), info(), "{status} {text}");
    }
}

#[test]
fn a_refusal_of_the_account_itself_keeps_the_route() {
    for text in [r#"{"code":-2015,"msg":"no"}"#, "<html>"] {
        let mut run = Run::at_the_account();
        run.answer(400, &[], text);
        assert_eq!(run.account(), FuturesAccount::Routes, "{text}");
    }
}

#[test]
fn the_account_request_is_repeated_until_it_gets_an_account() {
    let mut run = Run::at_the_account();
    for (text, pause) in [("", 1_000), ("[]", 2_000), ("{\"assets\":", 4_000)] {
        run.ok(text);
        assert_eq!(run.wait(), pause);
    }
    run.answer(429, &[("Retry-After", "20")], "");
    let waited = run.wait();
    assert!((20_000..20_100).contains(&waited), "{waited}");
    run.ok("{\"assets\":[]}");
    assert_eq!(run.account(), FuturesAccount::Routes);
}

#[test]
fn without_an_address_the_account_route_is_not_requested() {
    let terms = terms(&["futures:BTCUSDT"], Some(FindAccount::TryRoute));
    let mut run = Run::of(terms, None);
    run.ok(FUTURES);
    run.read_clock();
    assert_eq!(run.account(), FuturesAccount::Routes);
}

#[test]
fn a_documented_account_is_read_by_its_address() {
    let documented = || terms(&["futures:BTCUSDT"], Some(FindAccount::Documented));
    let mut run = Run::new(documented());
    run.ok(FUTURES);
    run.read_clock();
    assert!(!run.requested.contains(&"futures.account"));
    assert_eq!(run.account(), info());

    let mut run = Run::of(documented(), None);
    run.ok(FUTURES);
    run.read_clock();
    let error = run.result.unwrap().unwrap_err();
    assert!(matches!(error, StartupError::NoAddress), "{error}");
}
