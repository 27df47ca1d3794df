//! The state after an orderly stop.
//!
//! - `cancel`, `flatten`: no own order is open at the venue once the process ended.
//! - `flatten`: no strategy has a position either, unless the venue refused an order of the stop.
//! - `keep`: no cancel of an own order is sent after the stop was requested, and no countdown runs
//!   that would cancel resting orders. An order whose cancel was sent before the stop is not kept:
//!   a lost cancel is sent again. While the venue accepts nothing, a cancel that was wanted before
//!   the stop is sent after it.
//!
//! Own orders are those sent by this process, or by an earlier process whose journal it has.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, ProcessEvent, RequestId, Terms, WitnessEvent};

/// The rule.
#[derive(Debug)]
pub struct Stops {
    on_stop: String,
    strategies: BTreeSet<String>,
    instruments: BTreeSet<String>,
    /// Own orders that may be open.
    sent: BTreeSet<String>,
    /// Own orders whose cancel was sent before a stop was requested.
    cancelled: BTreeSet<String>,
    /// The venue accepts no requests until this time.
    wait_ns: i64,
    /// Order requests without a response.
    placed: BTreeSet<RequestId>,
    stopping: bool,
    /// An order of the stop was refused, or its outcome is unknown.
    is_refused: bool,
    /// Countdown requests: instrument and length.
    open_requests: BTreeMap<RequestId, (String, i64)>,
    /// The last countdown of each instrument at the venue.
    running: BTreeMap<String, i64>,
    /// Positions may come from a lost journal or from another instance.
    is_unsure: bool,
}

impl Stops {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        Self {
            on_stop: terms.on_stop.clone(),
            strategies: terms.strategies.iter().map(|one| one.id.clone()).collect(),
            instruments: terms.instruments.iter().cloned().collect(),
            sent: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            wait_ns: 0,
            placed: BTreeSet::new(),
            stopping: false,
            is_refused: false,
            open_requests: BTreeMap::new(),
            running: BTreeMap::new(),
            is_unsure: false,
        }
    }

    fn sent(&mut self, kind: RequestKind, request: RequestId) -> Result<(), String> {
        match kind {
            RequestKind::Place(orders) => {
                self.sent.extend(orders.into_iter().map(|order| order.id));
                self.placed.insert(request);
            }
            RequestKind::Countdown(instrument, ms) => {
                self.open_requests.insert(request, (instrument, ms));
            }
            RequestKind::Cancel(ids) if self.stopping && self.on_stop == "keep" => {
                let is_kept =
                    |id: &&String| self.sent.contains(*id) && !self.cancelled.contains(*id);
                if let Some(id) = ids.iter().find(is_kept) {
                    return Err(format!(
                        "the stop must keep orders, but a cancel of {id} is sent"
                    ));
                }
            }
            RequestKind::Cancel(ids) if !self.stopping => self.cancelled.extend(ids),
            _ => {}
        }
        Ok(())
    }

    fn stopped(&self, truth: &Value) -> Result<(), String> {
        let account = &truth["accounts"][0];
        let rows = |name: &str| account[name].as_array().into_iter().flatten();
        let open = rows("orders").filter(|order| order["open"] == true);
        let own: Vec<_> = open
            .filter_map(|order| Some((wire::text(order, "client_order_id")?, order)))
            .filter(|(id, _)| self.sent.contains(id))
            .collect();
        if self.on_stop == "keep" {
            for (id, order) in own {
                let of = |name| wire::text(order, name).unwrap_or_default();
                // A countdown of futures cancels nothing on spot.
                let instrument = format!("{}:{}", of("surface"), of("symbol"));
                let running = self.running.get(&instrument);
                if running.is_some_and(|ms| *ms > 0) {
                    return Err(format!(
                        "the run stopped in order and keeps {id}, but a countdown will cancel it"
                    ));
                }
            }
        } else if let Some((id, _)) = own.first() {
            return Err(format!("the run stopped in order, but {id} is still open"));
        }
        if self.on_stop == "flatten" && !self.is_unsure && !self.is_refused {
            let flat = wire::is_flat(account, &self.strategies, &self.instruments);
            return flat.map_err(|rest| {
                format!("the run stopped in order with a flatten, but the account holds {rest}")
            });
        }
        Ok(())
    }
}

