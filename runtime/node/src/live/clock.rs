//! The time of a run: the wall's, or that of the recording that is played.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use windvane_engine::Time;

/// Time that never runs backwards.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The wall's: read once, then counted.
    Wall {
        /// What was read.
        base: Time,
        /// When.
        since: Instant,
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
        }
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Time {
        match self {
            Self::Wall { base, since } => {
                let elapsed = since.elapsed().as_nanos();
                base.plus_ns(i64::try_from(elapsed).unwrap_or(i64::MAX))
            }
            Self::Played(time) => *time,
        }
    }

    /// It is not before `last`, the last time that a journal knows.
    pub fn pass(&mut self, last: Time) {
        if self.now() >= last {
            return;
        }
        match self {
            Self::Wall { base, since } => (*base, *since) = (last, Instant::now()),
            Self::Played(time) => *time = last,
        }
    }
}
