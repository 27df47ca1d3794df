//! A budget that several tasks share, and waiting for it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::budget::{Budget, Cost, Denied, Lane};

/// One surface's budget, on the clock of the async runtime.
#[derive(Debug)]
pub(crate) struct Gate {
    started: Instant,
    budget: Mutex<Budget>,
    waits: Mutex<Vec<(Lane, Duration)>>,
}

/// So many waits are remembered until somebody takes them.
const WAITS_MAX: usize = 1_024;

impl Gate {
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            started: Instant::now(),
            budget: Mutex::new(budget),
            waits: Mutex::default(),
        }
    }

    /// Lets a request out now, or as soon as the budget allows if that is within `patience`.
    pub(crate) async fn pass(
        &self,
        lane: Lane,
        cost: &Cost,
        patience: Duration,
    ) -> Result<(), Denied> {
        let mut began = None;
        let give_up_ms = self.now_ms().saturating_add(millis(patience));
        loop {
            let denied = match self.with(|budget, now_ms| budget.acquire(now_ms, lane, cost)) {
                Ok(()) => {
                    if let Some(began) = began {
                        self.note_wait(lane, began);
                    }
                    return Ok(());
                }
                Err(denied) => denied,
            };
            let began = *began.get_or_insert_with(Instant::now);
            match denied.until_ms {
                Some(until_ms) if until_ms <= give_up_ms => {
                    tokio::time::sleep_until(self.started + Duration::from_millis(until_ms)).await;
                }
                _ => {
                    self.note_wait(lane, began);
                    return Err(denied);
                }
            }
        }
    }

    fn note_wait(&self, lane: Lane, began: Instant) {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        if waits.len() < WAITS_MAX {
            waits.push((lane, began.elapsed()));
        }
    }

    /// Takes what requests waited since the last time, those that gave up included.
    pub(crate) fn take_waits(&self) -> Vec<(Lane, Duration)> {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut waits)
    }

    /// How long it is until a time of the budget.
    pub(crate) fn time_to(&self, until_ms: u64) -> Duration {
        Duration::from_millis(until_ms.saturating_sub(self.now_ms()))
    }

    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Budget, u64) -> T) -> T {
        let mut budget = self.lock();
        work(&mut budget, self.now_ms())
    }

    fn now_ms(&self) -> u64 {
        millis(self.started.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Budget> {
        // A count that a panic left half done is at most one request too high.
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
