//! Checks of the state after the faults are off.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use serde_json::{Value, json};
use windvane_sim_server::Running;

use crate::client::{Fate, Fates, control};

/// Maximum numbers of accepted orders and of trades per account that the state lists (`CONTROL.md`,
/// The state).
const ACCEPTED_MAX: usize = 10_000;
const TRADES_MAX: usize = 20_000;

fn decimal(value: &Value) -> Decimal {
    value.as_str().unwrap().parse().unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

pub async fn check(running: &Running, fates: &Fates) {
    control(running, "DELETE", "/faults", "").await;
    let (_, state) = control(running, "GET", "/state", "").await;
    assert_eq!(state["faults"], json!({ "held_events": 0, "switches": [] }));
    let mut accepted = BTreeSet::new();
    for account in list(&state["accounts"]) {
        check_positions(account);
        check_ids(account, &mut accepted);
        for order in list(&account["orders"]) {
            if order["open"] == true {
                let action = json!({
                    "act": "cancel", "account": account["account"], "order_id": order["order_id"],
                });
                control(running, "POST", "/act", &action.to_string()).await;
            }
        }
    }
    let complete = list(&state["accounts"]).iter().all(|account| {
        let total = account["accepted"]["total"].as_u64().unwrap();
        total <= ACCEPTED_MAX as u64
    });
    check_fates(fates, &accepted, complete);
    let (_, state) = control(running, "GET", "/state", "").await;
    for account in list(&state["accounts"]) {
        for balance in list(&account["balances"]["spot"]) {
            assert_eq!(balance["locked"], "0", "no order is open: {balance}");
        }
        for balance in list(&account["balances"]["futures"]) {
            assert_eq!(balance["open_order_margin"], "0", "{balance}");
        }
    }
}

/// The sum of the trades equals the positions.
fn check_positions(account: &Value) {
    let trades = list(&account["trades"]);
    assert!(trades.len() <= TRADES_MAX && list(&account["nonces"]).len() <= 100);
    if trades.len() == TRADES_MAX {
        // Older trades have been dropped, so only their number can be checked.
        return eprintln!("{TRADES_MAX} trades are listed: positions are not checked");
    }
    let mut sums: BTreeMap<(String, String), Decimal> = BTreeMap::new();
    let key = |v: &Value| (v["symbol"].to_string(), v["position_side"].to_string());
    for trade in trades.iter().filter(|trade| trade["surface"] == "futures") {
        let qty = decimal(&trade["qty"]);
        let signed = if trade["side"] == "BUY" { qty } else { -qty };
        *sums.entry(key(trade)).or_default() += signed;
    }
    for position in list(&account["positions"]) {
        let sum = sums.remove(&key(position)).unwrap_or_default();
        assert_eq!(sum, decimal(&position["qty"]), "{position}");
    }
    assert!(sums.values().all(Decimal::is_zero), "{sums:?}");
}

/// No client order id of a trader was accepted twice.
fn check_ids(account: &Value, accepted: &mut BTreeSet<String>) {
    let repeated = account["accepted"]["repeated"].as_object().unwrap();
    let mut own = repeated.keys().filter(|id| id.starts_with('t'));
    assert_eq!(own.next(), None, "{repeated:?}");
    for order in list(&account["accepted"]["orders"]) {
        accepted.insert(order["client_order_id"].as_str().unwrap().to_owned());
    }
}

/// The responses to the clients were correct: an accepted order exists, and a refused one does not.
fn check_fates(fates: &Fates, accepted: &BTreeSet<String>, complete: bool) {
    if !complete {
        eprintln!("an account had more than {ACCEPTED_MAX} orders: lost ones cannot be detected");
    }
    let (mut yes, mut no) = (0, 0);
    for (id, fate) in fates.all() {
        match fate {
            Fate::Accepted => {
                yes += 1;
                assert!(!complete || accepted.contains(&id), "{id} is lost");
            }
            Fate::Refused(code) => {
                no += 1;
                assert!(!accepted.contains(&id), "{id} was refused with {code}");
            }
        }
    }
    eprintln!(
        "{yes} orders accepted, {no} refused, {} known",
        accepted.len()
    );
    assert!(yes > 0, "no order was accepted");
}
