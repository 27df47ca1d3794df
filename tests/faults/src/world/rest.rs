//! Checks whether everything is at rest: the runtime is ready, nothing is in flight, and its view
//! equals the venue's state. The checkers then compare once more with their own code.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use serde_json::Value;
use windvane_config::Stream;
use windvane_model::Surface;
use windvane_model::input::Command;
use windvane_session::SaveState;

use super::{BOOKS, CLOSES, CONVERGES, Event, MS, World};
use crate::check::ticks::Ticks;
use crate::process::Process;
use crate::witness::{PositionView, Rest, View, WitnessEvent};

/// Number of compared levels of a book.
const LEVELS: usize = 5;
/// Interval of the checks. It is out of step with everything that is polled; otherwise a poll would
/// be in flight at each check.
const LOOK_NS: i64 = 230 * MS;

impl World {
    /// Gives a sample of truth and view to the witness.
    pub(super) fn sample(&mut self) {
        let truth = self.venue.truth(true, self.now_ns);
        self.see(WitnessEvent::Truth(truth));
        let view = self.process.as_ref().and_then(Process::view);
        if let Some(view) = view {
            self.see(WitnessEvent::View(view));
        }
    }

    /// Checks whether everything is at rest; it is a broken rule if that takes too long.
    pub(super) fn look_for_rest(&mut self) {
        self.carry_frames();
        let difference = match self.is_quiet() {
            Err(why) => vec![why],
            Ok(view) => {
                let truth = self.venue.truth(false, self.now_ns);
                let ours = self
                    .fault_plan
                    .terms
                    .strategies
                    .iter()
                    .map(|s| s.id.as_str());
                let ours = ours.collect::<Vec<_>>();
                let ticks = self.fault_plan.terms.entries_to_tick.then_some(&self.ticks);
                let differences = differences(&truth, &view, &ours, ticks);
                let books = self.book_differences();
                if differences.is_empty() && !books.is_empty() {
                    return self.look_again(&books, BOOKS);
                }
                if differences.is_empty() {
                    let rest = Rest {
                        at_ns: self.now_ns,
                        truth,
                        view,
                    };
                    self.log.rest(&rest);
                    return self.flatten_or_end();
                }
                differences
            }
        };
        self.look_again(&difference, CONVERGES);
    }

    /// Checks again later, unless a difference lasts too long.
    fn look_again(&mut self, difference: &[String], rule: &str) {
        if self.now_ns > self.faults_ended_ns + self.fault_plan.terms.converge_ns {
            let how = difference.join("; ");
            self.log.fail(self.now_ns, rule, how);
            self.done = true;
            return;
        }
        self.queue.put(self.now_ns + LOOK_NS, Event::LookForRest);
    }

    /// The books that strategies subscribed to and that differ from the venue's. The venue sends
    /// differences from time to time, so a book can lag behind the venue between two of them.
    fn book_differences(&mut self) -> Vec<String> {
        let faults = &self.fault_plan.faults;
        if faults.documented || faults.weight_s > 0 {
            // Polled books are behind, and the weight that others use may be missing for snapshots.
            return Vec::new();
        }
        let strategies = self.setup.config.strategies.iter();
        let reads = strategies.filter(|one| one.streams.contains(&Stream::Book));
        let read: BTreeSet<_> = reads.flat_map(|one| &one.instruments).cloned().collect();
        let setup = std::sync::Arc::clone(&self.setup);
        let names = setup.names.iter().enumerate();
        let read =
            names.filter(|(_, name)| read.contains(name) && name.surface == Surface::Futures);
        let mut differences = Vec::new();
        for (place, name) in read {
            let truth = self.venue.book(&name.symbol, LEVELS, self.now_ns);
            let known = self
                .process
                .as_ref()
                .map(|process| process.book(place, LEVELS));
            if truth != known {
                differences.push(format!(
                    "the book of {} is {truth:?} at the venue, but {known:?} in the runtime",
                    name.symbol
                ));
            }
        }
        differences
    }

    /// The view, if the runtime is in the state of rest and nothing is in flight.
    fn is_quiet(&mut self) -> Result<View, String> {
        let Some(process) = &self.process else {
            return Err("no process runs".to_owned());
        };
        let view = process.view().ok_or("the process has not recovered")?;
        let pauses = self.fault_plan.terms.pauses_to_rest;
        let is_stopped = view.state == "halted" || (view.state == "paused" && !pauses);
        let mut reasons = view.degraded_reasons.iter();
        if is_stopped || reasons.any(|reason| reason.contains("resume")) {
            // The run is paused or halted from its start on, so the operator resumes.
            self.command(Command::Resume, None);
        }
        if pauses && (is_stopped || view.state != "paused") {
            self.command(Command::Pause, None);
        }
        if is_stopped {
            return Err(format!("the state is {}", view.state));
        }
        if !self.fault_plan.terms.is_at_rest(&view) {
            return Err(format!(
                "the state is {}: {}",
                view.state,
                view.degraded_reasons.join(", ")
            ));
        }
        self.nothing_is_under_way(&view)?;
        Ok(view)
    }

