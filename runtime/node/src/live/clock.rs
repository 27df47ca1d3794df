//! The time of a run: the wall's, or that of the recording that is played.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use windvane_engine::Time;
use windvane_engine::live::LiveInput;

/// Time that never runs backwards.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The wall's: read once, then counted.
    Wall {
        /// What was read.
        base: Time,
        /// When.
        since: Instant,
        /// How far it is ahead of the wall's clock, which was set back since the last process.
        ahead_ns: i64,
    },
    /// The recording's: it stands still between two things that happen.
    Played(Time),
}

impl Clock {
    /// The wall's time, from now on.
    pub fn of_the_wall() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        let wall = wall.map_or(0, |elapsed| elapsed.as_nanos());
        Self::Wall {
            base: Time(i64::try_from(wall).unwrap_or(i64::MAX)),
            since: Instant::now(),
            ahead_ns: 0,
        }
    }

    /// How far it is ahead of the wall's clock as it was read at the start, nanoseconds.
    pub const fn ahead_ns(&self) -> i64 {
        match self {
            Self::Wall { ahead_ns, .. } => *ahead_ns,
            Self::Played(_) => 0,
        }
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Time {
        match self {
            Self::Wall { base, since, .. } => {
                let elapsed = since.elapsed().as_nanos();
                base.plus_ns(i64::try_from(elapsed).unwrap_or(i64::MAX))
            }
            Self::Played(time) => *time,
        }
    }

    /// It is not before `last`, the last time that a journal knows.
    pub fn pass(&mut self, last: Time) {
        let now = self.now();
        if now >= last {
            return;
        }
        match self {
            Self::Wall {
                base,
                since,
                ahead_ns,
            } => {
                *ahead_ns += last.0 - now.0;
                (*base, *since) = (last, Instant::now());
            }
            Self::Played(time) => *time = last,
        }
    }
}

/// The client measures the venue's clock against the wall's. The engine's clock may be ahead of that.
pub fn by_engine_clock(input: LiveInput, ahead_ns: i64) -> LiveInput {
    match input {
        LiveInput::Clock {
            surface,
            offset_ns,
            error_ns,
        } => LiveInput::Clock {
            surface,
            offset_ns: offset_ns.saturating_sub(ahead_ns),
            error_ns,
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_knows_how_far_it_is_ahead() {
        let mut clock = Clock::of_the_wall();
        assert_eq!(clock.ahead_ns(), 0);
        let hour_ns = 3_600_000_000_000;
        let last = clock.now().plus_ns(hour_ns);
        clock.pass(last);
        assert!(clock.now() >= last);
        let second_ns = 1_000_000_000;
        assert!((hour_ns - second_ns..=hour_ns).contains(&clock.ahead_ns()));
    }
}
