//! A ban is never prolonged: after a 418, or a 429 with a wait time, nothing is sent to that
//! surface before the time is over. A process that starts meanwhile knows the bans in the file
//! beside the journal.

use std::collections::BTreeMap;

use super::Check;
use crate::witness::{Entry, ProcessEvent, RequestId, WitnessEvent};

/// A client that counts whole milliseconds may be early by less than one. The response with the
/// wait time was in flight for longer than that, so the venue does not notice.
const MILLISECOND_NS: i64 = 1_000_000;

/// The rule.
#[derive(Debug, Default)]
pub struct Bans {
    surfaces: BTreeMap<RequestId, String>,
    /// Until when nothing may be sent, by surface, and the status that demanded the wait.
    until: BTreeMap<String, (i64, u16)>,
}

impl Check for Bans {
    fn rule(&self) -> &'static str {
        "a ban is never prolonged"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Started { .. }) => self.until.clear(),
            WitnessEvent::BanRemembered { until_ns } => {
                for surface in ["spot", "futures"] {
                    let known = self.until.entry(surface.to_owned()).or_default();
                    *known = (*known).max((*until_ns, 418));
                }
            }
            WitnessEvent::Sent(request) => {
                if let Some((until_ns, status)) = self.until.get(&request.surface)
                    && entry.at_ns < *until_ns - MILLISECOND_NS
                {
                    let early_ms = (until_ns - entry.at_ns) / 1_000_000;
                    return Err(format!(
                        "{} is sent to {} {early_ms} ms before the wait of a {status} is over",
                        request.route, request.surface
                    ));
                }
                self.surfaces.insert(request.id, request.surface.clone());
            }
            WitnessEvent::Handshake { surface } => {
                if let Some((until_ns, status)) = self.until.get(surface)
                    && entry.at_ns < *until_ns - MILLISECOND_NS
                {
                    let early_ms = (until_ns - entry.at_ns) / 1_000_000;
                    return Err(format!(
                        "a stream of {surface} is opened {early_ms} ms before the wait of a \
                         {status} is over"
                    ));
                }
            }
            // The request was abandoned: its later response is not read.
            WitnessEvent::AnswerReceived {
                request,
                answer: None,
            } => {
                self.surfaces.remove(request);
            }
            WitnessEvent::AnswerReceived {
                request,
                answer: Some(answer),
            } => {
                let surface = self.surfaces.remove(request);
                let wait = answer.header("retry-after");
                let wait_s = wait.and_then(|text| text.parse::<i64>().ok());
                if let (418 | 429, Some(surface), Some(wait_s)) = (answer.status, surface, wait_s) {
                    let until_ns = entry.at_ns.saturating_add(wait_s * 1_000_000_000);
                    let known = self.until.entry(surface).or_default();
                    *known = (*known).max((until_ns, answer.status));
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

    fn banned() -> Log {
        Log::new()
            .request("GET", "/fapi/v1/openOrders", &[])
            .with_answer(418, &[("retry-after", "120")], "{}")
    }

    #[test]
    fn a_request_after_the_wait_is_accepted() {
        let sound = banned()
            .later_ms(120_000)
            .request("GET", "/fapi/v1/openOrders", &[]);
        assert_eq!(verdict(Bans::default(), &sound), Ok(()));
    }

    #[test]
    fn a_request_within_a_ban_is_found() {
        let broken = banned().later_ms(119_000).cancel("mm.a.1");
        assert!(verdict(Bans::default(), &broken).is_err());
    }

    #[test]
    fn a_handshake_within_a_ban_is_found() {
        let opened = |ms| verdict(Bans::default(), &banned().later_ms(ms).handshake());
        assert!(opened(119_000).is_err());
        assert_eq!(opened(120_000), Ok(()));
    }

    #[test]
    fn a_response_after_the_timeout_is_ignored() {
        let late = Log::new()
            .request("GET", "/fapi/v1/openOrders", &[])
            .without_answer();
        let late = late.with_answer(418, &[("retry-after", "120")], "{}");
        let sound = late.later_ms(1_000).cancel("mm.a.1");
        assert_eq!(verdict(Bans::default(), &sound), Ok(()));
    }

    #[test]
    fn a_recorded_ban_binds_the_next_process() {
        let next = |ms| banned().start().remember_ban(119_000).later_ms(ms);
        assert!(verdict(Bans::default(), &next(118_000).cancel("mm.a.1")).is_err());
        assert_eq!(
            verdict(Bans::default(), &next(119_000).cancel("mm.a.1")),
            Ok(())
        );
    }

    #[test]
    fn a_process_without_a_recorded_ban_may_send() {
        let sound = banned().start().later_ms(1_000).cancel("mm.a.1");
        assert_eq!(verdict(Bans::default(), &sound), Ok(()));
    }
}