    /// Checks that all outcomes are known, and that no request and no event of a user stream is in
    /// flight.
    fn nothing_is_under_way(&mut self, view: &View) -> Result<(), String> {
        if let Some(order) = view.orders.iter().find(|order| order.state == "UNKNOWN") {
            // Its countdown ended; the response to the query for it is still missing.
            return Err(format!(
                "the outcome of {} is unknown",
                order.client_order_id
            ));
        }
        if self
            .process
            .as_ref()
            .is_none_or(|process| !process.is_idle())
        {
            return Err("requests are in flight".to_owned());
        }
        if self.watches_the_dead() {
            return Err("the watchdog of a dead run still works".to_owned());
        }
        let kept = self.process.as_ref().and_then(Process::kill_switches_kept);
        if kept != Some(SaveState::Durable) {
            return Err(format!("the kill switch file is not durable: {kept:?}"));
        }
        let coming = self.queue.any(|event| {
            matches!(event, Event::Frame(_, Some(_), _) | Event::Arrive(_))
                || matches!(event, Event::Deliver(_, crate::process::In::Answer(..)))
        });
        if coming || self.venue.holds_events(self.now_ns) {
            return Err("a message is in flight".to_owned());
        }
        Ok(())
    }

    /// Ends the life, or first lets the operator flatten.
    fn flatten_or_end(&mut self) {
        if !self.fault_plan.flattens || self.log.broken.is_some() {
            self.done = true;
            return;
        }
        self.flattened_ns = Some(self.now_ns);
        self.command(Command::Flatten, None);
        self.queue.put(self.now_ns + LOOK_NS, Event::LookForFlat);
    }

    /// Checks whether everything is closed; it is a broken rule if that takes too long.
    pub(super) fn look_for_flat(&mut self) {
        self.carry_frames();
        let why = match self.is_flat() {
            Ok(()) => {
                let truth = self.venue.truth(false, self.now_ns);
                self.see(WitnessEvent::Flattened(truth));
                self.done = true;
                return;
            }
            Err(why) => why,
        };
        let since_ns = self.flattened_ns.unwrap_or(self.now_ns);
        if self.now_ns > since_ns + self.fault_plan.terms.converge_ns {
            self.log.fail(self.now_ns, CLOSES, why);
            self.done = true;
            return;
        }
        self.queue.put(self.now_ns + LOOK_NS, Event::LookForFlat);
    }

    /// Whether the runtime reports that nothing is open and that it does nothing more.
    fn is_flat(&mut self) -> Result<(), String> {
        let view = self.process.as_ref().and_then(Process::view);
        let view = view.ok_or("no process runs")?;
        if view.state != "halted" {
            return Err(format!("the state is {}", view.state));
        }
        if let Some(order) = view.orders.first() {
            return Err(format!("{} is {}", order.client_order_id, order.state));
        }
        let mut strategies = view.strategies.iter();
        // No order can close less than one step.
        let is_open = |held: &&PositionView| held.qty != "0";
        let holding = strategies.find_map(|s| Some((&s.id, s.positions.iter().find(is_open)?)));
        if let Some((id, held)) = holding {
            return Err(format!("{id} holds {} of {}", held.qty, held.instrument));
        }
        self.nothing_is_under_way(&view)
    }
}

/// The differences between the runtime's state and the venue's. The venue may have rounded its
/// entry prices to these ticks.
pub fn differences(
    truth: &Value,
    view: &View,
    ours: &[&str],
    ticks: Option<&Ticks>,
) -> Vec<String> {
    let account = &truth["accounts"][0];
    let mut differences = Vec::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let decimal = |text: &str| text.parse::<Decimal>().unwrap_or_default().normalize();

    let mut open = BTreeMap::new();
    for order in account["orders"].as_array().into_iter().flatten() {
        let id = text(&order["client_order_id"]);
        let owner = id.split('.').next().unwrap_or_default();
        if order["open"] == Value::Bool(true) && ours.contains(&owner) {
            open.insert(id, decimal(&text(&order["executed_qty"])));
        }
    }
    let sent = view.orders.iter().filter(|order| !order.held);
    let believed: BTreeMap<_, _> = sent
        .map(|order| (order.client_order_id.clone(), decimal(&order.executed_qty)))
        .collect();
    compare("order", &open, &believed, &mut differences);

    let mut positions = BTreeMap::new();
    for position in account["positions"].as_array().into_iter().flatten() {
        let key = format!(
            "futures:{} {}",
            text(&position["symbol"]),
            text(&position["position_side"])
        );
        let qty = decimal(&text(&position["qty"]));
        if !qty.is_zero() {
            positions.insert(key, qty);
        }
    }
    let elsewhere = view.elsewhere.iter().map(|held| {
        let key = format!("futures:{} {}", held.symbol, held.position_side);
        (key, decimal(&held.qty))
    });
    let futures = view.positions.iter();
    let futures = futures.filter(|held| held.instrument.starts_with("futures:"));
    let configured = futures.map(|held| {
        let key = format!("{} {}", held.instrument, held.position_side);
        (key, decimal(&held.qty))
    });
    let believed: BTreeMap<_, _> = configured.chain(elsewhere).collect();
    compare("position", &positions, &believed, &mut differences);
    compare_entries(account, view, ticks, &mut differences);

    let mut wallets = BTreeMap::new();
    for balance in account["balances"]["futures"]
        .as_array()
        .into_iter()
        .flatten()
    {
        wallets.insert(text(&balance["asset"]), decimal(&text(&balance["wallet"])));
    }
    let futures = view
        .balances
        .iter()
        .filter(|balance| balance.surface == "futures");
    let believed: BTreeMap<_, _> = futures
        .map(|balance| (balance.asset.clone(), decimal(&balance.total)))
        .filter(|(asset, total)| !total.is_zero() || wallets.contains_key(asset))
        .collect();
    wallets.retain(|asset, _| believed.contains_key(asset));
    compare("balance", &wallets, &believed, &mut differences);
    compare_spot(account, view, &mut differences);
    differences
}

