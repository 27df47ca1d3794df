//! Checks that the result files of a run agree with one another, with its own arithmetic.
//!
//! The checker recomputes positions from the fills, profit and cash from the positions, equity from
//! the cash, and counts from the rows. It must not use any code of the runtime: otherwise both
//! could share the same mistake.

mod equity;
mod orders;
mod position;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::results::{Fill, Results};
use position::Position;

/// One mistake in the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, and the row if the mistake belongs to one.
    pub place: String,
    /// Short name of the rule that is broken.
    pub rule: &'static str,
    /// The value that was found and the value that was expected.
    pub message: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.rule, self.message)
    }
}

/// All mistakes in the results of a run; empty if the results are correct.
pub fn check(results: &Results) -> Vec<Finding> {
    let mut findings = Findings::default();
    let books = Books::of(results, &mut findings);
    orders::check(results, &mut findings);
    equity::check(results, &books, &mut findings);
    summary::check(results, &books, &mut findings);
    findings.0
}

#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, place: impl Into<String>, rule: &'static str, message: impl Into<String>) {
        self.0.push(Finding {
            place: place.into(),
            rule,
            message: message.into(),
        });
    }

    fn equal<T: PartialEq + std::fmt::Debug>(
        &mut self,
        place: &str,
        rule: &'static str,
        found: &T,
        expected: &T,
    ) {
        if found != expected {
            self.add(place, rule, format!("{found:?}, not {expected:?}"));
        }
    }

    /// Compares amounts and shows them as decimals.
    fn equal_amount(&mut self, place: &str, rule: &'static str, found: i128, expected: i128) {
        let show = crate::fixed::show;
        if found != expected {
            self.add(
                place,
                rule,
                format!("{}, not {}", show(found), show(expected)),
            );
        }
    }
}

/// Instrument and position side.
type Key = (String, String);

/// The account's money after a number of fills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    /// Change of cash since the start.
    cash: i128,
    /// Cost of the spot holdings.
    spot_cost: i128,
    /// No position is open.
    flat: bool,
}

/// The state that the checker computes from the fills.
#[derive(Debug)]
struct Books {
    /// The account's positions at the end.
    account: BTreeMap<Key, Position>,
    /// Realized profit of each strategy's own sub-positions.
    realized: BTreeMap<String, i128>,
    /// The account before the first fill and after each.
    states: Vec<State>,
}

fn is_spot(instrument: &str) -> bool {
    instrument.starts_with("spot:")
}

impl Books {
    fn of(results: &Results, findings: &mut Findings) -> Self {
        let mut account = start_positions(results, findings);
        let mut own: BTreeMap<(String, Key), Position> = BTreeMap::new();
        let mut state = State::default();
        let mut states = Vec::with_capacity(results.fills.len() + 1);
        let mut trades = BTreeMap::new();
        close_state(&mut state, &account);
        states.push(state);
        for (fill, row) in results.fills.iter().zip(1..) {
            let place = format!("fills.csv row {row}");
            check_fill(fill, &place, findings);
            if let Some(first) = trades.insert((&fill.instrument, fill.trade_id), row) {
                let message = format!("{} is also in row {first}", fill.trade_id);
                findings.add(&place, "trade_id is unique per instrument", message);
            }
            let key = (fill.instrument.clone(), fill.position_side.clone());
            let position = account.entry(key.clone()).or_default();
            let realized = position.fill(fill.buy, fill.qty, fill.quote_qty);
            let rule = "realized_pnl follows from the average cost";
            findings.equal_amount(&place, rule, fill.realized_pnl, realized);
            own.entry((fill.strategy.clone(), key)).or_default().fill(
                fill.buy,
                fill.qty,
                fill.quote_qty,
            );
            state.cash += if is_spot(&fill.instrument) {
                let sign = if fill.buy { -1 } else { 1 };
                sign * fill.quote_qty - fill.fee
            } else {
                realized - fill.fee
            };
            close_state(&mut state, &account);
            states.push(state);
        }
        let mut realized: BTreeMap<String, i128> = BTreeMap::new();
        for ((strategy, _), position) in own {
            *realized.entry(strategy).or_default() += position.realized;
        }
        Self {
            account,
            realized,
            states,
        }
    }
}

fn close_state(state: &mut State, account: &BTreeMap<Key, Position>) {
    let spot = account
        .iter()
        .filter(|((instrument, _), _)| is_spot(instrument));
    state.spot_cost = spot.map(|(_, position)| position.cost).sum();
    state.flat = account.values().all(|position| position.qty == 0);
}

/// Checks the values of one row that do not depend on other rows.
fn check_fill(fill: &Fill, place: &str, findings: &mut Findings) {
    let rule = "quote_qty is price times qty";
    let expected = crate::fixed::notional(fill.price, fill.qty);
    findings.equal_amount(place, rule, fill.quote_qty, expected);
    if fill.qty <= 0 || fill.price <= 0 {
        findings.add(place, "price and qty are over 0", format!("{fill:?}"));
    }
}

/// The holdings before the first fill: the holdings at the end minus the change by the fills. Their
/// cost is the part of the start equity that is not cash.
fn start_positions(results: &Results, findings: &mut Findings) -> BTreeMap<Key, Position> {
    let mut held = BTreeMap::new();
    for instrument in summary::list(&results.summary, "instruments") {
        let name = summary::text(instrument, "name");
        let end = crate::fixed::mantissa(summary::text(instrument, "final_position"), 12);
        let Some(end) = end else {
            findings.add("summary.json", "final_position is a number", name);
            continue;
        };
        let fills = results.fills.iter().filter(|fill| fill.instrument == name);
        let change: i128 = fills
            .map(|fill| if fill.buy { fill.qty } else { -fill.qty })
            .sum();
        if end == change {
            continue;
        }
        if !is_spot(name) {
            findings.add(
                "summary.json",
                "futures start flat: fills sum to final_position",
                name,
            );
            continue;
        }
        let position = Position {
            qty: end - change,
            ..Position::default()
        };
        held.insert((name.to_owned(), "BOTH".to_owned()), position);
    }
    let cost = equity::start_cost(results);
    match held.len() {
        0 => {}
        1 => held.values_mut().for_each(|position| position.cost = cost),
        _ => findings.add(
            "summary.json",
            "at most one start holding can be checked",
            format!("{} start holdings", held.len()),
        ),
    }
    held
}
