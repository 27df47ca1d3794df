//! Orders that no strategy intended: the runtime's own closing orders. With them it closes a
//! strategy's position because of a flatten or because of a fault of the strategy. Each must be a
//! market order of such an act, must not close more than the strategy holds, and must be the only
//! one: an earlier one of unknown outcome may still close. Beside a limit order that may be open it
//! must be reduce-only, and it must leave the part that this limit order may close.
//!
//! An act lasts until the operator resumes; an act of a stop lasts until the process ends. If a
//! command for one strategy halted or flattened it, only a resume of that strategy ends the act.
//! The journal records the act. So the next process may continue an act that the last process was
//! ordered to end just before it was killed.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::orders::Orders;
use super::wire::{self, Placed};
use crate::witness::{Entry, ProcessEvent, Terms, WitnessEvent};

/// The positions that the runtime may close.
#[derive(Debug)]
pub struct Closings {
    orders: Orders,
    /// Every strategy, and whether its fault closes its positions.
    strategies: BTreeMap<String, bool>,
    /// Strategies that are being closed, and those that ever were.
    acts: BTreeSet<String>,
    ever: BTreeSet<String>,
    faulty: BTreeSet<String>,
    /// Strategies that were halted by a command for one strategy.
    alone: BTreeSet<String>,
    /// Positions from before a lost journal are unowned.
    lost: bool,
    /// An orderly stop closes everything.
    stop_closes: bool,
    /// Such a stop is in progress: no resume ends its closes.
    is_stopping: bool,
}