impl Check for Stops {
    fn rule(&self) -> &'static str {
        "a stop leaves what on_stop says"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Configured { on_stop, .. } => self.on_stop.clone_from(on_stop),
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                self.stopping = false;
                self.is_refused = false;
                self.placed.clear();
            }
            WitnessEvent::Process(ProcessEvent::Running {
                process, journal, ..
            }) if *process > 1 && !matches!(journal.as_str(), "clean" | "torn") => {
                self.sent.clear();
                self.cancelled.clear();
                self.is_unsure = true;
            }
            WitnessEvent::Act { act, done: true } => {
                let id = act.get("client_order_id").and_then(Value::as_str);
                let own = id.map(wire::strategy);
                self.is_unsure |= own.is_some_and(|own| self.strategies.contains(own));
            }
            WitnessEvent::Stopping { .. } => {
                self.stopping = true;
                if entry.at_ns < self.wait_ns {
                    self.cancelled.extend(self.sent.iter().cloned());
                }
            }
            WitnessEvent::Sent(request) => {
                return self.sent(wire::request_kind(request), request.id);
            }
            WitnessEvent::Answered {
                request, answer, ..
            } if wire::is_done(answer) => {
                if let Some((instrument, ms)) = self.open_requests.get(request) {
                    self.running.insert(instrument.clone(), *ms);
                }
            }
            WitnessEvent::AnswerReceived { request, answer } => {
                let wait = answer.as_ref().and_then(wire::wait_ns);
                let until_ns = wait.map_or(0, |wait| entry.at_ns.saturating_add(wait));
                self.wait_ns = self.wait_ns.max(until_ns);
                let was_placed = self.placed.remove(request);
                let is_done = answer.as_ref().is_some_and(wire::is_done);
                self.is_refused |= self.stopping && was_placed && !is_done;
            }
            WitnessEvent::Stopped { how, truth, .. } if how == "stopped" => {
                return self.stopped(truth);
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
    use crate::check::log::{Log, terms, verdict};

    #[allow(clippy::needless_pass_by_value, reason = "a log is made for each call")]
    fn judged(on_stop: &str, log: Log) -> Result<(), String> {
        let terms = Terms {
            on_stop: on_stop.to_owned(),
            ..terms()
        };
        verdict(Stops::new(&terms), &log)
    }

    fn truth(open: bool, held: &str) -> Value {
        json!({"accounts": [{
            "orders": [{"order_id": 1, "client_order_id": "mm.a.1", "surface": "futures",
                "symbol": "BTCUSDT", "open": open}],
            "trades": [],
            "positions": [{"symbol": "BTCUSDT", "position_side": "BOTH", "qty": held}],
        }]})
    }

    fn stopping() -> Log {
        let placed = Log::new().start().arm(30_000).place("mm.a.1");
        placed.with_answer(200, &[], "{}").stopping()
    }

    #[test]
    fn an_order_that_is_left_is_found() {
        let left = |open| stopping().stopped(truth(open, "0"));
        for on_stop in ["cancel", "flatten"] {
            assert!(judged(on_stop, left(true)).is_err());
            assert_eq!(judged(on_stop, left(false)), Ok(()));
        }
        let others = Log::new().start().stopping().stopped(truth(true, "0"));
        assert_eq!(
            judged("cancel", others),
            Ok(()),
            "the order is not an own order"
        );
    }

    #[test]
    fn a_position_left_open_is_found_unless_refused() {
        let holding = || truth(false, "-1");
        assert_eq!(judged("cancel", stopping().stopped(holding())), Ok(()));
        assert!(judged("flatten", stopping().stopped(holding())).is_err());
        let refused = stopping()
            .place_close("mm.a.2", "BUY", "1")
            .with_answer(400, &[], "{}");
        assert_eq!(judged("flatten", refused.stopped(holding())), Ok(()));
    }

    #[test]
    fn kept_orders_survive_the_run_and_the_countdown() {
        let kept = || stopping().arm(0);
        assert_eq!(judged("keep", kept().stopped(truth(true, "1"))), Ok(()));
        assert!(judged("keep", stopping().stopped(truth(true, "1"))).is_err());
        let mut on_spot = truth(true, "1");
        on_spot["accounts"][0]["orders"][0]["surface"] = "spot".into();
        let ended = judged("keep", stopping().stopped(on_spot));
        assert_eq!(ended, Ok(()), "no countdown of futures cancels it");
        assert!(judged("keep", kept().cancel("mm.a.1")).is_err());
        assert_eq!(judged("cancel", kept().cancel("mm.a.1")), Ok(()));
        let placed = || Log::new().start().arm(30_000).place("mm.a.1");
        let again = placed().cancel("mm.a.1").stopping().cancel("mm.a.1");
        assert_eq!(judged("keep", again), Ok(()));
        let another = placed().cancel("mm.a.2").stopping().cancel("mm.a.1");
        assert!(judged("keep", another).is_err());
    }
}
