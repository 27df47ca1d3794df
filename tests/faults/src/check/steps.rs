//! A start takes its steps in order: before a process signs anything for a surface, it has read the
//! list of the instruments and the clock of this surface.

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use super::wire;
use crate::witness::{Entry, ProcessEvent, RequestId, WitnessEvent};

/// The rule.
#[derive(Debug, Default)]
pub struct Steps {
    /// Requests for lists and clocks.
    open_requests: BTreeMap<RequestId, (String, Step)>,
    /// The steps that this process has completed, by surface.
    done: BTreeSet<(String, Step)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Listing,
    Clock,
}

impl Check for Steps {
    fn rule(&self) -> &'static str {
        "a start takes every step before it signs"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                self.open_requests.clear();
                self.done.clear();
            }
            WitnessEvent::Sent(request) => {
                let last = request.path.rsplit('/').next().unwrap_or_default();
                let step = match last {
                    "exchangeInfo" => Some(Step::Listing),
                    "time" => Some(Step::Clock),
                    _ => None,
                };
                let surface = &request.surface;
                if let Some(step) = step {
                    self.open_requests
                        .insert(request.id, (surface.clone(), step));
                }
                if request.param("signature").is_none() {
                    return Ok(());
                }
                let has = |step| self.done.contains(&(surface.clone(), step));
                let missing = [Step::Listing, Step::Clock].into_iter();
                if let Some(step) = missing.filter(|step| !has(*step)).min() {
                    let what = match step {
                        Step::Listing => "listing of its instruments",
                        Step::Clock => "reading of its clock",
                    };
                    return Err(format!(
                        "{} is signed for {surface}, but the process has no {what}",
                        request.route
                    ));
                }
            }
            WitnessEvent::AnswerReceived {
                request,
                answer: Some(answer),
            } => {
                let step = self.open_requests.remove(request);
                let is_read = wire::is_done(answer) && answer.json().is_some();
                self.done.extend(step.filter(|_| is_read));
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

    #[allow(clippy::needless_pass_by_value, reason = "a log is made for each call")]
    fn judged(log: Log) -> Result<(), String> {
        verdict(Steps::default(), &log)
    }

    fn listed() -> Log {
        let log = Log::new()
            .start()
            .request_plain("GET", "/fapi/v1/exchangeInfo", &[]);
        log.with_answer(200, &[], "{}")
    }

    fn signed(log: Log) -> Log {
        log.request(
            "GET",
            "/fapi/v1/openOrders",
            &[("signature", "ab".to_owned())],
        )
    }

    #[test]
    fn a_signature_without_a_clock_is_found() {
        let timed = || listed().request_plain("GET", "/fapi/v1/time", &[]);
        let read = || timed().with_answer(200, &[], "{}");
        assert_eq!(judged(signed(read())), Ok(()));
        assert!(judged(signed(listed())).is_err());
        assert!(judged(signed(timed().with_answer(503, &[], ""))).is_err());
        assert!(judged(signed(timed().with_answer(200, &[], "<html>"))).is_err());
        assert!(
            judged(signed(read().start())).is_err(),
            "another process must read them again"
        );
    }
}