impl Closings {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        let strategies = terms.strategies.iter();
        Self {
            orders: Orders::new(terms),
            strategies: strategies
                .map(|s| (s.id.clone(), s.on_fault == "flatten"))
                .collect(),
            acts: BTreeSet::new(),
            ever: BTreeSet::new(),
            faulty: BTreeSet::new(),
            alone: BTreeSet::new(),
            lost: false,
            stop_closes: terms.on_stop == "flatten",
            is_stopping: false,
        }
    }

    /// Handles an entry.
    pub fn see(&mut self, entry: &Entry) {
        self.orders.see(entry);
        match &entry.seen {
            WitnessEvent::Configured { on_stop, .. } => self.stop_closes = on_stop == "flatten",
            WitnessEvent::Commanded { strategy, command } => {
                self.commanded(strategy.as_ref(), command);
            }
            WitnessEvent::Quarantined { strategy }
                if self.strategies.get(strategy) == Some(&true) =>
            {
                self.faulty.insert(strategy.clone());
                self.begin(vec![strategy.clone()]);
            }
            WitnessEvent::Stopping { .. } if self.stop_closes => {
                self.is_stopping = true;
                self.begin(self.strategies.keys().cloned().collect());
            }
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                self.is_stopping = false;
                self.acts.clone_from(&self.ever);
            }
            WitnessEvent::Process(ProcessEvent::Running {
                process, journal, ..
            }) => self.lost |= *process > 1 && !matches!(journal.as_str(), "clean" | "torn"),
            _ => {}
        }
    }

    fn commanded(&mut self, strategy: Option<&String>, command: &str) {
        let all = self.strategies.keys().cloned();
        let concerned: Vec<_> = strategy.map_or(all.collect(), |one| vec![one.clone()]);
        match command {
            "halt" | "flatten" => self.alone.extend(strategy.cloned()),
            "resume" if !self.is_stopping => {
                if let Some(strategy) = strategy {
                    self.alone.remove(strategy);
                }
                let stays = |id: &String| self.faulty.contains(id) || self.alone.contains(id);
                self.acts.retain(|id| !concerned.contains(id) || stays(id));
            }
            _ => {}
        }
        if command == "flatten" {
            self.begin(concerned);
        }
    }

    fn begin(&mut self, concerned: Vec<String>) {
        self.ever.extend(concerned.iter().cloned());
        self.acts.extend(concerned);
    }

    /// Judges an order that no strategy intended and that is about to be sent.
    ///
    /// # Errors
    /// Why it is not a valid closing order.
    pub fn judge(&self, placed: &Placed) -> Result<(), String> {
        let (id, strategy) = (&placed.id, wire::strategy(&placed.id));
        if placed.price.is_some() {
            return Err(format!("{id} is sent, but no strategy intended it"));
        }
        if !self.acts.contains(strategy) {
            return Err(format!(
                "{id} is sent: no strategy intended it, and no position of {strategy} has to be closed"
            ));
        }
        let held = self.orders.position(strategy, &placed.book());
        let alongside = self.orders.live().filter(|own| {
            let other = &own.placed;
            wire::strategy(&other.id) == strategy && other.book() == placed.book()
        });
        let mut may_close = placed.qty;
        for own in alongside {
            let other = &own.placed;
            if other.price.is_none() || !placed.reduces {
                return Err(format!("{id} closes while {} may be open", other.id));
            }
            if other.buys == placed.buys {
                may_close += own.left();
            }
            if may_close > held.abs() {
                return Err(format!(
                    "{id} closes {} of {held} while {} may close {}",
                    placed.qty,
                    other.id,
                    own.left()
                ));
            }
        }
        let after = if placed.buys {
            held + placed.qty
        } else {
            held - placed.qty
        };
        let flips = after != Decimal::ZERO && after.is_sign_positive() != held.is_sign_positive();
        if !self.lost && (flips || after.abs() >= held.abs()) {
            return Err(format!(
                "{id} closes {} of {strategy}, which holds {held}",
                placed.qty
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::check::intents::Intents;
    use crate::check::log::{Log, terms, verdict};
    use crate::witness::Terms;

    /// A strategy that holds 1.
    fn holding() -> Log {
        let bought = Log::new().intend("mm.a.1").place("mm.a.1");
        bought.order_event("mm.a.1", "FILLED", "1")
    }

    fn on_fault(word: &str) -> Terms {
        let mut terms = terms();
        word.clone_into(&mut terms.strategies[0].on_fault);
        terms
    }

    fn judged(log: &Log) -> Result<(), String> {
        verdict(Intents::new(&terms()), log)
    }

    #[test]
    fn a_flatten_may_close_with_one_order() {
        let closed = holding().command("flatten", None);
        let closed = closed.place_market("mm.a.2", "SELL");
        assert_eq!(judged(&closed), Ok(()));
        let again = || {
            closed
                .clone()
                .without_answer()
                .place_market("mm.a.3", "SELL")
        };
        assert!(
            judged(&again()).is_err(),
            "the first order may be in flight"
        );
        let done = closed.order_event("mm.a.2", "FILLED", "1");
        assert!(judged(&done.place_market("mm.a.3", "SELL")).is_err());
    }

    #[test]
    fn a_close_without_a_command_is_found() {
        let sells = |log: Log| judged(&log.place_market("mm.a.2", "SELL"));
        assert!(sells(holding()).is_err());
        assert!(sells(holding().command("halt", None)).is_err());
        assert!(sells(holding().command("flatten", Some("other"))).is_err());
        assert_eq!(sells(holding().command("flatten", Some("mm"))), Ok(()));
        let stopping = |log: Log| log.start().stopping().command("resume", None);
        let mut closes = terms();
        "flatten".clone_into(&mut closes.on_stop);
        let stopped = stopping(holding()).place_market("mm.a.2", "SELL");
        assert_eq!(verdict(Intents::new(&closes), &stopped), Ok(()));
        let over = holding().command("flatten", None).command("resume", None);
        assert!(sells(over).is_err());
        let alone = || holding().command("flatten", Some("mm")).start();
        assert_eq!(sells(alone().command("resume", None)), Ok(()));
        assert!(sells(alone().command("resume", Some("mm"))).is_err());
    }

    #[test]
    fn a_closing_order_that_opens_is_found() {
        let flat = Log::new().command("flatten", None);
        assert!(judged(&flat.place_market("mm.a.1", "SELL")).is_err());
        let held = holding().command("flatten", None);
        assert!(judged(&held.place_market("mm.a.2", "BUY")).is_err());
    }

    #[test]
    fn closing_while_an_order_may_be_open_is_found() {
        let open = holding().intend("mm.a.2").place("mm.a.2");
        let closed = open.command("flatten", None).place_market("mm.a.3", "SELL");
        assert!(judged(&closed).is_err());
    }

    #[test]
    fn a_reducing_close_leaves_the_part_of_a_limit_order() {
        let opening = holding().intend("mm.a.2").place("mm.a.2");
        let opening = opening.command("flatten", None);
        assert_eq!(judged(&opening.place_close("mm.a.3", "SELL", "1")), Ok(()));
        let exit = || {
            let log = holding().intend_order("mm.a.2", "SELL", Some("100"), false);
            let log = log.place_sell("mm.a.2");
            log.command("flatten", None)
        };
        assert!(judged(&exit().place_close("mm.a.3", "SELL", "1")).is_err());
        let part = exit().order_event("mm.a.2", "PARTIALLY_FILLED", "0.4");
        assert!(judged(&part.place_close("mm.a.3", "SELL", "0.1")).is_err());
        let ended = exit().order_event("mm.a.2", "CANCELED", "0.4");
        assert_eq!(judged(&ended.place_close("mm.a.3", "SELL", "0.6")), Ok(()));
    }

    #[test]
    fn a_fault_closes_only_if_configured() {
        let log = holding().quarantined("mm").place_market("mm.a.2", "SELL");
        let reported = |word| verdict(Intents::new(&on_fault(word)), &log);
        assert_eq!(reported("flatten"), Ok(()));
        assert!(reported("cancel").is_err());
    }
}
