//! The clock of the process. It reads the wall clock once at the start and then counts, so it never
//! runs backwards.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use windvane_model::Time;

/// The wall clock at the start of the process, plus the time since the start by the monotonic
/// clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Time,
    since: Instant,
}

impl Clock {
    /// Starts from the wall clock.
    pub fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        let wall = wall.map_or(0, |elapsed| elapsed.as_nanos());
        Self {
            base: Time(i64::try_from(wall).unwrap_or(i64::MAX)),
            since: Instant::now(),
        }
    }

    /// A clock that shows `local_us` now. This is the client's clock in Unix microseconds.
    pub fn of(local_us: i64) -> Self {
        Self {
            base: Time(local_us.saturating_mul(1_000)),
            since: Instant::now(),
        }
    }

    /// The time now.
    #[inline]
    pub fn now(&self) -> Time {
        self.at(Instant::now())
    }

    /// The time at a moment.
    pub fn at(&self, moment: Instant) -> Time {
        let ns = |elapsed: std::time::Duration| i64::try_from(elapsed.as_nanos());
        match moment.checked_duration_since(self.since) {
            Some(after) => self.base.plus_ns(ns(after).unwrap_or(i64::MAX)),
            None => self.base.plus_ns(-ns(self.since - moment).unwrap_or(0)),
        }
    }

    /// The moment at which this clock shows `time`. For earlier times it returns the start.
    pub fn moment(&self, time: Time) -> Instant {
        let after_ns = time.0.saturating_sub(self.base.0).max(0).unsigned_abs();
        self.since + std::time::Duration::from_nanos(after_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_moment_and_its_time_convert_both_ways() {
        let clock = Clock::start();
        let later = clock.since + Duration::from_millis(1_500);
        assert_eq!(clock.at(later), clock.base.plus_ms(1_500));
        assert_eq!(clock.moment(clock.at(later)), later);
        assert_eq!(clock.moment(Time(0)), clock.since);
    }
}
