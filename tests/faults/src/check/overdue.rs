//! The dead man's switch is renewed as long as the runtime is healthy and orders rest, in any
//! weather: a run that says that it is ready asks for the next countdown well before the last one ends.
//! While the venue demands a wait after a refusal for a limit, nothing may be sent.

use std::collections::BTreeMap;

use super::Check;
use super::orders::Orders;
use super::wire::{self, Asked};
use crate::witness::{Entry, ProcessSeen, Rest, Seen, Terms};

/// The rule. Whether a request was heard does not matter here: one that is lost is sent again.
#[derive(Debug)]
pub struct Overdue {
    orders: Orders,
    /// Three quarters of a countdown: a renewal that fails is tried again before the last ends. One
    /// that waited for a signature in vain has left with its next try when nine tenths are over.
    due_ns: i64,
    /// One quarter: who became ready, or whose order came, takes a while to renew.
    settles_ns: i64,
    /// Since when the process has said that it is ready.
    ready_since: Option<i64>,
    /// The process does not have the journal of the one before.
    is_lost: bool,
    /// The process is stopped: the time is not its own.
    is_stopped: bool,
    /// The venue takes no requests until then.
    wait_ns: i64,
    /// When this process last asked for a countdown of an instrument, unless that stopped it.
    asked: BTreeMap<String, i64>,
}

impl Overdue {
    /// On these terms.
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
            asked: BTreeMap::new(),
        }
    }

    /// What rests on an instrument for which this process asked nothing yet is to be covered once it
    /// is ready: it took it over. Without its journal it knows no more than the list of open orders says,
    /// which may be short.
    fn take_over(&mut self, now_ns: i64) {
        if self.ready_since.is_none() || self.is_lost {
            return;
        }
        // Spot has no countdown: its watchdog process cancels.
        let is_covered = |instrument: &str| instrument.starts_with("futures:");
        let resting = self.orders.live().filter(|order| order.accepted);
        for order in resting.filter(|order| is_covered(&order.placed.instrument)) {
            let asked = self.asked.entry(order.placed.instrument.clone());
            asked.or_insert(now_ns - self.due_ns);
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
        for (instrument, asked_ns) in &self.asked {
            let since_ns = now_ns - asked_ns;
            if since_ns <= self.due_ns {
                continue;
            }
            if let Some(order) = rests(instrument) {
                return Err(format!(
                    "{} rests and the run is ready, but for {} ms no countdown of {instrument} \
                     was asked for",
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
            Seen::Process(ProcessSeen::Started { .. }) => {
                self.is_stopped = false;
                self.ready_since = None;
                self.asked.clear();
            }
            Seen::Process(ProcessSeen::Running { journal, .. }) => {
                self.is_lost = !matches!(journal.as_str(), "clean" | "torn");
            }
            Seen::Process(ProcessSeen::Crashed { .. }) => self.ready_since = None,
            Seen::Process(ProcessSeen::Paused { .. }) => self.is_stopped = true,
            Seen::Process(ProcessSeen::Resumed { .. }) => {
                self.is_stopped = false;
                self.ready_since = self.ready_since.map(|_| entry.at_ns);
            }
            Seen::State { to, .. } => {
                self.ready_since = (to == "ready").then_some(entry.at_ns);
                self.take_over(entry.at_ns);
            }
            Seen::Sent(request) => {
                if let Asked::Countdown(instrument, length_ms) = wire::asked(request) {
                    if length_ms > 0 {
                        self.asked.insert(instrument, entry.at_ns);
                    } else {
                        self.asked.remove(&instrument);
                    }
                }
            }
            Seen::Heard {
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

    fn at_rest(&mut self, _: &Rest) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, terms, verdict};

    fn rule() -> Overdue {
        Overdue::new(&terms())
    }

    /// Ready, with an order at rest.
    fn resting() -> Log {
        let armed = Log::new().start().stream(true).state("ready").arm(30_000);
        armed.order("mm.a.1").order_event("mm.a.1", "NEW", "0")
    }

    #[test]
    fn what_is_renewed_may_rest() {
        let sound = resting().later_ms(10_000).arm(30_000).later_ms(22_000);
        assert_eq!(verdict(rule(), &sound.clone().pong()), Ok(()));
        assert!(verdict(rule(), &sound.later_ms(1_000).pong()).is_err());
    }

    #[test]
    fn a_renewal_that_is_not_heard_was_tried() {
        let sound = resting().later_ms(20_000).countdown(30_000).unheard();
        assert_eq!(verdict(rule(), &sound.later_ms(10_000).pong()), Ok(()));
    }

    #[test]
    fn where_nothing_rests_nothing_is_due() {
        let over = resting().order_event("mm.a.1", "CANCELED", "0");
        assert_eq!(verdict(rule(), &over.later_ms(60_000).pong()), Ok(()));
    }

    #[test]
    fn in_doubt_nothing_is_due_and_after_it_soon() {
        let doubted = resting().state("degraded").later_ms(25_000);
        assert_eq!(verdict(rule(), &doubted.clone().pong()), Ok(()));
        let ready = || doubted.clone().state("ready");
        assert_eq!(verdict(rule(), &ready().later_ms(7_000).pong()), Ok(()));
        assert!(verdict(rule(), &ready().later_ms(8_000).pong()).is_err());
    }

    #[test]
    fn a_stopped_process_renews_soon_after_it_goes_on() {
        let again = resting().paused().later_ms(60_000).pong().resumed();
        assert_eq!(
            verdict(rule(), &again.clone().later_ms(7_000).pong()),
            Ok(())
        );
        assert!(verdict(rule(), &again.later_ms(8_000).pong()).is_err());
    }

    #[test]
    fn what_a_process_takes_over_is_covered_soon() {
        let again = resting().start().later_ms(20_000).state("ready");
        let soon = again.clone().later_ms(7_000);
        assert_eq!(verdict(rule(), &soon.clone().pong()), Ok(()));
        let covered = soon.arm(30_000).later_ms(5_000);
        assert_eq!(verdict(rule(), &covered.pong()), Ok(()));
        assert!(verdict(rule(), &again.later_ms(8_000).pong()).is_err());
    }
}
