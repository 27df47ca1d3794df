//! Whether an instance and its venue agree on orders, positions and balances, to the last digit.
//! This code reads the state that each reports and shares no logic with either.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::admin::Admin;
use crate::venue::Venue;

/// Time between two looks; at this rate they cause no load.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The facts to compare, with names that sort.
type Facts = BTreeMap<String, String>;

/// The state that an instance reports about itself.
///
/// # Panics
/// If the instance does not respond.
pub fn own(admin: &Admin) -> Value {
    json!({
        "orders": admin.must_show("/api/orders"),
        "positions": admin.must_show("/api/positions"),
        "balances": admin.must_show("/api/balances"),
    })
}

/// The differences: one line for each fact that only one of them has. `account` comes from `GET
/// /state`.
pub fn differences(own: &Value, account: &Value) -> Vec<String> {
    let (ours, venues) = (facts_of_own(own), facts_of_venue(account));
    let keys: BTreeSet<_> = ours.keys().chain(venues.keys()).collect();
    let differing = keys
        .into_iter()
        .filter(|key| !agree(ours.get(*key), venues.get(*key)));
    let printed = |fact: Option<&String>| fact.map_or("nothing", String::as_str).to_owned();
    differing
        .map(|key| {
            let (ours, venues) = (printed(ours.get(key)), printed(venues.get(key)));
            format!("{key}: {ours} here, {venues} at the venue")
        })
        .collect()
}

/// Whether two facts are equal. A venue may round an entry price to the tick; fills are not
/// rounded.
fn agree(ours: Option<&String>, venues: Option<&String>) -> bool {
    let position = |fact: Option<&String>| {
        let (qty, entry) = fact?.split_once(" at ")?;
        Some((qty.to_owned(), entry.parse::<Decimal>().ok()?))
    };
    match (position(ours), position(venues)) {
        (Some((qty, entry)), Some((venues_qty, venues_entry))) => {
            let rounding = venues_entry * Decimal::new(1, 6);
            qty == venues_qty && (entry - venues_entry).abs() <= rounding
        }
        _ => ours == venues,
    }
}

/// Errors that are not differences: client order ids that were accepted twice, and strategies whose
/// sub-positions do not add up to the account's position.
pub fn wrongs(own: &Value, account: &Value) -> Vec<String> {
    let mut wrongs = Vec::new();
    let repeated = &account["accepted"]["repeated"];
    if *repeated != json!({}) {
        wrongs.push(format!("client order ids used again: {repeated}"));
    }
    let mut ids = BTreeSet::new();
    for order in rows(&account["accepted"]["orders"]) {
        let id = text(order, "client_order_id");
        let key = (text(order, "surface"), id.clone());
        if !ids.insert(key) {
            wrongs.push(format!("{id} was accepted twice"));
        }
    }
    let mut sums: BTreeMap<String, Decimal> = BTreeMap::new();
    for row in rows(&own["positions"]) {
        let sign = if row["strategy"].is_null() {
            Decimal::ONE
        } else {
            Decimal::NEGATIVE_ONE
        };
        *sums.entry(text(row, "instrument")).or_default() += sign * decimal(&row["qty"]);
    }
    for (instrument, rest) in sums {
        if !rest.is_zero() {
            wrongs.push(format!(
                "{instrument}: {rest} of the position belongs to no strategy"
            ));
        }
    }
    wrongs
}

