//! Conversions of durations.

use std::time::Duration;

use windvane_model::Time;

/// Milliseconds as the engine counts them.
pub(super) fn ms(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX / 1_000_000)
}

/// The time after a pause.
pub(super) fn after(now: Time, pause: Duration) -> Time {
    let ns = i64::try_from(pause.as_nanos()).unwrap_or(i64::MAX);
    Time(now.0.saturating_add(ns))
}
