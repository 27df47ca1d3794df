//! A second exchange with another protocol than the documented one. A test file that uses this
//! module must also use `engine/tests/support`.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "shared by test files, each with its own part"
)]

use windvane_client_core::Gateway;
use windvane_client_core::budget::{Cost, Departed};
use windvane_client_core::gateway::{Answer, Failure, Now, Unsigned};
use windvane_client_core::outcome::NotDone;
use windvane_model::protocol::Refusal;
use windvane_model::state_report::{AccountSnapshot, StateReport, Subject};
use windvane_model::{Amount, Instrument, Outcome, Reply, Request, Surface, UserEvent};
use windvane_protocol::Assets;
use windvane_protocol::adapter::{
    CallResult, EncodeError, EncodedCall, FuturesAccount, Names, WithNotes,
};
use windvane_protocol::route::{
    Counted, Listing, Method, Route, Scheme, Security, Source, Surface as RouteSurface, Weight,
};
use windvane_protocol::sign::{PrepareError, Prepared};
use windvane_protocol::wire::Parameters;
use windvane_session::{Capabilities, Exchange, InstrumentName, Query, StartupError};

use super::support::{BTC, instrument};

/// All requests of the toy exchange go to one address, as plain words.
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

/// An exchange that responds `yes` to requests. Its user stream sends `hello`.
#[derive(Debug)]
pub struct Toy {
    gateway: Gateway,
    names: Names,
}

impl Toy {
    pub fn new(gateway: Gateway) -> Self {
        let assets = ["BTC".to_owned(), "USDT".to_owned()];
        let names = Names::new(&[instrument()], &assets);
        Self { gateway, names }
    }
}

fn call(text: &str) -> EncodedCall {
    let mut parameters = Parameters::new();
    parameters.push("words", text);
    EncodedCall {
        route: &ROUTE,
        parameters,
    }
}

fn command_of(request: &Request) -> &'static str {
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
            weight: |_, _| 1,
        }
    }
    fn gateway(&self) -> &Gateway {
        &self.gateway
    }
    fn names(&self) -> &Names {
        &self.names
    }
    fn configure(&mut self, names: Names, _: FuturesAccount) {
        self.names = names;
    }
    fn encode_request(&self, request: &Request) -> Result<Vec<EncodedCall>, EncodeError> {
        Ok(vec![call(command_of(request))])
    }
    fn open_orders_by_symbol(&self, _: Surface) -> Result<Vec<EncodedCall>, EncodeError> {
        Ok(vec![call("read")])
    }
    fn encode_query(&self, query: Query<'_>) -> Option<EncodedCall> {
        Some(call(match query {
            Query::Clock(_) => "clock",
            Query::CreateKey(_) => "key",
            _ => "question",
        }))
    }
    fn cost(&self, _: &EncodedCall) -> Cost {
        Cost::weight(1)
    }
    fn unsigned(&self, local_us: i64, call: &EncodedCall) -> Unsigned {
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
    fn rehearse(&self, _: &EncodedCall) -> Option<Prepared> {
        None
    }
    fn judge(
        &self,
        _: Now,
        _: &Unsigned,
        _: (&Cost, Departed),
        answer: Result<Answer<'_>, Failure>,
    ) -> Result<(), NotDone> {
        assert!(
            answer.is_ok(),
            "every call must get a response in this test"
        );
        Ok(())
    }
    fn is_of_clock(&self, _: &NotDone) -> bool {
        false
    }
    fn is_of_dead_key(&self, _: &NotDone) -> bool {
        false
    }
    fn decode_reply(&self, request: &Request, results: &[CallResult<'_>]) -> WithNotes<Reply> {
        assert_eq!(results, [CallResult::Done("yes")]);
        WithNotes {
            items: vec![reply(request)],
            notes: Vec::new(),
        }
    }
    fn refuse(&self, request: &Request, error: &EncodeError) -> Vec<Reply> {
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
    fn user_event(&self, _: Surface, text: &str) -> Result<WithNotes<UserEvent>, String> {
        match text {
            "hello" => Ok(WithNotes {
                items: Vec::new(),
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
    ) -> Result<(Vec<Instrument>, Assets), StartupError> {
        Ok((vec![instrument()], Assets::default()))
    }
    fn open_orders(&self, text: &str) -> Result<Vec<String>, String> {
        panic!("unexpected watchdog request: {text}")
    }
    fn is_nothing_to_cancel(&self, _: &NotDone) -> bool {
        false
    }
    fn is_account(&self, _: &str) -> bool {
        true
    }
    fn other_futures_account(&self) -> Option<FuturesAccount> {
        None
    }
}

/// The reply to a request.
pub fn reply(request: &Request) -> Reply {
    match request {
        Request::Read(subject) => Reply::Read {
            subject: *subject,
            outcome: Outcome::Done(state_report(*subject)),
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
        // A request that tests whether trading is allowed. No order has this id.
        Request::Cancel {
            client_order_id, ..
        } => Reply::Canceled {
            client_order_id: *client_order_id,
            outcome: Outcome::Refused(Refusal {
                code: -2011,
                msg: "none".to_owned(),
            }),
        },
        other => panic!("unexpected request: {other:?}"),
    }
}

fn state_report(subject: Subject) -> StateReport {
    match subject {
        Subject::OpenOrders { .. } => StateReport::OpenOrders(Vec::new()),
        Subject::Account { .. } => StateReport::Account(AccountSnapshot::default()),
        Subject::ForcedOrders { .. } => StateReport::ForcedOrders(Vec::new()),
        Subject::Income { .. } => StateReport::Income {
            entries: Vec::new(),
            more: false,
        },
        Subject::Rules { .. } => StateReport::Rules(Vec::new()),
        Subject::AssetPrice { .. } => StateReport::AssetPrice(Amount::ZERO),
        Subject::NewestOrders { .. } => StateReport::NewestOrders(Vec::new()),
        Subject::Trades { .. } => StateReport::Trades {
            trades: Vec::new(),
            more: false,
        },
        other => panic!("unexpected request: {other:?}"),
    }
}
