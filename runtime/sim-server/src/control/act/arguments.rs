//! The arguments of an action, and its errors.

use rust_decimal::Decimal;
use serde_json::Value;
use windvane_model::decimal::exact_mantissa;
use windvane_model::{Amount, InstrumentId, Price, Qty, Surface};

use crate::account_id::AccountId;
use crate::faults::{FieldError, Fields, required};
use crate::request::Refusal;
use crate::state::State;

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActError {
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

/// The result of an action.
pub(crate) type Done = Result<Value, ActError>;

/// The surfaces with orders.
pub(super) const SURFACES: &[(&str, Surface)] =
    &[("spot", Surface::Spot), ("futures", Surface::Futures)];

pub(super) fn unfit(field: &'static str, value: &str, rule: &'static str) -> ActError {
    ActError::Unfit {
        field,
        value: value.to_owned(),
        rule,
    }
}

/// `account`: the account's index in the ready line; 0 by default.
pub(super) fn account_of(state: &State, fields: &mut Fields) -> Result<AccountId, ActError> {
    Ok(optional_account(state, fields)?.unwrap_or(AccountId(0)))
}

pub(super) fn optional_account(
    state: &State,
    fields: &mut Fields,
) -> Result<Option<AccountId>, ActError> {
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
pub(super) fn surface_of(fields: &mut Fields) -> Result<Surface, ActError> {
    Ok(fields
        .word("surface", SURFACES)?
        .unwrap_or(Surface::Futures))
}

/// The instrument of `surface` and `symbol`.
pub(super) fn instrument_of(state: &State, fields: &mut Fields) -> Result<InstrumentId, ActError> {
    let surface = surface_of(fields)?;
    let symbol = required("symbol", fields.text("symbol"))?;
    let found = state.instrument(surface, &symbol);
    found.ok_or_else(|| unfit("symbol", &symbol, "must be a symbol of that surface"))
}

/// The largest amount, in whole units, and the largest mantissa of a price or quantity. Sums and
/// products of such numbers do not overflow.
const LARGEST: i64 = 1_000_000_000_000_000;

pub(super) fn amount_of(field: &'static str, value: Decimal) -> Result<Amount, ActError> {
    let fits = value.abs() <= Decimal::from(LARGEST);
    let amount = fits.then(|| Amount::from_decimal(value)).flatten();
    amount.ok_or_else(|| unfit(field, &value.to_string(), "must be at most 10^15"))
}

pub(super) fn mantissa_of(field: &'static str, value: Decimal, scale: u8) -> Result<i64, ActError> {
    let mantissa = exact_mantissa(value, scale).filter(|mantissa| mantissa.abs() <= LARGEST);
    let rule = "is too large or has more decimals than the symbol's numbers";
    mantissa.ok_or_else(|| unfit(field, &value.to_string(), rule))
}

pub(super) fn price_of(
    state: &State,
    id: InstrumentId,
    field: &'static str,
    value: Decimal,
) -> Result<Price, ActError> {
    mantissa_of(field, value, state.rules(id).price_scale).map(Price)
}

pub(super) fn qty_of(
    state: &State,
    id: InstrumentId,
    field: &'static str,
    value: Decimal,
) -> Result<Qty, ActError> {
    mantissa_of(field, value, state.rules(id).qty_scale).map(Qty)
}
