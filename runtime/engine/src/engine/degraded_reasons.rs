//! The degraded reasons of a run, as a list and as sentences.

use windvane_model::degraded_reason::{DegradedReason, write_another_instance};
use windvane_model::instrument::Instrument;
use windvane_model::order::Surface;

use super::Engine;
use super::live_run::LiveRun;

impl Engine {
    /// The degraded reasons, in a fixed order; empty if the run is not live.
    pub fn degraded_reasons(&self) -> Vec<DegradedReason> {
        let reasons = self.live.as_ref().map(LiveRun::degraded_reasons);
        reasons.into_iter().flatten().collect()
    }

    /// The degraded reasons as sentences.
    pub fn describe_reasons(&self, reasons: &[DegradedReason]) -> Vec<String> {
        reasons
            .iter()
            .map(|reason| self.describe_reason(*reason))
            .collect()
    }

    fn describe_reason(&self, reason: DegradedReason) -> String {
        match reason {
            DegradedReason::Stream(surface) if self.is_not_compared(surface) => {
                return format!(
                    "the {surface} user stream is up, and the account was not compared with the venue since then"
                );
            }
            DegradedReason::TradingBlocked(surface) => {
                let sentence = self.blocked_sentence(surface);
                // The sentence is empty if the block has ended since.
                if !sentence.is_empty() {
                    return sentence;
                }
            }
            _ => {}
        }
        let mut text = String::new();
        let of_another = self.order_of_another();
        let of_another = of_another.filter(|_| reason == DegradedReason::AnotherInstance);
        let instrument = reason.instrument().and_then(|id| self.instrument(id));
        let name = instrument.map(Instrument::name).unwrap_or_default();
        // Writing to memory cannot fail.
        let _ = match of_another {
            Some(order) => write_another_instance(&mut text, order.as_str()),
            None => reason.write(&mut text, &name),
        };
        text
    }

    /// Whether the user stream is connected, and no reconciliation round left nothing unexplained
    /// since it connected.
    fn is_not_compared(&self, surface: Surface) -> bool {
        let connection = self
            .live
            .as_ref()
            .and_then(|live| live.connections.get(&surface));
        connection
            .is_some_and(|connection| connection.stream_up && connection.last_clean_round.is_none())
    }
}
