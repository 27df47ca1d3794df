//! Checks `orders.csv` for consistency, and against the fills of each order.

use std::collections::{BTreeMap, BTreeSet};

use crate::fixed::half_even;
use crate::results::{Fill, Order, Results};

use super::Findings;

/// The epoch and the sequence number in a client order id `<strategy>.<epoch>.<sequence>`.
struct OwnId {
    epoch: u64,
    sequence: u64,
}

pub(super) fn check(results: &Results, findings: &mut Findings) {
    let mut fills: BTreeMap<&str, Vec<(usize, &Fill)>> = BTreeMap::new();
    for (fill, row) in results.fills.iter().zip(1..) {
        // A fill without a strategy was made by the venue, for example a liquidation.
        if !fill.strategy.is_empty() {
            let of_order = fills.entry(fill.client_order_id.as_str()).or_default();
            of_order.push((row, fill));
        }
    }
    let mut ids = BTreeSet::new();
    let mut epochs = BTreeSet::new();
    let mut sequences = BTreeSet::new();
    let mut venue_ids = BTreeSet::new();
    for (order, row) in results.orders.iter().zip(1..) {
        let place = format!("orders.csv row {row}");
        check_status(order, &place, findings);
        if order.client_order_id.is_empty() {
            check_refused_locally(order, &place, findings);
            continue;
        }
        if !ids.insert(order.client_order_id.as_str()) {
            findings.add(&place, "client_order_id is unique", &order.client_order_id);
        }
        if let Some(id) = own_id(order) {
            epochs.insert(id.epoch);
            sequences.insert(id.sequence);
        } else {
            let rule = "client_order_id is <strategy>.<epoch>.<sequence>";
            findings.add(&place, rule, &order.client_order_id);
        }
        if let Some(id) = order.order_id
            && !venue_ids.insert((order.instrument.as_str(), id))
        {
            findings.add(&place, "order_id is unique per instrument", id.to_string());
        }
        let of_order = fills
            .remove(order.client_order_id.as_str())
            .unwrap_or_default();
        check_fills(order, &of_order, &place, findings);
    }
    for (id, of_order) in fills {
        let place = format!("fills.csv row {}", of_order[0].0);
        findings.add(place, "every fill has its order", id);
    }
    if epochs.len() > 1 {
        findings.add("orders.csv", "a run has one epoch", format!("{epochs:?}"));
    }
    let gap = sequences
        .iter()
        .zip(1..)
        .find(|(sequence, expected)| *sequence != expected);
    if let Some((found, expected)) = gap {
        let message = format!("found sequence {found}, expected {expected}");
        findings.add("orders.csv", "every accepted order has its row", message);
    }
}

fn own_id(order: &Order) -> Option<OwnId> {
    let id = order.client_order_id.as_str();
    let rest = id
        .strip_prefix(order.strategy.as_str())?
        .strip_prefix('.')?;
    let (epoch, sequence) = rest.split_once('.')?;
    if id.len() > 36 || order.strategy.is_empty() || order.strategy.len() > 8 {
        return None;
    }
    Some(OwnId {
        epoch: base36(epoch)?,
        sequence: base36(sequence)?,
    })
}

/// Parses base 36: lower case, no sign, no leading zero.
fn base36(text: &str) -> Option<u64> {
    let digits = |c: char| c.is_ascii_digit() || c.is_ascii_lowercase();
    let canonical = text == "0" || (!text.starts_with('0') && text.chars().all(digits));
    canonical
        .then(|| u64::from_str_radix(text, 36).ok())
        .flatten()
}

fn check_refused_locally(order: &Order, place: &str, findings: &mut Findings) {
    if order.status != "REJECTED" || order.order_id.is_some() {
        let rule = "an order without an id never left";
        findings.add(
            place,
            rule,
            format!("{} {:?}", order.status, order.order_id),
        );
    }
}

fn check_status(order: &Order, place: &str, findings: &mut Findings) {
    let executed = order.executed_qty;
    let less = order.qty.is_none_or(|qty| executed < qty);
    let all = order.qty.map_or(executed > 0, |qty| executed == qty);
    let fits = match order.status.as_str() {
        "FILLED" => all,
        "PARTIALLY_FILLED" => executed > 0 && less,
        "SUBMITTED" | "NEW" | "REJECTED" => executed == 0,
        "CANCELED" | "EXPIRED" | "CANCEL_REQUESTED" | "UNKNOWN" => less,
        _ => false,
    };
    if !fits {
        let message = format!("{} with {executed} of {:?}", order.status, order.qty);
        findings.add(place, "status fits executed_qty", message);
    }
    if (order.status == "REJECTED") == order.reject_rule.is_empty() {
        let message = format!("{} with {:?}", order.status, order.reject_rule);
        findings.add(
            place,
            "who is refused names the rule, and nobody else",
            message,
        );
    }
}

fn check_fills(order: &Order, fills: &[(usize, &Fill)], place: &str, findings: &mut Findings) {
    let qty: i128 = fills.iter().map(|(_, fill)| fill.qty).sum();
    let quote: i128 = fills.iter().map(|(_, fill)| fill.quote_qty).sum();
    findings.equal(
        place,
        "executed_qty is the sum of its fills",
        &order.executed_qty,
        &qty,
    );
    let average = (qty > 0).then(|| half_even(quote * 10_i128.pow(12), qty));
    let rule = "avg_price is the quotient of its fills";
    findings.equal(place, rule, &order.avg_price, &average);
    for (row, fill) in fills {
        let place = format!("fills.csv row {row}");
        let of_fill = (
            &fill.strategy,
            &fill.instrument,
            fill.buy,
            Some(fill.order_id),
        );
        let of_order = (
            &order.strategy,
            &order.instrument,
            order.buy,
            order.order_id,
        );
        let rule = "strategy, instrument, side and order_id are its order's";
        findings.equal(&place, rule, &of_fill, &of_order);
        if fill.time_ns < order.time_ns {
            let message = format!("{} before {}", fill.time_ns, order.time_ns);
            findings.add(&place, "no fill comes before its order", message);
        }
        check_price(order, fill, &place, findings);
    }
}

fn check_price(order: &Order, fill: &Fill, place: &str, findings: &mut Findings) {
    let rests = !matches!(order.time_in_force.as_str(), "IOC" | "FOK") && order.price.is_some();
    if fill.maker && !rests {
        let message = format!("{} {}", order.order_type, order.time_in_force);
        findings.add(place, "only orders that rest are makers", message);
    }
    if !fill.maker && order.time_in_force == "GTX" {
        findings.add(place, "GTX never takes", &fill.client_order_id);
    }
    let Some(limit) = order.price else { return };
    if fill.maker {
        findings.equal(place, "a maker fills at its own price", &fill.price, &limit);
    }
    let worse = if fill.buy {
        fill.price > limit
    } else {
        fill.price < limit
    };
    if worse {
        let message = format!("{} against {limit}", fill.price);
        findings.add(place, "no fill is worse than the limit price", message);
    }
}
