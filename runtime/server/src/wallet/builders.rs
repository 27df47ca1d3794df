//! Builders: who receives a fee for orders that name them, up to a rate that the user approved
//! (spec 2, Agent and builder routes). That a builder is registered and holds platform tokens
//! (Integration flow, 1) happens outside of this interface and is taken as given.

use alloy_primitives::Address;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::agents::check_network;
use super::values;
use crate::http::{Answer, Body, Call, Refusal, decimal, invalid};
use crate::state::{AccountId, State};

/// Builders of one account.
const BUILDERS_MAX: usize = 100;

/// An approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Builder {
    address: Address,
    fee_rate_max: Decimal,
    name: String,
}

/// Approves a builder; approving a known one replaces its rate and name.
pub(super) fn approve(state: &mut State, call: &Call<'_>) -> Answer {
    check_network(state, call)?;
    put(state, call, call.account()?)?;
    Ok(values::success())
}

/// Keeps the approval that `builder`, `maxFeeRate` and `builderName` state.
pub(super) fn put(state: &mut State, call: &Call<'_>, id: AccountId) -> Result<(), Refusal> {
    let builder = Builder {
        address: values::address(call, "builder")?,
        fee_rate_max: fraction("maxFeeRate", call.params.required("maxFeeRate")?)?,
        name: call
            .params
            .get("builderName")
            .unwrap_or_default()
            .to_owned(),
    };
    let builders = &mut state.wallets.own(id).builders;
    let replaced = builders
        .iter()
        .position(|other| other.address == builder.address);
    match replaced {
        Some(place) => builders[place] = builder,
        None if builders.len() >= BUILDERS_MAX => {
            let msg = format!("An account approves at most {BUILDERS_MAX} builders.");
            return Err(Refusal::new(-1130, msg));
        }
        None => builders.push(builder),
    }
    Ok(())
}

/// Changes the largest rate of a builder that is approved.
pub(super) fn update(state: &mut State, call: &Call<'_>) -> Answer {
    check_network(state, call)?;
    let rate = fraction("maxFeeRate", call.params.required("maxFeeRate")?)?;
    let address = values::address(call, "builder")?;
    let builders = &mut state.wallets.own(call.account()?).builders;
    let known = builders
        .iter_mut()
        .find(|builder| builder.address == address);
    known.ok_or_else(|| not_approved(address))?.fee_rate_max = rate;
    Ok(values::success())
}

/// Ends an approval.
pub(super) fn delete(state: &mut State, call: &Call<'_>) -> Answer {
    check_network(state, call)?;
    let address = values::address(call, "builder")?;
    let builders = &mut state.wallets.own(call.account()?).builders;
    let before = builders.len();
    builders.retain(|builder| builder.address != address);
    if builders.len() == before {
        return Err(not_approved(address));
    }
    Ok(values::success())
}

/// All approvals of the account. `maxFeeRate` is a number here.
pub(super) fn list(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let user = state.account(id).user.to_string();
    let record = |builder: &Builder| {
        json!({
            "userAddress": user,
            "builderAddress": builder.address.to_string(),
            "maxFeeRate": number(builder.fee_rate_max),
            "builderName": builder.name,
        })
    };
    let records: Vec<Value> = state.wallets.own(id).builders.iter().map(record).collect();
    Ok(Body::json(&records))
}

/// An approval, for the full truth.
pub(super) fn truth(builder: &Builder) -> Value {
    json!({
        "builder": builder.address.to_string(),
        "fee_rate_max": builder.fee_rate_max.to_string(),
        "name": builder.name,
    })
}

/// Whether the user approved this builder at this fee rate or more; the order is rejected
/// otherwise (spec 2, Place order with builder code; -2010). No fee is taken for the builder.
pub(crate) fn check(
    state: &State,
    id: AccountId,
    builder: &str,
    fee_rate: &str,
) -> Result<(), Refusal> {
    let address = values::evm_address(builder).ok_or_else(|| invalid("builder"))?;
    let rate = fraction("feeRate", fee_rate)?;
    let builders = state
        .wallets
        .own
        .get(&id)
        .map_or(&[][..], |own| &own.builders);
    let approved = builders.iter().find(|builder| builder.address == address);
    let approved = approved.ok_or_else(|| {
        Refusal::new(
            -2010,
            format!("Builder {address} is not approved by this account."),
        )
    })?;
    if rate > approved.fee_rate_max {
        let most = approved.fee_rate_max;
        let msg = format!("feeRate {rate} is over the approved maxFeeRate {most}.");
        return Err(Refusal::new(-2010, msg));
    }
    Ok(())
}

/// A fraction from 0 to 1, as decimal text.
fn fraction(name: &str, text: &str) -> Result<Decimal, Refusal> {
    let rate = decimal(name, text)?;
    if (Decimal::ZERO..=Decimal::ONE).contains(&rate) {
        Ok(rate)
    } else {
        Err(invalid(name))
    }
}

fn not_approved(address: Address) -> Refusal {
    Refusal::new(-1130, format!("{address} is no builder of this account."))
}

/// A decimal as JSON number, with its own digits.
pub(super) fn number(value: Decimal) -> Box<serde_json::value::RawValue> {
    // A decimal's text is a JSON number.
    serde_json::value::RawValue::from_string(value.normalize().to_string()).unwrap_or_default()
}