/// Compares the spot balances that the runtime knows.
fn compare_spot(account: &Value, view: &View, differences: &mut Vec<String>) {
    let decimal = |text: &str| text.parse::<Decimal>().unwrap_or_default().normalize();
    let spot = view.balances.iter().filter(|one| one.surface == "spot");
    let believed: BTreeMap<_, _> = spot
        .map(|one| (one.asset.clone(), decimal(&one.total)))
        .collect();
    let number = |row: &Value, name: &str| row[name].as_str().map(decimal).unwrap_or_default();
    let rows = account["balances"]["spot"].as_array().into_iter().flatten();
    let totals = rows.map(|row| {
        let asset = row["asset"].as_str().unwrap_or_default().to_owned();
        let total = number(row, "free") + number(row, "locked");
        (asset, total.normalize())
    });
    let totals: BTreeMap<_, _> = totals
        .filter(|(asset, _)| believed.contains_key(asset))
        .collect();
    let believed = believed.into_iter();
    let believed = believed.filter(|(asset, total)| !total.is_zero() || totals.contains_key(asset));
    compare("spot balance", &totals, &believed.collect(), differences);
}

/// Compares entry prices with a tolerance. Two fills through zero that arrive in the wrong order
/// leave a wrong entry price until the account is read. Each fill rounds the price. The venue may
/// also have rounded its price to a coarser tick before the tick became finer.
fn compare_entries(
    account: &Value,
    view: &View,
    ticks: Option<&Ticks>,
    differences: &mut Vec<String>,
) {
    let decimal = |value: &Value| value.as_str()?.parse::<Decimal>().ok();
    for position in account["positions"].as_array().into_iter().flatten() {
        let symbol = position["symbol"].as_str().unwrap_or_default();
        let instrument = format!("futures:{symbol}");
        let own = view.positions.iter().find(|held| {
            held.instrument == instrument && position["position_side"] == held.position_side
        });
        let Some((own, entry)) = own.zip(decimal(&position["entry_price"])) else {
            continue;
        };
        let parse = |text: &str| text.parse::<Decimal>().unwrap_or_default();
        let here = parse(&own.cost).checked_div(parse(&own.qty));
        let here = here.unwrap_or_default();
        let tick = view.ticks.get(&instrument).map(|tick| parse(tick));
        let half_tick = tick.unwrap_or_default() / Decimal::TWO;
        let rounded = ticks.map_or(Decimal::ZERO, |ticks| ticks.rounding(symbol));
        if (here - entry).abs() > half_tick.max(rounded) + entry * Decimal::new(1, 6) {
            differences.push(format!(
                "entry price of {instrument}: the venue has {entry}, the runtime has {here}"
            ));
        }
    }
}

fn compare(
    what: &str,
    truth: &BTreeMap<String, Decimal>,
    believed: &BTreeMap<String, Decimal>,
    differences: &mut Vec<String>,
) {
    for (key, value) in truth {
        if believed.get(key) != Some(value) {
            let own = believed
                .get(key)
                .map_or("nothing".to_owned(), Decimal::to_string);
            differences.push(format!(
                "{what} {key}: the venue has {value}, the runtime has {own}"
            ));
        }
    }
    for (key, value) in believed.iter().filter(|(key, _)| !truth.contains_key(*key)) {
        differences.push(format!(
            "{what} {key}: the venue has none, the runtime has {value}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::witness::PositionView;

    #[test]
    fn a_different_entry_price_is_a_difference() {
        let truth = json!({"accounts": [{"positions": [
            {"symbol": "ETHUSDT", "position_side": "BOTH", "qty": "-0.26", "entry_price": "3001.6"},
        ]}]});
        let holding_at = |cost: &str| View {
            positions: vec![PositionView {
                dust: String::new(),
                instrument: "futures:ETHUSDT".to_owned(),
                position_side: "BOTH".to_owned(),
                qty: "-0.26".to_owned(),
                cost: cost.to_owned(),
            }],
            ..View::default()
        };
        let count = |cost| differences(&truth, &holding_at(cost), &[], None).len();
        assert_eq!(count("-780.416"), 0);
        assert_eq!(count("-780.4161"), 0, "rounding of fills must be tolerated");
        assert_eq!(count("-780.4172"), 1);
    }
}
