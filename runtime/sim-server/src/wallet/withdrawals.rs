//! Withdrawals to chains (docs/interface/account.md#withdrawals,
//! docs/interface/chain.md#withdrawals). This module verifies what the main wallet signs inside the
//! parameters, checks limits, and reduces balances.
//!
//! The documents leave some points open, which are decided here. The fee is part of the amount.
//! The venue refuses an amount above a limit, and a fee below the estimate. It refuses a signed
//! nonce (-4225) that was used before or differs by more than 24 hours from the venue's clock.

use alloy_primitives::{Address, B256};
use rust_decimal::Decimal;
use serde_json::json;
use windvane_model::{Amount, AssetId, Surface};
use windvane_protocol::Brand;
use windvane_protocol::brand::upper_first;
use windvane_protocol::route::Version;
use windvane_protocol::sign::{Network, TypedError, signer_of, solana, typed};
use windvane_sim::Cause;

use super::fees::{Chain, chain_named, chain_of, usd_price};
use super::history::{self, Direction, Movement};
use super::{values, withdrawal_limits};
use crate::accounts::{AccountId, drawn};
use crate::request::{Answer, Body, Call, Params, Refusal, integer, invalid};
use crate::state::State;

/// Maximum number of signed nonces to keep per account.
const NONCES_MAX: usize = 1_000;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// A withdrawal, as read from the parameters.
#[derive(Clone, Copy, Debug)]
struct Withdrawal<'a> {
    account: AccountId,
    surface: Surface,
    asset: AssetId,
    amount: Amount,
    chain_id: i64,
    nonce: &'a str,
}

/// Spot surface, v1 and v3: from the perp account to the account's own address.
pub(super) fn spot(state: &mut State, call: &Call<'_>) -> Answer {
    let chain = chain_of(call)?;
    let nonce = match call.listing.version {
        Some(Version::V3) => "userNonce",
        _ => "nonce",
    };
    let withdrawal = read(state, call, Surface::Futures, chain.id, nonce)?;
    check_fee(state, call, chain, &withdrawal)?;
    let user = state.account(withdrawal.account).user;
    if values::address(call, "receiver")? != user {
        return Err(Refusal::new(
            -1130,
            "receiver must be the address of the current account.",
        ));
    }
    verify_action(state, call, chain, chain.id, nonce)?;
    check_limits(state, call, &withdrawal)?;
    fill_up(state, call, &withdrawal)?;
    finish(state, call, &withdrawal)
}

/// From the perp account to an EVM chain.
pub(super) fn chain_perp(state: &mut State, call: &Call<'_>) -> Answer {
    let chain = chain_of(call)?;
    to_evm(state, call, Surface::Futures, chain.id)
}

/// From the spot account to an EVM chain. The signature may be for another chain.
pub(super) fn chain_spot(state: &mut State, call: &Call<'_>) -> Answer {
    let chain = chain_of(call)?;
    let signed_for = call.params.integer("signatureChainId")?.unwrap_or(chain.id);
    to_evm(state, call, Surface::Spot, signed_for)
}

fn to_evm(state: &mut State, call: &Call<'_>, surface: Surface, signed_for: i64) -> Answer {
    let chain = chain_of(call)?;
    let withdrawal = read(state, call, surface, chain.id, "userNonce")?;
    check_fee(state, call, chain, &withdrawal)?;
    values::address(call, "receiver")?;
    verify_action(state, call, chain, signed_for, "userNonce")?;
    check_limits(state, call, &withdrawal)?;
    finish(state, call, &withdrawal)
}

/// From the perp account to Solana.
pub(super) fn solana_perp(state: &mut State, call: &Call<'_>) -> Answer {
    to_solana(state, call, Surface::Futures)
}

/// From the spot account to Solana.
pub(super) fn solana_spot(state: &mut State, call: &Call<'_>) -> Answer {
    to_solana(state, call, Surface::Spot)
}

/// The documents do not show which Solana wallet must sign. The accounts here have no Solana wallet
/// of their own, so the receiving wallet must sign. The agent's outer `Message` identifies the
/// paying account. The documents do not show the chain's id either, so any id is accepted.
fn to_solana(state: &mut State, call: &Call<'_>, surface: Surface) -> Answer {
    let chain_id = integer("chainId", call.params.required("chainId")?)?;
    let withdrawal = read(state, call, surface, chain_id, "userNonce")?;
    values::fee(call)?;
    let receiver = call.params.required("receiver")?;
    let signed = solana::Withdrawal {
        destination: receiver,
        token: call.params.required("asset")?,
        amount: call.params.required("amount")?,
        fee: call.params.required("fee")?,
        nonce: withdrawal.nonce,
    };
    let text = solana::text(&state.settings.brand, network(state), &signed);
    if !solana::verifies(receiver, &text, call.params.required("userSignature")?) {
        return Err(bad_signature());
    }
    check_limits(state, call, &withdrawal)?;
    finish(state, call, &withdrawal)
}

