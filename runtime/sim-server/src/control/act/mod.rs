//! Actions that a test can trigger now: orders and fills of others, liquidation, funding, money,
//! modes, new rules, expiring keys, bans. Each one goes through the account's venue, so its events
//! and sums are those of a real market event.

mod account;
mod arguments;
mod connection;
mod market;
mod order;
mod weight;

use windvane_model::Time;

use crate::advance::advance;
use crate::faults::{FieldError, Fields, required};
use crate::state::State;
use crate::user_events;
use arguments::{ActError, Done};

/// The names of all actions.
const NAMES: &[&str] = &[
    "place",
    "cancel",
    "expire",
    "fill",
    "close",
    "liquidate",
    "margin_call",
    "adl",
    "funding",
    "deposit",
    "withdraw",
    "transfer",
    "leverage",
    "margin_type",
    "position_mode",
    "multi_assets",
    "expire_listen_key",
    "expire_agent",
    "rights",
    "weight",
    "ban",
    "pardon",
    "others_weight",
    "counters",
    "rules",
    "trade",
    "ids",
    "mark",
    "disconnect",
    "pause",
    "freeze",
    "garbage",
];

/// Carries out the action in the body.
pub(super) fn act(state: &mut State, body: &[u8], now: Time) -> Done {
    let mut fields = Fields::parse(body)?;
    let name = required("act", fields.text("act"))?;
    advance(state, now);
    let done = match name.as_str() {
        "place" => order::place(state, fields, now),
        "cancel" => order::cancel(state, fields, now),
        "expire" => order::expire(state, fields, now),
        "fill" => order::fill(state, fields, now),
        "close" => order::close(state, fields, now),
        "liquidate" => order::liquidate(state, fields, now),
        "margin_call" => order::call_margin(state, fields, now),
        "adl" => order::deleverage(state, fields, now),
        "funding" => account::funding(state, fields, now),
        "deposit" | "withdraw" => account::funds(state, &name, fields, now),
        "transfer" => account::transfer(state, fields, now),
        "leverage" => account::leverage(state, fields, now),
        "margin_type" => account::margin_type(state, fields, now),
        "position_mode" => account::position_mode(state, fields, now),
        "multi_assets" => account::multi_assets(state, fields, now),
        "expire_listen_key" => account::expire_listen_key(state, fields),
        "expire_agent" => account::expire_agent(state, fields),
        "rights" => account::rights(state, fields),
        "weight" => account::weight(state, fields, now),
        "ban" => account::ban(state, fields, now),
        "pardon" => account::pardon(state, fields),
        "others_weight" => weight::others(state, fields),
        "counters" => weight::counters(state, fields),
        "rules" => market::rules(state, fields),
        "trade" => market::trade(state, fields, now),
        "ids" => market::ids(state, fields),
        "mark" => market::mark(state, fields, now),
        "disconnect" | "pause" | "freeze" | "garbage" => connection::act(state, &name, fields),
        _ => Err(ActError::Field(FieldError::Malformed {
            field: "act",
            value: name,
            rule: format!("one of {}", NAMES.join(", ")),
        })),
    };
    user_events::publish_all(state);
    done
}
