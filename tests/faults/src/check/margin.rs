//! After a margin call nothing opens on futures until the operator resumes: the venue warned that
//! the account may be liquidated.

use std::collections::BTreeSet;

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, ProcessEvent, WitnessEvent};

/// The rule.
#[derive(Debug, Default)]
pub struct Margin {
    /// Margin call events in flight.
    calls: BTreeSet<u64>,
    /// A margin call came, and the operator has not resumed.
    is_called: bool,
    /// The process is stopped: it may drop the connection before it reads its messages.
    is_paused: bool,
    /// Orders that were intended meanwhile.
    doubtful: BTreeSet<String>,
}

impl Check for Margin {
    fn rule(&self) -> &'static str {
        "nothing opens after a margin call"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            // Data that the journal does not have yet is lost with a process.
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                (self.is_called, self.is_paused) = (false, false);
            }
            WitnessEvent::Process(ProcessEvent::Paused { .. }) => self.is_paused = true,
            WitnessEvent::Process(ProcessEvent::Resumed { .. }) => self.is_paused = false,
            WitnessEvent::Emitted { event, text, .. } if text.contains("\"MARGIN_CALL\"") => {
                self.calls.insert(*event);
            }
            WitnessEvent::Delivered { event, .. } if !self.is_paused => {
                self.is_called |= self.calls.contains(event);
            }
            WitnessEvent::Commanded {
                strategy: None,
                command,
            } if command == "resume" => self.is_called = false,
            WitnessEvent::Intended {
                client_order_id,
                terms,
                ..
            } if self.is_called && terms.instrument.starts_with("futures:") => {
                self.doubtful.insert(client_order_id.clone());
            }
            WitnessEvent::Sent(request) => {
                let RequestKind::Place(orders) = wire::request_kind(request) else {
                    return Ok(());
                };
                let mut opening = orders.iter().filter(|placed| !placed.reduces);
                if let Some(placed) = opening.find(|placed| self.doubtful.contains(&placed.id)) {
                    return Err(format!("{} was accepted after a margin call", placed.id));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::log::{Log, verdict};

    fn called() -> Log {
        Log::new().start().user_event(&json!({"e": "MARGIN_CALL"}))
    }

    #[allow(clippy::needless_pass_by_value, reason = "a log is made for each call")]
    fn judged(log: Log) -> Result<(), String> {
        verdict(Margin::default(), &log)
    }

    #[test]
    fn an_opening_order_after_a_margin_call_is_found() {
        assert!(judged(called().order("mm.a.1")).is_err());
        assert_eq!(judged(Log::new().start().order("mm.a.1")), Ok(()));
        let other = Log::new().start().user_event(&json!({"e": "OTHER"}));
        assert_eq!(judged(other.order("mm.a.1")), Ok(()));
    }

    #[test]
    fn exits_and_earlier_orders_are_accepted() {
        let exit = called().intend_order("mm.a.1", "SELL", None, true);
        assert_eq!(judged(exit.place_reducing("mm.a.1")), Ok(()));
        let before = Log::new().start().intend("mm.a.1");
        let before = before.user_event(&json!({"e": "MARGIN_CALL"}));
        assert_eq!(judged(before.place("mm.a.1")), Ok(()));
    }

    #[test]
    fn a_margin_call_lasts_until_the_operator_resumes() {
        let resumed = called().command("resume", None);
        assert_eq!(judged(resumed.order("mm.a.1")), Ok(()));
        let one = called().command("resume", Some("mm"));
        assert!(judged(one.order("mm.a.1")).is_err());
    }
}