fn read<'a>(
    state: &State,
    call: &Call<'a>,
    surface: Surface,
    chain_id: i64,
    nonce: &str,
) -> Result<Withdrawal<'a>, Refusal> {
    Ok(Withdrawal {
        account: call.account()?,
        surface,
        asset: values::asset(state, call)?,
        amount: values::amount(call, "amount")?,
        chain_id,
        nonce: call.params.required(nonce)?,
    })
}

/// The fee must be at least the estimate (gasCost: docs/interface/account.md#withdrawal-fee), and
/// less than the amount.
fn check_fee(
    state: &State,
    call: &Call<'_>,
    chain: Chain,
    withdrawal: &Withdrawal<'_>,
) -> Result<(), Refusal> {
    let fee = values::fee(call)?;
    let least = chain.fee_min(state, withdrawal.asset);
    if fee.to_decimal() < least || fee >= withdrawal.amount {
        let msg = format!("fee must be at least {least} and less than the amount.");
        return Err(Refusal::new(-1130, msg));
    }
    Ok(())
}

/// Verifies `userSignature`, the main wallet's signature of the `Action`.
fn verify_action(
    state: &State,
    call: &Call<'_>,
    chain: Chain,
    signed_for: i64,
    nonce: &str,
) -> Result<(), Refusal> {
    let user = state.account(call.account()?).user;
    let signers = action_signers(state, call.params, chain, signed_for, nonce)?;
    if signers.contains(&user) {
        Ok(())
    } else {
        Err(bad_signature())
    }
}

/// The possible signers of the `Action`. `SafeWallet` may send several signatures, separated by
/// commas. The accounts here have one owner; the owner's signature must be among them.
fn action_signers(
    state: &State,
    params: &Params,
    chain: Chain,
    signed_for: i64,
    nonce: &str,
) -> Result<Vec<Address>, Refusal> {
    let action = typed::Withdrawal {
        destination: params.required("receiver")?,
        chain: chain.name,
        token: params.required("asset")?,
        amount: params.required("amount")?,
        fee: params.required("fee")?,
        nonce: params.required(nonce)?,
    };
    let signed_for = u64::try_from(signed_for).map_err(|_| invalid("signatureChainId"))?;
    let digests = digests(state, signed_for, &action)?;
    let text = params.required("userSignature")?;
    let signatures: Vec<&str> = match params.get("signatureType") {
        Some("SafeWallet") => text.split(',').map(str::trim).collect(),
        _ => vec![text],
    };
    let of_each = |text: &str| digests.map(|digest| signer_of(&digest, text).ok());
    let signers = signatures.into_iter().flat_map(of_each);
    Ok(signers.flatten().collect())
}

/// Whether a request is a withdrawal with only an inner signature. For the withdraw routes the core
/// interface lists no signature of the request. Public facts name the `Action`, and also an outer
/// signature (docs/interface/conventions.md#where-descriptions-differ). So both forms are accepted,
/// depending on the fields of the request.
pub(crate) fn is_action_alone(name: &str, params: &Params) -> bool {
    let outer = ["nonce", "signer", "signature"];
    ["chain.perp_withdraw", "chain.spot_withdraw"].contains(&name)
        && outer.iter().all(|field| params.raw(field).is_none())
}

/// The account whose main wallet signed the `Action` of such a request. If the request has a
/// `user`, it must be that wallet. The refusal is -1022 if no account matches.
pub(crate) fn action_account(
    state: &State,
    name: &str,
    params: &Params,
) -> Result<AccountId, Refusal> {
    let chain = chain_named(params)?;
    let signed_for = match name {
        "chain.spot_withdraw" => params.integer("signatureChainId")?,
        _ => None,
    };
    let signed_for = signed_for.unwrap_or(chain.id);
    let signers = action_signers(state, params, chain, signed_for, "userNonce")?;
    let claimed = params.get("user").map(values::evm_address);
    let fits = |signer: &Address| claimed.is_none_or(|claimed| claimed == Some(*signer));
    let mut accounts = signers.into_iter().filter(fits);
    accounts
        .find_map(|signer| values::account_of(state, signer))
        .ok_or_else(bad_signature)
}

/// Both possible digests of an `Action`. The domain's name is the brand word "as the service writes
/// it" (docs/interface/conventions.md#brand-words), with or without a capital letter. The server
/// cannot know which, so it accepts both.
fn digests(
    state: &State,
    signed_for: u64,
    action: &typed::Withdrawal<'_>,
) -> Result<[B256; 2], Refusal> {
    let plain = state.settings.brand.clone();
    let mut capital = plain.clone();
    capital.withdrawal_domain = upper_first(&plain.withdrawal_domain);
    let digest = |brand: &Brand| {
        let data = typed::withdrawal_action(brand, network(state), signed_for, action);
        let digest = data.map(|data| data.digest());
        digest.map_err(|error: TypedError| Refusal::new(-1130, error.to_string()))
    };
    Ok([digest(&plain)?, digest(&capital)?])
}

