//! The wallet data of all accounts, and its rules.

use std::collections::{BTreeMap, VecDeque};

use alloy_primitives::Address;
use rust_decimal::Decimal;
use windvane_model::decimal::exact_mantissa;
use windvane_model::protocol::OrderUpdate;
use windvane_model::{Amount, AssetId, Surface, VenueOrderId};

use super::builders::{Attribution, Builder, fraction};
use super::daily_limits::{Spent, TOTAL_DAILY_USD, USER_DAILY_USD};
use super::movements::{Direction, Movement};
use super::transfer_ids::TransferIds;
use crate::account_id::AccountId;
use crate::accounts::drawn;
use crate::request::{Refusal, evm_address, invalid};

/// Maximum number of users with a number for `createApiKey`. The oldest is dropped first.
const LOGINS_MAX: usize = 10_000;

/// Maximum number of deposits and withdrawals per account; the oldest
/// are dropped first.
const ENTRIES_MAX: usize = 1_000;

/// Chain of deposits and withdrawals by the control port.
const CHAIN_OF_ACTS: i64 = 56;

/// Wallet data of the venue, besides the accounts' balances.
#[derive(Debug, Default)]
pub(crate) struct Wallets {
    own: BTreeMap<AccountId, Own>,
    /// Numbers that `getNonce` returned and `createApiKey` has not used.
    logins: VecDeque<(Address, u64)>,
    /// Number of API keys, transfers and withdrawals so far, which is part of their ids.
    made: i64,
    /// Total withdrawals of today.
    pub(crate) spent: Spent,
}

/// Data of one account.
#[derive(Debug, Default)]
pub(crate) struct Own {
    pub(crate) is_private: bool,
    pub(crate) builders: Vec<Builder>,
    /// Open orders with a builder's code.
    pub(crate) attributed: BTreeMap<VenueOrderId, Attribution>,
    pub(crate) transfer_ids: TransferIds,
    pub(crate) withdrawal_nonces: VecDeque<String>,
    pub(crate) movements: VecDeque<Movement>,
    pub(crate) spent: Spent,
}

impl Wallets {
    /// The data of an account; new if it has none yet.
    pub(crate) fn own(&mut self, id: AccountId) -> &mut Own {
        self.own.entry(id).or_default()
    }

    /// The data of an account, if it has any.
    pub(crate) fn get(&self, id: AccountId) -> Option<&Own> {
        self.own.get(&id)
    }

    /// The number of the next API key, transfer or withdrawal.
    pub(crate) fn next_id(&mut self) -> i64 {
        self.made += 1;
        self.made
    }

    /// Stores the number that a wallet must sign, in place of an earlier one.
    pub(crate) fn give_login(&mut self, user: Address, number: u64) {
        self.logins.retain(|(other, _)| *other != user);
        if self.logins.len() >= LOGINS_MAX {
            self.logins.pop_front();
        }
        self.logins.push_back((user, number));
    }

    /// The number that this wallet must sign.
    pub(crate) fn login(&self, user: Address) -> Option<u64> {
        let found = self.logins.iter().find(|(other, _)| *other == user);
        found.map(|(_, number)| *number)
    }

    /// Drops the number of a wallet that has signed it.
    pub(crate) fn end_login(&mut self, user: Address) {
        self.logins.retain(|(other, _)| *other != user);
    }
}

/// Builders.
impl Wallets {
    /// Checks that the user approved this builder for at least this fee rate; otherwise the order
    /// is rejected (docs/interface/futures.md#orders-with-a-builder-code; -2010).
    pub(crate) fn check_builder(
        &self,
        id: AccountId,
        builder: &str,
        fee_rate: &str,
    ) -> Result<Attribution, Refusal> {
        let address = evm_address(builder).ok_or_else(|| invalid("builder"))?;
        let rate = fraction("feeRate", fee_rate)?;
        let builders = self.get(id).map_or(&[][..], |own| &own.builders);
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
        let builder = address;
        let rate = exact_mantissa(rate, 8).ok_or_else(|| invalid("feeRate"))?;
        Ok(Attribution { builder, rate })
    }

    /// Stores the builder of an order until the order has ended.
    pub(crate) fn attribute(
        &mut self,
        id: AccountId,
        order: VenueOrderId,
        attribution: Attribution,
    ) {
        self.own(id).attributed.insert(order, attribution);
    }

    /// The builder of an updated order. If the order has ended, its builder is dropped.
    pub(crate) fn attribution(
        &mut self,
        id: AccountId,
        update: &OrderUpdate,
    ) -> Option<Attribution> {
        let attributed = &mut self.own(id).attributed;
        let attribution = attributed.get(&update.order_id).copied()?;
        if update.status.is_final() {
            attributed.remove(&update.order_id);
        }
        Some(attribution)
    }
}

/// Daily limits of withdrawals.
impl Wallets {
    /// Refuses a withdrawal of this value if it exceeds a limit.
    pub(crate) fn check_daily(
        &mut self,
        id: AccountId,
        usd: Decimal,
        now_ms: i64,
    ) -> Result<(), Refusal> {
        let total = self.spent.today(now_ms) + usd;
        let own = self.own(id).spent.today(now_ms) + usd;
        if own > Decimal::from(USER_DAILY_USD) || total > Decimal::from(TOTAL_DAILY_USD) {
            let msg = "amount is over the daily limit of withdrawals.";
            return Err(Refusal::new(-1130, msg));
        }
        Ok(())
    }

    /// Counts a withdrawal.
    pub(crate) fn spend(&mut self, id: AccountId, usd: Decimal, now_ms: i64) {
        self.spent.add(now_ms, usd);
        self.own(id).spent.add(now_ms, usd);
    }
}

/// Deposits and withdrawals.
impl Wallets {
    /// Records a deposit or withdrawal by the control port as if a chain had made it.
    pub(crate) fn keep_act(
        &mut self,
        seed: u64,
        id: AccountId,
        direction: Direction,
        (surface, asset, amount): (Surface, AssetId, Amount),
        time_ms: i64,
    ) {
        let number = self.next_id();
        let hash = drawn(seed, id.0, &format!("act {number}"));
        let movement = Movement {
            direction,
            id: number.to_string(),
            surface,
            asset,
            amount,
            hash: hash.to_string(),
            time_ms,
            chain_id: CHAIN_OF_ACTS,
        };
        self.keep_movement(id, movement);
    }

    /// Records an entry.
    pub(crate) fn keep_movement(&mut self, id: AccountId, movement: Movement) {
        let movements = &mut self.own(id).movements;
        if movements.len() >= ENTRIES_MAX {
            movements.pop_front();
        }
        movements.push_back(movement);
    }
}
