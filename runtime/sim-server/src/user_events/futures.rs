//! `ORDER_TRADE_UPDATE`, `ACCOUNT_UPDATE` and `MARGIN_CALL`
//! (docs/interface/user-stream.md#futures-events).

use serde_json::{Value, json};
use windvane_model::{Amount, ExecutionType, OrderStatus, OrderType, Time, WorkingType};
use windvane_sim::{FuturesBalance, OrderEvent, PositionView};

use crate::account_id::AccountId;
use crate::choices::figures::{average_price, entry_price, fee, profit};
use crate::choices::{
    EventBalances, EventPositions, FeeInEvent, FlatPosition, LiquidationExecution,
    LiquidationStatus, is_forced,
};
use crate::figures::{amount, fine_price, percent, price, qty};
use crate::state::State;

pub(super) fn order(state: &State, event: &OrderEvent, now_ms: i64) -> Value {
    let (update, order) = (&event.update, &event.order);
    let rules = state.rules(update.instrument);
    let terms = &order.terms;
    let fill = update.fill;
    let last = |value: Option<String>| value.unwrap_or_else(|| "0".to_owned());
    let working = terms.working_type.unwrap_or(WorkingType::ContractPrice);
    let mut record = json!({
        "s": rules.symbol,
        "c": update.client_order_id.as_str(),
        "S": update.side.as_str(),
        "o": order.order_type.as_str(),
        "f": update.time_in_force.as_str(),
        "q": qty(rules, order.qty.0),
        "p": price(rules, update.price.0),
        "ap": average_price(&state.choices, rules, order.average_price),
        "sp": price(rules, update.stop_price.0),
        "x": execution(state, event),
        "X": status(state, event),
        "i": update.order_id.0,
        "l": last(fill.map(|f| qty(rules, f.qty.0))),
        "z": qty(rules, update.executed_qty.0),
        "L": last(fill.map(|f| price(rules, f.price.0))),
        "T": update.transaction_time.millis(),
        "t": fill.map_or(0, |f| f.trade_id.0),
        "b": amount(event.open_notional[0]),
        "a": amount(event.open_notional[1]),
        "m": fill.is_some_and(|f| f.maker),
        "R": update.reduce_only,
        "wt": working.as_str(),
        "ot": terms.order_type.as_str(),
        "ps": update.position_side.as_str(),
        "rp": last(fill.and_then(|f| f.realized_pnl).map(|rp| profit(&state.choices, rp))),
    });
    let charged = state.choices.of::<FeeInEvent>() == FeeInEvent::Sent;
    if let Some(fill) = fill.filter(|fill| charged && fill.fee != Amount::ZERO) {
        record["N"] = json!(state.assets.name(fill.fee_asset));
        record["n"] = json!(fee(&state.choices, fill.fee));
    }
    if terms.order_type.is_conditional() {
        record["cp"] = json!(terms.close_position);
    }
    if terms.order_type == OrderType::TrailingStopMarket {
        let activation = order.activation_price.unwrap_or_default();
        record["AP"] = json!(price(rules, activation.0));
        record["cr"] = json!(percent(terms.callback_ppm.unwrap_or_default()));
    }
    json!({
        "e": "ORDER_TRADE_UPDATE",
        "E": now_ms,
        "T": update.transaction_time.millis(),
        "o": record,
    })
}

/// `x`.
fn execution(state: &State, event: &OrderEvent) -> &'static str {
    let execution = event.update.execution;
    let as_trade = state.choices.of::<LiquidationExecution>() == LiquidationExecution::Trade;
    if execution == ExecutionType::Calculated && as_trade {
        return ExecutionType::Trade.as_str();
    }
    execution.as_str()
}

