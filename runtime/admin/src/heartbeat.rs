//! The sign of life of the engine's loop. The loop marks it; `/health`, the metrics and the service
//! manager's watchdog read it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// When the engine's loop last made progress, by a monotonic clock.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    start: Instant,
    /// Milliseconds after `start`.
    marked_ms: Arc<AtomicI64>,
}

impl Heartbeat {
    /// A heartbeat that is marked now.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            marked_ms: Arc::new(AtomicI64::new(0)),
        }
    }

    /// Marks that the loop made progress. Costs one clock read and one store.
    pub fn mark(&self) {
        self.mark_at(Instant::now());
    }

    /// Marks progress at `now`, for a loop that has read the clock already.
    pub fn mark_at(&self, now: Instant) {
        let after = now.saturating_duration_since(self.start);
        let after_ms = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
        self.marked_ms.store(after_ms, Ordering::Relaxed);
    }

    /// Time since the last mark.
    pub fn age(&self) -> Duration {
        let marked_ms = u64::try_from(self.marked_ms.load(Ordering::Relaxed)).unwrap_or(0);
        let marked = Duration::from_millis(marked_ms);
        self.start.elapsed().saturating_sub(marked)
    }
}

#[cfg(test)]
impl Heartbeat {
    /// A heartbeat that was last marked `age` ago.
    pub(crate) fn aged(age: Duration) -> Self {
        let now = Instant::now();
        Self {
            start: now.checked_sub(age).unwrap_or(now),
            marked_ms: Arc::new(AtomicI64::new(0)),
        }
    }
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_heartbeat_and_age_counts_from_its_mark() {
        let heartbeat = Heartbeat::aged(Duration::from_mins(1));
        assert!(heartbeat.age() >= Duration::from_mins(1));
        heartbeat.clone().mark();
        assert!(heartbeat.age() < Duration::from_mins(1));
    }
}
