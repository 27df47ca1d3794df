//! `ORDER_TRADE_UPDATE`, `ACCOUNT_UPDATE` and `MARGIN_CALL` (spec 2, Events).

use serde_json::{Value, json};
use windvane_engine::{Amount, OrderType, Time, WorkingType};
use windvane_sim::{Cause, FuturesBalance, OrderEvent, PositionView};

use super::average;
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
        "ap": average(order),
        "sp": price(rules, update.stop_price.0),
        "x": update.execution.as_str(),
        "X": update.status.as_str(),
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
        "rp": last(fill.and_then(|f| f.realized_pnl).map(amount)),
    });
    if let Some(fill) = fill.filter(|fill| fill.fee != Amount::ZERO) {
        record["N"] = json!(state.assets.name(fill.fee_asset));
        record["n"] = json!(amount(fill.fee));
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

pub(super) fn account(
    state: &State,
    (cause, time, now_ms): (Cause, Time, i64),
    balances: &[(FuturesBalance, Amount)],
    positions: &[PositionView],
) -> Value {
    let balances: Vec<_> = balances
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
    let positions: Vec<_> = positions
        .iter()
        .map(|position| {
            let rules = state.rules(position.instrument);
            json!({
                "s": rules.symbol,
                "pa": qty(rules, position.qty.0),
                "ep": fine_price(position.entry_price),
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
        "a": { "m": cause.as_str(), "B": balances, "P": positions },
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
