//! After a halt no order fills that the venue had time to cancel. Every order that the runtime
//! knows to rest must be cancelled soon. The time starts when the operator halts or flattens its
//! strategy, or when a response reports an order that was in flight then. If nothing keeps requests
//! from being sent and answered, the cancel must leave before any fill that comes later than two
//! seconds after the halt. The runtime may not wait for its own count of weight, but it must wait
//! after a rate limit refusal.
//!
//! Slow or lost responses, and a journal that does not write, give the runtime two more seconds
//! from their end. Market orders fill at once, so they are excluded.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::Check;
use super::wire::{self, Report, RequestKind};
use crate::witness::{Entry, ProcessEvent, Request, RequestId, WitnessEvent};

/// Cancels must leave within this time. An order of unknown state is queried first, and the
/// response may take as long as a request may.
const WITHIN_NS: i64 = 20_000_000_000;
/// A cancel must prevent fills that come later than this after the halt, or after the last trouble.
const FILLS_WITHIN_NS: i64 = 2_000_000_000;
/// A response that takes longer is late.
const LATE_NS: i64 = 1_000_000_000;

/// The rule.
#[derive(Debug, Default)]
pub struct Halted {
    placed: BTreeMap<RequestId, Vec<String>>,
    /// The quantity of each order.
    quantities: BTreeMap<String, Decimal>,
    /// Orders that rest, as a response reported to the runtime, and when a halt required the cancel
    /// of each.
    resting: BTreeMap<String, Option<i64>>,
    /// The executed quantity of each order at the venue.
    executed: BTreeMap<String, Decimal>,
    /// Orders without a price.
    markets: BTreeSet<String>,
    /// Requests without a response, and when they were sent.
    open_requests: BTreeMap<RequestId, i64>,
    /// The last time at which something kept requests from being sent or answered.
    trouble_ns: i64,
    /// The journal does not write.
    hangs: bool,
    /// Strategies that are halted; `None` means all.
    halts: BTreeSet<Option<String>>,
    /// Orders that ended. The response to their request may come later than the event of their end.
    ended: BTreeSet<String>,
    /// Until when the venue makes requests wait.
    wait_ns: i64,
}

impl Halted {
    fn forget(&mut self) {
        self.resting.values_mut().for_each(|since| *since = None);
    }

    fn reported(&mut self, report: &Report) {
        if report.is_final() {
            self.end(&report.id);
        }
    }

    fn end(&mut self, id: &str) {
        self.resting.remove(id);
        self.ended.insert(id.to_owned());
    }

    /// A filled order needs no cancel, even if the runtime does not know the fill yet.
    fn executed(&mut self, id: &str, qty: &str, now_ns: i64) -> Result<(), String> {
        let qty = qty.parse::<Decimal>().unwrap_or_default();
        let before = self.executed.insert(id.to_owned(), qty);
        let is_fill = qty > before.unwrap_or_default();
        let since_ns = self.resting.get(id).copied().flatten();
        if let Some(since_ns) = since_ns.filter(|_| is_fill && self.could_send(now_ns)) {
            let from_ns = since_ns.max(self.trouble_ns);
            if now_ns > from_ns + FILLS_WITHIN_NS && !self.markets.contains(id) {
                return Err(format!(
                    "{id} filled {} ms after a halt, and no cancel of it had been sent",
                    (now_ns - since_ns) / 1_000_000
                ));
            }
        }
        if self.quantities.get(id).is_some_and(|whole| qty >= *whole) {
            self.end(id);
        }
        Ok(())
    }

    /// Whether no request waits long for its response, and the journal writes.
    fn could_send(&self, now_ns: i64) -> bool {
        let is_late = self
            .open_requests
            .values()
            .any(|sent| now_ns > sent + LATE_NS);
        !self.hangs && !is_late
    }

    fn sent(&mut self, request: &Request) {
        match wire::request_kind(request) {
            RequestKind::Place(orders) => {
                for order in &orders {
                    self.quantities.insert(order.id.clone(), order.qty);
                    if order.price.is_none() {
                        self.markets.insert(order.id.clone());
                    }
                }
                let ids = orders.into_iter().map(|order| order.id).collect();
                self.placed.insert(request.id, ids);
            }
            RequestKind::Cancel(ids) => ids.iter().for_each(|id| {
                self.resting.remove(id);
            }),
            _ => {}
        }
    }

