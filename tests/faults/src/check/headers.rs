//! Ordinary requests keep within the weight that headers show. Once a response reports that the
//! minute's weight is used up, by any client, no intended order and no depth request may leave
//! until a header shows less or some time has passed. Cancels, closes and renewals may leave.

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, ProcessEvent, RequestId, WitnessEvent};

/// Weight of a minute on futures (docs/interface/limits.md#limits-in-force).
const LIMIT: u32 = 2_400;
/// For this time a header is fresh; later the venue's minute may have begun anew.
const FRESH_NS: i64 = 2_000_000_000;
/// The header with the used weight.
const USED: &str = "x-mbx-used-weight-1m";

/// The rule.
#[derive(Debug, Default)]
pub struct Headers {
    futures: BTreeSet<RequestId>,
    /// The last header value and when it was received.
    used: Option<(u32, i64)>,
    /// Orders that strategies intended and that were not sent yet.
    intended: BTreeMap<String, i64>,
}

impl Check for Headers {
    fn rule(&self) -> &'static str {
        "ordinary requests keep within the weight that headers show"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                self.futures.clear();
                self.used = None;
            }
            WitnessEvent::Intended {
                client_order_id, ..
            } => {
                self.intended.insert(client_order_id.clone(), entry.at_ns);
            }
            WitnessEvent::Sent(request) if request.surface == "futures" => {
                self.futures.insert(request.id);
                let kind = wire::request_kind(request);
                let opens = matches!(&kind, RequestKind::Place(orders)
                    if orders.iter().any(|order| self.intended.remove(&order.id).is_some()));
                let ordinary = opens || request.path.ends_with("/depth");
                if let Some((used, received_ns)) = self.used
                    && ordinary
                    && used >= LIMIT
                    && entry.at_ns <= received_ns + FRESH_NS
                {
                    let ms = (entry.at_ns - received_ns) / 1_000_000;
                    return Err(format!(
                        "{} is sent {ms} ms after a header showed {used} of {LIMIT} used",
                        request.route
                    ));
                }
            }
            WitnessEvent::AnswerReceived {
                request,
                answer: Some(answer),
            } if self.futures.remove(request) => {
                let used = answer.header(USED).and_then(|text| text.parse().ok());
                self.used = used.map(|used| (used, entry.at_ns)).or(self.used);
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, verdict};

    fn used(weight: &str) -> Log {
        let log = Log::new()
            .start()
            .request("GET", "/fapi/v1/openOrders", &[]);
        log.with_answer(200, &[(USED, weight)], "[]").later_ms(100)
    }

    #[test]
    fn orders_may_be_sent_while_weight_is_left() {
        assert_eq!(
            verdict(Headers::default(), &used("2399").order("mm.a.1")),
            Ok(())
        );
        let later = used("2400").later_ms(5_000).order("mm.a.1");
        assert_eq!(verdict(Headers::default(), &later), Ok(()));
    }

    #[test]
    fn an_order_beyond_the_limit_is_found() {
        assert!(verdict(Headers::default(), &used("2400").order("mm.a.1")).is_err());
    }

    #[test]
    fn risk_reducing_requests_may_be_sent() {
        let sound = used("2400").cancel("mm.a.1").place_market("mm.a.2", "SELL");
        assert_eq!(verdict(Headers::default(), &sound), Ok(()));
    }
}
