//! Turns fault switches on and off.

use serde_json::{Value, json};
use windvane_model::Time;
use windvane_protocol::route;

use crate::faults::{Fault, SWITCHES_MAX, Switch, Target, names};
use crate::request::Refusal;
use crate::state::State;
use crate::stream::Topic;
use crate::user_events;

/// The types of user events of spot and futures that a switch may name.
const EVENTS: &[&str] = &[
    "ORDER_TRADE_UPDATE",
    "ACCOUNT_UPDATE",
    "ACCOUNT_CONFIG_UPDATE",
    "MARGIN_CALL",
    "listenKeyExpired",
    "executionReport",
    "outboundAccountPosition",
];

/// Turns the switch in the body on.
pub(super) fn set(state: &mut State, body: &[u8], now: Time) -> Result<Value, Refusal> {
    if all(state).count() >= SWITCHES_MAX {
        let msg = format!("{SWITCHES_MAX} switches are on; turn some off first.");
        return Err(Refusal::new(-1130, msg));
    }
    let (id, seed) = (state.faults.next_id(), state.settings.seed);
    let switch = Switch::parse(body, id, seed, now);
    let switch = switch.map_err(|error| Refusal::new(-1130, error.to_string()))?;
    check_target(state, &switch.target)?;
    state.faults.give_id();
    if switch.fault == Fault::Gap {
        state.hub.gaps.set(switch);
    } else {
        state.faults.set(switch);
    }
    Ok(json!({ "id": id }))
}

/// Refuses a switch that can never match, because it must be a mistake.
fn check_target(state: &State, target: &Target) -> Result<(), Refusal> {
    let unmet = |field: &str, value: &str, rule: &str| {
        Refusal::new(-1130, format!("{field} = {value}: must be {rule}"))
    };
    if let Some(route) = &target.route {
        let mut all = route::all().map(|route| route.name).chain(["stream"]);
        if !all.any(|name| names(route, name)) {
            let rule = "a route as `windvane routes` prints it, or its beginning and *, or stream";
            return Err(unmet("route", route, rule));
        }
    }
    if let Some(event) = &target.event
        && !EVENTS.contains(&event.as_str())
    {
        return Err(unmet(
            "event",
            event,
            &format!("one of {}", EVENTS.join(", ")),
        ));
    }
    if let Some(topic) = &target.topic
        && !Topic::may_fit(topic, &state.board)
    {
        let rule = "a public stream of a symbol here, or its beginning and *";
        return Err(unmet("topic", topic, rule));
    }
    let account = target.account.map(usize::from);
    match account.filter(|place| *place >= state.accounts.len()) {
        Some(place) => {
            let rule = "the place of an account in the ready line";
            Err(unmet("account", &place.to_string(), rule))
        }
        None => Ok(()),
    }
}

/// All active switches.
pub(super) fn all(state: &State) -> impl Iterator<Item = &Switch> {
    state
        .faults
        .switches()
        .iter()
        .chain(state.hub.gaps.switches())
}

/// Turns the switch in the path off.
pub(super) fn clear(state: &mut State, path: &str) -> Result<Value, Refusal> {
    let text = path.trim_start_matches("/faults/");
    let id = text.parse().ok();
    let cleared = id.is_some_and(|id| {
        let gaps = state.hub.gaps.retain(|switch| switch.id != id);
        state.faults.clear(id) || gaps > 0
    });
    if cleared {
        Ok(json!({}))
    } else {
        let msg = format!("No switch {text} is on.");
        Err(Refusal::new(-1130, msg).with_status(404))
    }
}

/// Turns every switch off. The events that they delayed are sent.
pub(super) fn clear_all(state: &mut State, now: Time) -> Value {
    state.faults.clear_all(now);
    state.hub.gaps.retain(|_| false);
    user_events::send_due(state, now);
    json!({})
}
