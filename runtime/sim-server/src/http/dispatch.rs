//! Takes a request from raw bytes to the handler of its route and back. The route table is the
//! router.
//!
//! The checks have this order: ban, path and method, weight, parameters, authentication, parameters
//! against the table, order counts. Then the handler runs. The first failure is the response.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;
use windvane_model::Time;
use windvane_protocol::route::{Counted, Listing, Route, Surface};

use super::answer::Sent;
use super::{Answer, Params, Port, Refusal, check, chosen};
use crate::choices::RefusedCount;
use crate::state::{AccountId, State};
use crate::{auth, control, limits, market_routes, orders, wallet};

/// The content type of a body with parameters.
const FORM: &str = "application/x-www-form-urlencoded";

/// Names and values.
type Headers = Vec<(&'static str, String)>;

/// A request as it was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub(crate) port: Port,
    pub(crate) ip: IpAddr,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// Without the question mark, still encoded.
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
}

impl<'a> Received<'a> {
    /// The part of the body that has parameters. A GET request has parameters in the query alone. A
    /// body whose content type is not that of a form has none
    /// (docs/interface/conventions.md#parameters).
    pub(crate) fn form(&self) -> &'a [u8] {
        if self.method == "GET" || !self.is_form() {
            &[]
        } else {
            self.body
        }
    }

    fn is_form(&self) -> bool {
        let value = self.headers.get(CONTENT_TYPE);
        let text = value.and_then(|value| value.to_str().ok()).unwrap_or("");
        let kind = text.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case(FORM)
    }
}

/// The input of a handler: a request that has passed every general check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) route: &'static Route,
    pub(crate) listing: &'static Listing,
    pub(crate) params: &'a Params,
    /// The body as received, for JSON-RPC.
    pub(crate) body: &'a [u8],
    /// The time of the call.
    pub(crate) now: Time,
    /// The venue's clock, with the skew of a fault switch.
    pub(crate) now_ms: i64,
    /// The sender; `None` if the route needs no authentication.
    pub(crate) account: Option<AccountId>,
}

impl Call<'_> {
    /// The account of a signed route.
    pub(crate) fn account(&self) -> Result<AccountId, Refusal> {
        let unauthorized = || Refusal::new(-1002, "You are not authorized for this request.");
        self.account.ok_or_else(unauthorized)
    }
}

/// Answers a request to any port except the control port.
pub(crate) fn answer(state: &mut State, received: &Received<'_>, now: Time) -> Sent {
    state.advance(now);
    let mut headers = Vec::new();
    let route = state.router.find(received).ok().map(|found| found.route);
    let answer = route_and_handle(state, received, now, &mut headers);
    control::answered(state, &answer);
    let surface = route.map_or(received.port.surface(), |route| route.surface);
    let answer = chosen::answer(state, route.map_or("", |route| route.name), answer);
    chosen::headers(state, surface, answer.is_err(), &mut headers);
    let mut sent = Sent::new(answer);
    chosen::retry_after(state, &mut sent, now);
    sent.headers.append(&mut headers);
    sent
}

fn route_and_handle(
    state: &mut State,
    received: &Received<'_>,
    now: Time,
    headers: &mut Headers,
) -> Answer {
    if let Err(refusal) = state.limits.check_ban(received.ip, now) {
        limits::add_used_weight(state, received.port.surface(), received.ip, now, headers);
        return Err(refusal);
    }
    let found = state.router.find(received);
    let surface = found
        .as_ref()
        .map_or(received.port.surface(), |found| found.route.surface);
    let params = parse(surface, received);
    let weight = found.as_ref().map_or(1, |found| {
        limits::weight_of(found.route, params.as_ref().ok())
    });
    limits::charge(state, surface, weight, received, now, headers)?;
    let (found, params) = (found?, params?);
    let (route, listing) = (found.route, found.listing);
    control::count_request(state, route.name);
    limits::count_route(state, route, received.ip, now)?;
    let account = auth::authenticate(state, &found, received, &params, now)?;
    // The info endpoint checks its own parameters, because they are positional and in the body.
    if route.surface != Surface::Rpc {
        check::check(&state.router, route, listing, &params)?;
    }
    let counts = count_orders(state, route, &params, account, received.ip, now)?;
    let call = Call {
        route,
        listing,
        params: &params,
        body: received.body,
        now,
        now_ms: state.clock_ms(now),
        account,
    };
    chosen::check_served(state, route.name)?;
    let answer = handle(state, &call);
    if account.is_some() {
        state.publish_user_events();
    }
    let counted = state.choices.of::<RefusedCount>() == RefusedCount::Sent;
    if answer.is_ok() || counted {
        headers.extend(counts);
    }
    answer
}

/// Query and body as parameters. The body of the info endpoint is JSON, so it has no parameters.
fn parse(surface: Surface, received: &Received<'_>) -> Result<Params, Refusal> {
    let body = match surface {
        Surface::Rpc => "",
        _ => std::str::from_utf8(received.form()).map_err(|_| {
            Refusal::new(
                -1100,
                "Illegal characters found in the body: it is not UTF-8.",
            )
        })?,
    };
    Params::parse(surface, received.query, body)
}

/// Counts the orders of a request against its account's limits.
fn count_orders(
    state: &mut State,
    route: &Route,
    params: &Params,
    account: Option<AccountId>,
    ip: IpAddr,
    now: Time,
) -> Result<Headers, Refusal> {
    let orders = match route.counted {
        Counted::Order => 1,
        Counted::BatchOrders => orders::batch_len(params),
        Counted::WeightOnly | Counted::PerMinute(_) => return Ok(Vec::new()),
    };
    account.map_or(Ok(Vec::new()), |id| {
        limits::count_orders(state, id, route.surface, orders, ip, now)
    })
}

/// Calls the handlers for the route's family: market data, wallet or orders.
fn handle(state: &mut State, call: &Call<'_>) -> Answer {
    if market_routes::owns(call.route.name) {
        market_routes::handle(state, call)
    } else if wallet::owns(call.route.name) {
        wallet::handle(state, call)
    } else {
        orders::handle(state, call)
    }
}
