//! No futures order is sent without an armed timer. When the order leaves, a countdown of its
//! symbol was confirmed to this same process and still runs at the venue. No countdown is stopped
//! while own orders of its symbol may rest. A late stop by the previous process must not do that
//! either.
//!
//! A market order that only reduces cannot rest, so it needs no timer.

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use super::orders::Orders;
use super::wire::{self, Placed, RequestKind};
use crate::witness::{Entry, ProcessEvent, RequestId, Terms, WitnessEvent};

/// The rule.
#[derive(Debug)]
pub struct Armed {
    orders: Orders,
    /// Requested countdowns: instrument, length in milliseconds, and arrival time.
    open_requests: BTreeMap<RequestId, (String, i64, i64)>,
    /// Until when the venue's timer of an instrument runs.
    running: BTreeMap<String, i64>,
    /// Until when it runs as far as this process was notified.
    confirmed: BTreeMap<String, i64>,
    /// The last countdown request of a previous process.
    before: RequestId,
    /// A stop keeps resting orders, so it stops their countdowns.
    keeps: bool,
    /// A stop was requested.
    is_stopping: bool,
    /// Countdowns that a stop disarmed to keep orders.
    let_go: BTreeSet<RequestId>,
}

impl Armed {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        Self {
            orders: Orders::new(terms),
            open_requests: BTreeMap::new(),
            running: BTreeMap::new(),
            confirmed: BTreeMap::new(),
            before: 0,
            keeps: terms.on_stop == "keep",
            is_stopping: false,
            let_go: BTreeSet::new(),
        }
    }

    fn covers(&self, instrument: &str, now_ns: i64) -> Result<(), String> {
        let until = |known: &BTreeMap<String, i64>| known.get(instrument).copied().unwrap_or(0);
        let (running, confirmed) = (until(&self.running), until(&self.confirmed));
        let late_ms = |until: i64| (now_ns - until) / 1_000_000;
        if confirmed == 0 {
            Err(format!("no countdown of {instrument} was confirmed"))
        } else if running == 0 {
            Err(format!("the countdown of {instrument} is stopped"))
        } else if running <= now_ns {
            let late_ms = late_ms(running);
            Err(format!(
                "the countdown of {instrument} expired {late_ms} ms ago"
            ))
        } else if confirmed <= now_ns {
            let late_ms = late_ms(confirmed);
            Err(format!(
                "the confirmed countdown of {instrument} expired {late_ms} ms ago"
            ))
        } else {
            Ok(())
        }
    }

    fn sent(&mut self, kind: RequestKind, request: RequestId, now_ns: i64) -> Result<(), String> {
        match kind {
            RequestKind::Place(orders) => {
                let futures = |instrument: &str| instrument.starts_with("futures:");
                let counts = |order: &&Placed| futures(&order.instrument) && may_rest(order);
                for placed in orders.iter().filter(counts) {
                    self.covers(&placed.instrument, now_ns)
                        .map_err(|why| format!("{} is sent, but {why}", placed.id))?;
                }
            }
            RequestKind::Countdown(instrument, length_ms) => {
                if length_ms == 0 && self.keeps && self.is_stopping {
                    self.let_go.insert(request);
                }
                let mut live = self.orders.live();
                let rests = live
                    .find(|order| order.placed.instrument == instrument && may_rest(&order.placed));
                if let (0, Some(order)) = (length_ms, rests)
                    && !self.let_go.contains(&request)
                {
                    return Err(format!(
                        "the countdown of {instrument} is disarmed while {} may rest",
                        order.placed.id
                    ));
                }
                self.open_requests
                    .insert(request, (instrument, length_ms, now_ns));
            }
            _ => {}
        }
        Ok(())
    }

    /// Each call replaces the timer (docs/interface/futures.md#countdowncancelall).
    fn answered(&mut self, request: RequestId) -> Result<(), String> {
        let Some((instrument, length_ms, arrived_ns)) = self.open_requests.get(&request) else {
            return Ok(());
        };
        let until = arrived_ns.saturating_add(length_ms * 1_000_000);
        let until = if *length_ms > 0 { until } else { 0 };
        self.running.insert(instrument.clone(), until);
        let mut live = self.orders.live();
        let rests = live.find(|order| {
            let placed = &order.placed;
            order.accepted && placed.instrument == *instrument && may_rest(placed)
        });
        let is_kept = self.let_go.contains(&request);
        match rests.filter(|_| *length_ms == 0 && !is_kept) {
            Some(order) => Err(format!(
                "the countdown of {instrument} stops while {} rests",
                order.placed.id
            )),
            None => Ok(()),
        }
    }

    fn answer_received(&mut self, request: RequestId) {
        if let Some((instrument, length_ms, arrived_ns)) = self.open_requests.get(&request)
            && *length_ms > 0
            && request > self.before
        {
            let until = arrived_ns.saturating_add(length_ms * 1_000_000);
            let known = self.confirmed.entry(instrument.clone()).or_default();
            *known = (*known).max(until);
        }
    }
}

