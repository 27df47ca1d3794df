//! How a watchdog proves that it can do its work. It reads the venue's limits and clock and lists
//! the orders of a symbol, as it would in a sweep. It repeats this after some minutes.

use std::time::Duration;

use windvane_model::Time;

use super::time::after;

/// Time between two proofs.
const PROVE_EVERY_MS: i64 = 5 * 60_000;
/// Pause after a failed proof. It doubles each time, from the first value to the second.
const PROVE_AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));

/// A request of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// This comes first because it contains the limits. If the real limits are larger than the
    /// documented ones, the run may have used more than the documented limit. The cancels would
    /// then seem to have no weight left.
    Listing,
    Clock,
    OpenOrders(String),
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Proof {
    /// When the next proof begins; `None` while a request is in progress.
    due: Option<Time>,
    /// The remaining requests.
    steps: Vec<Step>,
    pause: Duration,
}

impl Proof {
    /// The first proof begins at once.
    pub(super) const fn new(now: Time) -> Self {
        Self {
            due: Some(now),
            steps: Vec::new(),
            pause: PROVE_AGAIN.0,
        }
    }

    pub(super) const fn due(&self) -> Option<Time> {
        self.due
    }

    /// Begins a proof. Returns its first request.
    pub(super) fn begin(&mut self, symbol: Option<&String>) -> Option<Step> {
        self.due = None;
        let orders = symbol.cloned().map(Step::OpenOrders);
        self.steps = orders.into_iter().collect();
        self.steps.extend([Step::Clock, Step::Listing]);
        self.next()
    }

    /// The next request; `None` once all have responses.
    pub(super) fn next(&mut self) -> Option<Step> {
        self.steps.pop()
    }

    pub(super) fn proven(&mut self, now: Time) {
        self.due = Some(now.plus_ms(PROVE_EVERY_MS));
        self.pause = PROVE_AGAIN.0;
    }

    /// The proof starts again after a pause, or after `wanted` if that is longer.
    pub(super) fn failed(&mut self, now: Time, wanted: Duration) {
        self.due = Some(after(now, wanted.max(self.pause)));
        self.pause = (self.pause * 2).min(PROVE_AGAIN.1);
    }
}
