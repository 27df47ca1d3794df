//! Transfers between the spot and perp wallets of an account, and to other accounts
//! (docs/interface/account.md#transfers-between-wallets,
//! docs/interface/account.md#transfer-to-another-address,
//! docs/interface/chain.md#transfer-to-an-address).

use serde_json::json;
use windvane_model::Surface;
use windvane_sim::Cause;

use super::values;
use crate::account_id::AccountId;
use crate::accounts::of_user;
use crate::figures;
use crate::request::{Answer, Body, Call, Refusal, invalid};
use crate::state::State;

/// Minimum length of `clientTranId` for a transfer to another address
/// (docs/interface/account.md#transfer-to-another-address).
const SEND_ID_MIN: usize = 20;

/// Transfers `FUTURE_SPOT` or `SPOT_FUTURE`.
pub(super) fn between_wallets(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let (asset, amount) = (
        values::asset(&state.assets, call)?,
        values::amount(call, "amount")?,
    );
    let client_id = call.params.required("clientTranId")?;
    check_length(client_id, 1)?;
    let from = match call.params.required("kindType")? {
        "SPOT_FUTURE" => Surface::Spot,
        "FUTURE_SPOT" => Surface::Futures,
        _ => return Err(invalid("kindType")),
    };
    state
        .wallets
        .own(id)
        .transfer_ids
        .check(client_id, call.now_ms)?;
    let moved = state
        .account_mut(id)
        .venue
        .transfer(call.now, from, asset, amount);
    moved.map_err(values::refused)?;
    state
        .wallets
        .own(id)
        .transfer_ids
        .keep(client_id, call.now_ms);
    let tran_id = state.wallets.next_id();
    Ok(Body::json(
        &json!({ "tranId": tran_id, "status": "SUCCESS" }),
    ))
}

/// Transfers to another account with an API key
/// (docs/interface/account.md#transfer-to-another-address).
pub(super) fn send(state: &mut State, call: &Call<'_>) -> Answer {
    let tran_id = hand_over(state, call, SEND_ID_MIN)?;
    Ok(Body::json(
        &json!({ "tranId": tran_id, "status": "SUCCESS" }),
    ))
}

/// Transfers to another account with the signature of the main wallet
/// (docs/interface/chain.md#transfer-to-an-address).
pub(super) fn to_address(state: &mut State, call: &Call<'_>) -> Answer {
    let transfer_id = hand_over(state, call, 1)?;
    Ok(Body::json(&json!({
        "transferId": transfer_id.to_string(),
        "asset": call.params.required("asset")?,
        "amount": figures::amount(values::amount(call, "amount")?),
        "toAddress": call.params.required("toAddress")?,
        "timestamp": call.now_ms,
        "status": "SUCCESS",
    })))
}

/// Moves an amount from the sender's spot balance to the receiver's, and returns the transfer's id.
fn hand_over(state: &mut State, call: &Call<'_>, id_min: usize) -> Result<i64, Refusal> {
    let id = call.account()?;
    let (asset, amount) = (
        values::asset(&state.assets, call)?,
        values::amount(call, "amount")?,
    );
    let client_id = call.params.get("clientTranId");
    if let Some(client_id) = client_id {
        check_length(client_id, id_min)?;
        state
            .wallets
            .own(id)
            .transfer_ids
            .check(client_id, call.now_ms)?;
    }
    let receiver = receiver(state, call, id)?;
    let cause = Cause::AssetTransfer;
    let outcome = state
        .account_mut(id)
        .venue
        .debit(call.now, Surface::Spot, asset, amount, cause);
    outcome.map_err(values::refused)?;
    let venue = &mut state.account_mut(receiver).venue;
    let given = venue.credit(call.now, Surface::Spot, asset, amount, cause);
    given.map_err(values::refused)?;
    if let Some(client_id) = client_id {
        state
            .wallets
            .own(id)
            .transfer_ids
            .keep(client_id, call.now_ms);
    }
    Ok(state.wallets.next_id())
}

/// The receiver: an existing account other than the sender's
/// (docs/interface/account.md#transfer-to-another-address).
fn receiver(state: &State, call: &Call<'_>, sender: AccountId) -> Result<AccountId, Refusal> {
    let address = values::address(call, "toAddress")?;
    let receiver = of_user(&state.accounts, address);
    receiver
        .filter(|receiver| *receiver != sender)
        .ok_or_else(|| {
            let msg = format!("toAddress {address} is not the address of another registered user.");
            Refusal::new(-1130, msg)
        })
}

/// Checks the length: at least `least`, and under 64 characters (-4114).
fn check_length(id: &str, least: usize) -> Result<(), Refusal> {
    if (least..64).contains(&id.chars().count()) {
        return Ok(());
    }
    let msg = format!("clientTranId is not valid: it must have {least} to 63 characters.");
    Err(Refusal::new(-4114, msg))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_exact_bounds() {
        assert_eq!(check_length(&"x".repeat(63), 1), Ok(()));
        assert_eq!(check_length(&"x".repeat(64), 1).unwrap_err().code, -4114);
        assert_eq!(check_length(&"x".repeat(20), SEND_ID_MIN), Ok(()));
        assert_eq!(
            check_length(&"x".repeat(19), SEND_ID_MIN).unwrap_err().code,
            -4114
        );
    }
}
