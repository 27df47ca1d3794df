//! At most one live order per intent: an order that is sent was intended once, under that very id,
//! by the process that sends it; and the venue took each id at most once. An order that is sent
//! again because its outcome is unknown has either its old id or one that nobody intended.
//!
//! Where an operator or a strategy's fault wants positions closed, the runtime makes market orders
//! of its own: of those, nothing but their ids is known here.

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use super::wire::{self, Asked, Placed};
use crate::witness::{Entry, Rest, Seen};

/// The rule.
#[derive(Debug, Default)]
pub struct Intents {
    /// Intended and not sent yet, by the life of the process that intended it.
    waiting: BTreeMap<String, u32>,
    sent: BTreeSet<String>,
}

impl Check for Intents {
    fn rule(&self) -> &'static str {
        "at most one live order per intent"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            Seen::Intended {
                process,
                client_order_id,
            } => {
                self.waiting.insert(client_order_id.clone(), *process);
            }
            Seen::Sent(request) => {
                let Asked::Place(orders) = wire::asked(request) else {
                    return Ok(());
                };
                for placed in orders {
                    self.sent(&placed, request.process)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn at_rest(&mut self, rest: &Rest) -> Result<(), String> {
        let repeated = rest.truth.pointer("/accounts/0/accepted/repeated");
        let repeated = repeated.and_then(serde_json::Value::as_object);
        let own = |(id, _): &(&String, &serde_json::Value)| self.sent.contains(*id);
        match repeated.into_iter().flatten().find(own) {
            Some((id, times)) => Err(format!("the venue took {id} {times} times")),
            None => Ok(()),
        }
    }
}

impl Intents {
    fn sent(&mut self, placed: &Placed, process: u32) -> Result<(), String> {
        let id = &placed.id;
        if !self.sent.insert(id.to_owned()) {
            return Err(format!("{id} is sent a second time"));
        }
        match self.waiting.remove(id) {
            Some(intended) if intended == process => Ok(()),
            Some(intended) => Err(format!(
                "{id} was intended in life {intended} of the process and is sent in life {process}"
            )),
            None if placed.price.is_none() => Ok(()),
            None => Err(format!("{id} is sent, and no strategy intended it")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, verdict};

    #[test]
    fn each_intent_is_sent_once() {
        let sound = Log::new()
            .intend("mm.a.1")
            .place("mm.a.1")
            .intend("mm.a.2")
            .place("mm.a.2");
        assert_eq!(verdict(Intents::default(), &sound), Ok(()));
    }

    #[test]
    fn an_order_that_nobody_intended_is_found() {
        let broken = Log::new().intend("mm.a.1").place("mm.a.1").place("mm.a.2");
        assert!(verdict(Intents::default(), &broken).is_err());
    }

    #[test]
    fn an_order_that_is_sent_again_is_found() {
        let broken = Log::new().intend("mm.a.1").place("mm.a.1").place("mm.a.1");
        assert!(verdict(Intents::default(), &broken).is_err());
    }

    #[test]
    fn an_intent_of_a_life_that_ended_is_not_sent_any_more() {
        let broken = Log::new().intend("mm.a.1").start().place("mm.a.1");
        assert!(verdict(Intents::default(), &broken).is_err());
    }
}
