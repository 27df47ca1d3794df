//! `executionReport` and `outboundAccountPosition` (docs/interface/user-stream.md#spot-events).

use serde_json::{Value, json};
use windvane_model::Time;
use windvane_sim::{Cause, OrderEvent, SpotBalance};

use crate::account_id::AccountId;
use crate::choices::EventBalances;
use crate::choices::figures::{average_price, fee};
use crate::figures::{amount, price, qty};
use crate::state::State;

pub(super) fn order(state: &State, event: &OrderEvent, now_ms: i64) -> Value {
    let (update, order) = (&event.update, &event.order);
    let rules = state.rules(update.instrument);
    let fill = update.fill;
    let last = |value: Option<String>| value.unwrap_or_else(|| "0".to_owned());
    json!({
        "e": "executionReport",
        "E": now_ms,
        "s": rules.symbol,
        "c": update.client_order_id.as_str(),
        "S": update.side.as_str(),
        "o": order.order_type.as_str(),
        "f": update.time_in_force.as_str(),
        "q": qty(rules, order.qty.0),
        "p": price(rules, update.price.0),
        "ap": average_price(&state.choices, rules, order.average_price),
        "P": price(rules, update.stop_price.0),
        "x": update.execution.as_str(),
        "X": update.status.as_str(),
        "i": update.order_id.0,
        "l": last(fill.map(|f| qty(rules, f.qty.0))),
        "z": qty(rules, update.executed_qty.0),
        "L": last(fill.map(|f| price(rules, f.price.0))),
        "n": last(fill.map(|f| fee(&state.choices, f.fee))),
        "N": fill.map(|f| state.assets.name(f.fee_asset)),
        "T": update.transaction_time.millis(),
        "t": fill.map_or(-1, |f| f.trade_id.0),
        "m": fill.is_some_and(|f| f.maker),
        "ot": order.terms.order_type.as_str(),
        "O": order.created.millis(),
        "Z": amount(order.cum_quote),
        "Y": last(fill.map(|f| amount(f.quote_qty))),
        "Q": amount(order.terms.quote_qty.unwrap_or_default()),
    })
}

pub(super) fn account(
    state: &State,
    id: AccountId,
    cause: Cause,
    balances: &[SpotBalance],
    time: Time,
    now_ms: i64,
) -> Value {
    let mut balances = balances.to_vec();
    if state.choices.of::<EventBalances>() == EventBalances::All {
        let venue = &state.account(id).venue;
        let listed: Vec<_> = balances.iter().map(|balance| balance.asset).collect();
        let others = venue.assets().filter(|asset| !listed.contains(asset));
        balances.extend(others.map(|asset| venue.spot_balance(asset)));
    }
    let balances: Vec<_> = balances
        .iter()
        .map(|balance| {
            json!({
                "a": state.assets.name(balance.asset),
                "f": amount(balance.free),
                "l": amount(balance.locked),
            })
        })
        .collect();
    json!({
        "e": "outboundAccountPosition",
        "E": now_ms,
        "T": time.millis(),
        "m": cause.as_str(),
        "B": balances,
    })
}
