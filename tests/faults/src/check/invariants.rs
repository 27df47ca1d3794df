//! The runtime checks its own books in every build. It must never find a contradiction.

use super::Check;
use crate::witness::{Entry, WitnessEvent};

/// The rule.
#[derive(Debug)]
pub struct Invariants;

impl Check for Invariants {
    fn rule(&self) -> &'static str {
        "the runtime's own books never contradict each other"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::InvariantBroken { text, report } => {
                Err(format!("{text} (the bug report has {report} bytes)"))
            }
            _ => Ok(()),
        }
    }
}
