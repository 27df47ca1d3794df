//! The dead man's switch is renewed only while the runtime is healthy, as far as the wire shows
//! it, and is renewed as long as it is: in calm weather the venue never has to cancel our orders.

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use super::wire::{self, Asked};
use crate::witness::{Entry, ProcessSeen, RequestId, Rest, Seen, Terms};

/// A request that was decided just before the stream went down.
const DECIDED_NS: i64 = 1_000_000_000;
/// Requests and events that were under way when faults ended.
const UNDER_WAY_NS: i64 = 10_000_000_000;
/// On top of three intervals between reconciliations: the time that one takes.
const ROUND_NS: i64 = 15_000_000_000;

/// The rule.
#[derive(Debug)]
pub struct Renewals {
    countdown_ns: i64,
    reconcile_ns: i64,
    /// Since when the user stream of futures is down.
    down_since: Option<i64>,
    questions: BTreeSet<RequestId>,
    /// When the futures account was last read.
    read_at: Option<i64>,
    cancels: BTreeSet<String>,
    sent: BTreeMap<String, i64>,
    calm_since: Option<i64>,
}

impl Renewals {
    /// On these terms.
    pub fn new(terms: &Terms) -> Self {
        let ns = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX / 1_000_000) * 1_000_000;
        Self {
            countdown_ns: ns(terms.countdown_ms),
            reconcile_ns: ns(terms.reconcile_ms),
            down_since: Some(0),
            questions: BTreeSet::new(),
            read_at: None,
            cancels: BTreeSet::new(),
            sent: BTreeMap::new(),
            calm_since: None,
        }
    }

    fn renewed(&self, instrument: &str, now_ns: i64) -> Result<(), String> {
        let seconds = |since: i64| (now_ns - since) / 1_000_000_000;
        if let Some(since) = self.down_since
            && now_ns - since > DECIDED_NS
        {
            return Err(format!(
                "the countdown of {instrument} is renewed, the user stream is down for {} s",
                seconds(since)
            ));
        }
        let old = 3 * self.reconcile_ns + ROUND_NS;
        match self.read_at {
            None => Err(format!(
                "the countdown of {instrument} is armed before any open orders were read"
            )),
            Some(at) if now_ns - at > old => Err(format!(
                "the countdown of {instrument} is renewed, open orders were last read {} s ago",
                seconds(at)
            )),
            Some(_) => Ok(()),
        }
    }

    /// An order that ended in calm weather without our asking for it.
    fn ended(&self, text: &str, now_ns: i64) -> Result<(), String> {
        let Some(report) = wire::told(text).filter(|report| report.status == "CANCELED") else {
            return Ok(());
        };
        let Some(calm) = self.calm_since else {
            return Ok(());
        };
        let settled_ns = calm + self.countdown_ns + UNDER_WAY_NS;
        let ours = self.sent.contains_key(&report.id) && !self.cancels.contains(&report.id);
        if ours && now_ns > settled_ns {
            return Err(format!(
                "the venue cancels {} in calm weather: its countdown was not renewed",
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
            Seen::Process(ProcessSeen::Started { .. }) => {
                self.down_since = Some(entry.at_ns);
                self.read_at = None;
                self.questions.clear();
            }
            Seen::Stream {
                surface,
                user: true,
                up,
                ..
            } if surface == "futures" => {
                let down = self.down_since.unwrap_or(entry.at_ns);
                self.down_since = (!up).then_some(down);
            }
            Seen::Sent(request) => match wire::asked(request) {
                Asked::Countdown(instrument, 1..) => self.renewed(&instrument, entry.at_ns)?,
                Asked::OpenOrders if request.surface == "futures" => {
                    self.questions.insert(request.id);
                }
                Asked::Cancel(ids) => self.cancels.extend(ids),
                Asked::Place(orders) => {
                    let ids = orders.into_iter().map(|order| (order.id, entry.at_ns));
                    self.sent.extend(ids);
                }
                _ => {}
            },
            Seen::Heard {
                request,
                answer: Some(answer),
            } if self.questions.remove(request) && wire::is_done(answer) => {
                self.read_at = Some(entry.at_ns);
            }
            Seen::FaultsEnded => self.calm_since = Some(entry.at_ns),
            Seen::Emitted { surface, text, .. } if surface == "futures" => {
                self.ended(text, entry.at_ns)?;
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
    use crate::check::log::{Log, terms, verdict};

    fn rule() -> Renewals {
        Renewals::new(&terms())
    }

    fn read() -> Log {
        Log::new().start().stream(true).read_open_orders()
    }

    #[test]
    fn whoever_reads_and_hears_may_renew() {
        let sound = read()
            .arm(30_000)
            .later_ms(60_000)
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
    fn renewing_long_after_the_last_reconciliation_is_found() {
        let broken = read().later_ms(120_000).arm(30_000);
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn a_countdown_that_runs_out_in_calm_weather_is_found() {
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
        let broken = calm().order_event("mm.a.1", "CANCELED", "0");
        assert!(verdict(rule(), &broken).is_err());
    }
}
