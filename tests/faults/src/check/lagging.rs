//! Responses may be behind the stream. The runtime must not revive an order after it was notified
//! of its end, only because a list still has it. It must not report an open order as denied because
//! a query does not find it yet.

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use super::orders::Orders;
use super::wire;
use crate::witness::{Entry, RequestId, Terms, WitnessEvent};

/// The rule.
#[derive(Debug)]
pub struct Lagging {
    orders: Orders,
    /// Orders whose final event is in flight, by event.
    reported: BTreeMap<u64, String>,
    /// Orders of whose end the runtime was notified.
    ended: BTreeSet<String>,
    /// The venue's own responses, to compare them with those that the runtime received.
    answered: BTreeMap<RequestId, String>,
    /// The runtime received a false response.
    misled: bool,
}

impl Lagging {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        Self {
            orders: Orders::new(terms),
            reported: BTreeMap::new(),
            ended: BTreeSet::new(),
            answered: BTreeMap::new(),
            misled: false,
        }
    }
}

impl Check for Lagging {
    fn rule(&self) -> &'static str {
        "an answer that is behind changes no order"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        self.orders.see(entry);
        match &entry.seen {
            WitnessEvent::Emitted { event, text, .. } => {
                let report = wire::event_report(text).filter(wire::Report::is_final);
                if let Some(report) = report {
                    self.reported.insert(*event, report.id);
                }
            }
            WitnessEvent::Delivered { event, .. } => {
                self.ended.extend(self.reported.remove(event));
            }
            WitnessEvent::Answered {
                request,
                copy: 0,
                answer,
            } => {
                self.answered.insert(*request, answer.body.clone());
            }
            WitnessEvent::AnswerReceived {
                request,
                answer: Some(answer),
            } => {
                let own = self.answered.remove(request);
                self.misled |= own.is_some_and(|own| own != answer.body);
                let ended = wire::reports(answer).into_iter();
                let ended = ended.filter(wire::Report::is_final);
                self.ended.extend(ended.map(|report| report.id));
            }
            WitnessEvent::Adjusted { kind, of, .. }
                if kind == "alive" && self.ended.contains(of) =>
            {
                return Err(format!(
                    "{of} is revived, although the runtime was notified of its end"
                ));
            }
            WitnessEvent::Denied { client_order_id } if !self.misled => {
                let mut live = self.orders.live();
                let open = live.find(|own| own.placed.id == *client_order_id && own.accepted);
                if open.is_some_and(|own| own.left() > rust_decimal::Decimal::ZERO) {
                    return Err(format!(
                        "{client_order_id} is reported as denied, but it is open"
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, terms, verdict};

    fn judged(log: &Log) -> Result<(), String> {
        verdict(Lagging::new(&terms()), log)
    }

    #[test]
    fn an_ended_order_that_is_revived_is_found() {
        let ended = |status| {
            Log::new()
                .order("mm.a.1")
                .order_event("mm.a.1", status, "0")
        };
        assert!(judged(&ended("CANCELED").revived("mm.a.1")).is_err());
        assert_eq!(judged(&ended("NEW").revived("mm.a.1")), Ok(()));
    }

    #[test]
    fn an_open_order_reported_as_denied_is_found() {
        let open = || Log::new().order("mm.a.1").order_event("mm.a.1", "NEW", "0");
        assert!(judged(&open().denied("mm.a.1")).is_err());
        let ended = open().order_event("mm.a.1", "CANCELED", "0");
        assert_eq!(judged(&ended.denied("mm.a.1")), Ok(()));
        assert_eq!(judged(&Log::new().order("mm.a.1").denied("mm.a.1")), Ok(()));
    }
}
