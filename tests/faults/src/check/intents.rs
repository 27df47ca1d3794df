//! At most one live order per intent. An order that is sent was intended once, with exactly this id
//! and the intent's order parameters, by the process that sends it. The venue accepted each id at
//! most once. An order that is sent again because its outcome is unknown has either its old id or
//! an id without an intent, so the rule finds it.
//!
//! Orders that no strategy intended are closing acts of the runtime; `closings.rs` judges them.

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use super::closings::Closings;
use super::wire::{self, Placed, RequestKind};
use crate::witness::{Entry, IntentTerms, Rest, Terms, WitnessEvent};

/// The rule.
#[derive(Debug)]
pub struct Intents {
    /// Intended and not sent yet, with the life of the process that intended it.
    waiting: BTreeMap<String, (u32, IntentTerms)>,
    sent: BTreeSet<String>,
    closings: Closings,
}

impl Check for Intents {
    fn rule(&self) -> &'static str {
        "at most one live order per intent"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Intended {
                process,
                client_order_id,
                terms,
            } => {
                let intended = (*process, terms.clone());
                self.waiting.insert(client_order_id.clone(), intended);
            }
            WitnessEvent::Sent(request) => {
                if let RequestKind::Place(orders) = wire::request_kind(request) {
                    for placed in orders {
                        self.sent(&placed, request.process)?;
                    }
                }
            }
            _ => {}
        }
        self.closings.see(entry);
        Ok(())
    }

    fn at_rest(&mut self, rest: &Rest) -> Result<(), String> {
        let repeated = rest.truth.pointer("/accounts/0/accepted/repeated");
        let repeated = repeated.and_then(serde_json::Value::as_object);
        let own = |(id, _): &(&String, &serde_json::Value)| self.sent.contains(*id);
        match repeated.into_iter().flatten().find(own) {
            Some((id, times)) => Err(format!("the venue accepted {id} {times} times")),
            None => Ok(()),
        }
    }
}

impl Intents {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        Self {
            waiting: BTreeMap::new(),
            sent: BTreeSet::new(),
            closings: Closings::new(terms),
        }
    }

    fn sent(&mut self, placed: &Placed, process: u32) -> Result<(), String> {
        let id = &placed.id;
        if !self.sent.insert(id.to_owned()) {
            return Err(format!("{id} is sent a second time"));
        }
        let Some((intended, terms)) = self.waiting.remove(id) else {
            return self.closings.judge(placed);
        };
        if intended != process {
            return Err(format!(
                "{id} was intended in life {intended} of the process, but is sent in life {process}"
            ));
        }
        if !is_as_meant(placed, &terms) {
            return Err(format!("{terms:?} was intended, but {placed:?} is sent"));
        }
        Ok(())
    }
}

fn is_as_meant(placed: &Placed, terms: &IntentTerms) -> bool {
    let number = |text: &Option<String>| text.as_deref().map(wire::decimal);
    let closes_side = wire::closes_side(placed.buys, &terms.position_side);
    wire::book(&terms.instrument, &terms.position_side) == placed.book()
        && placed.buys == (terms.side == "BUY")
        && placed.qty == number(&terms.qty).unwrap_or_default()
        && placed.price == number(&terms.price)
        && placed.reduces == (terms.reduce_only || closes_side)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, terms, verdict};

    fn rule() -> Intents {
        Intents::new(&terms())
    }

    #[test]
    fn each_intent_is_sent_once() {
        let sound = Log::new()
            .intend("mm.a.1")
            .place("mm.a.1")
            .intend("mm.a.2")
            .place("mm.a.2");
        assert_eq!(verdict(rule(), &sound), Ok(()));
    }

    #[test]
    fn an_order_without_an_intent_is_found() {
        let broken = Log::new().intend("mm.a.1").place("mm.a.1").place("mm.a.2");
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn a_market_order_that_is_sent_again_under_another_id_is_found() {
        let meant = Log::new().intend_order("mm.a.1", "BUY", None, false);
        let sent = meant.place_market("mm.a.1", "BUY").without_answer();
        assert_eq!(verdict(rule(), &sent), Ok(()));
        assert!(verdict(rule(), &sent.place_market("mm.a.2", "BUY")).is_err());
    }

    #[test]
    fn an_order_that_is_sent_again_is_found() {
        let broken = Log::new().intend("mm.a.1").place("mm.a.1").place("mm.a.1");
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn terms_that_differ_from_the_intent_are_found() {
        let broken = Log::new().intend("mm.a.1").place_sell("mm.a.1");
        assert!(verdict(rule(), &broken).is_err());
        let broken = Log::new().intend("mm.a.1").place_market("mm.a.1", "BUY");
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn an_intent_of_an_ended_process_is_not_sent() {
        let broken = Log::new().intend("mm.a.1").start().place("mm.a.1");
        assert!(verdict(rule(), &broken).is_err());
    }
}
