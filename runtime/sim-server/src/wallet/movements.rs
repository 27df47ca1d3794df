//! Deposits and withdrawals of chains (docs/interface/chain.md#history).

use serde_json::{Value, json};
use windvane_model::{Amount, AssetId, Surface};
use windvane_protocol::Assets;

use crate::figures::amount;

/// A withdrawal is PROCESSING for this long, then SUCCESS for the same time, then COMPLETED. The
/// states are known (docs/interface/chain.md#history); their order and duration are chosen here.
const STEP_MS: i64 = 1_000;

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
pub(crate) struct Movement {
    pub(crate) direction: Direction,
    pub(crate) id: String,
    pub(crate) surface: Surface,
    pub(crate) asset: AssetId,
    pub(crate) amount: Amount,
    pub(crate) hash: String,
    pub(crate) time_ms: i64,
    pub(crate) chain_id: i64,
}

impl Movement {
    /// An entry in the form of the wire.
    pub(crate) fn record(&self, assets: &Assets, now_ms: i64) -> Value {
        let reached = match self.direction {
            Direction::Deposit => "COMPLETED",
            Direction::Withdraw => state_at(now_ms - self.time_ms),
        };
        let account_type = match self.surface {
            Surface::Spot => "spot",
            Surface::Futures => "perp",
        };
        json!({
            "id": self.id,
            "type": self.direction.as_str(),
            "asset": assets.name(self.asset),
            "amount": amount(self.amount),
            "state": reached,
            "txHash": self.hash,
            "time": self.time_ms,
            "chainId": self.chain_id,
            "accountType": account_type,
        })
    }
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
