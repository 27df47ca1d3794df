//! An order leaves only after the record of its intent is durable, and a cancel only after its
//! order. Market orders that no strategy intended close positions for the operator or after a
//! fault; their record is not an intent.

use std::collections::BTreeSet;

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, ProcessEvent, WitnessEvent};

/// The rule.
#[derive(Debug, Default)]
pub struct Durable {
    recorded: BTreeSet<String>,
    intended: BTreeSet<String>,
    sent: BTreeSet<String>,
}

impl Check for Durable {
    fn rule(&self) -> &'static str {
        "an order leaves only after its record is durable"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            // The next process does not know what was sent before it, and its journal may hold the
            // intent.
            WitnessEvent::Process(ProcessEvent::Started { .. }) => self.intended.clear(),
            WitnessEvent::Durable {
                client_order_ids, ..
            } => self.recorded.extend(client_order_ids.iter().cloned()),
            WitnessEvent::Intended {
                client_order_id, ..
            } => {
                self.intended.insert(client_order_id.clone());
            }
            WitnessEvent::Sent(request) => match wire::request_kind(request) {
                RequestKind::Place(orders) => {
                    for placed in orders {
                        let closes = placed.price.is_none() && !self.intended.contains(&placed.id);
                        if !closes && !self.recorded.contains(&placed.id) {
                            return Err(format!(
                                "{} is sent, but its record is not durable",
                                placed.id
                            ));
                        }
                        self.sent.insert(placed.id);
                    }
                }
                RequestKind::Cancel(ids) => {
                    let early =
                        |id: &&String| self.intended.contains(*id) && !self.sent.contains(*id);
                    if let Some(id) = ids.iter().find(early) {
                        return Err(format!("the cancel of {id} is sent before the order"));
                    }
                }
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, verdict};

    #[test]
    fn the_next_process_may_cancel_orders_that_may_have_left() {
        let intended = || Log::new().intend("mm.a.1");
        let sound = intended().start().cancel("mm.a.1");
        assert_eq!(verdict(Durable::default(), &sound), Ok(()));
        assert!(verdict(Durable::default(), &intended().cancel("mm.a.1")).is_err());
    }

    #[test]
    fn orders_wait_for_the_disk_and_cancels_for_their_orders() {
        let sound = Log::new()
            .intend("mm.a.1")
            .durable("mm.a.1")
            .place("mm.a.1")
            .cancel("mm.a.1");
        assert_eq!(verdict(Durable::default(), &sound), Ok(()));
    }

    #[test]
    fn an_order_that_overtakes_its_record_is_found() {
        let broken = Log::new()
            .intend("mm.a.1")
            .place("mm.a.1")
            .durable("mm.a.1");
        assert!(verdict(Durable::default(), &broken).is_err());
    }

    #[test]
    fn a_cancel_that_overtakes_its_order_is_found() {
        let broken = Log::new().intend("mm.a.1").cancel("mm.a.1");
        assert!(verdict(Durable::default(), &broken).is_err());
    }
}
