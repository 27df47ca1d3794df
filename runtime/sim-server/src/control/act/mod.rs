//! Actions that a test can trigger now: orders and fills of others, liquidation, funding, money,
//! modes, new rules, expiring keys, bans. Each one goes through the account's venue, so its events
//! and sums are the usual ones.

mod account;
mod connection;

mod market;
mod order;
mod weight;

use rust_decimal::Decimal;
use serde_json::Value;
use windvane_model::decimal::exact_mantissa;
use windvane_model::{Amount, InstrumentId, Price, Qty, Surface, Time};

use crate::accounts::AccountId;
use crate::advance::advance;
use crate::faults::{FieldError, Fields, required};
use crate::request::Refusal;
use crate::state::State;
use crate::user_events;

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ActError {
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error("{field} = {value}: {rule}")]
    Unfit {
        field: &'static str,
        value: String,
        rule: &'static str,
    },
    #[error("{msg}")]
    Refused { code: i32, msg: String },
}

impl From<windvane_model::protocol::Refusal> for ActError {
    fn from(refusal: windvane_model::protocol::Refusal) -> Self {
        Self::Refused {
            code: refusal.code,
            msg: refusal.msg,
        }
    }
}

impl From<ActError> for Refusal {
    fn from(error: ActError) -> Self {
        match error {
            ActError::Refused { code, msg } => Self::new(code, msg),
            other => Self::new(-1130, other.to_string()),
        }
    }
}

pub(super) type Done = Result<Value, ActError>;

const SURFACES: &[(&str, Surface)] = &[("spot", Surface::Spot), ("futures", Surface::Futures)];

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

fn unfit(field: &'static str, value: &str, rule: &'static str) -> ActError {
    ActError::Unfit {
        field,
        value: value.to_owned(),
        rule,
    }
}

/// `account`: the account's index in the ready line; 0 by default.
fn account_of(state: &State, fields: &mut Fields) -> Result<AccountId, ActError> {
    Ok(optional_account(state, fields)?.unwrap_or(AccountId(0)))
}

fn optional_account(state: &State, fields: &mut Fields) -> Result<Option<AccountId>, ActError> {
    let Some(place) = fields.whole("account")? else {
        return Ok(None);
    };
    let id = u16::try_from(place).ok().map(AccountId);
    let known = id.filter(|id| usize::from(id.0) < state.accounts.len());
    let rule = "must be the place of an account in the ready line";
    known
        .map(Some)
        .ok_or_else(|| unfit("account", &place.to_string(), rule))
}

/// `surface`: futures by default.
fn surface_of(fields: &mut Fields) -> Result<Surface, ActError> {
    Ok(fields
        .word("surface", SURFACES)?
        .unwrap_or(Surface::Futures))
}

/// The instrument of `surface` and `symbol`.
fn instrument_of(state: &State, fields: &mut Fields) -> Result<InstrumentId, ActError> {
    let surface = surface_of(fields)?;
    let symbol = required("symbol", fields.text("symbol"))?;
    let found = state.instrument(surface, &symbol);
    found.ok_or_else(|| unfit("symbol", &symbol, "must be a symbol of that surface"))
}

/// The largest amount, in whole units, and the largest mantissa of a price or quantity. Sums and
/// products of such numbers do not overflow.
const LARGEST: i64 = 1_000_000_000_000_000;

fn amount_of(field: &'static str, value: Decimal) -> Result<Amount, ActError> {
    let fits = value.abs() <= Decimal::from(LARGEST);
    let amount = fits.then(|| Amount::from_decimal(value)).flatten();
    amount.ok_or_else(|| unfit(field, &value.to_string(), "must be at most 10^15"))
}

fn mantissa_of(field: &'static str, value: Decimal, scale: u8) -> Result<i64, ActError> {
    let mantissa = exact_mantissa(value, scale).filter(|mantissa| mantissa.abs() <= LARGEST);
    let rule = "is too large or has more decimals than the symbol's numbers";
    mantissa.ok_or_else(|| unfit(field, &value.to_string(), rule))
}

fn price_of(
    state: &State,
    id: InstrumentId,
    field: &'static str,
    value: Decimal,
) -> Result<Price, ActError> {
    mantissa_of(field, value, state.rules(id).price_scale).map(Price)
}

fn qty_of(
    state: &State,
    id: InstrumentId,
    field: &'static str,
    value: Decimal,
) -> Result<Qty, ActError> {
    mantissa_of(field, value, state.rules(id).qty_scale).map(Qty)
}
