//! A sign of health goes to the spot watchdog process only while the runtime is healthy, as far as
//! wire and disk show it (`docs/promises.md#4-dead-mans-switch`). The user stream of spot is
//! connected, open spot orders were read since it connected, and the journal writes.

use std::collections::BTreeMap;

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, ProcessEvent, RequestId, WitnessEvent};

/// Tolerance for a sign that was decided just before a failure.
const DECIDED_NS: i64 = 1_000_000_000;

/// The rule.
#[derive(Debug, Default)]
pub struct Signs {
    /// The connection of the user stream of spot.
    stream: Option<u64>,
    /// Since when the state of spot is unknown.
    blind_since: Option<i64>,
    /// Since when the journal does not write.
    hangs_since: Option<i64>,
    failed_since: Option<i64>,
    /// Requests for open orders, and whether the user stream was connected when they were sent.
    questions: BTreeMap<RequestId, bool>,
}

impl Signs {
    fn given(&self, now_ns: i64) -> Result<(), String> {
        for (since, what) in [
            (
                self.blind_since,
                "open orders of spot were not read since its user stream came up",
            ),
            (self.hangs_since, "the journal waits for the disk"),
            (self.failed_since, "the journal failed"),
        ] {
            if let Some(since) = since.filter(|since| now_ns - since > DECIDED_NS) {
                return Err(format!(
                    "a sign of health is sent, but for {} ms {what}",
                    (now_ns - since) / 1_000_000
                ));
            }
        }
        Ok(())
    }

    fn journal(&mut self, word: &str, now_ns: i64) {
        match word {
            "stalled" => self.hangs_since = self.hangs_since.or(Some(now_ns)),
            "flows" => self.hangs_since = None,
            "failed" => self.failed_since = self.failed_since.or(Some(now_ns)),
            _ => (self.hangs_since, self.failed_since) = (None, None),
        }
    }
}

impl Check for Signs {
    fn rule(&self) -> &'static str {
        "signs of health while healthy, and only then"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                *self = Self {
                    blind_since: Some(entry.at_ns),
                    ..Self::default()
                };
            }
            WitnessEvent::Process(ProcessEvent::Running { .. }) => self.failed_since = None,
            WitnessEvent::Stream {
                stream,
                surface,
                user: true,
                up,
            } if surface == "spot" => {
                let other = |present: u64| *stream < present || !up && *stream != present;
                if self.stream.is_some_and(other) {
                    // A connection that was abandoned before the current one opens or ends late.
                    return Ok(());
                }
                self.stream = up.then_some(*stream);
                self.blind_since = self.blind_since.or(Some(entry.at_ns));
            }
            WitnessEvent::Journal(word) => self.journal(word, entry.at_ns),
            WitnessEvent::Sent(request)
                if request.surface == "spot"
                    && wire::request_kind(request) == RequestKind::OpenOrders =>
            {
                self.questions.insert(request.id, self.stream.is_some());
            }
            WitnessEvent::AnswerReceived {
                request,
                answer: Some(answer),
            } if wire::is_done(answer) => {
                let with_stream = self.questions.remove(request);
                if with_stream == Some(true) && self.stream.is_some() {
                    self.blind_since = None;
                }
            }
            WitnessEvent::Heartbeat => return self.given(entry.at_ns),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, verdict};

    fn judged(log: Log) -> Result<(), String> {
        verdict(Signs::default(), &log.later_ms(2_000).heartbeat())
    }

    fn healthy() -> Log {
        Log::new().start().spot_stream(true).read_spot_orders()
    }

    #[test]
    fn signs_with_evidence_are_accepted() {
        assert_eq!(judged(healthy()), Ok(()));
        assert_eq!(
            judged(healthy().stream(false)),
            Ok(()),
            "the stream belongs to another surface"
        );
    }

    #[test]
    fn a_sign_without_evidence_is_found() {
        assert!(judged(Log::new().start().spot_stream(true)).is_err());
        assert!(judged(healthy().spot_stream(false)).is_err());
        assert!(judged(healthy().journal("stalled")).is_err());
        assert!(judged(healthy().journal("failed")).is_err());
        assert_eq!(
            judged(healthy().journal("stalled").journal("flows")),
            Ok(())
        );
    }
}
