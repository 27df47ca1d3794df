//! Agents, builders, transfers, withdrawals, API keys, the chain API and the JSON-RPC endpoint.
//! This module contains no orders and no market data. `auth` authenticates the requests; this
//! module verifies only what the main wallet signs inside the parameters.

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

use std::collections::{BTreeMap, VecDeque};

use alloy_primitives::Address;
use serde_json::{Value, json};
use windvane_model::VenueOrderId;

use crate::accounts::AccountId;
use crate::request::{Answer, Call, Refusal};
use crate::state::State;
use builders::Builder;
use history::Movement;
use transfers::TransferIds;
use withdrawal_limits::Spent;

pub(crate) use builders::{Attribution, attribute, check as check_builder, pay as pay_builder};
pub(crate) use history::{Direction, keep_act};
pub(crate) use withdrawals::{action_account, is_action_alone};

/// Maximum number of users with a number for `createApiKey`. The oldest is dropped first.
const LOGINS_MAX: usize = 10_000;

/// Wallet data of the venue, besides the accounts' balances.
#[derive(Debug, Default)]
pub(crate) struct Wallets {
    own: BTreeMap<AccountId, Own>,
    /// Numbers that `getNonce` returned and `createApiKey` has not used.
    logins: VecDeque<(Address, u64)>,
    /// Number of API keys, transfers and withdrawals so far, which is part of their ids.
    made: i64,
    /// Total withdrawals of today.
    spent: Spent,
}

/// Data of one account.
#[derive(Debug, Default)]
struct Own {
    is_private: bool,
    builders: Vec<Builder>,
    /// Open orders with a builder's code.
    attributed: BTreeMap<VenueOrderId, Attribution>,
    transfer_ids: TransferIds,
    withdrawal_nonces: VecDeque<String>,
    movements: VecDeque<Movement>,
    spent: Spent,
}

impl Wallets {
    fn own(&mut self, id: AccountId) -> &mut Own {
        self.own.entry(id).or_default()
    }

    fn next_id(&mut self) -> i64 {
        self.made += 1;
        self.made
    }

    /// Stores the number that a wallet must sign, in place of an earlier one.
    fn give_login(&mut self, user: Address, number: u64) {
        self.logins.retain(|(other, _)| *other != user);
        if self.logins.len() >= LOGINS_MAX {
            self.logins.pop_front();
        }
        self.logins.push_back((user, number));
    }

    fn login(&self, user: Address) -> Option<u64> {
        let found = self.logins.iter().find(|(other, _)| *other == user);
        found.map(|(_, number)| *number)
    }

    fn end_login(&mut self, user: Address) {
        self.logins.retain(|(other, _)| *other != user);
    }
}

/// The wallet data of an account, for the exact state of the control port.
pub(crate) fn report(state: &State, id: AccountId) -> Value {
    let empty = Own::default();
    let own = state.wallets.own.get(&id).unwrap_or(&empty);
    let now_ms = state.clock_ms(state.now);
    let movements = own.movements.iter();
    let movements: Vec<_> = movements
        .map(|m| history::record(state, m, now_ms))
        .collect();
    json!({
        "private": own.is_private,
        "builders": own.builders.iter().map(builders::report).collect::<Vec<_>>(),
        "movements": movements,
        "client_tran_ids": own.transfer_ids.all().collect::<Vec<_>>(),
    })
}

/// Answers a route of this family.
pub(crate) fn handle(state: &mut State, call: &Call<'_>) -> Answer {
    match call.route.name {
        "spot.get_nonce" => api_keys::nonce(state, call),
        "spot.create_api_key" => api_keys::create(state, call),
        "spot.withdraw_fee" => fees::spot(state, call),
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
        "chain.deposit_withdraw_history" => history::list(state, call),
        "chain.withdraw_fee" => fees::chain(state, call),
        name if name.starts_with("{rpc}") => Ok(rpc::answer(state, call)),
        name => Err(Refusal::not_built(name)),
    }
}