/// Waits until both agree while the venue's state does not change, and returns both states. If they
/// never agree, returns the last differences.
///
/// # Errors
/// If they do not agree within this time.
pub fn wait(admin: &Admin, venue: &Venue, within: Duration) -> Result<(Value, Value), Vec<String>> {
    let begin = Instant::now();
    let mut last = vec!["no state was read".to_owned()];
    while begin.elapsed() < within {
        let before = venue.account();
        let own = own(admin);
        let after = venue.account();
        if facts_of_venue(&before) == facts_of_venue(&after) {
            last = differences(&own, &after);
            if last.is_empty() {
                return Ok((own, after));
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Err(last)
}

fn order_terms(row: &Value) -> String {
    let terms = [
        text(row, "side"),
        number(&row["price"]),
        number(&row["qty"]),
        number(&row["executed_qty"]),
        row["order_id"].to_string(),
        text(row, "status"),
    ];
    terms.join(" ")
}

fn facts_of_own(own: &Value) -> Facts {
    let mut facts = Facts::new();
    for row in rows(&own["orders"]) {
        let (name, id) = (text(row, "instrument"), text(row, "client_order_id"));
        facts.insert(format!("order {name} {id}"), order_terms(row));
    }
    let whole = rows(&own["positions"]).filter(|row| row["strategy"].is_null());
    for row in whole {
        let (name, side) = (text(row, "instrument"), text(row, "position_side"));
        let held = [number(&row["qty"]), number(&row["entry_price"])];
        facts.insert(format!("position {name} {side}"), held.join(" at "));
    }
    for row in rows(&own["balances"]) {
        let (surface, asset) = (text(row, "surface"), text(row, "asset"));
        let total = number(&row["total"]);
        if total != "0" && surface == "futures" {
            facts.insert(format!("balance {surface} {asset}"), total);
        }
    }
    facts
}

fn facts_of_venue(account: &Value) -> Facts {
    let mut facts = Facts::new();
    for row in rows(&account["orders"]).filter(|row| row["open"] == json!(true)) {
        let name = format!("{}:{}", text(row, "surface"), text(row, "symbol"));
        let id = text(row, "client_order_id");
        facts.insert(format!("order {name} {id}"), order_terms(row));
    }
    for row in rows(&account["positions"]).filter(|row| number(&row["qty"]) != "0") {
        let (name, side) = (text(row, "symbol"), text(row, "position_side"));
        let held = [number(&row["qty"]), number(&row["entry_price"])];
        facts.insert(format!("position futures:{name} {side}"), held.join(" at "));
    }
    for row in rows(&account["balances"]["futures"]) {
        let asset = text(row, "asset");
        facts.insert(format!("balance futures {asset}"), number(&row["wallet"]));
    }
    facts
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(row: &Value, field: &str) -> String {
    row[field].as_str().unwrap_or_default().to_owned()
}

/// A number as text, without trailing zeros.
fn number(value: &Value) -> String {
    decimal(value).to_string()
}

fn decimal(value: &Value) -> Decimal {
    let text = value.as_str().unwrap_or_default();
    text.parse::<Decimal>().unwrap_or_default().normalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> (Value, Value) {
        let own = json!({
            "orders": [{
                "instrument": "futures:BTCUSDT", "client_order_id": "mm.1.1", "order_id": 7,
                "side": "BUY", "price": "60000.0", "qty": "0.01", "executed_qty": "0",
                "status": "NEW",
            }],
            "positions": [
                {"instrument": "futures:BTCUSDT", "strategy": null, "position_side": "BOTH",
                    "qty": "0.01", "entry_price": "59999.5"},
                {"instrument": "futures:BTCUSDT", "strategy": "mm", "position_side": "BOTH",
                    "qty": "0.01", "entry_price": "59999.5"},
            ],
            "balances": [{"surface": "futures", "asset": "USDT", "total": "10000.00"}],
        });
        let account = json!({
            "orders": [{
                "surface": "futures", "symbol": "BTCUSDT", "client_order_id": "mm.1.1",
                "order_id": 7, "side": "BUY", "price": "60000", "qty": "0.01",
                "executed_qty": "0", "status": "NEW", "open": true,
            }],
            "positions": [{"symbol": "BTCUSDT", "position_side": "BOTH", "qty": "0.01",
                "entry_price": "59999.5"}],
            "balances": {"futures": [{"asset": "USDT", "wallet": "10000"}]},
            "accepted": {"repeated": {}, "orders": [
                {"surface": "futures", "client_order_id": "mm.1.1"}]},
        });
        (own, account)
    }

    #[test]
    fn the_same_state_in_both_formats_agrees() {
        let (own, account) = both();
        assert_eq!(differences(&own, &account), Vec::<String>::new());
        assert_eq!(wrongs(&own, &account), Vec::<String>::new());
    }

    #[test]
    fn each_fact_that_differs_is_named() {
        let (own, account) = both();
        for (path, wrong) in [
            ("/orders/0/executed_qty", json!("0.001")),
            ("/orders/0/open", json!(false)),
            ("/positions/0/qty", json!("0.02")),
            ("/positions/0/entry_price", json!("1")),
            ("/balances/futures/0/wallet", json!("9999.99999999")),
        ] {
            let mut account = account.clone();
            *account.pointer_mut(path).unwrap() = wrong;
            assert_eq!(differences(&own, &account).len(), 1, "{path}");
        }
    }

    #[test]
    fn repeated_ids_and_unowned_positions_are_errors() {
        let (mut own, mut account) = both();
        let first = account["accepted"]["orders"][0].clone();
        account["accepted"]["orders"]
            .as_array_mut()
            .unwrap()
            .push(first);
        own["positions"][1]["qty"] = json!("0.02");
        assert_eq!(wrongs(&own, &account).len(), 2);
    }
}
