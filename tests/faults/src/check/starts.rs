//! A start reads the account although others use much of the weight. Once its user stream is
//! connected, it must request the open orders soon. Exceptions: the venue refuses requests because
//! of a rate limit, or others and earlier starts had used up the weight before.

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, ProcessEvent, WitnessEvent};

/// The header with the used weight.
const USED: &str = "x-mbx-used-weight-1m";
/// The weight of a minute (docs/interface/limits.md#limits-in-force) minus the weight that a start
/// needs to read the open orders of all symbols.
const USED_MOST: u32 = 2_400 - 60;
/// Open orders must be requested within this time.
const WITHIN_NS: i64 = 20_000_000_000;

/// The rule.
#[derive(Debug, Default)]
pub struct Starts {
    /// The process has not requested them yet.
    fresh: bool,
    due_ns: Option<i64>,
    /// The process has received a header with the used weight.
    has_header: bool,
    /// The venue accepts no requests, or had no weight left: the first snapshot may be late.
    refused: bool,
}

impl Check for Starts {
    fn rule(&self) -> &'static str {
        "a start reads the account soon"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if self.due_ns.is_some_and(|due| entry.at_ns > due) {
            return Err(format!(
                "open orders were not requested within {} s after the user stream connected",
                WITHIN_NS / 1_000_000_000
            ));
        }
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                *self = Self {
                    fresh: true,
                    ..Self::default()
                }
            }
            WitnessEvent::Process(ProcessEvent::Running { .. }) => {}
            WitnessEvent::Process(_) => self.due_ns = None,
            WitnessEvent::Stream { user: true, up, .. } => {
                let due = entry.at_ns + WITHIN_NS;
                self.due_ns = (*up && self.fresh && !self.refused).then_some(due);
            }
            WitnessEvent::Sent(request)
                if matches!(wire::request_kind(request), RequestKind::OpenOrders) =>
            {
                self.fresh = false;
                self.due_ns = None;
            }
            WitnessEvent::AnswerReceived {
                answer: Some(answer),
                ..
            } => {
                let used = answer.headers.iter().find(|(name, _)| name == USED);
                let used = used.and_then(|(_, used)| used.parse::<u32>().ok());
                let is_used_up = !self.has_header && used.is_some_and(|used| used > USED_MOST);
                self.has_header |= used.is_some();
                if is_used_up || matches!(answer.status, 403 | 418 | 429) {
                    self.refused = true;
                    self.due_ns = None;
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

    #[test]
    fn a_start_that_reads_soon_is_accepted() {
        let log = Log::new().start().stream(true).later_ms(19_000);
        let log = log.request("GET", "/fapi/v1/openOrders", &[]);
        let sound = log.later_ms(60_000).state("ready");
        assert_eq!(verdict(Starts::default(), &sound), Ok(()));
    }

    #[test]
    fn a_start_that_does_not_read_is_found() {
        let broken = Log::new().start().stream(true).later_ms(21_000);
        assert!(verdict(Starts::default(), &broken.state("syncing")).is_err());
    }

    #[test]
    fn weight_used_up_before_the_start_excuses_it() {
        let started = |used: &str| {
            let log = Log::new().start().request("GET", "/fapi/v1/time", &[]);
            let log = log.with_answer(200, &[(USED, used)], "{}").stream(true);
            let log = log.request("GET", "/fapi/v1/time", &[]);
            let log = log
                .with_answer(200, &[(USED, "2400")], "{}")
                .later_ms(40_000);
            verdict(Starts::default(), &log.state("syncing"))
        };
        assert_eq!(started("2390"), Ok(()));
        assert!(started("100").is_err());
    }

    #[test]
    fn a_rate_limit_refusal_excuses_a_start() {
        let refused = Log::new().start().request("GET", "/fapi/v1/time", &[]);
        let refused = refused.with_answer(429, &[("retry-after", "50")], "{}");
        let sound = refused.stream(true).later_ms(40_000).state("syncing");
        assert_eq!(verdict(Starts::default(), &sound), Ok(()));
    }
}
