//! Deposits and withdrawals of chains (docs/interface/chain.md#history). Each list is bounded, and
//! the oldest entries are dropped first.

use serde_json::{Value, json};
use windvane_model::{Amount, AssetId, Surface};

use super::values;
use crate::accounts::{AccountId, drawn};
use crate::request::{Answer, Body, Call};
use crate::state::State;

/// Maximum number of entries per account.
const ENTRIES_MAX: usize = 1_000;

/// A withdrawal is PROCESSING for this long, then SUCCESS for the same time, then COMPLETED. The
/// states are known (docs/interface/chain.md#history); their order and duration are chosen here.
const STEP_MS: i64 = 1_000;

/// Chain of deposits and withdrawals by the control port.
const CHAIN_OF_ACTS: i64 = 56;

/// The direction of a movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Deposit,
    Withdraw,
}

impl Direction {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Deposit => "DEPOSIT",
            Self::Withdraw => "WITHDRAW",
        }
    }
}

/// One movement of money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Movement {
    pub(super) direction: Direction,
    pub(super) id: String,
    pub(super) surface: Surface,
    pub(super) asset: AssetId,
    pub(super) amount: Amount,
    pub(super) hash: String,
    pub(super) time_ms: i64,
    pub(super) chain_id: i64,
}

/// Records a deposit or withdrawal by the control port as if a chain had made it.
pub(crate) fn keep_act(
    state: &mut State,
    id: AccountId,
    direction: Direction,
    (surface, asset, amount): (Surface, AssetId, Amount),
    time_ms: i64,
) {
    let number = state.wallets.next_id();
    let hash = drawn(state.settings.seed, id.0, &format!("act {number}"));
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
    keep(state, id, movement);
}

/// Records an entry.
pub(super) fn keep(state: &mut State, id: AccountId, movement: Movement) {
    let movements = &mut state.wallets.own(id).movements;
    if movements.len() >= ENTRIES_MAX {
        movements.pop_front();
    }
    movements.push_back(movement);
}

/// The entries of the perp account, oldest first
/// (docs/interface/conventions.md#responses-and-types), of one chain or all.
pub(super) fn list(state: &State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let chain = call.params.get("chainId");
    let own = state.wallets.own.get(&id);
    let records: Vec<_> = own
        .iter()
        .flat_map(|own| &own.movements)
        .filter(|movement| movement.surface == Surface::Futures)
        .filter(|movement| chain.is_none_or(|chain| movement.chain_id.to_string() == chain))
        .map(|movement| record(state, movement, call.now_ms))
        .collect();
    Ok(Body::json(&records))
}

/// An entry in the form of the wire.
pub(super) fn record(state: &State, movement: &Movement, now_ms: i64) -> Value {
    let reached = match movement.direction {
        Direction::Deposit => "COMPLETED",
        Direction::Withdraw => state_at(now_ms - movement.time_ms),
    };
    let account_type = match movement.surface {
        Surface::Spot => "spot",
        Surface::Futures => "perp",
    };
    json!({
        "id": movement.id,
        "type": movement.direction.as_str(),
        "asset": state.assets.name(movement.asset),
        "amount": values::text(movement.amount),
        "state": reached,
        "txHash": movement.hash,
        "time": movement.time_ms,
        "chainId": movement.chain_id,
        "accountType": account_type,
    })
}

fn state_at(age_ms: i64) -> &'static str {
    match age_ms / STEP_MS {
        ..=0 => "PROCESSING",
        1 => "SUCCESS",
        _ => "COMPLETED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_withdrawal_passes_through_its_states() {
        let ages = [
            (-5, "PROCESSING"),
            (999, "PROCESSING"),
            (1_000, "SUCCESS"),
            (2_000, "COMPLETED"),
        ];
        for (age, state) in ages {
            assert_eq!(state_at(age), state);
        }
    }
}
