//! The dead man's switch is renewed only while the runtime is healthy, as far as wire and disk show
//! it, and it is renewed as long as the runtime is healthy. Without faults the venue must never
//! have to cancel own orders.
//!
//! No renewal is sent without evidence of health since the last failure
//! (`docs/promises.md#4-dead-mans-switch`). The user stream is connected and not silent, open
//! orders were read since it connected, and the journal writes.

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, ProcessEvent, RequestId, Terms, WitnessEvent};

/// Tolerance for a request that was decided just before the stream ended.
const DECIDED_NS: i64 = 1_000_000_000;
/// A PING leaves every 10 s and must be answered within 10 s (`docs/promises.md#4-dead-mans-switch`).
/// So a stream that is alive shows something within this time. The runtime stops relying on it after 15 s.
const SILENCE_NS: i64 = 20_000_000_000;
/// Time for requests and events that were in flight when the faults ended.
const UNDER_WAY_NS: i64 = 10_000_000_000;
/// The time that a reconciliation takes, in addition to three intervals.
const ROUND_NS: i64 = 15_000_000_000;

/// The rule.
#[derive(Debug)]
pub struct Renewals {
    countdown_ns: i64,
    reconcile_ns: i64,
    /// The connection of the user stream of futures, and when it last delivered something.
    stream: Option<u64>,
    alive_ns: i64,
    /// Since when the state is unknown: the user stream ended, and open orders were not read since
    /// it reconnected.
    blind_since: Option<i64>,
    /// Since when the journal does not write: it hangs, or it failed.
    hangs_since: Option<i64>,
    failed_since: Option<i64>,
    /// Requests for open orders, and whether the user stream was connected when they were sent.
    questions: BTreeMap<RequestId, bool>,
    /// When the open orders of futures were last read.
    read_at: Option<i64>,
    cancels: BTreeSet<String>,
    sent: BTreeMap<String, i64>,
    calm_since: Option<i64>,
    converge_ns: i64,
    is_stream_slow: bool,
    ready: bool,
}

impl Renewals {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        let ns = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX / 1_000_000) * 1_000_000;
        Self {
            countdown_ns: ns(terms.countdown_ms),
            reconcile_ns: ns(terms.reconcile_ms),
            stream: None,
            alive_ns: 0,
            blind_since: None,
            hangs_since: None,
            failed_since: None,
            questions: BTreeMap::new(),
            read_at: None,
            cancels: BTreeSet::new(),
            sent: BTreeMap::new(),
            calm_since: None,
            converge_ns: terms.converge_ns,
            is_stream_slow: terms.is_stream_slow,
            ready: false,
        }
    }

    fn renewed(&self, instrument: &str, now_ns: i64) -> Result<(), String> {
        let seconds = |since: i64| (now_ns - since) / 1_000_000_000;
        for (since, what) in [
            (
                self.blind_since,
                "open orders were not read since the user stream came up",
            ),
            (self.hangs_since, "the journal waits for the disk"),
            (self.failed_since, "the journal failed"),
        ] {
            if let Some(since) = since.filter(|since| now_ns - since > DECIDED_NS) {
                let doubted_s = seconds(since);
                return Err(format!(
                    "the countdown of {instrument} is renewed, but for {doubted_s} s {what}"
                ));
            }
        }
        if self.stream.is_some() && now_ns - self.alive_ns > SILENCE_NS + DECIDED_NS {
            return Err(format!(
                "the countdown of {instrument} is renewed, but the user stream is silent for {} s",
                seconds(self.alive_ns)
            ));
        }
        let old = 3 * self.reconcile_ns + ROUND_NS;
        match self.read_at {
            None => Err(format!(
                "the countdown of {instrument} is armed before open orders were read"
            )),
            Some(at) if now_ns - at > old => Err(format!(
                "the countdown of {instrument} is renewed, but open orders were last read {} s ago",
                seconds(at)
            )),
            Some(_) => Ok(()),
        }
    }

    fn journal(&mut self, word: &str, now_ns: i64) {
        match word {
            "stalled" => self.hangs_since = self.hangs_since.or(Some(now_ns)),
            "flows" => self.hangs_since = None,
            "failed" => self.failed_since = self.failed_since.or(Some(now_ns)),
            // A new segment is durable, and with it everything before it.
            _ => (self.hangs_since, self.failed_since) = (None, None),
        }
    }

    /// Checks an order that ended without faults and without an own cancel.
    fn ended(&self, text: &str, now_ns: i64) -> Result<(), String> {
        let Some(report) = wire::event_report(text).filter(|report| report.status == "CANCELED")
        else {
            return Ok(());
        };
        let Some(calm) = self.calm_since else {
            return Ok(());
        };
        let settled_ns = calm + self.countdown_ns + UNDER_WAY_NS;
        let ours = self.sent.contains_key(&report.id) && !self.cancels.contains(&report.id);
        // A degraded reason from before the end of the faults may last until everything has
        // converged. A user stream that is too slow stays a degraded reason.
        let may_doubt = !self.ready && now_ns < calm + self.converge_ns || self.is_stream_slow;
        if ours && now_ns > settled_ns && !may_doubt {
            return Err(format!(
                "the venue cancels {} without faults: its countdown was not renewed",
                report.id
            ));
        }
        Ok(())
    }
}

