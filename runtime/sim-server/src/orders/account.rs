//! Balances and account information.

use serde_json::{Value, json};
use windvane_model::{Amount, AssetId, Surface};
use windvane_sim::{FuturesBalance, PositionView};

use super::position_rows::{listed, notional_max, touched_ms};
use super::venue_request::{instrument, surface};
use crate::account_id::AccountId;
use crate::accounts::{MAKER_FEE, Moment, TAKER_FEE};
use crate::choices::figures::entry_price;
use crate::choices::{AccountAssets, AccountLag, AccountPositions, PositionLag};
use crate::figures::{amount, qty};
use crate::request::{Answer, Body, Call};
use crate::state::State;

/// Account information (docs/interface/account.md#spot-account,
/// docs/interface/account.md#futures-account).
pub(super) fn account(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let record = match surface(call) {
        Surface::Spot => spot(state, id),
        Surface::Futures => futures(state, id),
    };
    Ok(Body::json(&record))
}

fn spot(state: &State, id: AccountId) -> Value {
    let moment = state.moment(id, state.behind::<AccountLag>());
    let held = state.choices.of::<AccountAssets>() == AccountAssets::Held;
    let balances: Vec<_> = moment
        .spot
        .iter()
        .filter(|balance| !held || balance.free + balance.locked != Amount::ZERO)
        .map(|balance| {
            json!({
                "asset": state.assets.name(balance.asset),
                "free": amount(balance.free),
                "locked": amount(balance.locked),
            })
        })
        .collect();
    json!({
        "feeTier": 0,
        "canTrade": true,
        "canDeposit": true,
        "canWithdraw": true,
        "canBurnAsset": true,
        "updateTime": state.account(id).history.changed_ms(Surface::Spot),
        "balances": balances,
    })
}

/// GET balance (docs/interface/account.md#futures-balances).
pub(super) fn balance(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let alias: String = hex::encode(state.account(id).user)
        .chars()
        .take(8)
        .collect();
    let history = &state.account(id).history;
    let moment = state.moment(id, state.behind::<PositionLag>());
    let list: Vec<_> = futures_balances(state, &moment)
        .iter()
        .map(|balance| {
            json!({
                "accountAlias": alias,
                "asset": state.assets.name(balance.asset),
                "balance": amount(balance.wallet),
                "crossWalletBalance": amount(balance.cross_wallet),
                "crossUnPnl": amount(balance.cross_unrealized),
                "availableBalance": amount(balance.available),
                "maxWithdrawAmount": amount(balance.max_withdraw),
                "marginAvailable": true,
                "updateTime": history.asset_changed_ms(Surface::Futures, balance.asset),
            })
        })
        .collect();
    Ok(Body::json(&list))
}

/// The assets of the futures account: the margin assets, and any other assets that it has.
fn futures_balances(state: &State, moment: &Moment) -> Vec<FuturesBalance> {
    let held = state.choices.of::<AccountAssets>() == AccountAssets::Held;
    let margins = |asset: AssetId| {
        let mut futures = state.board.of(Surface::Futures);
        futures.any(|symbol| symbol.instrument.quote == asset)
    };
    let all = moment.futures.iter().copied();
    all.filter(|balance| (margins(balance.asset) && !held) || balance.wallet != Amount::ZERO)
        .collect()
}

fn futures(state: &State, id: AccountId) -> Value {
    let moment = state.moment(id, state.behind::<AccountLag>());
    let balances = futures_balances(state, &moment);
    let total =
        |part: fn(&FuturesBalance) -> Amount| amount(balances.iter().map(part).sum::<Amount>());
    let history = &state.account(id).history;
    let assets: Vec<_> = balances
        .iter()
        .map(|b| {
            asset(
                state,
                b,
                history.asset_changed_ms(Surface::Futures, b.asset),
            )
        })
        .collect();
    let held = state.choices.of::<AccountPositions>() == AccountPositions::Held;
    let views = listed(state, id, moment.positions, held);
    let positions: Vec<_> = views.iter().map(|view| position(state, view)).collect();
    json!({
        "feeTier": 0,
        "canTrade": true,
        "canDeposit": true,
        "canWithdraw": true,
        "updateTime": history.changed_ms(Surface::Futures),
        "totalInitialMargin": total(|b| b.position_margin + b.open_order_margin),
        "totalMaintMargin": total(|b| b.maintenance_margin),
        "totalWalletBalance": total(|b| b.wallet),
        "totalUnrealizedProfit": total(|b| b.unrealized),
        "totalMarginBalance": total(|b| b.wallet + b.unrealized),
        "totalPositionInitialMargin": total(|b| b.position_margin),
        "totalOpenOrderInitialMargin": total(|b| b.open_order_margin),
        "totalCrossWalletBalance": total(|b| b.cross_wallet),
        "totalCrossUnPnl": total(|b| b.cross_unrealized),
        "availableBalance": total(|b| b.available),
        "maxWithdrawAmount": total(|b| b.max_withdraw),
        "assets": assets,
        "positions": positions,
    })
}

fn asset(state: &State, balance: &FuturesBalance, changed_ms: i64) -> Value {
    json!({
        "asset": state.assets.name(balance.asset),
        "walletBalance": amount(balance.wallet),
        "unrealizedProfit": amount(balance.unrealized),
        "marginBalance": amount(balance.wallet + balance.unrealized),
        "maintMargin": amount(balance.maintenance_margin),
        "initialMargin": amount(balance.position_margin + balance.open_order_margin),
        "positionInitialMargin": amount(balance.position_margin),
        "openOrderInitialMargin": amount(balance.open_order_margin),
        "crossWalletBalance": amount(balance.cross_wallet),
        "crossUnPnl": amount(balance.cross_unrealized),
        "availableBalance": amount(balance.available),
        "maxWithdrawAmount": amount(balance.max_withdraw),
        "marginAvailable": true,
        "updateTime": changed_ms,
    })
}

fn position(state: &State, view: &PositionView) -> Value {
    let rules = state.rules(view.instrument);
    json!({
        "symbol": rules.symbol,
        "initialMargin": amount(view.position_margin + view.open_order_margin),
        "maintMargin": amount(view.maintenance_margin),
        "unrealizedProfit": amount(view.unrealized),
        "positionInitialMargin": amount(view.position_margin),
        "openOrderInitialMargin": amount(view.open_order_margin),
        "leverage": view.leverage.to_string(),
        "isolated": view.isolated,
        "entryPrice": entry_price(&state.choices, rules, view.entry_price),
        "maxNotional": notional_max(view),
        "positionSide": view.position_side.as_str(),
        "positionAmt": qty(rules, view.qty.0),
        "notional": amount(view.notional),
        "isolatedWallet": amount(view.isolated_wallet),
        "updateTime": touched_ms(view),
    })
}

/// Symbol fees (docs/interface/account.md#symbol-fees).
pub(super) fn commission(state: &mut State, call: &Call<'_>) -> Answer {
    let instrument = instrument(state, call, call.params)?;
    Ok(Body::json(&json!({
        "symbol": state.rules(instrument).symbol,
        "makerCommissionRate": MAKER_FEE.to_string(),
        "takerCommissionRate": TAKER_FEE.to_string(),
    })))
}
