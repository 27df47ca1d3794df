//! Withdrawals to chains (docs/interface/account.md#withdrawals,
//! docs/interface/chain.md#withdrawals). This module checks the wallet that signed the parameters,
//! checks limits, and reduces balances.
//!
//! The documents leave some points open, which are decided here. The fee is part of the amount.
//! The venue refuses an amount above a limit, and a fee below the estimate. It refuses a signed
//! nonce (-4225) that was used before or differs by more than 24 hours from the venue's clock.

use rust_decimal::Decimal;
use serde_json::json;
use windvane_model::{Amount, AssetId, Surface};
use windvane_protocol::route::Version;
use windvane_protocol::sign::solana;
use windvane_sim::Cause;

use super::values;
use crate::account_id::AccountId;
use crate::accounts::drawn;
use crate::auth::action::{self, bad_signature};
use crate::request::{Answer, Body, Call, Refusal, integer};
use crate::state::State;
use crate::wallet::{Chain, Direction, Movement, chain_of, usd_price};

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
    let chain = chain_of(call.params)?;
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
    let chain = chain_of(call.params)?;
    to_evm(state, call, Surface::Futures, chain.id)
}

/// From the spot account to an EVM chain. The signature may be for another chain.
pub(super) fn chain_spot(state: &mut State, call: &Call<'_>) -> Answer {
    let chain = chain_of(call.params)?;
    let signed_for = call.params.integer("signatureChainId")?.unwrap_or(chain.id);
    to_evm(state, call, Surface::Spot, signed_for)
}

fn to_evm(state: &mut State, call: &Call<'_>, surface: Surface, signed_for: i64) -> Answer {
    let chain = chain_of(call.params)?;
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
    let text = solana::text(&state.settings.brand, state.settings.network(), &signed);
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
        asset: values::asset(&state.assets, call)?,
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
    let least = chain.fee_min(&state.board, withdrawal.asset);
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
    let signers = action::signers(&state.settings, call.params, chain, signed_for, nonce)?;
    if signers.contains(&user) {
        Ok(())
    } else {
        Err(bad_signature())
    }
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
    let wallets = &mut state.wallets;
    wallets.check_daily(withdrawal.account, usd, call.now_ms)
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
    state.wallets.spend(account, usd, call.now_ms);
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
    state.wallets.keep_movement(account, movement);
    Ok(Body::json(&answer))
}

fn value_usd(state: &State, withdrawal: &Withdrawal<'_>) -> Decimal {
    withdrawal.amount.to_decimal() * usd_price(&state.board, withdrawal.asset)
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
