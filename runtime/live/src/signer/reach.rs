//! Whether the signer answers, for the state that the run shows. No rule of the engine reads it, so it
//! is not recorded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windvane_model::Time;
use windvane_report::utc::seconds_text;

/// Whether the signer answers, and whether it can be replaced. Clones share it.
#[derive(Clone, Debug)]
pub struct Reach(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// When the signer stopped to answer, Unix milliseconds; 0 while it answers.
    silent_since_ms: AtomicI64,
    /// No process is left that can start another signer.
    is_last: AtomicBool,
    countdown: Duration,
}

impl Reach {
    /// A signer that answers. `countdown` is the time after which the venue cancels futures orders that
    /// are not renewed.
    pub(super) fn new(countdown: Duration) -> Self {
        Self(Arc::new(Shared {
            silent_since_ms: AtomicI64::new(0),
            is_last: AtomicBool::new(false),
            countdown,
        }))
    }

    pub(super) fn answered(&self) {
        let silent = &self.0.silent_since_ms;
        if silent.load(Ordering::Relaxed) != 0 {
            silent.store(0, Ordering::Relaxed);
        }
    }

    pub(super) fn troubled(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.map_or(1, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        let silent = &self.0.silent_since_ms;
        // It counts from the first trouble in a row.
        let _ = silent.compare_exchange(0, now_ms, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(super) fn lost_keeper(&self) {
        self.0.is_last.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_keeper(&self) {
        self.0.is_last.store(false, Ordering::Relaxed);
    }

    pub(super) fn is_replaceable(&self) -> bool {
        !self.0.is_last.load(Ordering::Relaxed)
    }

    /// Why nothing is signed, and what it means for orders; `None` while the signer answers.
    pub(crate) fn degraded_reason(&self) -> Option<String> {
        let since_ms = self.0.silent_since_ms.load(Ordering::Relaxed);
        if since_ms == 0 {
            return None;
        }
        let text = |ms| format!("{} UTC", seconds_text(Time::from_millis(ms)));
        let countdown_ms = i64::try_from(self.0.countdown.as_millis()).unwrap_or(i64::MAX);
        let cancelled = text(since_ms.saturating_add(countdown_ms));
        let next = if self.is_replaceable() {
            "it is being replaced"
        } else {
            "no other can be started: restart the run"
        };
        Some(format!(
            "the signer does not answer since {}, and no order, cancel or renewal is signed: without it \
             the venue cancels the futures orders by {cancelled}, and spot orders stay open; {next}",
            text(since_ms)
        ))
    }

    /// A risk for the time after the end of the present signer; `None` if it can be replaced.
    pub(crate) fn hindrance(&self) -> Option<&'static str> {
        (!self.is_replaceable()).then_some(
            "the process that starts the signer is gone: signing ends with the present signer. Restart \
             the run",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_signer_is_a_degraded_reason_until_it_answers() {
        let reach = Reach::new(Duration::from_secs(30));
        assert_eq!(reach.degraded_reason(), None);
        reach.troubled();
        let first = reach.degraded_reason().unwrap();
        assert!(first.contains("is being replaced"), "{first}");
        assert!(first.contains("spot orders stay open"), "{first}");
        reach.troubled();
        assert_eq!(reach.degraded_reason().unwrap(), first);
        reach.lost_keeper();
        let last = reach.degraded_reason().unwrap();
        assert!(last.contains("restart the run"), "{last}");
        assert!(reach.hindrance().is_some());
        reach.answered();
        assert_eq!(reach.degraded_reason(), None);
        assert!(reach.hindrance().is_some());
        reach.has_keeper();
        assert_eq!(reach.hindrance(), None);
    }
}
