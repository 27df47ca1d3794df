//! A fill that the response to a placement, a cancel or a query reports is booked within
//! [`BOOKED_NS`], although its event may come much later. Lists of orders do not count, because
//! they may be old. Only futures orders that the running process sent count.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, ProcessEvent, RequestId, WitnessEvent};

/// The runtime waits a quarter of a second for an event. The rest is tolerance for steps of the
/// clock.
const BOOKED_NS: i64 = 2_000_000_000;

/// The executed quantity that a response reports and that is not booked yet.
#[derive(Debug)]
struct Due {
    executed: Decimal,
    until_ns: i64,
}

/// The rule.
#[derive(Debug, Default)]
pub struct Stated {
    /// Futures orders that this process sent.
    sent: BTreeSet<String>,
    /// Requests about single orders.
    open_requests: BTreeSet<RequestId>,
    /// The venue's own responses.
    answered: BTreeMap<RequestId, String>,
    booked: BTreeMap<String, Decimal>,
    due: BTreeMap<String, Due>,
}

impl Stated {
    fn answer_received(&mut self, at_ns: i64, report: &wire::Report) {
        let booked = self.booked.get(&report.id).copied().unwrap_or_default();
        if !self.sent.contains(&report.id) || report.executed <= booked {
            return;
        }
        let due = Due {
            executed: report.executed,
            until_ns: at_ns + BOOKED_NS,
        };
        self.due.entry(report.id.clone()).or_insert(due);
    }

    fn overdue(&self, at_ns: i64) -> Result<(), String> {
        let mut late = self.due.iter().filter(|(_, due)| at_ns > due.until_ns);
        let Some((id, due)) = late.next() else {
            return Ok(());
        };
        let booked = self.booked.get(id).copied().unwrap_or_default();
        Err(format!(
            "a response reported {} of {id} as executed more than 2 s ago, but {booked} is booked",
            due.executed
        ))
    }
}

impl Check for Stated {
    fn rule(&self) -> &'static str {
        "a fill that an answer states is booked"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Sent(request) => {
                let kind = wire::request_kind(request);
                if matches!(
                    kind,
                    RequestKind::Place(_) | RequestKind::Cancel(_) | RequestKind::Query(_)
                ) {
                    self.open_requests.insert(request.id);
                }
                if let RequestKind::Place(placed) = kind {
                    let futures = (placed.into_iter())
                        .filter(|order| order.instrument.starts_with("futures:"));
                    self.sent.extend(futures.map(|order| order.id));
                }
            }
            WitnessEvent::Answered {
                request,
                copy: 0,
                answer,
            } if self.open_requests.contains(request) => {
                self.answered.insert(*request, answer.body.clone());
            }
            WitnessEvent::AnswerReceived {
                request,
                answer: Some(answer),
            } => {
                let own = self.answered.remove(request);
                if own.is_some_and(|own| own == answer.body) {
                    for report in wire::reports(answer) {
                        self.answer_received(entry.at_ns, &report);
                    }
                }
            }
            WitnessEvent::Booked {
                client_order_id,
                qty,
                ..
            } => {
                let booked = self.booked.entry(client_order_id.clone()).or_default();
                *booked += wire::decimal(qty);
                let is_booked = |due: &Due| *booked >= due.executed;
                if self.due.get(client_order_id).is_some_and(is_booked) {
                    self.due.remove(client_order_id);
                }
            }
            WitnessEvent::Process(ProcessEvent::Started { .. }) => *self = Self::default(),
            // The process does not see this time pass.
            WitnessEvent::Process(_) => self.due.clear(),
            _ => {}
        }
        self.overdue(entry.at_ns)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::log::{Log, verdict};

    /// An order of 1 that the response reports as filled.
    fn stated() -> Log {
        let body = json!({"clientOrderId": "mm.a.1", "orderId": 1, "status": "FILLED", "executedQty": "1"});
        Log::new()
            .start()
            .order("mm.a.1")
            .with_answer(200, &[], &body.to_string())
    }

    #[test]
    fn a_reported_fill_that_is_not_booked_is_found() {
        let late = stated().later_ms(2_100).top("futures:BTCUSDT", "100");
        assert!(verdict(Stated::default(), &late).is_err());
        let booked = stated().later_ms(250).booked("mm.a.1", -1, "1");
        let booked = booked.later_ms(2_100).top("futures:BTCUSDT", "100");
        assert_eq!(verdict(Stated::default(), &booked), Ok(()));
    }

    #[test]
    fn a_killed_process_need_not_book_the_fill() {
        let killed = stated().start_after("clean").later_ms(3_000);
        let killed = killed.top("futures:BTCUSDT", "100");
        assert_eq!(verdict(Stated::default(), &killed), Ok(()));
    }
}
