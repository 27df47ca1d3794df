//! Takes a request from raw bytes to the handler of its route and back. The route table is the
//! router.
//!
//! The checks have this order: ban, path and method, weight, parameters, authentication, parameters
//! against the table, order counts. Then the handler runs. The first failure is the response.

mod chosen;

use std::net::IpAddr;

use windvane_model::Time;
use windvane_protocol::route::{Counted, Route, Surface};

use crate::account_id::AccountId;
use crate::advance::advance;
use crate::choices::RefusedCount;
use crate::request::{Answer, Call, Family, Params, Received, Refusal, Sent, check};
use crate::state::State;
use crate::{auth, limits, market_routes, orders, user_events, wallet_routes};

/// Names and values.
type Headers = Vec<(&'static str, String)>;

/// Answers a request to any port except the control port.
pub(crate) fn answer(state: &mut State, received: &Received<'_>, now: Time) -> Sent {
    advance(state, now);
    let mut headers = Vec::new();
    let route = state.router.find(received).ok().map(|found| found.route);
    let answer = route_and_handle(state, received, now, &mut headers);
    state.counters.answer(&answer);
    let surface = route.map_or(received.port.surface(), |route| route.surface);
    let answer = chosen::answer(&state.choices, route.map_or("", |route| route.name), answer);
    chosen::headers(&state.choices, surface, answer.is_err(), &mut headers);
    let mut sent = Sent::new(answer);
    chosen::retry_after(&state.choices, &mut sent, state.clock_ms(now));
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
        let surface = received.port.surface();
        let limits = &mut state.limits;
        limits.add_used_weight(&state.choices, surface, received.ip, now, headers);
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
    let limits = &mut state.limits;
    limits.charge(&state.choices, surface, weight, received.ip, now, headers)?;
    let (found, params) = (found?, params?);
    let (route, listing) = (found.route, found.listing);
    state.counters.count(route.name);
    state.limits.count_route(route, received.ip, now)?;
    let clock_ms = state.clock_ms(now);
    let (accounts, settings) = (&mut state.accounts, &state.settings);
    let account = auth::authenticate(accounts, settings, &found, received, &params, clock_ms)?;
    // The info endpoint checks its own parameters, because they are positional and in the body.
    if route.surface != Surface::Rpc {
        check(&state.router, route, listing, &params)?;
    }
    let counts = count_orders(state, route, &params, account, received.ip, now)?;
    let call = Call {
        route,
        listing,
        params: &params,
        body: received.body,
        now,
        now_ms: clock_ms,
        account,
    };
    chosen::check_served(&state.choices, route.name)?;
    let answer = handle(state, &call);
    if account.is_some() {
        user_events::publish_all(state);
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
    let Some(id) = account else {
        return Ok(Vec::new());
    };
    let counts = &mut state.accounts[usize::from(id.0)].order_counts;
    let limits = &mut state.limits;
    limits.count_orders(&state.choices, counts, route.surface, orders, ip, now)
}

/// Calls the handlers of the route's family.
fn handle(state: &mut State, call: &Call<'_>) -> Answer {
    match Family::of(call.route.name) {
        Family::Market => market_routes::handle(&state.board, &state.limits, call),
        Family::Wallet => wallet_routes::handle(state, call),
        Family::Orders => orders::handle(state, call),
    }
}
