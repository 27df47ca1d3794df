//! Daily withdrawal limits (UTC) in USD, per user and for all users: how much is left, and how much
//! of a balance may be withdrawn (docs/interface/chain.md#withdrawal-limits).
//! [`withdrawals`](super::withdrawals) handles signatures and movements.

use rust_decimal::Decimal;
use serde_json::{Map, Value, json};
use windvane_model::{AssetId, Surface};

use super::fees::{CHAINS, usd_price};
use super::values;
use crate::accounts::AccountId;
use crate::request::{Answer, Body, Call, Refusal};
use crate::state::State;

/// Daily limits (UTC) in USD: for one user, and for all users together.
const USER_DAILY_USD: i64 = 1_000_000;
const TOTAL_DAILY_USD: i64 = 10_000_000;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The amount withdrawn on one day.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    day: i64,
    usd: Decimal,
}

impl Spent {
    fn today(&self, now_ms: i64) -> Decimal {
        if self.day == now_ms.div_euclid(DAY_MS) {
            self.usd
        } else {
            Decimal::ZERO
        }
    }

    fn add(&mut self, now_ms: i64, usd: Decimal) {
        self.usd = self.today(now_ms) + usd;
        self.day = now_ms.div_euclid(DAY_MS);
    }
}

/// Refuses a withdrawal of this value if it exceeds a limit.
pub(super) fn check(
    state: &mut State,
    id: AccountId,
    usd: Decimal,
    now_ms: i64,
) -> Result<(), Refusal> {
    let total = state.wallets.spent.today(now_ms) + usd;
    let own = state.wallets.own(id).spent.today(now_ms) + usd;
    if own > Decimal::from(USER_DAILY_USD) || total > Decimal::from(TOTAL_DAILY_USD) {
        let msg = "amount is over the daily limit of withdrawals.";
        return Err(Refusal::new(-1130, msg));
    }
    Ok(())
}

/// Counts a withdrawal.
pub(super) fn spend(state: &mut State, id: AccountId, usd: Decimal, now_ms: i64) {
    state.wallets.spent.add(now_ms, usd);
    state.wallets.own(id).spent.add(now_ms, usd);
}

/// Withdraw info (docs/interface/chain.md#withdrawal-limits): the rest of the limits, and the
/// withdrawable amounts by asset and chain.
pub(super) fn info(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let left = |limit: i64, spent: Spent| {
        let left = Decimal::from(limit) - spent.today(call.now_ms);
        left.max(Decimal::ZERO).normalize().to_string()
    };
    let user_left = left(USER_DAILY_USD, state.wallets.own(id).spent);
    let total_left = left(TOTAL_DAILY_USD, state.wallets.spent);
    let mut balances = Map::new();
    for asset in state.account(id).venue.assets() {
        let name = state.assets.name(asset).to_owned();
        balances.insert(name, asset_info(state, id, asset));
    }
    Ok(Body::json(&json!({
        "userDailyLimit": USER_DAILY_USD.to_string(),
        "userRemainingDailyLimit": user_left,
        "totalDailyLimit": TOTAL_DAILY_USD.to_string(),
        "totalRemainingDailyLimit": total_left,
        "balances": balances,
    })))
}

fn asset_info(state: &State, id: AccountId, asset: AssetId) -> Value {
    let venue = &state.account(id).venue;
    let of = |surface| values::text(venue.withdrawable(surface, asset));
    let (spot, perp) = (of(Surface::Spot), of(Surface::Futures));
    // Limits are in USD, but these figures are in units of the asset.
    let daily = Decimal::from(USER_DAILY_USD) / usd_price(state, asset);
    let daily = daily.round_dp(8).normalize().to_string();
    let chains: Map<String, Value> = CHAINS
        .iter()
        .map(|chain| {
            let record = json!({
                "chainId": chain.id,
                "spotMaxWithdrawAmount": spot,
                "perpMaxWithdrawAmount": perp,
                "chainLimit": daily,
                "withdrawFee": chain.fee_min(state, asset).normalize().to_string(),
            });
            (chain.id.to_string(), record)
        })
        .collect();
    json!({
        "currency": state.assets.name(asset),
        "spotTotalWithdrawAmount": spot,
        "perpTotalWithdrawAmount": perp,
        "dailyLimit": daily,
        "chainBalances": chains,
    })
}
