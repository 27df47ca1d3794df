//! The strategies together hold the account's position at the venue, except for the quantity that
//! people traded by hand. This holds also after a liquidation or an ADL, and after late fills. A
//! run halts or pauses when it learns of a forced close, as configured: at the latest some seconds
//! after the event of its order was delivered.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use serde_json::Value;

use super::Check;
use super::wire;
use crate::witness::{Entry, ProcessEvent, Rest, Terms, WitnessEvent};

/// Longest time from the delivery of the event of a forced close to the reaction.
const WITHIN_NS: i64 = 5_000_000_000;

/// The rule.
#[derive(Debug)]
pub struct Forced {
    reaction: String,
    strategies: BTreeSet<String>,
    instruments: BTreeSet<String>,
    state: String,
    /// When the run reported a forced close to which it has not reacted yet.
    noticed_ns: Option<i64>,
    /// When the first event of each forced order was emitted, because a venue may repeat events.
    first: BTreeMap<String, i64>,
    /// Events of forced closes in flight, and when the first event of the order was emitted.
    emitted: BTreeMap<u64, i64>,
    /// When the venue last closed a position.
    closed_ns: i64,
    /// When the run last reported a forced close: a late event of it is not new.
    reported_ns: i64,
    /// The process is stopped, and reads delivered messages only when it continues.
    stopped: bool,
    /// When the reaction to a delivered event is due.
    due_ns: Option<i64>,
    lost: bool,
}

/// The futures instruments; spot has no liquidation.
fn futures(terms: &Terms) -> BTreeSet<String> {
    let all = terms.instruments.iter();
    let of_futures = all.filter(|name| name.starts_with("futures:"));
    of_futures.cloned().collect()
}

impl Forced {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        Self {
            reaction: terms.on_liquidation.clone(),
            strategies: terms.strategies.iter().map(|one| one.id.clone()).collect(),
            instruments: futures(terms),
            state: String::new(),
            noticed_ns: None,
            first: BTreeMap::new(),
            emitted: BTreeMap::new(),
            closed_ns: 0,
            reported_ns: 0,
            stopped: false,
            due_ns: None,
            lost: false,
        }
    }

    fn has_reacted(&self) -> bool {
        match self.reaction.as_str() {
            "halt" => self.state == "halted",
            "pause" => self.state != "ready",
            _ => true,
        }
    }

    /// The order of an event that reports a forced close of a configured instrument.
    fn forced_order(&self, text: &str) -> Option<String> {
        let event: Value = serde_json::from_str(text).ok()?;
        let event = event.get("data").unwrap_or(&event);
        let order = event.get("o").filter(|order| order.is_object())?;
        let id = wire::text(order, "c").unwrap_or_default();
        let symbol = wire::text(order, "s").unwrap_or_default();
        let closed = wire::number(order, "z").unwrap_or_default() > Decimal::ZERO;
        let named = id.starts_with("autoclose-") || id.starts_with("adl_autoclose");
        let ours = self.instruments.contains(&format!("futures:{symbol}"));
        (named && closed && ours).then(|| format!("{symbol} {}", order["i"]))
    }

    /// Quantities of forced closes and of trades by hand, by position.
    fn others(&self, truth: &Value) -> (BTreeMap<String, Decimal>, BTreeMap<String, Decimal>) {
        let list = |name| truth.pointer(&format!("/accounts/0/{name}"));
        let rows = |name| list(name).and_then(Value::as_array).into_iter().flatten();
        let number = |row: &Value| row.get("order_id").and_then(Value::as_i64);
        let ids: BTreeMap<_, _> = rows("orders")
            .filter_map(|order| Some((number(order)?, wire::text(order, "client_order_id")?)))
            .collect();
        let (mut forced, mut by_hand) = (BTreeMap::new(), BTreeMap::new());
        for trade in rows("trades") {
            let id = number(trade).and_then(|number| ids.get(&number));
            let id = id.map(ToString::to_string).unwrap_or_default();
            if self.strategies.contains(wire::strategy(&id)) {
                continue;
            }
            let is_forced = id.starts_with("autoclose-") || id.starts_with("adl_autoclose");
            let sums = if is_forced { &mut forced } else { &mut by_hand };
            let qty = wire::number(trade, "qty").unwrap_or_default();
            *sums.entry(wire::book_of(trade)).or_insert(Decimal::ZERO) += qty;
        }
        (forced, by_hand)
    }
}

