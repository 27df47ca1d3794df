//! Positions, leverage and margin (docs/interface/futures.md#leverage).

use serde_json::{Map, Value, json};
use windvane_model::protocol::{Reply, Request};
use windvane_model::{Amount, PositionSide};
use windvane_sim::PositionView;

use super::configuration::done;
use super::position_rows::{listed, notional_max, touched_ms};
use super::venue_request::{instrument, maybe_instrument, perform, refused, settled, unanswered};
use crate::account_id::AccountId;
use crate::accounts::MarginChange;
use crate::choices::figures::entry_price;
use crate::choices::{PositionLag, RiskPositions};
use crate::figures::{amount, fine_price, qty};
use crate::request::{Answer, Body, Call, Refusal, invalid, missing};
use crate::state::State;

/// GET positionRisk: every symbol, held or not.
pub(super) fn position_risk(state: &mut State, call: &Call<'_>) -> Answer {
    let held = state.choices.of::<RiskPositions>() == RiskPositions::Held;
    let views = listed(state, call.account()?, views(state, call)?, held);
    let list: Vec<_> = views
        .iter()
        .map(|view| {
            let rules = state.rules(view.instrument);
            json!({
                "symbol": rules.symbol,
                "positionSide": view.position_side.as_str(),
                "positionAmt": qty(rules, view.qty.0),
                "entryPrice": entry_price(&state.choices, rules, view.entry_price),
                "markPrice": fine_price(view.mark_price),
                "unRealizedProfit": amount(view.unrealized),
                "liquidationPrice": fine_price(view.liquidation_price),
                "leverage": view.leverage.to_string(),
                "maxNotionalValue": notional_max(view),
                "marginType": if view.isolated { "isolated" } else { "cross" },
                "isolatedMargin": isolated_margin(view),
                "isAutoAddMargin": "false",
                "notional": amount(view.notional),
                "isolatedWallet": amount(view.isolated_wallet),
                "updateTime": touched_ms(view),
            })
        })
        .collect();
    Ok(Body::json(&list))
}

fn isolated_margin(view: &PositionView) -> String {
    let margin = if view.isolated {
        view.isolated_wallet + view.unrealized
    } else {
        Amount::ZERO
    };
    amount(margin)
}

fn views(state: &State, call: &Call<'_>) -> Result<Vec<PositionView>, Refusal> {
    let id = call.account()?;
    let wanted = maybe_instrument(state, call)?;
    let moment = state.moment(id, state.behind::<PositionLag>());
    Ok(moment
        .positions
        .into_iter()
        .filter(|view| wanted.is_none_or(|wanted| view.instrument == wanted))
        .collect())
}

/// GET adlQuantile: one object per symbol with a position, or the requested symbol.
pub(super) fn adl_quantile(state: &mut State, call: &Call<'_>) -> Answer {
    let mut list: Vec<Value> = Vec::new();
    let has_symbol = call.params.get("symbol").is_some();
    let mut quantiles: Vec<(windvane_model::InstrumentId, Map<String, Value>)> = Vec::new();
    for view in views(state, call)? {
        if view.qty.0 == 0 && !has_symbol {
            continue;
        }
        let known = quantiles.iter().position(|(of, _)| *of == view.instrument);
        let at = known.unwrap_or_else(|| {
            quantiles.push((view.instrument, Map::new()));
            quantiles.len() - 1
        });
        let side = view.position_side.as_str().to_owned();
        quantiles[at].1.insert(side, json!(view.adl_quantile));
    }
    for (of, sides) in quantiles {
        list.push(json!({ "symbol": state.rules(of).symbol, "adlQuantile": sides }));
    }
    Ok(Body::json(&list))
}

/// GET leverageBracket: an object if `symbol` is sent, otherwise an array.
pub(super) fn leverage_bracket(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let bracket = |instrument: windvane_model::InstrumentId| {
        let brackets: Vec<_> = (1..)
            .zip(state.account(id).venue.brackets(instrument))
            .map(|(n, b): (u32, _)| {
                json!({
                    "bracket": n,
                    "initialLeverage": b.initial_leverage,
                    "notionalCap": whole(b.notional_cap),
                    "notionalFloor": whole(b.notional_floor),
                    "maintMarginRatio": number(&b.maintenance_rate.to_string()),
                    "cum": number(&amount(b.cum)),
                })
            })
            .collect();
        json!({ "symbol": state.rules(instrument).symbol, "brackets": brackets })
    };
    if let Some(instrument) = maybe_instrument(state, call)? {
        return Ok(Body::json(&bracket(instrument)));
    }
    let futures = state.board.of(windvane_model::Surface::Futures);
    let list: Vec<_> = futures.map(|symbol| bracket(symbol.id)).collect();
    Ok(Body::json(&list))
}