    fn answer_received(
        &mut self,
        request: RequestId,
        entry: &Entry,
        answer: &crate::witness::Answer,
    ) {
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
                let is_wanted = self.is_halted(&report.id) && entry.at_ns >= self.wait_ns;
                let since = is_wanted.then_some(entry.at_ns);
                self.resting.entry(report.id).or_insert(since);
            } else {
                self.reported(&report);
            }
        }
    }

    /// Late and lost responses count as trouble.
    fn settle(&mut self, request: RequestId, is_lost: bool, now_ns: i64) {
        let sent_ns = self.open_requests.remove(&request);
        if is_lost || sent_ns.is_some_and(|sent| now_ns > sent + LATE_NS) {
            self.trouble_ns = now_ns;
        }
    }

    /// Whether its strategy is halted. Market orders close positions and need no cancel.
    fn is_halted(&self, id: &str) -> bool {
        let strategy = Some(wire::strategy(id).to_owned());
        let is_halted = self.halts.contains(&None) || self.halts.contains(&strategy);
        is_halted && !self.markets.contains(id)
    }

    fn commanded(&mut self, strategy: Option<&String>, command: &str, now_ns: i64) {
        match command {
            "halt" | "flatten" => self.halts.extend([strategy.cloned()]),
            "resume" => self.halts.clear(),
            _ => {}
        }
        let concerns = |id: &str| strategy.is_none_or(|strategy| wire::strategy(id) == strategy);
        for (id, since) in &mut self.resting {
            match command {
                "halt" | "flatten" if now_ns >= self.wait_ns && concerns(id) => {
                    since.get_or_insert(now_ns);
                }
                "resume" => *since = None,
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
        let overdue = self.resting.iter().find_map(|(id, since)| {
            let late = since.is_some_and(|since| entry.at_ns > since + WITHIN_NS);
            late.then(|| id.clone())
        });
        if let Some(id) = overdue {
            return Err(format!(
                "{id} rests, but no cancel of it was sent within {} s after a halt",
                WITHIN_NS / 1_000_000_000
            ));
        }
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                self.resting.clear();
                self.open_requests.clear();
                self.halts.clear();
                self.hangs = false;
            }
            WitnessEvent::Process(_) => self.forget(),
            WitnessEvent::Journal(word) => {
                self.hangs = matches!(word.as_str(), "stalled" | "failed");
                self.trouble_ns = entry.at_ns;
            }
            WitnessEvent::Commanded { strategy, command } => {
                self.commanded(strategy.as_ref(), command, entry.at_ns);
            }
            WitnessEvent::Sent(request) => {
                self.open_requests.insert(request.id, entry.at_ns);
                self.sent(request);
            }
            WitnessEvent::AnswerReceived { request, answer } => {
                self.settle(*request, answer.is_none(), entry.at_ns);
                if let Some(answer) = answer {
                    self.answer_received(*request, entry, answer);
                }
            }
            WitnessEvent::Executed {
                client_order_id,
                executed_qty,
            } => return self.executed(client_order_id, executed_qty, entry.at_ns),
            WitnessEvent::Emitted { text, .. } => {
                if let Some(report) = wire::event_report(text) {
                    self.reported(&report);
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
    use crate::check::log::{Log, verdict};

    /// An order that rests as far as the runtime knows.
    fn resting() -> Log {
        let body = r#"{"clientOrderId":"mm.a.1","orderId":1,"status":"NEW","executedQty":"0"}"#;
        Log::new()
            .start()
            .order("mm.a.1")
            .with_answer(200, &[], body)
    }

    #[test]
    fn an_order_cancelled_soon_after_a_halt_is_accepted() {
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
    fn a_fill_without_a_cancel_after_a_halt_is_found() {
        let halted = || resting().command("halt", None);
        let filled = |log: Log| verdict(Halted::default(), &log.executed("mm.a.1", "0.5"));
        assert_eq!(
            filled(halted().later_ms(1_900)),
            Ok(()),
            "a cancel takes time"
        );
        assert!(filled(halted().later_ms(2_100)).is_err());
        let cancelled = halted().later_ms(1_000).cancel("mm.a.1");
        assert_eq!(filled(cancelled.later_ms(2_000)), Ok(()));
        let resumed = halted().command("resume", None);
        assert_eq!(filled(resumed.later_ms(3_000)), Ok(()));
        assert_eq!(
            filled(resting().later_ms(3_000)),
            Ok(()),
            "there was no halt"
        );
        let before = resting().executed("mm.a.1", "0.5").command("halt", None);
        assert_eq!(
            filled(before.later_ms(3_000)),
            Ok(()),
            "the fill came before the halt"
        );
    }

    #[test]
    fn an_order_in_flight_at_the_halt_needs_a_cancel() {
        let body = r#"{"clientOrderId":"mm.a.1","orderId":1,"status":"NEW","executedQty":"0"}"#;
        let sent = || Log::new().start().order("mm.a.1");
        let answer = |strategy| sent().command("halt", strategy).with_answer(200, &[], body);
        let filled = |log: Log| {
            let filled = log.later_ms(2_100).executed("mm.a.1", "0.5");
            verdict(Halted::default(), &filled)
        };
        assert!(filled(answer(None)).is_err());
        assert!(filled(answer(Some("mm"))).is_err());
        assert_eq!(
            filled(answer(Some("ema"))),
            Ok(()),
            "another strategy was halted"
        );
        assert_eq!(filled(answer(None).cancel("mm.a.1")), Ok(()));
        let resumed = sent().command("halt", None).command("resume", None);
        assert_eq!(filled(resumed.with_answer(200, &[], body)), Ok(()));
    }

    #[test]
    fn fills_are_excused_while_nothing_can_be_sent() {
        let halted = || resting().command("halt", None);
        let filled = |log: Log| verdict(Halted::default(), &log.executed("mm.a.1", "0.5"));
        let log = || halted().request("GET", "/fapi/v1/openOrders", &[]);
        assert_eq!(
            filled(log().later_ms(3_000)),
            Ok(()),
            "no response came yet"
        );
        let lost = || log().later_ms(3_000).without_answer();
        assert_eq!(
            filled(lost().later_ms(1_000)),
            Ok(()),
            "a response was lost a moment ago"
        );
        assert!(filled(lost().later_ms(2_100)).is_err());
        let hangs = || halted().journal("stalled").later_ms(5_000);
        assert_eq!(filled(hangs()), Ok(()));
        assert!(filled(hangs().journal("flows").later_ms(2_100)).is_err());
        assert_eq!(filled(halted().paused().later_ms(5_000)), Ok(()));
    }

    #[test]
    fn market_orders_may_fill_after_a_halt() {
        let body = r#"{"clientOrderId":"mm.a.2","orderId":2,"status":"NEW","executedQty":"0"}"#;
        let market = Log::new().start().place_market("mm.a.2", "SELL");
        let halted = market.with_answer(200, &[], body).command("halt", None);
        let filled = halted.later_ms(3_000).executed("mm.a.2", "1");
        assert_eq!(verdict(Halted::default(), &filled), Ok(()));
    }

    #[test]
    fn an_order_that_ended_before_its_response_needs_no_cancel() {
        let body = r#"{"clientOrderId":"mm.a.1","orderId":1,"status":"NEW","executedQty":"0"}"#;
        let ended = Log::new().start().order("mm.a.1");
        let ended = ended
            .order_event("mm.a.1", "FILLED", "1")
            .with_answer(200, &[], body);
        let sound = ended.command("halt", None).later_ms(21_000);
        assert_eq!(verdict(Halted::default(), &sound.state("halted")), Ok(()));
    }

    #[test]
    fn a_rate_limit_refusal_delays_cancels() {
        let waits = resting().request("GET", "/fapi/v1/openOrders", &[]);
        let waits = waits.with_answer(429, &[("retry-after", "50")], "{}");
        let sound = waits.command("halt", None).later_ms(40_000).state("halted");
        assert_eq!(verdict(Halted::default(), &sound), Ok(()));
    }
}
