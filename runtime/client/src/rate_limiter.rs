//! Waits for the budgets of an address, which several tasks share.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use windvane_client_core::Gateway;
use windvane_protocol::route::Surface;

use crate::budget::{Budgets, Cost, Denied, Departed, Lane};

/// The budgets of an address, on the clock of the async runtime.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    started: Instant,
    gateway: Gateway,
    waits: Mutex<Vec<(Surface, Lane, Duration)>>,
    /// Counts the refusals because of a limit.
    refusals: watch::Sender<u64>,
}

/// How many waits are remembered until a caller takes them.
const WAITS_MAX: usize = 1_024;

impl RateLimiter {
    pub(crate) fn new(gateway: Gateway, refusals: watch::Sender<u64>) -> Self {
        Self {
            started: Instant::now(),
            gateway,
            waits: Mutex::default(),
            refusals,
        }
    }

    /// Start time of the clock of the budgets.
    pub(crate) const fn started(&self) -> Instant {
        self.started
    }

    /// Changes with each refusal because of a limit.
    pub(crate) fn refusals(&self) -> watch::Receiver<u64> {
        self.refusals.subscribe()
    }

    /// Allows a request now, or as soon as the budget has room, if that is within `patience`.
    pub(crate) async fn pass(
        &self,
        (surface, lane): (Surface, Lane),
        cost: &Cost,
        patience: Duration,
    ) -> Result<Departed, Denied> {
        let mut began = None;
        let give_up_ms = self.now_ms().saturating_add(millis(patience));
        loop {
            let acquired =
                self.with(|budgets, now_ms| budgets.acquire(now_ms, surface, lane, cost));
            let denied = match acquired {
                Ok(departed) => {
                    if let Some(began) = began {
                        self.note_wait((surface, lane), began);
                    }
                    return Ok(departed);
                }
                Err(denied) => denied,
            };
            let began = *began.get_or_insert_with(Instant::now);
            match denied.until_ms {
                Some(until_ms) if until_ms <= give_up_ms => {
                    tokio::time::sleep_until(self.started + Duration::from_millis(until_ms)).await;
                }
                _ => {
                    self.note_wait((surface, lane), began);
                    return Err(denied);
                }
            }
        }
    }

    fn note_wait(&self, (surface, lane): (Surface, Lane), began: Instant) {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        if waits.len() < WAITS_MAX {
            waits.push((surface, lane, began.elapsed()));
        }
    }

    /// Returns the waits of requests to a surface since the last call, including those that gave
    /// up.
    pub(crate) fn take_waits(&self, surface: Surface) -> Vec<(Lane, Duration)> {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let samples = waits.extract_if(.., |(of, ..)| *of == surface);
        samples.map(|(_, lane, waited)| (lane, waited)).collect()
    }

    /// The duration until a time of the budget.
    pub(crate) fn time_to(&self, until_ms: u64) -> Duration {
        Duration::from_millis(until_ms.saturating_sub(self.now_ms()))
    }

    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Budgets, u64) -> T) -> T {
        self.gateway
            .with_budgets(|budgets| work(budgets, self.now_ms()))
    }

    pub(crate) fn now_ms(&self) -> u64 {
        millis(self.started.elapsed())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
