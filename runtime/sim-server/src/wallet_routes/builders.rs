//! Builders receive a fee for orders that name them, up to a rate that the user approved
//! (docs/interface/futures.md#agent-and-builder-routes). Registration and platform tokens of a
//! builder (docs/interface/futures.md#builders) are outside of this interface, and are assumed.
//! The maximum rate of an approval is a fraction of the notional.

use alloy_primitives::Address;
use serde_json::{Value, json};

use super::values::{self, check_network, number};
use crate::account_id::AccountId;
use crate::request::{Answer, Body, Call, Refusal};
use crate::state::State;
use crate::wallet::{Builder, fraction};

/// Maximum number of builders per account.
const BUILDERS_MAX: usize = 100;

/// Approves a builder. A new approval of a known builder replaces its rate and name.
pub(super) fn approve(state: &mut State, call: &Call<'_>) -> Answer {
    check_network(&state.settings, call)?;
    put(state, call, call.account()?)?;
    Ok(values::success())
}

/// Stores the approval in `builder`, `maxFeeRate` and `builderName`.
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

/// Changes the maximum rate of an approved builder.
pub(super) fn update(state: &mut State, call: &Call<'_>) -> Answer {
    check_network(&state.settings, call)?;
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
    check_network(&state.settings, call)?;
    let address = values::address(call, "builder")?;
    let builders = &mut state.wallets.own(call.account()?).builders;
    let before = builders.len();
    builders.retain(|builder| builder.address != address);
    if builders.len() == before {
        return Err(not_approved(address));
    }
    Ok(values::success())
}

/// All approvals of the account. `maxFeeRate` is a number in this response.
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

fn not_approved(address: Address) -> Refusal {
    Refusal::new(
        -1130,
        format!("{address} is not a builder of this account."),
    )
}
