//! Checks `equity.csv`: one row per second, and each row follows from the fills up to it.

use crate::fixed::{half_even, mantissa};
use crate::results::{Equity, Results};

use super::summary::text;
use super::{Books, Findings};

const SECOND_NS: i64 = 1_000_000_000;

pub(super) fn check(results: &Results, books: &Books, findings: &mut Findings) {
    check_times(&results.equity, findings);
    check_drawdown(results, findings);
    let Some(last) = results.equity.last() else {
        findings.add("equity.csv", "there is a row", "none");
        return;
    };
    let place = "equity.csv last row";
    for (column, field, value) in [
        ("equity is final_equity", "final_equity", last.equity),
        (
            "unrealized_pnl is the summary's",
            "unrealized_pnl",
            last.unrealized_pnl,
        ),
    ] {
        if let Some(expected) = mantissa(text(&results.summary, field), 8) {
            findings.equal_amount(place, column, value, expected);
        }
    }
    check_money(results, books, findings);
}

/// Rows are whole seconds without gaps; the last row is the end of the run.
fn check_times(rows: &[Equity], findings: &mut Findings) {
    for (pair, row) in rows.windows(2).zip(2..) {
        let step = pair[1].time_ns - pair[0].time_ns;
        let last = row == rows.len();
        let whole = step == SECOND_NS && pair[1].time_ns % SECOND_NS == 0;
        if !(whole || (last && step > 0 && step <= SECOND_NS)) {
            let place = format!("equity.csv row {row}");
            let message = format!("{step} ns after the row before");
            findings.add(place, "one row per second", message);
        }
    }
}

fn check_drawdown(results: &Results, findings: &mut Findings) {
    let (mut peak, mut largest) = (i128::MIN, 0);
    for (row, number) in results.equity.iter().zip(1..) {
        peak = peak.max(row.equity);
        let drawdown = if peak > 0 {
            half_even((peak - row.equity) * 100_000_000, peak)
        } else {
            0
        };
        largest = largest.max(drawdown);
        let place = format!("equity.csv row {number}");
        let rule = "drawdown is the fall from the peak";
        findings.equal_amount(&place, rule, row.drawdown, drawdown);
    }
    if let Some(stated) = mantissa(text(&results.summary, "max_drawdown"), 8) {
        let rule = "max_drawdown is the largest of equity.csv";
        findings.equal_amount("summary.json", rule, stated, largest);
    }
}

/// Cash before the first fill: the cash of the last row minus the change by the fills.
fn start_cash(results: &Results) -> i128 {
    let last = results.equity.last().map_or(0, |row| row.cash);
    let change: i128 = results
        .fills
        .iter()
        .map(|fill| {
            let flow = match (super::is_spot(&fill.instrument), fill.buy) {
                (true, true) => -fill.quote_qty,
                (true, false) => fill.quote_qty,
                // The realized profit is checked row by row elsewhere.
                (false, _) => fill.realized_pnl,
            };
            flow - fill.fee
        })
        .sum();
    last - change - mantissa(text(&results.summary, "funding"), 8).unwrap_or(0)
}

/// Value of the holdings at the start: the start equity that is not cash.
pub(super) fn start_cost(results: &Results) -> i128 {
    mantissa(text(&results.summary, "start_equity"), 8).unwrap_or(0) - start_cash(results)
}

/// Each row must match the account after some number of fills, and that number never decreases.
/// Cash follows from these fills. Equity is cash plus unrealized profit plus the cost of the spot
/// holdings.
fn check_money(results: &Results, books: &Books, findings: &mut Findings) {
    let start = start_cash(results);
    let first_cost = books.states[0].spot_cost;
    if let Some(stated) = mantissa(text(&results.summary, "start_equity"), 8) {
        let rule = "start_equity is cash and holdings before the first fill";
        findings.equal_amount("summary.json", rule, stated, start + first_cost);
    }
    // No file lists funding payments with their times.
    if mantissa(text(&results.summary, "funding"), 8) != Some(0) {
        return;
    }
    let mut at = 0;
    for (row, number) in results.equity.iter().zip(1..) {
        let explains = |state: &super::State| {
            start + state.cash == row.cash
                && row.cash + row.unrealized_pnl + state.spot_cost == row.equity
                && (!state.flat || row.unrealized_pnl == 0)
        };
        let Some(further) = books.states[at..].iter().position(explains) else {
            let place = format!("equity.csv row {number}");
            let message = format!("no number of fills from {at} on explains {row:?}");
            findings.add(place, "every row follows from the fills", message);
            return;
        };
        at += further;
    }
    if !explains_all(results, books, start) {
        let rule = "the last row follows from all fills";
        findings.add(
            "equity.csv last row",
            rule,
            "the last row does not include all fills",
        );
    }
}

fn explains_all(results: &Results, books: &Books, start: i128) -> bool {
    let (Some(row), Some(state)) = (results.equity.last(), books.states.last()) else {
        return false;
    };
    start + state.cash == row.cash && row.cash + row.unrealized_pnl + state.spot_cost == row.equity
}
