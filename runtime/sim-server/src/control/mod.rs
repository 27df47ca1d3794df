//! The control port: fault switches and the exact state of the venue, for tests of any client.
//! `runtime/sim-server/CONTROL.md` describes its requests and responses.
//!
//! The server calls [`plan`] before each request of the other ports, and [`answer`] for requests to
//! the control port.

mod act;
mod state_report;
mod switches;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windvane_model::Time;

use crate::account_id::AccountId;
use crate::advance::advance;
use crate::choices::{AnswerTiming, OpenPoint};
use crate::faults::{Plan, Seen};
use crate::request::{Body, Received, Refusal, Sent};
use crate::state::State;

/// Routes whose responses can be delayed until after their events, and the delay.
const LATE_ROUTES: &[&str] = &[
    "new_order",
    "batch_orders",
    "cancel_order",
    "cancel_all_orders",
    "cancel_batch_orders",
];
const LATE_MS: u64 = 300;

/// Decides how a request that was just read is handled. A WebSocket handshake counts as a request
/// of the route `stream`.
pub(crate) fn plan(state: &mut State, received: &Received<'_>, now: Time) -> Plan {
    let answers_late = state.choices.of::<AnswerTiming>() == AnswerTiming::After;
    if !state.faults.concern_requests() && !answers_late {
        return Plan::as_is();
    }
    let (surface, route) = match state.router.find(received) {
        Ok(found) => (found.route.surface, found.route.name),
        Err(_) => (received.port.surface(), "stream"),
    };
    let seen = Seen {
        surface,
        route,
        account: claimed(state, received).map(|id| id.0),
    };
    let mut plan = state.faults.plan(&seen, now);
    let own = route.split_once('.').map_or("", |(_, own)| own);
    if answers_late && LATE_ROUTES.contains(&own) {
        plan.after_ms = plan.after_ms.saturating_add(LATE_MS);
    }
    plan
}

/// The account that a request claims to come from; nothing is verified yet.
fn claimed(state: &State, received: &Received<'_>) -> Option<AccountId> {
    let key = received.headers.get("x-mbx-apikey");
    let key = key.and_then(|key| key.to_str().ok());
    let body = std::str::from_utf8(received.body).unwrap_or_default();
    let fields = received.query.split('&').chain(body.split('&'));
    let named = |name: &str, value: &str| {
        ["user", "signer"]
            .iter()
            .any(|f| f.eq_ignore_ascii_case(name))
            .then(|| value.parse().ok())?
    };
    let addresses: Vec<alloy_primitives::Address> = fields
        .filter_map(|field| field.split_once('='))
        .filter_map(|(name, value)| named(name, value))
        .collect();
    let place = state.accounts.iter().position(|account| {
        let by_key = account.api_keys.iter().any(|k| Some(k.key.as_str()) == key);
        let mut agents = account.agents.iter().map(|agent| agent.address);
        let known = addresses.contains(&account.user) || agents.any(|a| addresses.contains(&a));
        by_key || known
    })?;
    Some(AccountId(place as u16))
}

/// Answers a request to the control port.
pub(crate) fn answer(state: &mut State, received: &Received<'_>, now: Time) -> Sent {
    advance(state, now);
    let path = received.path.trim_end_matches('/');
    if (received.method, path) == ("GET", "/state") {
        return Sent::new(state_report::state_report(state, received.query).map(Body));
    }
    let done = match (received.method, path) {
        ("GET", "/faults") => Ok(state_report::faults(state)),
        ("POST", "/faults") => switches::set(state, received.body, now),
        ("DELETE", "/faults") => Ok(switches::clear_all(state, now)),
        ("DELETE", _) if path.starts_with("/faults/") => switches::clear(state, path),
        ("GET", "/choices") => Ok(choices(state)),
        ("POST", "/choices") => choose(state, received.body),
        ("POST", "/act") => act::act(state, received.body, now).map_err(Refusal::from),
        (method, path) => {
            let msg = format!("{method} {path} does not exist; CONTROL.md lists the requests.");
            Err(Refusal::new(-1020, msg).with_status(404))
        }
    };
    Sent::new(done.map(|value| Body(value.to_string())))
}

/// Every open point with its values and the chosen value.
fn choices(state: &State) -> Value {
    let entry = |(point, value): (&OpenPoint, &str)| {
        json!({
            "name": point.name,
            "section": point.section,
            "about": point.about,
            "values": point.values,
            "value": value,
        })
    };
    state.choices.all().map(entry).collect()
}

/// Sets values of open points: all that the body contains, or none if one is invalid.
fn choose(state: &mut State, body: &[u8]) -> Result<Value, Refusal> {
    let unfit = |msg: String| Refusal::new(-1130, msg);
    let chosen: BTreeMap<String, String> = serde_json::from_slice(body)
        .map_err(|error| unfit(format!("the body must be an object of texts: {error}")))?;
    let mut choices = state.choices.clone();
    for (name, value) in &chosen {
        let set = choices.set(name, value);
        set.map_err(|error| unfit(error.to_string()))?;
    }
    state.choices = choices;
    state.apply_choices();
    Ok(json!({}))
}
