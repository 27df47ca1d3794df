//! Chain routes that move no money: account status, staking total, deposit address
//! (docs/interface/chain.md#chain-routes).

use serde_json::json;

use crate::accounts::drawn;
use crate::request::{Answer, Body, Call, invalid};
use crate::state::State;

/// PUBLIC or PRIVATE.
pub(super) fn status(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    Ok(record(state.wallets.own(id).is_private))
}

/// Sets the status. The info endpoint uses it at once.
pub(super) fn modify_status(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let is_private = match call.params.required("status")? {
        "PUBLIC" => false,
        "PRIVATE" => true,
        _ => return Err(invalid("status")),
    };
    state.wallets.own(id).is_private = is_private;
    Ok(record(is_private))
}

fn record(is_private: bool) -> Body {
    let status = if is_private { "PRIVATE" } else { "PUBLIC" };
    Body::json(&json!({ "status": status }))
}

/// A constant sample figure, because this venue has no staking.
pub(super) fn locked_staking() -> Body {
    Body::json(&json!({ "periodCode": "208W", "totalVolume": 1_250_000.5 }))
}

/// Only SUI has deposit addresses. On other networks, deposits go to contracts.
pub(super) fn deposit_address(state: &State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let network = call.params.get("network").unwrap_or("SUI");
    if network != "SUI" {
        return Err(invalid("network"));
    }
    let address = drawn(state.settings.seed, id.0, "sui address").to_string();
    Ok(Body::json(
        &json!({ "network": network, "address": address }),
    ))
}
