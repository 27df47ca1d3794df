//! The own state equals the venue's at rest: the run is ready, or was paused to rest. No outcome is
//! unknown, and orders, positions and balances equal the venue's.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use serde_json::Value;

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, Rest, Terms, View, WitnessEvent};

/// The rule.
#[derive(Debug)]
pub struct State {
    terms: Terms,
    instruments: BTreeSet<String>,
    sent: BTreeSet<String>,
}

impl State {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        Self {
            instruments: terms.instruments.iter().cloned().collect(),
            terms: terms.clone(),
            sent: BTreeSet::new(),
        }
    }

    /// Own open orders by id: the venue's order id, and the executed quantity.
    fn orders_of(&self, account: &Value) -> BTreeMap<String, (i64, Decimal)> {
        let orders = list(account, "orders").filter(|order| order["open"] == true);
        let read = |order: &Value| {
            let id = wire::text(order, "client_order_id")?;
            let number = order.get("order_id")?.as_i64()?;
            let executed = wire::number(order, "executed_qty")?;
            Some((id, (number, executed)))
        };
        orders
            .filter_map(read)
            .filter(|(id, _)| self.sent.contains(id))
            .collect()
    }

    fn positions_of(&self, account: &Value) -> BTreeMap<(String, String), Decimal> {
        let read = |position: &Value| {
            let instrument = format!("futures:{}", wire::text(position, "symbol")?);
            let side = wire::text(position, "position_side")?;
            Some(((instrument, side), wire::number(position, "qty")?))
        };
        list(account, "positions")
            .filter_map(read)
            .filter(|((instrument, _), qty)| {
                self.instruments.contains(instrument) && !qty.is_zero()
            })
            .collect()
    }
}

impl Check for State {
    fn rule(&self) -> &'static str {
        "own state equals the venue's at rest"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let WitnessEvent::Sent(request) = &entry.seen
            && let RequestKind::Place(orders) = wire::request_kind(request)
        {
            self.sent.extend(orders.into_iter().map(|order| order.id));
        }
        Ok(())
    }

    fn at_rest(&mut self, rest: &Rest) -> Result<(), String> {
        let view = &rest.view;
        let Some(account) = rest.truth.pointer("/accounts/0") else {
            return Err("the venue's state has no account".to_owned());
        };
        if !self.terms.is_at_rest(view) {
            return Err(format!(
                "the run is {}: {:?}",
                view.state, view.degraded_reasons
            ));
        }
        if let Some(order) = view.orders.iter().find(|order| order.state == "UNKNOWN") {
            return Err(format!(
                "the outcome of {} is unknown",
                order.client_order_id
            ));
        }
        same("orders", &self.orders_of(account), &own_orders(view))?;
        same(
            "positions",
            &self.positions_of(account),
            &own_positions(view),
        )?;
        let own = own_balances(view);
        let mut venue = balances_of(account);
        venue.retain(|asset, _| own.contains_key(asset));
        let own = own.into_iter().filter(|(_, total)| !total.is_zero());
        same("balances", &venue, &own.collect())
    }
}

/// The first difference between the venue's state and the own state.
fn same<K, V>(what: &str, venue: &BTreeMap<K, V>, own: &BTreeMap<K, V>) -> Result<(), String>
where
    K: Ord + std::fmt::Debug,
    V: PartialEq + std::fmt::Debug,
{
    for (key, value) in venue {
        match own.get(key) {
            None => {
                return Err(format!(
                    "{what}: the venue has {key:?} {value:?}, the runtime does not"
                ));
            }
            Some(ours) if ours != value => {
                return Err(format!(
                    "{what}: {key:?} is {value:?} at the venue, but {ours:?} in the runtime"
                ));
            }
            Some(_) => {}
        }
    }
    match own.iter().find(|(key, _)| !venue.contains_key(key)) {
        Some((key, value)) => Err(format!(
            "{what}: the runtime has {key:?} {value:?}, the venue does not"
        )),
        None => Ok(()),
    }
}

fn list<'a>(record: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    let list = record.get(field).and_then(Value::as_array);
    list.into_iter().flatten()
}

fn own_orders(view: &View) -> BTreeMap<String, (i64, Decimal)> {
    let orders = view.orders.iter().filter(|order| !order.held);
    let read = |order: &crate::witness::OrderView| {
        let executed = wire::decimal(&order.executed_qty);
        let number = order.order_id.unwrap_or(-1);
        (order.client_order_id.clone(), (number, executed))
    };
    orders.map(read).collect()
}