/// A cap or floor as a JSON number. No cap is the largest 64-bit integer.
fn whole(value: Amount) -> Value {
    if value == Amount(i128::MAX) {
        json!(i64::MAX)
    } else {
        number(&amount(value))
    }
}

/// Decimal text as a JSON number.
fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

/// GET remainingOpenableNotionalValue: the remaining part of the leverage's bracket.
pub(super) fn remaining_openable(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let instrument = instrument(state, call, call.params)?;
    let leverage = leverage(call)?;
    let venue = &state.account(id).venue;
    let brackets = venue.brackets(instrument);
    let allowed = brackets.iter().filter(|b| b.initial_leverage >= leverage);
    let cap = allowed.map(|b| b.notional_cap).max();
    let cap = cap.ok_or_else(|| Refusal::new(-4028, "Leverage is not valid."))?;
    let views = venue.position_views();
    let used: Amount = views
        .filter(|view| view.instrument == instrument)
        .map(|view| view.notional.abs())
        .sum();
    let balance = venue.futures_balance(state.rules(instrument).quote);
    let by_margin = Amount(balance.available.0.saturating_mul(i128::from(leverage)));
    let left = (cap - used).max(Amount::ZERO).min(by_margin);
    Ok(Body::json(
        &json!({ "remainingOpenableNotionalValue": amount(left) }),
    ))
}

fn leverage(call: &Call<'_>) -> Result<u32, Refusal> {
    let leverage = call.params.integer("leverage")?;
    let leverage = leverage.ok_or_else(|| missing("leverage"))?;
    let bad = |_| Refusal::new(-4028, "Leverage is not valid.");
    u32::try_from(leverage).map_err(bad)
}

/// POST leverage.
pub(super) fn change_leverage(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let instrument = instrument(state, call, call.params)?;
    let request = Request::SetLeverage {
        instrument,
        leverage: leverage(call)?,
    };
    let leverage = match perform(state, call, id, &request).into_iter().next() {
        Some(Reply::Leverage { outcome, .. }) => settled(outcome)?,
        _ => return Err(unanswered()),
    };
    let view = state.account(id).venue.position_views();
    let view = view.into_iter().find(|view| view.instrument == instrument);
    Ok(Body::json(&json!({
        "leverage": leverage,
        "maxNotionalValue": view.as_ref().map(notional_max),
        "symbol": state.rules(instrument).symbol,
    })))
}

/// POST marginType.
pub(super) fn change_margin_type(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let instrument = instrument(state, call, call.params)?;
    let isolated = call.params.required("marginType")? == "ISOLATED";
    let venue = &mut state.account_mut(id).venue;
    let changed = venue.set_margin_type(call.now, instrument, isolated);
    changed.map_err(refused)?;
    Ok(done())
}

/// POST positionMargin: 1 adds, 2 reduces.
pub(super) fn change_margin(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let instrument = instrument(state, call, call.params)?;
    let side = margin_side(state, call, id)?;
    let kind = call
        .params
        .integer("type")?
        .ok_or_else(|| missing("type"))?;
    let text = call.params.required("amount")?;
    let moved = call
        .params
        .decimal("amount")?
        .and_then(Amount::from_decimal);
    let moved = moved.ok_or_else(|| invalid("amount"))?;
    let account = state.account_mut(id);
    let add = kind == 1;
    let changed = account
        .venue
        .change_position_margin(call.now, instrument, side, moved, add);
    changed.map_err(refused)?;
    let asset = state.rules(instrument).quote;
    state.account_mut(id).history.keep_margin(MarginChange {
        instrument,
        position_side: side,
        amount: moved,
        asset,
        kind,
        time: call.now,
    });
    let msg = if add {
        "Successfully modify position margin."
    } else {
        "Successfully reduce position margin."
    };
    Ok(Body::json(&json!({
        "amount": number(text), "code": 200, "msg": msg, "type": kind,
    })))
}

/// Reads `positionSide`. It is BOTH in one-way mode, and must be LONG or SHORT in hedge mode
/// (-4061).
fn margin_side(state: &State, call: &Call<'_>, id: AccountId) -> Result<PositionSide, Refusal> {
    let sent = call.params.get("positionSide");
    let side = sent
        .and_then(PositionSide::from_text)
        .unwrap_or(PositionSide::Both);
    if (side == PositionSide::Both) == state.account(id).venue.hedge_mode() {
        let msg = "Order's position side does not match user's setting.";
        return Err(Refusal::new(-4061, msg));
    }
    Ok(side)
}