impl Check for Forced {
    fn rule(&self) -> &'static str {
        "strategies hold what a liquidation left them"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let Some(noticed_ns) = self.noticed_ns
            && entry.at_ns > noticed_ns
        {
            return Err(format!(
                "the run reported a forced close and is {}, but its configuration requires {}",
                self.state, self.reaction
            ));
        }
        if let Some(due_ns) = self.due_ns
            && entry.at_ns > due_ns
        {
            return Err(format!(
                "an event reported a forced close {} s ago and the run is {}, but its configuration \
                 requires {}",
                WITHIN_NS / 1_000_000_000,
                self.state,
                self.reaction
            ));
        }
        match &entry.seen {
            WitnessEvent::Act { act, done: true }
                if act["act"] == "adl" || act["act"] == "liquidate" =>
            {
                self.closed_ns = entry.at_ns;
            }
            WitnessEvent::Emitted { event, text, .. } => {
                if let Some(order) = self.forced_order(text) {
                    let first = *self.first.entry(order).or_insert(entry.at_ns);
                    self.emitted.insert(*event, first);
                }
            }
            WitnessEvent::Delivered { event, .. } => {
                let emitted = self.emitted.remove(event);
                let is_news =
                    emitted.is_some_and(|at_ns| at_ns.min(self.closed_ns) > self.reported_ns);
                let runs = matches!(self.state.as_str(), "ready" | "degraded") && !self.stopped;
                if is_news && runs && !self.has_reacted() {
                    self.due_ns.get_or_insert(entry.at_ns + WITHIN_NS);
                }
            }
            WitnessEvent::Process(ProcessEvent::Resumed { .. }) => self.stopped = false,
            WitnessEvent::Process(ProcessEvent::Paused { .. } | ProcessEvent::Crashed { .. })
            | WitnessEvent::Commanded { .. } => {
                self.stopped = matches!(
                    entry.seen,
                    WitnessEvent::Process(ProcessEvent::Paused { .. })
                );
                self.due_ns = None;
            }
            WitnessEvent::ForcedClose { .. } => {
                self.reported_ns = entry.at_ns;
                if !self.has_reacted() {
                    self.noticed_ns = Some(entry.at_ns);
                }
            }
            WitnessEvent::State { to, .. } => {
                self.state.clone_from(to);
                if self.has_reacted() {
                    self.noticed_ns = None;
                    self.due_ns = None;
                }
            }
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                "booting".clone_into(&mut self.state);
                self.noticed_ns = None;
                self.due_ns = None;
                self.stopped = false;
            }
            WitnessEvent::Process(ProcessEvent::Running {
                process, journal, ..
            }) => self.lost |= *process > 1 && !matches!(journal.as_str(), "clean" | "torn"),
            _ => {}
        }
        Ok(())
    }

    fn at_rest(&mut self, rest: &Rest) -> Result<(), String> {
        let (forced, by_hand) = self.others(&rest.truth);
        let positions = rest.truth.pointer("/accounts/0/positions");
        let positions = positions.and_then(Value::as_array);
        let books = self.instruments.iter().filter(|_| !self.lost);
        for book in books.flat_map(|instrument| wire::books(instrument)) {
            let closed = forced.get(&book).copied().unwrap_or_default();
            let account: Decimal = positions
                .into_iter()
                .flatten()
                .filter(|one| wire::book_of(one) == book)
                .filter_map(|one| wire::number(one, "qty"))
                .sum();
            let own = rest.view.strategies.iter().flat_map(|one| &one.positions);
            let own: Decimal = own
                .filter(|held| wire::book(&held.instrument, &held.position_side) == book)
                .map(|held| wire::decimal(&held.qty))
                .sum();
            let most = by_hand.get(&book).copied().unwrap_or_default();
            if (own - account).abs() > most {
                return Err(format!(
                    "the venue closed {closed} of {book} itself; the account holds {account}, \
                     the strategies {own}, and {most} was traded by hand"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::log::{Log, at_rest, terms, verdict};
    use crate::witness::{PositionView, StrategyView, View};

    fn rule(reaction: &str) -> Forced {
        let mut terms = terms();
        reaction.clone_into(&mut terms.on_liquidation);
        Forced::new(&terms)
    }

    /// The venue, or somebody else, closed 1 of 2.
    fn truth(id: &str) -> Value {
        json!({"accounts": [{
            "orders": [{"order_id": 9, "client_order_id": id}],
            "trades": [{"order_id": 9, "surface": "futures", "symbol": "BTCUSDT", "qty": "1"}],
            "positions": [{"symbol": "BTCUSDT", "position_side": "BOTH", "qty": "1"}],
        }]})
    }

    fn holding(qty: &str) -> View {
        View {
            strategies: vec![StrategyView {
                id: "mm".to_owned(),
                positions: vec![PositionView {
                    dust: String::new(),
                    instrument: "futures:BTCUSDT".to_owned(),
                    position_side: "BOTH".to_owned(),
                    qty: qty.to_owned(),
                    cost: "0".to_owned(),
                }],
                ..StrategyView::default()
            }],
            ..View::default()
        }
    }

    #[test]
    fn strategies_that_hold_more_than_the_account_are_found() {
        let judged = |id, qty| at_rest(rule("halt"), &Log::new(), truth(id), holding(qty));
        assert_eq!(judged("autoclose-1", "1"), Ok(()));
        assert!(judged("autoclose-1", "2").is_err());
        assert!(judged("adl_autoclose", "2").is_err());
        assert_eq!(judged("web_1", "2"), Ok(()), "a person closed the position");
        assert!(
            judged("mm.a.1", "2").is_err(),
            "an own order closed the position"
        );
    }

    #[test]
    fn hedge_mode_sides_are_judged_separately() {
        for (side, sign) in [("LONG", ""), ("SHORT", "-")] {
            let signed = |qty: &str| format!("{sign}{qty}");
            let mut truth = truth("autoclose-1");
            let account = &mut truth["accounts"][0];
            account["trades"][0]["position_side"] = json!(side);
            account["positions"][0]["position_side"] = json!(side);
            account["positions"][0]["qty"] = json!(signed("1"));
            let judged = |of: &str, qty: &str| {
                let mut view = holding(qty);
                view.strategies[0].positions[0].position_side = of.to_owned();
                at_rest(rule("halt"), &Log::new(), truth.clone(), view)
            };
            assert_eq!(judged(side, &signed("1")), Ok(()), "{side}");
            assert!(judged(side, &signed("2")).is_err(), "{side}");
        }
    }

    #[test]
    fn an_unnoticed_forced_close_is_found() {
        let order = json!({"s": "BTCUSDT", "c": "adl_autoclose", "z": "1"});
        let event = json!({"e": "ORDER_TRADE_UPDATE", "o": order});
        let act = || Log::new().start().state("ready").act(json!({"act": "adl"}));
        let reported = || act().user_event(&event);
        let late = |log: Log| verdict(rule("halt"), &log.later_ms(6_000).pong());
        assert!(late(reported()).is_err());
        assert_eq!(late(reported().state("halted")), Ok(()));
        assert_eq!(late(reported().start()), Ok(()), "the process was killed");
    }

    #[test]
    fn a_run_that_ignores_its_reaction_is_found() {
        let reported = |reaction: &str, to: &str| {
            let log = Log::new().state("ready").forced_close();
            let log = log.state(to).later_ms(1).booked("mm.a.1", 1, "1");
            verdict(rule(reaction), &log)
        };
        assert_eq!(reported("halt", "halted"), Ok(()));
        assert!(reported("halt", "ready").is_err());
        assert!(reported("halt", "paused").is_err());
        assert_eq!(reported("pause", "paused"), Ok(()));
        assert!(reported("pause", "ready").is_err());
        assert_eq!(reported("continue", "ready"), Ok(()));
    }
}