fn own_positions(view: &View) -> BTreeMap<(String, String), Decimal> {
    let of_futures = |p: &&crate::witness::PositionView| p.instrument.starts_with("futures:");
    let positions = view.positions.iter().filter(of_futures);
    let read = |p: &crate::witness::PositionView| {
        let key = (p.instrument.clone(), p.position_side.clone());
        (key, wire::decimal(&p.qty))
    };
    positions
        .map(read)
        .filter(|(_, qty)| !qty.is_zero())
        .collect()
}

fn own_balances(view: &View) -> BTreeMap<(String, String), Decimal> {
    let read = |balance: &crate::witness::BalanceView| {
        let key = (balance.surface.clone(), balance.asset.clone());
        (key, wire::decimal(&balance.total))
    };
    view.balances.iter().map(read).collect()
}

fn balances_of(account: &Value) -> BTreeMap<(String, String), Decimal> {
    let mut balances = BTreeMap::new();
    let Some(reported) = account.get("balances") else {
        return balances;
    };
    for (surface, fields) in [
        ("spot", ["free", "locked"].as_slice()),
        ("futures", &["wallet"]),
    ] {
        for balance in list(reported, surface) {
            let asset = wire::text(balance, "asset").unwrap_or_default();
            let total = fields
                .iter()
                .filter_map(|field| wire::number(balance, field))
                .sum();
            balances.insert((surface.to_owned(), asset), total);
        }
    }
    balances.retain(|_, total: &mut Decimal| !total.is_zero());
    balances
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::log::{Log, at_rest, terms};
    use crate::witness::{BalanceView, OrderView, PositionView};

    fn truth() -> Value {
        json!({"accounts": [{
            "orders": [
                {"client_order_id": "mm.a.1", "order_id": 7, "executed_qty": "0.50", "open": true},
                {"client_order_id": "mm.a.0", "order_id": 6, "executed_qty": "1", "open": false},
                {"client_order_id": "theirs", "order_id": 8, "executed_qty": "0", "open": true},
            ],
            "positions": [{"symbol": "BTCUSDT", "position_side": "BOTH", "qty": "0.5"}],
            "balances": {
                "spot": [{"asset": "USDT", "free": "1", "locked": "2.5"}],
                "futures": [{"asset": "USDT", "wallet": "100"}],
            },
        }]})
    }

    fn view() -> View {
        let balance = |surface: &str, total: &str| BalanceView {
            surface: surface.to_owned(),
            asset: "USDT".to_owned(),
            total: total.to_owned(),
        };
        View {
            state: "ready".to_owned(),
            orders: vec![OrderView {
                client_order_id: "mm.a.1".to_owned(),
                order_id: Some(7),
                executed_qty: "0.5".to_owned(),
                state: "NEW".to_owned(),
                ..OrderView::default()
            }],
            positions: vec![PositionView {
                instrument: "futures:BTCUSDT".to_owned(),
                position_side: "BOTH".to_owned(),
                qty: "0.50".to_owned(),
                ..PositionView::default()
            }],
            balances: vec![balance("spot", "3.5"), balance("futures", "100.0")],
            ..View::default()
        }
    }

    fn judged(truth: Value, view: View) -> Result<(), String> {
        let log = Log::new().place("mm.a.0").place("mm.a.1");
        at_rest(State::new(&terms()), &log, truth, view)
    }

    #[test]
    fn equal_states_with_different_spelling_are_equal() {
        assert_eq!(judged(truth(), view()), Ok(()));
    }

    #[test]
    fn every_difference_is_found() {
        let changes: [fn(&mut View); 6] = [
            |view| view.orders.clear(),
            |view| view.orders[0].executed_qty = "0.4".to_owned(),
            |view| view.orders[0].state = "UNKNOWN".to_owned(),
            |view| view.positions[0].qty = "-0.5".to_owned(),
            |view| view.balances[1].total = "100.01".to_owned(),
            |view| view.state = "degraded".to_owned(),
        ];
        for change in changes {
            let mut view = view();
            change(&mut view);
            assert!(judged(truth(), view.clone()).is_err(), "{view:?}");
        }
        let mut flat = truth();
        flat["accounts"][0]["positions"] = json!([]);
        assert!(judged(flat, view()).is_err());
    }
}
