//! Agents, builders, transfers, withdrawals, API keys, the chain API and the JSON-RPC endpoint.
//! This module contains no orders and no market data. `auth` authenticates the requests; this
//! module checks only that the right wallet signed what the parameters contain.

mod agents;
mod api_keys;
mod builders;
mod chain;
mod fees;
mod history;
mod rpc;
mod transfers;
mod values;
mod withdrawal_limits;
mod withdrawals;

use crate::request::{Answer, Call, Refusal};
use crate::state::State;

/// Answers a route of this family.
pub(crate) fn handle(state: &mut State, call: &Call<'_>) -> Answer {
    match call.route.name {
        "spot.get_nonce" => api_keys::nonce(state, call),
        "spot.create_api_key" => api_keys::create(state, call),
        "spot.withdraw_fee" => fees::spot(&state.board, &state.assets, call),
        "spot.withdraw" => withdrawals::spot(state, call),
        "spot.send_to_address" => transfers::send(state, call),
        "spot.wallet_transfer"
        | "futures.wallet_transfer"
        | "chain.perp_wallet_transfer"
        | "chain.spot_wallet_transfer" => transfers::between_wallets(state, call),
        "futures.approve_agent" => agents::approve(state, call),
        "futures.update_agent" => agents::update(state, call),
        "futures.delete_agent" => agents::delete(state, call),
        "futures.agents" => agents::list(state, call),
        "futures.approve_builder" => builders::approve(state, call),
        "futures.update_builder" => builders::update(state, call),
        "futures.delete_builder" => builders::delete(state, call),
        "futures.builders" => builders::list(state, call),
        "chain.account_status" => chain::status(state, call),
        "chain.modify_account_status" => chain::modify_status(state, call),
        "chain.locked_staking" => Ok(chain::locked_staking()),
        "chain.transfer" => transfers::to_address(state, call),
        "chain.deposit_address" => chain::deposit_address(state, call),
        "chain.perp_withdraw" => withdrawals::chain_perp(state, call),
        "chain.spot_withdraw" => withdrawals::chain_spot(state, call),
        "chain.perp_solana_withdraw" => withdrawals::solana_perp(state, call),
        "chain.spot_solana_withdraw" => withdrawals::solana_spot(state, call),
        "chain.withdraw_info" => withdrawal_limits::info(state, call),
        "chain.deposit_withdraw_history" => history::list(&state.wallets, &state.assets, call),
        "chain.withdraw_fee" => fees::chain(&state.board, &state.assets, call),
        name if name.starts_with("{rpc}") => Ok(rpc::answer(state, call)),
        name => Err(Refusal::not_built(name)),
    }
}