impl Check for Renewals {
    fn rule(&self) -> &'static str {
        "renewals while healthy, and only then"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                self.stream = None;
                self.blind_since = Some(entry.at_ns);
                (self.hangs_since, self.failed_since) = (None, None);
                self.read_at = None;
                self.questions.clear();
            }
            // Its first segment is durable: a disk that failed before now accepts data again.
            WitnessEvent::Process(ProcessEvent::Running { .. }) => self.failed_since = None,
            WitnessEvent::Stream {
                stream,
                surface,
                user: true,
                up,
            } if surface == "futures" => {
                let other = |present: u64| *stream < present || !up && *stream != present;
                if self.stream.is_some_and(other) {
                    // A connection that was abandoned before the current one opens or ends late.
                    return Ok(());
                }
                self.stream = up.then_some(*stream);
                self.alive_ns = entry.at_ns;
                self.blind_since = self.blind_since.or(Some(entry.at_ns));
            }
            WitnessEvent::Delivered { stream, .. } | WitnessEvent::Pong { stream }
                if self.stream == Some(*stream) =>
            {
                self.alive_ns = entry.at_ns;
            }
            // While the process is stopped, it causes the silence itself. It cannot know when the
            // messages that it finds arrived.
            WitnessEvent::Process(ProcessEvent::Resumed { .. }) => self.alive_ns = entry.at_ns,
            WitnessEvent::Journal(word) => self.journal(word, entry.at_ns),
            WitnessEvent::Sent(request) => match wire::request_kind(request) {
                RequestKind::Countdown(instrument, 1..) => {
                    self.renewed(&instrument, entry.at_ns)?;
                }
                RequestKind::OpenOrders if request.surface == "futures" => {
                    self.questions.insert(request.id, self.stream.is_some());
                }
                RequestKind::Cancel(ids) => self.cancels.extend(ids),
                RequestKind::Place(orders) => {
                    let ids = orders.into_iter().map(|order| (order.id, entry.at_ns));
                    self.sent.extend(ids);
                }
                _ => {}
            },
            WitnessEvent::AnswerReceived {
                request,
                answer: Some(answer),
            } if wire::is_done(answer) => {
                if let Some(with_stream) = self.questions.remove(request) {
                    self.read_at = Some(entry.at_ns);
                    if with_stream && self.stream.is_some() {
                        self.blind_since = None;
                    }
                }
            }
            WitnessEvent::State { to, .. } => self.ready = to == "ready",
            WitnessEvent::FaultsEnded => self.calm_since = Some(entry.at_ns),
            WitnessEvent::Emitted { surface, text, .. } if surface == "futures" => {
                self.ended(text, entry.at_ns)?;
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

    fn rule() -> Renewals {
        Renewals::new(&terms())
    }

    fn read() -> Log {
        Log::new().start().stream(true).read_open_orders()
    }

    #[test]
    fn a_renewal_with_current_data_is_accepted() {
        let sound = read()
            .arm(30_000)
            .later_ms(60_000)
            .pong()
            .read_open_orders()
            .arm(30_000);
        assert_eq!(verdict(rule(), &sound), Ok(()));
    }

    #[test]
    fn renewing_while_the_stream_is_down_for_long_is_found() {
        let down = |ms| read().stream(false).later_ms(ms).arm(30_000);
        assert_eq!(verdict(rule(), &down(500)), Ok(()));
        assert!(verdict(rule(), &down(2_000)).is_err());
    }

    #[test]
    fn a_reconnected_stream_needs_a_new_read() {
        let up = || read().stream(false).stream(true).later_ms(2_000);
        assert!(verdict(rule(), &up().arm(30_000)).is_err());
        let sound = up().read_open_orders().arm(30_000);
        assert_eq!(verdict(rule(), &sound), Ok(()));
    }

    #[test]
    fn renewing_on_a_silent_stream_is_found() {
        let later = || read().later_ms(22_000).read_open_orders();
        assert_eq!(verdict(rule(), &later().pong().arm(30_000)), Ok(()));
        assert!(verdict(rule(), &later().arm(30_000)).is_err());
    }

    #[test]
    fn late_events_of_an_earlier_stream_are_ignored() {
        let anew = || read().stream_of(2, true).read_open_orders();
        let late = anew().stream_of(1, false).later_ms(2_000).arm(30_000);
        assert_eq!(verdict(rule(), &late), Ok(()));
        let late = anew().stream_of(1, true).later_ms(2_000).arm(30_000);
        assert_eq!(verdict(rule(), &late), Ok(()));
        let own = anew().stream_of(2, false).later_ms(2_000).arm(30_000);
        assert!(verdict(rule(), &own).is_err());
    }

    #[test]
    fn silence_during_a_stop_is_excused() {
        let stopped = read().later_ms(22_000).resumed().read_open_orders();
        assert_eq!(verdict(rule(), &stopped.arm(30_000)), Ok(()));
    }

    #[test]
    fn renewing_while_the_journal_does_not_write_is_found() {
        for (word, again) in [("stalled", "flows"), ("failed", "rolled")] {
            let doubted = || read().journal(word).later_ms(2_000);
            assert!(verdict(rule(), &doubted().arm(30_000)).is_err());
            let sound = doubted().journal(again).arm(30_000);
            assert_eq!(verdict(rule(), &sound), Ok(()));
        }
    }

    #[test]
    fn a_disk_failure_before_the_first_segment_is_ignored() {
        let boot = || Log::new().boot().journal("failed").run_after("clean");
        let ready = || boot().stream(true).read_open_orders().later_ms(2_000);
        assert_eq!(verdict(rule(), &ready().arm(30_000)), Ok(()));
        let failed = ready().journal("failed").later_ms(2_000);
        assert!(verdict(rule(), &failed.arm(30_000)).is_err());
    }

    #[test]
    fn renewing_long_after_the_last_reconciliation_is_found() {
        let broken = read().later_ms(120_000).arm(30_000);
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn a_countdown_that_expires_without_faults_is_found() {
        let calm = || {
            read()
                .arm(30_000)
                .place("mm.a.1")
                .faults_ended()
                .later_ms(50_000)
        };
        let sound = calm()
            .cancel("mm.a.1")
            .order_event("mm.a.1", "CANCELED", "0");
        assert_eq!(verdict(rule(), &sound), Ok(()));
        let ready = calm().state("ready");
        let broken = ready.order_event("mm.a.1", "CANCELED", "0");
        assert!(verdict(rule(), &broken).is_err());
        let in_doubt = calm().state("degraded");
        let sound = in_doubt.order_event("mm.a.1", "CANCELED", "0");
        assert_eq!(verdict(rule(), &sound), Ok(()));
        let broken = calm().later_ms(30_000).state("degraded");
        let broken = broken.order_event("mm.a.1", "CANCELED", "0");
        assert!(verdict(rule(), &broken).is_err());
    }
}
