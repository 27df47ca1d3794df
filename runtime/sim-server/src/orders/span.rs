//! Time spans and lengths of lists.

use crate::request::{Call, Refusal};

/// The requested time span of a list, in milliseconds, both ends included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    from_ms: i64,
    to_ms: i64,
}

/// One week.
pub(super) const WEEK_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

impl Span {
    /// Reads `startTime` and `endTime`. The span is at most 7 days, by default the last 7
    /// (docs/interface/orders.md#all-orders). A start after the end is refused with -1023, a longer
    /// span with -1127.
    pub(super) fn of(call: &Call<'_>) -> Result<Self, Refusal> {
        let (start, end) = (
            call.params.integer("startTime")?,
            call.params.integer("endTime")?,
        );
        let now_ms = call.now_ms;
        let (from_ms, to_ms) = match (start, end) {
            (Some(start), Some(end)) => (start, end),
            (Some(start), None) => (start, start.saturating_add(WEEK_MS)),
            (None, Some(end)) => (end.saturating_sub(WEEK_MS), end),
            (None, None) => (now_ms - WEEK_MS, i64::MAX),
        };
        if from_ms > to_ms {
            return Err(Refusal::new(-1023, "Start time is greater than end time."));
        }
        if start.is_some() && end.is_some() && to_ms.saturating_sub(from_ms) > WEEK_MS {
            let msg = "The query interval is too large: at most 7 days.";
            return Err(Refusal::new(-1127, msg));
        }
        Ok(Self { from_ms, to_ms })
    }

    /// Refuses a requested span of 7 days (-1127), because a request for all futures orders needs a
    /// shorter one (docs/interface/orders.md#all-orders).
    pub(super) fn under_a_week(self, call: &Call<'_>) -> Result<(), Refusal> {
        let sent = |name| call.params.get(name).is_some();
        let long = self.to_ms.saturating_sub(self.from_ms) >= WEEK_MS;
        if long && sent("startTime") && sent("endTime") {
            let msg = "The query interval is too large: it must be under 7 days.";
            return Err(Refusal::new(-1127, msg));
        }
        Ok(())
    }

    /// Reads `startTime` and `endTime` of any span, for the routes that state no limit.
    pub(super) fn unbounded(call: &Call<'_>) -> Result<Self, Refusal> {
        let (start, end) = (
            call.params.integer("startTime")?,
            call.params.integer("endTime")?,
        );
        let (from_ms, to_ms) = (start.unwrap_or(0), end.unwrap_or(i64::MAX));
        if from_ms > to_ms {
            return Err(Refusal::new(-1023, "Start time is greater than end time."));
        }
        Ok(Self { from_ms, to_ms })
    }

    /// Whether the span contains this time.
    pub(super) const fn has(self, time: windvane_model::Time) -> bool {
        let ms = time.millis();
        self.from_ms <= ms && ms <= self.to_ms
    }
}

/// `limit` or its default.
pub(super) fn limit(call: &Call<'_>, default: usize) -> Result<usize, Refusal> {
    let limit = call.params.integer("limit")?;
    Ok(limit
        .and_then(|limit| usize::try_from(limit).ok())
        .unwrap_or(default))
}

/// The newest `limit` entries of a list that is sorted oldest first; the first ones if the request
/// has a start.
pub(super) fn cut<T>(mut all: Vec<T>, limit: usize, from_start: bool) -> Vec<T> {
    if from_start {
        all.truncate(limit);
    } else {
        all.drain(..all.len().saturating_sub(limit));
    }
    all
}
