//! After a halt nothing fills that the venue had time to cancel: a cancel of every order that the
//! runtime knows to rest leaves soon after the operator halts or flattens its strategy. The runtime may
//! not wait for its own count of weight, and must wait after a refusal for a limit.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::Check;
use super::wire::{self, Asked, Report};
use crate::witness::{Entry, ProcessSeen, RequestId, Rest, Seen};

/// Cancels leave within this. An order of unknown state is asked for first, and its answer may take
/// as long as a request may.
const WITHIN_NS: i64 = 20_000_000_000;

/// The rule.
#[derive(Debug, Default)]
pub struct Halted {
    placed: BTreeMap<RequestId, Vec<String>>,
    /// The quantity of each order.
    quantities: BTreeMap<String, Decimal>,
    /// Orders that rest, as an answer told the runtime.
    resting: BTreeMap<String, Option<i64>>,
    /// Orders that ended. The answer to their request may come later than the event of their end.
    ended: BTreeSet<String>,
    /// Until when the venue has requests wait.
    wait_ns: i64,
}

impl Halted {
    fn forget(&mut self) {
        self.resting.values_mut().for_each(|due| *due = None);
    }

    fn told(&mut self, report: &Report) {
        if report.is_final() {
            self.end(&report.id);
        }
    }

    fn end(&mut self, id: &str) {
        self.resting.remove(id);
        self.ended.insert(id.to_owned());
    }

    /// A filled order needs no cancel, however the runtime comes to know of it.
    fn executed(&mut self, id: &str, qty: &str) {
        let qty = qty.parse::<Decimal>().unwrap_or_default();
        if self.quantities.get(id).is_some_and(|whole| qty >= *whole) {
            self.end(id);
        }
    }

    fn heard(&mut self, request: RequestId, entry: &Entry, answer: &crate::witness::Answer) {
        let placed = self.placed.remove(&request);
        if !wire::is_done(answer) {
            if let Some(wait_ns) = wire::wait_ns(answer) {
                self.wait_ns = self.wait_ns.max(entry.at_ns.saturating_add(wait_ns));
                self.forget();
            }
            return;
        }
        for report in wire::reports(answer) {
            let is_placed = placed.iter().flatten().any(|id| *id == report.id);
            if is_placed && !report.is_final() && !self.ended.contains(&report.id) {
                self.resting.entry(report.id).or_default();
            } else {
                self.told(&report);
            }
        }
    }

    fn commanded(&mut self, strategy: Option<&String>, command: &str, now_ns: i64) {
        let concerns = |id: &str| strategy.is_none_or(|strategy| wire::strategy(id) == strategy);
        for (id, due) in &mut self.resting {
            match command {
                "halt" | "flatten" if now_ns >= self.wait_ns && concerns(id) => {
                    due.get_or_insert(now_ns + WITHIN_NS);
                }
                "resume" => *due = None,
                _ => {}
            }
        }
    }
}

impl Check for Halted {
    fn rule(&self) -> &'static str {
        "after a halt every cancel leaves"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let overdue = self.resting.iter().find_map(|(id, due)| {
            let late = due.is_some_and(|due| entry.at_ns > due);
            late.then(|| id.clone())
        });
        if let Some(id) = overdue {
            return Err(format!(
                "{id} rests, and no cancel of it was sent within {} s after a halt",
                WITHIN_NS / 1_000_000_000
            ));
        }
        match &entry.seen {
            Seen::Process(ProcessSeen::Started { .. }) => self.resting.clear(),
            Seen::Process(_) => self.forget(),
            Seen::Commanded { strategy, command } => {
                self.commanded(strategy.as_ref(), command, entry.at_ns);
            }
            Seen::Sent(request) => match wire::asked(request) {
                Asked::Place(orders) => {
                    let known = orders.iter().map(|order| (order.id.clone(), order.qty));
                    self.quantities.extend(known);
                    let ids = orders.into_iter().map(|order| order.id).collect();
                    self.placed.insert(request.id, ids);
                }
                Asked::Cancel(ids) => ids.iter().for_each(|id| {
                    self.resting.remove(id);
                }),
                _ => {}
            },
            Seen::Heard {
                request,
                answer: Some(answer),
            } => self.heard(*request, entry, answer),
            Seen::Executed {
                client_order_id,
                executed_qty,
            } => self.executed(client_order_id, executed_qty),
            Seen::Emitted { text, .. } => {
                if let Some(report) = wire::told(text) {
                    self.told(&report);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn at_rest(&mut self, _: &Rest) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, verdict};

    /// An order that rests as far as the runtime knows.
    fn resting() -> Log {
        let body = r#"{"clientOrderId":"mm.a.1","orderId":1,"status":"NEW","executedQty":"0"}"#;
        Log::new().start().order("mm.a.1").heard(200, &[], body)
    }

    #[test]
    fn an_order_that_is_cancelled_soon_after_a_halt_is_right() {
        let sound = resting().command("halt", None).later_ms(1_000);
        let sound = sound.cancel("mm.a.1").later_ms(60_000).state("halted");
        assert_eq!(verdict(Halted::default(), &sound), Ok(()));
    }

    #[test]
    fn an_order_without_a_cancel_after_a_halt_is_found() {
        let broken = resting().command("halt", None).later_ms(21_000);
        assert!(verdict(Halted::default(), &broken.state("halted")).is_err());
        let other = resting().command("halt", Some("ema")).later_ms(21_000);
        assert_eq!(verdict(Halted::default(), &other.state("ready")), Ok(()));
    }

    #[test]
    fn an_order_that_ended_before_its_answer_came_needs_no_cancel() {
        let body = r#"{"clientOrderId":"mm.a.1","orderId":1,"status":"NEW","executedQty":"0"}"#;
        let ended = Log::new().start().order("mm.a.1");
        let ended = ended
            .order_event("mm.a.1", "FILLED", "1")
            .heard(200, &[], body);
        let sound = ended.command("halt", None).later_ms(21_000);
        assert_eq!(verdict(Halted::default(), &sound.state("halted")), Ok(()));
    }

    #[test]
    fn a_refusal_of_the_venue_is_a_reason_to_wait() {
        let waits = resting().ask("GET", "/fapi/v1/openOrders", &[]);
        let waits = waits.heard(429, &[("retry-after", "50")], "{}");
        let sound = waits.command("halt", None).later_ms(40_000).state("halted");
        assert_eq!(verdict(Halted::default(), &sound), Ok(()));
    }
}