/// `X`.
fn status(state: &State, event: &OrderEvent) -> &'static str {
    let special = state.choices.of::<LiquidationStatus>() == LiquidationStatus::Special;
    if special && is_forced(event) && event.update.fill.is_some() {
        let adl = event.update.client_order_id.as_str().starts_with("adl");
        let status = if adl {
            OrderStatus::NewAdl
        } else {
            OrderStatus::NewInsurance
        };
        return status.as_str();
    }
    event.update.status.as_str()
}

/// The balances that an account event lists.
fn listed_balances(
    state: &State,
    id: AccountId,
    changed: &[(FuturesBalance, Amount)],
) -> Vec<(FuturesBalance, Amount)> {
    let mut listed = changed.to_vec();
    if state.choices.of::<EventBalances>() == EventBalances::All {
        let venue = &state.account(id).venue;
        let all = venue.assets().map(|asset| venue.futures_balance(asset));
        let others =
            all.filter(|balance| changed.iter().all(|(own, _)| own.asset != balance.asset));
        listed.extend(others.map(|balance| (balance, Amount::ZERO)));
    }
    listed
}

/// The positions that an account event lists.
fn listed_positions(state: &State, id: AccountId, touched: &[PositionView]) -> Vec<PositionView> {
    let mut listed = touched.to_vec();
    if state.choices.of::<EventPositions>() == EventPositions::All && !touched.is_empty() {
        let key = |view: &PositionView| (view.instrument, view.position_side);
        let views = state.account(id).venue.position_views();
        let others = views.filter(|view| touched.iter().all(|own| key(own) != key(view)));
        listed.extend(others.filter(|view| view.qty.0 != 0));
    }
    if state.choices.of::<FlatPosition>() == FlatPosition::Absent {
        listed.retain(|view| view.qty.0 != 0 || view.isolated_wallet != Amount::ZERO);
    }
    listed
}

pub(super) fn account(
    state: &State,
    id: AccountId,
    (reason, time, now_ms): (&str, Time, i64),
    balances: &[(FuturesBalance, Amount)],
    positions: &[PositionView],
) -> Value {
    let balances: Vec<_> = listed_balances(state, id, balances)
        .iter()
        .map(|(balance, change)| {
            json!({
                "a": state.assets.name(balance.asset),
                "wb": amount(balance.wallet),
                "cw": amount(balance.cross_wallet),
                "bc": amount(*change),
            })
        })
        .collect();
    let positions: Vec<_> = listed_positions(state, id, positions)
        .iter()
        .map(|position| {
            let rules = state.rules(position.instrument);
            json!({
                "s": rules.symbol,
                "pa": qty(rules, position.qty.0),
                "ep": entry_price(&state.choices, rules, position.entry_price),
                "cr": amount(position.realized),
                "up": amount(position.unrealized),
                "mt": if position.isolated { "isolated" } else { "cross" },
                "iw": amount(position.isolated_wallet),
                "ps": position.position_side.as_str(),
            })
        })
        .collect();
    json!({
        "e": "ACCOUNT_UPDATE",
        "E": now_ms,
        "T": time.millis(),
        "a": { "m": reason, "B": balances, "P": positions },
    })
}

pub(super) fn margin_call(
    state: &State,
    cross_wallet: Option<Amount>,
    positions: &[PositionView],
    now_ms: i64,
) -> Value {
    let called: Vec<_> = positions
        .iter()
        .filter(|position| position.qty.0 != 0)
        .map(|position| {
            let rules = state.rules(position.instrument);
            json!({
                "s": rules.symbol,
                "ps": position.position_side.as_str(),
                "pa": qty(rules, position.qty.0),
                "mt": if position.isolated { "ISOLATED" } else { "CROSSED" },
                "iw": amount(position.isolated_wallet),
                "mp": fine_price(position.mark_price),
                "up": amount(position.unrealized),
                "mm": amount(position.maintenance_margin),
            })
        })
        .collect();
    let mut record = json!({ "e": "MARGIN_CALL", "E": now_ms, "p": called });
    if let Some(wallet) = cross_wallet {
        record["cw"] = json!(amount(wallet));
    }
    record
}
