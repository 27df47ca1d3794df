//! The dead man's switch is renewed as long as the runtime is healthy and orders rest, under any
//! faults. A run that reports ready requests the next countdown well before the last one ends.
//! While the venue demands a wait after a rate limit refusal, nothing may be sent.

use std::collections::BTreeMap;

use super::Check;
use super::orders::Orders;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, ProcessEvent, Terms, WitnessEvent};

/// The rule. It does not matter whether a request was answered: a lost request is sent again.
#[derive(Debug)]
pub struct Overdue {
    orders: Orders,
    /// Three quarters of a countdown: a failed renewal is tried again before the last countdown
    /// ends. After a signature that never came, the next try has left when nine tenths are over.
    due_ns: i64,
    /// One quarter: the time for a renewal after the run became ready or an order was placed.
    settles_ns: i64,
    /// Since when the process has reported ready.
    ready_since: Option<i64>,
    /// The process does not have the journal of the previous one.
    is_lost: bool,
    /// The process is stopped, so the time does not count.
    is_stopped: bool,
    /// The venue accepts no requests until this time.
    wait_ns: i64,
    /// When this process last requested a countdown of an instrument, unless that request disarmed
    /// it.
    open_requests: BTreeMap<String, i64>,
}

impl Overdue {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        let quarter_ms = i64::try_from(terms.countdown_ms / 4).unwrap_or(i64::MAX / 4_000_000);
        Self {
            orders: Orders::new(terms),
            due_ns: if terms.is_signer_silent {
                quarter_ms * 3_600_000
            } else {
                quarter_ms * 3_000_000
            },
            settles_ns: quarter_ms * 1_000_000,
            ready_since: None,
            is_lost: false,
            is_stopped: false,
            wait_ns: 0,
            open_requests: BTreeMap::new(),
        }
    }

    /// A ready process has adopted the resting orders of instruments for which it has not requested
    /// a countdown yet, so it must cover them soon. Without its journal it knows only the list of
    /// open orders, which may be short.
    fn take_over(&mut self, now_ns: i64) {
        if self.ready_since.is_none() || self.is_lost {
            return;
        }
        // Spot has no countdown: its watchdog process cancels.
        let is_covered = |instrument: &str| instrument.starts_with("futures:");
        let resting = self.orders.live().filter(|order| order.accepted);
        for order in resting.filter(|order| is_covered(&order.placed.instrument)) {
            let first = self.open_requests.entry(order.placed.instrument.clone());
            first.or_insert(now_ns - self.due_ns);
        }
    }

    fn in_time(&self, now_ns: i64) -> Result<(), String> {
        let settled = now_ns - self.settles_ns;
        if settled < self.wait_ns {
            return Ok(());
        }
        if self.is_stopped || self.ready_since.is_none_or(|since| since > settled) {
            return Ok(());
        }
        let rests = |instrument: &str| {
            self.orders.live().find(|order| {
                let settled = order.accepted && order.sent_ns <= settled;
                settled && order.placed.instrument == instrument
            })
        };
        for (instrument, pending_ns) in &self.open_requests {
            let since_ns = now_ns - pending_ns;
            if since_ns <= self.due_ns {
                continue;
            }
            if let Some(order) = rests(instrument) {
                return Err(format!(
                    "{} rests and the run is ready, but for {} ms no countdown of {instrument} \
                     was requested",
                    order.placed.id,
                    since_ns / 1_000_000
                ));
            }
        }
        Ok(())
    }
}

impl Check for Overdue {
    fn rule(&self) -> &'static str {
        "a countdown is renewed in time while orders rest"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                self.is_stopped = false;
                self.ready_since = None;
                self.open_requests.clear();
            }
            WitnessEvent::Process(ProcessEvent::Running { journal, .. }) => {
                self.is_lost = !matches!(journal.as_str(), "clean" | "torn");
            }
            WitnessEvent::Process(ProcessEvent::Crashed { .. }) => self.ready_since = None,
            WitnessEvent::Process(ProcessEvent::Paused { .. }) => self.is_stopped = true,
            WitnessEvent::Process(ProcessEvent::Resumed { .. }) => {
                self.is_stopped = false;
                self.ready_since = self.ready_since.map(|_| entry.at_ns);
            }
            WitnessEvent::State { to, .. } => {
                self.ready_since = (to == "ready").then_some(entry.at_ns);
                self.take_over(entry.at_ns);
            }
            WitnessEvent::Sent(request) => {
                if let RequestKind::Countdown(instrument, length_ms) = wire::request_kind(request) {
                    if length_ms > 0 {
                        self.open_requests.insert(instrument, entry.at_ns);
                    } else {
                        self.open_requests.remove(&instrument);
                    }
                }
            }
            WitnessEvent::AnswerReceived {
                answer: Some(answer),
                ..
            } => {
                if let Some(wait_ns) = wire::wait_ns(answer) {
                    self.wait_ns = self.wait_ns.max(entry.at_ns.saturating_add(wait_ns));
                }
            }
            _ => {}
        }
        self.orders.see(entry);
        self.in_time(entry.at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, terms, verdict};

    fn rule() -> Overdue {
        Overdue::new(&terms())
    }

    /// A ready run with a resting order.
    fn resting() -> Log {
        let armed = Log::new().start().stream(true).state("ready").arm(30_000);
        armed.order("mm.a.1").order_event("mm.a.1", "NEW", "0")
    }

    #[test]
    fn a_renewed_countdown_is_accepted() {
        let sound = resting().later_ms(10_000).arm(30_000).later_ms(22_000);
        assert_eq!(verdict(rule(), &sound.clone().pong()), Ok(()));
        assert!(verdict(rule(), &sound.later_ms(1_000).pong()).is_err());
    }

    #[test]
    fn an_unanswered_renewal_counts() {
        let sound = resting()
            .later_ms(20_000)
            .countdown(30_000)
            .without_answer();
        assert_eq!(verdict(rule(), &sound.later_ms(10_000).pong()), Ok(()));
    }

    #[test]
    fn without_resting_orders_no_renewal_is_due() {
        let over = resting().order_event("mm.a.1", "CANCELED", "0");
        assert_eq!(verdict(rule(), &over.later_ms(60_000).pong()), Ok(()));
    }

    #[test]
    fn a_degraded_run_renews_only_after_it_is_ready() {
        let doubted = resting().state("degraded").later_ms(25_000);
        assert_eq!(verdict(rule(), &doubted.clone().pong()), Ok(()));
        let ready = || doubted.clone().state("ready");
        assert_eq!(verdict(rule(), &ready().later_ms(7_000).pong()), Ok(()));
        assert!(verdict(rule(), &ready().later_ms(8_000).pong()).is_err());
    }

    #[test]
    fn a_stopped_process_renews_soon_after_it_continues() {
        let again = resting().paused().later_ms(60_000).pong().resumed();
        assert_eq!(
            verdict(rule(), &again.clone().later_ms(7_000).pong()),
            Ok(())
        );
        assert!(verdict(rule(), &again.later_ms(8_000).pong()).is_err());
    }

    #[test]
    fn adopted_orders_are_covered_soon() {
        let again = resting().start().later_ms(20_000).state("ready");
        let soon = again.clone().later_ms(7_000);
        assert_eq!(verdict(rule(), &soon.clone().pong()), Ok(()));
        let covered = soon.arm(30_000).later_ms(5_000);
        assert_eq!(verdict(rule(), &covered.pong()), Ok(()));
        assert!(verdict(rule(), &again.later_ms(8_000).pong()).is_err());
    }
}
