//! The engine's clock: it follows the shell's clock, or the time of the recording that is played.

use windvane_model::Time;
use windvane_model::live::LiveInput;

/// Engine time. It never runs backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The shell's clock: the wall clock at the start of the process, then a monotonic count.
    Counted {
        /// How far the engine's clock is ahead of the shell's clock, in nanoseconds. It is ahead if
        /// the wall clock was set back since the last process wrote its journal.
        ahead_ns: i64,
    },
    /// The recording's time. It is constant between two events.
    Played(Time),
}

impl Clock {
    /// Follows the shell's clock. The engine's time does not start before `last`, the last time of
    /// the journal.
    pub const fn counted(now: Time, last: Time) -> Self {
        let behind_ns = last.0.saturating_sub(now.0);
        Self::Counted {
            ahead_ns: if behind_ns > 0 { behind_ns } else { 0 },
        }
    }

    /// Follows the recording's time, which does not start before `last`, the last time of the
    /// journal.
    pub fn played(first: Time, last: Time) -> Self {
        Self::Played(first.max(last))
    }

    /// The engine's time when the shell's clock shows `now`.
    #[inline]
    pub const fn at(&self, now: Time) -> Time {
        match self {
            Self::Counted { ahead_ns } => now.plus_ns(*ahead_ns),
            Self::Played(time) => *time,
        }
    }

    /// The shell's time when the engine's clock shows `time`; `None` if a recording is played.
    pub const fn shell_time(&self, time: Time) -> Option<Time> {
        match self {
            Self::Counted { ahead_ns } => Some(Time(time.0.saturating_sub(*ahead_ns))),
            Self::Played(_) => None,
        }
    }

    /// Advances the recording to this time.
    pub fn pass(&mut self, to: Time) {
        if let Self::Played(time) = self {
            *time = to.max(*time);
        }
    }

    /// Whether a recording is played.
    pub const fn is_played(&self) -> bool {
        matches!(self, Self::Played(_))
    }

    /// Converts an offset of the venue's clock to the engine's clock. The offset was measured
    /// against the shell's clock, and the engine's clock may be ahead of it.
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
    fn engine_time_starts_after_the_last_time_of_the_journal() {
        let now = Time(1_000);
        let clock = Clock::counted(now, now.plus_ns(HOUR_NS));
        assert_eq!(clock.at(now), now.plus_ns(HOUR_NS));
        assert_eq!(clock.shell_time(clock.at(now)), Some(now));
        assert_eq!(Clock::counted(now, Time(0)).at(now), now);
    }

    #[test]
    fn a_venue_clock_offset_is_converted_to_the_engine_clock() {
        let clock = Clock::Counted { ahead_ns: HOUR_NS };
        let read = LiveInput::Clock {
            surface: Surface::Futures,
            offset_ns: 5,
            error_ns: 1,
        };
        let LiveInput::Clock { offset_ns, .. } = clock.by_engine(read) else {
            panic!("expected a clock input")
        };
        assert_eq!(offset_ns, 5 - HOUR_NS);
    }

    #[test]
    fn a_played_clock_follows_only_the_recording() {
        let mut clock = Clock::played(Time(10), Time(20));
        assert_eq!(clock.at(Time(99)), Time(20));
        clock.pass(Time(30));
        clock.pass(Time(25));
        assert_eq!(clock.at(Time(0)), Time(30));
    }
}
