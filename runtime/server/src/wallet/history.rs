//! What came from and went to chains (spec 3, Deposit/withdraw history entry). Each list is
//! bounded; the oldest entries go first.

use serde_json::json;
use windvane_engine::{Amount, AssetId, Surface};

use super::values;
use crate::http::{Answer, Body, Call};
use crate::state::{AccountId, State};

/// Entries of one account.
const ENTRIES_MAX: usize = 1_000;

/// A withdrawal is PROCESSING this long, then SUCCESS as long again, then COMPLETED (spec 4,
/// section 3, names the states; their order and pace are this venue's).
const STEP_MS: i64 = 1_000;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Movement {
    pub(super) id: String,
    pub(super) surface: Surface,
    pub(super) asset: AssetId,
    pub(super) amount: Amount,
    pub(super) hash: String,
    pub(super) time_ms: i64,
    pub(super) chain_id: i64,
}

/// Keeps a withdrawal.
pub(super) fn keep(state: &mut State, id: AccountId, movement: Movement) {
    let movements = &mut state.wallets.own(id).movements;
    if movements.len() >= ENTRIES_MAX {
        movements.pop_front();
    }
    movements.push_back(movement);
}

/// The entries of the perp account, oldest first (spec 1, conventions, 2), of one chain or all.
pub(super) fn list(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let chain = call.params.get("chainId");
    let movements = state.wallets.own(id).movements.clone();
    let records: Vec<_> = movements
        .iter()
        .filter(|movement| movement.surface == Surface::Futures)
        .filter(|movement| chain.is_none_or(|chain| movement.chain_id.to_string() == chain))
        .map(|movement| {
            json!({
                "id": movement.id,
                "type": "WITHDRAW",
                "asset": state.assets.name(movement.asset),
                "amount": values::text(movement.amount),
                "state": state_at(call.now_ms - movement.time_ms),
                "txHash": movement.hash,
                "time": movement.time_ms,
                "chainId": movement.chain_id,
                "accountType": "perp",
            })
        })
        .collect();
    Ok(Body::json(&records))
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
    fn a_withdrawal_goes_through_its_states() {
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
