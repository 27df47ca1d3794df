//! The clock of the engine: the shell's, or that of the recording that is played.

use windvane_model::Time;
use windvane_model::live::LiveInput;

/// Engine time that never runs backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The shell's clock: the wall's time at the start of the process, then counted.
    Counted {
        /// How far the engine's clock is ahead of it, nanoseconds: the wall's clock was set back
        /// since the last process wrote its journal.
        ahead_ns: i64,
    },
    /// The recording's time. It does not move between two events.
    Played(Time),
}

impl Clock {
    /// The shell's clock. The engine's time is not before `last`, the last time of the journal.
    pub const fn counted(now: Time, last: Time) -> Self {
        let behind_ns = last.0.saturating_sub(now.0);
        Self::Counted {
            ahead_ns: if behind_ns > 0 { behind_ns } else { 0 },
        }
    }

    /// The recording's time, not before `last`, the last time of the journal.
    pub fn played(first: Time, last: Time) -> Self {
        Self::Played(first.max(last))
    }

    /// The engine's time while the shell's clock shows `now`.
    #[inline]
    pub const fn at(&self, now: Time) -> Time {
        match self {
            Self::Counted { ahead_ns } => now.plus_ns(*ahead_ns),
            Self::Played(time) => *time,
        }
    }

    /// The shell's time at which the engine's clock shows `time`; `None` where a recording is played.
    pub const fn shell_time(&self, time: Time) -> Option<Time> {
        match self {
            Self::Counted { ahead_ns } => Some(Time(time.0.saturating_sub(*ahead_ns))),
            Self::Played(_) => None,
        }
    }

    /// The recording goes on to this time.
    pub fn pass(&mut self, to: Time) {
        if let Self::Played(time) = self {
            *time = to.max(*time);
        }
    }

    /// Whether a recording is played.
    pub const fn is_played(&self) -> bool {
        matches!(self, Self::Played(_))
    }

    /// The venue's clock is measured against the shell's. The engine's clock may be ahead of that.
    pub const fn by_engine(&self, input: LiveInput) -> LiveInput {
        match (self, input) {
            (
                Self::Counted { ahead_ns },
                LiveInput::Clock {
                    surface,
                    offset_ns,
                    error_ns,
                },
            ) => LiveInput::Clock {
                surface,
                offset_ns: offset_ns.saturating_sub(*ahead_ns),
                error_ns,
            },
            (_, other) => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use windvane_model::Surface;

    use super::*;

    const HOUR_NS: i64 = 3_600_000_000_000;

    #[test]
    fn the_engine_goes_on_after_the_last_time_of_the_journal() {
        let now = Time(1_000);
        let clock = Clock::counted(now, now.plus_ns(HOUR_NS));
        assert_eq!(clock.at(now), now.plus_ns(HOUR_NS));
        assert_eq!(clock.shell_time(clock.at(now)), Some(now));
        assert_eq!(Clock::counted(now, Time(0)).at(now), now);
    }

    #[test]
    fn the_offset_of_the_venue_is_against_the_clock_of_the_engine() {
        let clock = Clock::Counted { ahead_ns: HOUR_NS };
        let read = LiveInput::Clock {
            surface: Surface::Futures,
            offset_ns: 5,
            error_ns: 1,
        };
        let LiveInput::Clock { offset_ns, .. } = clock.by_engine(read) else {
            panic!("it stays a reading of the clock")
        };
        assert_eq!(offset_ns, 5 - HOUR_NS);
    }

    #[test]
    fn a_played_clock_moves_with_the_recording_alone() {
        let mut clock = Clock::played(Time(10), Time(20));
        assert_eq!(clock.at(Time(99)), Time(20));
        clock.pass(Time(30));
        clock.pass(Time(25));
        assert_eq!(clock.at(Time(0)), Time(30));
    }
}