/// Whether an order may rest, or may open a position.
fn may_rest(placed: &Placed) -> bool {
    placed.price.is_some() || !placed.reduces
}

impl Check for Armed {
    fn rule(&self) -> &'static str {
        "no order without an armed timer"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Stopping { .. } => self.is_stopping = true,
            WitnessEvent::Configured { on_stop, .. } => self.keeps = on_stop == "keep",
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                self.is_stopping = false;
                self.confirmed.clear();
                let open_requests = self.open_requests.keys().next_back();
                self.before = open_requests.copied().unwrap_or(self.before);
            }
            WitnessEvent::Sent(request) => {
                self.sent(wire::request_kind(request), request.id, entry.at_ns)?;
            }
            WitnessEvent::Arrived { request, .. } => {
                if let Some((.., arrived_ns)) = self.open_requests.get_mut(request) {
                    *arrived_ns = entry.at_ns;
                }
            }
            WitnessEvent::Answered {
                request, answer, ..
            } if wire::is_done(answer) => self.answered(*request)?,
            WitnessEvent::AnswerReceived {
                request,
                answer: Some(answer),
            } if wire::is_done(answer) => self.answer_received(*request),
            _ => {}
        }
        self.orders.see(entry);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, terms, verdict};

    fn rule() -> Armed {
        Armed::new(&terms())
    }

    #[test]
    fn a_confirmed_timer_covers_orders_while_it_runs() {
        let sound = Log::new()
            .arm(30_000)
            .place("mm.a.1")
            .later_ms(29_000)
            .place("mm.a.2");
        assert_eq!(verdict(rule(), &sound), Ok(()));
    }

    #[test]
    fn an_order_before_the_timer_is_found() {
        assert!(verdict(rule(), &Log::new().place("mm.a.1")).is_err());
        let unconfirmed = Log::new().countdown(30_000).place("mm.a.1");
        assert!(verdict(rule(), &unconfirmed).is_err());
    }

    #[test]
    fn an_order_after_the_timer_ran_out_is_found() {
        let broken = Log::new().arm(30_000).later_ms(30_000).place("mm.a.1");
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn a_timer_of_the_previous_process_does_not_count() {
        let broken = Log::new().arm(30_000).start().place("mm.a.1");
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn disarming_with_a_resting_order_is_found() {
        let resting = || Log::new().arm(30_000).place("mm.a.1");
        let sound = resting().order_event("mm.a.1", "FILLED", "1").arm(0);
        assert_eq!(verdict(rule(), &sound), Ok(()));
        assert!(verdict(rule(), &resting().arm(0)).is_err());
    }

    #[test]
    fn a_list_ends_missing_orders_of_the_previous_process() {
        let placed = || Log::new().start().arm(30_000).place("mm.a.1").later_ms(1);
        let listed = |log: Log| log.later_ms(10_000).read_open_orders().arm(30_000).arm(0);
        assert_eq!(verdict(rule(), &listed(placed().start())), Ok(()));
        assert!(
            verdict(rule(), &listed(placed())).is_err(),
            "its own process can query it by id"
        );
        let early = placed().start().read_open_orders().arm(30_000).arm(0);
        assert!(
            verdict(rule(), &early).is_err(),
            "the order may still arrive"
        );
    }

    #[test]
    fn a_late_disarm_of_the_previous_process_is_found() {
        let again = Log::new().countdown(0).start().arm(30_000).place("mm.a.1");
        let resting = again.order_event("mm.a.1", "NEW", "0");
        assert_eq!(verdict(rule(), &resting), Ok(()));
        assert!(verdict(rule(), &resting.clone().answered_late(1)).is_err());
        let over = resting.order_event("mm.a.1", "CANCELED", "0");
        assert_eq!(verdict(rule(), &over.answered_late(1)), Ok(()));
    }

    #[test]
    fn an_order_after_disarming_is_found() {
        let broken = Log::new().arm(30_000).arm(0).place("mm.a.1");
        assert!(verdict(rule(), &broken).is_err());
    }
}