/// Checks that the signed nonce is a time in microseconds (docs/interface/account.md#withdrawals),
/// within a day of the clock.
fn check_nonce(nonce: &str, now_ms: i64) -> Result<(), Refusal> {
    let nonce_ms = nonce.parse::<u64>().map(|us| us / 1_000);
    let apart = nonce_ms.map(|ms| now_ms.cast_unsigned().abs_diff(ms));
    if apart.is_ok_and(|ms| ms <= DAY_MS.cast_unsigned()) {
        return Ok(());
    }
    let msg = "The signed nonce must be a time in microseconds, within 24 hours of the clock.";
    Err(Refusal::new(-4225, msg))
}

fn check_limits(
    state: &mut State,
    call: &Call<'_>,
    withdrawal: &Withdrawal<'_>,
) -> Result<(), Refusal> {
    check_nonce(withdrawal.nonce, call.now_ms)?;
    let usd = value_usd(state, withdrawal);
    let used = &state.wallets.own(withdrawal.account).withdrawal_nonces;
    if used.iter().any(|used| used == withdrawal.nonce) {
        return Err(Refusal::new(-4225, "The signed nonce was used before."));
    }
    withdrawal_limits::check(state, withdrawal.account, usd, call.now_ms)
}

/// If the futures account has too little, the rest is moved from spot
/// (docs/interface/account.md#withdrawals).
fn fill_up(state: &mut State, call: &Call<'_>, wanted: &Withdrawal<'_>) -> Result<(), Refusal> {
    let venue = &mut state.account_mut(wanted.account).venue;
    let lacking = wanted.amount - venue.withdrawable(Surface::Futures, wanted.asset);
    if lacking <= Amount::ZERO {
        return Ok(());
    }
    let moved = venue.transfer(call.now, Surface::Spot, wanted.asset, lacking);
    moved.map_err(values::refused)
}

fn finish(state: &mut State, call: &Call<'_>, withdrawal: &Withdrawal<'_>) -> Answer {
    let Withdrawal {
        account,
        surface,
        asset,
        amount,
        ..
    } = *withdrawal;
    let usd = value_usd(state, withdrawal);
    let venue = &mut state.account_mut(account).venue;
    let outcome = venue.debit(call.now, surface, asset, amount, Cause::Withdraw);
    outcome.map_err(values::refused)?;
    withdrawal_limits::spend(state, account, usd, call.now_ms);
    let number = state.wallets.next_id();
    let own = state.wallets.own(account);
    if own.withdrawal_nonces.len() >= NONCES_MAX {
        own.withdrawal_nonces.pop_front();
    }
    own.withdrawal_nonces.push_back(withdrawal.nonce.to_owned());
    let hash = drawn(
        state.settings.seed,
        account.0,
        &format!("withdrawal {number}"),
    );
    let movement = Movement {
        direction: Direction::Withdraw,
        id: number.to_string(),
        surface,
        asset,
        amount,
        hash: hash.to_string(),
        time_ms: call.now_ms,
        chain_id: withdrawal.chain_id,
    };
    let answer = json!({ "withdrawId": movement.id, "hash": movement.hash });
    history::keep(state, account, movement);
    Ok(Body::json(&answer))
}

fn value_usd(state: &State, withdrawal: &Withdrawal<'_>) -> Decimal {
    withdrawal.amount.to_decimal() * usd_price(state, withdrawal.asset)
}

fn network(state: &State) -> Network {
    if state.settings.testnet {
        Network::Testnet
    } else {
        Network::Mainnet
    }
}

fn bad_signature() -> Refusal {
    Refusal::new(-1022, "userSignature is not valid.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_nonce_must_be_a_recent_time_in_microseconds() {
        let now_ms = 1_700_000_000_000;
        let day_us = DAY_MS * 1_000;
        let code = |nonce: &str| check_nonce(nonce, now_ms).err().map(|refusal| refusal.code);
        for good in [0, day_us, -day_us] {
            assert_eq!(code(&(now_ms * 1_000 + good).to_string()), None);
        }
        for bad in [day_us + 1_000, -day_us - 1_000] {
            assert_eq!(code(&(now_ms * 1_000 + bad).to_string()), Some(-4225));
        }
        for bad in ["1", "1700000000000", "-1", "now"] {
            assert_eq!(code(bad), Some(-4225), "{bad}");
        }
    }
}
