//! Checks `summary.json` against the rows of the other files.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fixed::{half_even, mantissa};
use crate::results::{Fill, Order, Results};

use super::{Books, Findings};

const FILE: &str = "summary.json";

/// A text field; empty if the field is missing or is not a text.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A list field; empty if the field is missing or is not a list.
pub(super) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    let list = value.get(field).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

pub(super) fn check(results: &Results, books: &Books, findings: &mut Findings) {
    let summary = &results.summary;
    let fills: Vec<_> = results.fills.iter().collect();
    let orders: Vec<_> = results.orders.iter().collect();
    check_counts(summary, FILE, &orders, &fills, findings);
    let realized: i128 = books
        .account
        .values()
        .map(|position| position.realized)
        .sum();
    amount(summary, FILE, "realized_pnl", realized, findings);
    for strategy in list(summary, "strategies") {
        let id = text(strategy, "id");
        let place = format!("{FILE} strategy {id}");
        let fills: Vec<_> = results.fills.iter().filter(|f| f.strategy == id).collect();
        let orders: Vec<_> = results.orders.iter().filter(|o| o.strategy == id).collect();
        check_counts(strategy, &place, &orders, &fills, findings);
        let maker = fills.iter().filter(|fill| fill.maker).count();
        count(strategy, &place, "maker_fills", maker, findings);
        let realized = books.realized.get(id).copied().unwrap_or(0);
        amount(strategy, &place, "realized_pnl", realized, findings);
    }
    check_identity(summary, findings);
    check_rejections(results, findings);
    check_marks(results, books, findings);
    let quote = text(summary, "quote_asset");
    if let Some(fill) = results.fills.iter().find(|fill| fill.fee_asset != quote) {
        findings.add(
            "fills.csv",
            "fees are paid in the quote asset",
            &fill.fee_asset,
        );
    }
    let fingerprint = text(summary, "fingerprint");
    if fingerprint.len() != 64 || !fingerprint.bytes().all(|b| b.is_ascii_hexdigit()) {
        findings.add(FILE, "fingerprint is 32 bytes in hexadecimal", fingerprint);
    }
}

fn amount(value: &Value, place: &str, field: &'static str, expected: i128, f: &mut Findings) {
    match mantissa(text(value, field), 8) {
        Some(found) => f.equal_amount(place, field, found, expected),
        None => f.add(
            place,
            field,
            format!("{:?} is not an amount", value.get(field)),
        ),
    }
}

fn count(value: &Value, place: &str, field: &'static str, expected: usize, f: &mut Findings) {
    let found = value.get(field).and_then(Value::as_u64);
    f.equal(place, field, &found, &Some(expected as u64));
}

fn check_counts(
    summary: &Value,
    place: &str,
    orders: &[&Order],
    fills: &[&Fill],
    findings: &mut Findings,
) {
    let orders_with = |wanted: fn(&Order) -> bool| orders.iter().filter(|o| wanted(o)).count();
    let submitted = orders_with(|order| !order.client_order_id.is_empty());
    let rejected = orders_with(|order| order.status == "REJECTED");
    let canceled = orders_with(|order| order.status == "CANCELED");
    count(summary, place, "orders_submitted", submitted, findings);
    count(summary, place, "orders_rejected", rejected, findings);
    count(summary, place, "orders_canceled", canceled, findings);
    count(summary, place, "fills", fills.len(), findings);
    let volume = fills.iter().map(|fill| fill.quote_qty).sum();
    amount(summary, place, "volume_quote", volume, findings);
    amount(
        summary,
        place,
        "fees",
        fills.iter().map(|fill| fill.fee).sum(),
        findings,
    );
}

/// `final_equity = start_equity + realized_pnl + unrealized_pnl - fees + funding`, exactly.
fn check_identity(summary: &Value, findings: &mut Findings) {
    let value = |field| mantissa(text(summary, field), 8);
    let sum = || {
        Some(
            value("start_equity")? + value("realized_pnl")? + value("unrealized_pnl")?
                - value("fees")?
                + value("funding")?,
        )
    };
    match (sum(), value("final_equity")) {
        (Some(sum), Some(stated)) => {
            findings.equal_amount(FILE, "final_equity is the sum of its parts", stated, sum);
        }
        _ => findings.add(
            FILE,
            "final_equity is the sum of its parts",
            "a part is missing",
        ),
    }
}

fn check_rejections(results: &Results, findings: &mut Findings) {
    let mut counted: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for order in results
        .orders
        .iter()
        .filter(|order| order.status == "REJECTED")
    {
        let key = (order.strategy.as_str(), order.reject_rule.as_str());
        *counted.entry(key).or_default() += 1;
    }
    let mut stated: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for row in list(&results.summary, "rejections") {
        let count = row.get("count").and_then(Value::as_u64).unwrap_or(0);
        *stated
            .entry((text(row, "strategy"), text(row, "rule")))
            .or_default() += count;
    }
    findings.equal(
        FILE,
        "rejections are those of orders.csv",
        &stated,
        &counted,
    );
}

/// Without recorded marks the mid price is the mark price. The last unrealized profit then follows
/// from the positions and `final_mid`.
fn check_marks(results: &Results, books: &Books, findings: &mut Findings) {
    let summary = &results.summary;
    let marks = summary.pointer("/data/marks").and_then(Value::as_u64);
    if marks != Some(0) {
        return;
    }
    let mut unrealized = 0;
    for ((instrument, _), position) in &books.account {
        let rows = list(summary, "instruments");
        let row = rows.iter().find(|row| text(row, "name") == instrument);
        let mid = row.and_then(|row| mantissa(text(row, "final_mid"), 8));
        let value = match mid {
            Some(mid) => half_even(position.qty * mid, 10_i128.pow(12)),
            None if position.qty == 0 => 0,
            None => return,
        };
        unrealized += value - position.cost;
    }
    let rule = "unrealized_pnl is the value at the last mid less cost";
    if let Some(stated) = mantissa(text(summary, "unrealized_pnl"), 8) {
        findings.equal_amount(FILE, rule, stated, unrealized);
    }
}
