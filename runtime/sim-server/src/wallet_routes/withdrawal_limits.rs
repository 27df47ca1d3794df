//! How much is left of the daily withdrawal limits, and how much of a balance may be withdrawn
//! (docs/interface/chain.md#withdrawal-limits).

use rust_decimal::Decimal;
use serde_json::{Map, Value, json};
use windvane_model::{AssetId, Surface};

use crate::account_id::AccountId;
use crate::figures::amount;
use crate::request::{Answer, Body, Call};
use crate::state::State;
use crate::wallet::{CHAINS, Spent, TOTAL_DAILY_USD, USER_DAILY_USD, usd_price};

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
    let of = |surface| amount(venue.withdrawable(surface, asset));
    let (spot, perp) = (of(Surface::Spot), of(Surface::Futures));
    // Limits are in USD, but these figures are in units of the asset.
    let daily = Decimal::from(USER_DAILY_USD) / usd_price(&state.board, asset);
    let daily = daily.round_dp(8).normalize().to_string();
    let chains: Map<String, Value> = CHAINS
        .iter()
        .map(|chain| {
            let record = json!({
                "chainId": chain.id,
                "spotMaxWithdrawAmount": spot,
                "perpMaxWithdrawAmount": perp,
                "chainLimit": daily,
                "withdrawFee": chain.fee_min(&state.board, asset).normalize().to_string(),
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
