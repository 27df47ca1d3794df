//! How a watchdog shows that it can do its work: it reads the venue's limits and its clock and lists the
//! orders of a symbol, as it would have to, and again some minutes later.

use std::time::Duration;

use windvane_model::Time;

use super::sweep::after;

/// It shows anew that it can do its work.
const PROVE_EVERY_MS: i64 = 5 * 60_000;
/// After a proof that failed, doubled each time from the first to the second.
const PROVE_AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));

/// A question of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// First, for it states the limits: what the run used of larger ones than those of the documents
    /// would count as if nothing were left for the cancels.
    Listing,
    Clock,
    OpenOrders(String),
}

/// See the module's page.
#[derive(Debug)]
pub(super) struct Proof {
    /// It begins then; `None` while a question is under way.
    due: Option<Time>,
    /// What is still to be asked.
    steps: Vec<Step>,
    pause: Duration,
}

impl Proof {
    /// The first one begins at once.
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

    /// Begins; the first question.
    pub(super) fn begin(&mut self, symbol: Option<&String>) -> Option<Step> {
        self.due = None;
        let orders = symbol.cloned().map(Step::OpenOrders);
        self.steps = orders.into_iter().collect();
        self.steps.extend([Step::Clock, Step::Listing]);
        self.next()
    }

    /// The next question; `None` once all were answered.
    pub(super) fn next(&mut self) -> Option<Step> {
        self.steps.pop()
    }

    pub(super) fn proven(&mut self, now: Time) {
        self.due = Some(now.plus_ms(PROVE_EVERY_MS));
        self.pause = PROVE_AGAIN.0;
    }

    /// It begins anew after a pause, or after so long if that is longer.
    pub(super) fn failed(&mut self, now: Time, wanted: Duration) {
        self.due = Some(after(now, wanted.max(self.pause)));
        self.pause = (self.pause * 2).min(PROVE_AGAIN.1);
    }
}
