//! Plays a recording as a market. Its events are mapped to the venue's clock, at the recorded pace
//! times `speed`. At its end the recording starts again, or the market stops moving.

use windvane_model::{Instrument, InstrumentId, OwnedMarketEvent, Time};

/// One recorded event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Time of reception, never earlier than that of the previous event.
    pub time: Time,
    /// Index of its instrument in [`Recording::instruments`].
    pub instrument: InstrumentId,
    /// The market event.
    pub event: OwnedMarketEvent,
}

/// The events of a recording, in order.
pub type RecordedEvents = Box<dyn Iterator<Item = Recorded> + Send>;

/// A recording to play.
pub struct Recording {
    /// The instruments. Their asset ids are indices into `assets`. The board completes missing
    /// rules.
    pub instruments: Vec<Instrument>,
    /// Names of the assets.
    pub assets: windvane_protocol::Assets,
    /// Opens the recording at its start; `None` if it cannot be opened again.
    pub open: Box<dyn FnMut() -> Option<RecordedEvents> + Send>,
    /// Speed in thousandths of the recorded pace: 1000 is the recorded pace.
    pub speed_permille: u32,
    /// Whether it starts again at its end.
    pub looped: bool,
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording")
            .field("instruments", &self.instruments.len())
            .field("speed_permille", &self.speed_permille)
            .field("looped", &self.looped)
            .finish_non_exhaustive()
    }
}

/// The recorded time between the end and the next start of a loop.
const LOOP_PAUSE_NS: i64 = 1_000_000_000;

/// A recording being played.
pub struct Playback {
    recording: Recording,
    events: Option<RecordedEvents>,
    next: Option<Recorded>,
    /// Recorded time and venue time of the last event.
    anchor: (Time, Time),
}

impl std::fmt::Debug for Playback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Playback")
            .field("recording", &self.recording)
            .field("anchor", &self.anchor)
            .finish_non_exhaustive()
    }
}

impl Playback {
    pub fn new(mut recording: Recording, now: Time) -> Self {
        let mut events = (recording.open)();
        let next = events.as_mut().and_then(Iterator::next);
        let start = next.as_ref().map_or(Time(0), |event| event.time);
        Self {
            recording,
            events,
            next,
            anchor: (start, now),
        }
    }

    /// When the next event is due, in venue time.
    pub fn due(&self) -> Time {
        let (recorded, venue) = self.anchor;
        self.next.as_ref().map_or(Time::NEVER, |event| {
            let pause = i128::from(event.time.0.saturating_sub(recorded.0).max(0));
            let speed = i128::from(self.recording.speed_permille.max(1));
            let pause = i64::try_from(pause * 1000 / speed).unwrap_or(i64::MAX);
            venue.plus_ns(pause)
        })
    }

    /// Moves the next event to now if it is overdue, because time passed without events.
    pub fn skip_to(&mut self, now: Time) {
        if self.due() < now
            && let Some(next) = &self.next
        {
            self.anchor = (next.time, now);
        }
    }

    /// The event that is due.
    pub fn take(&mut self) -> Option<Recorded> {
        let due = self.due();
        let event = self.next.take()?;
        self.anchor = (event.time, due);
        self.next = self.events.as_mut().and_then(Iterator::next);
        if self.next.is_none() && self.recording.looped {
            self.events = (self.recording.open)();
            self.next = self.events.as_mut().and_then(Iterator::next);
            if let Some(next) = &self.next {
                self.anchor = (next.time.plus_ns(-LOOP_PAUSE_NS), due);
            }
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windvane_model::MarketEvent;
    use windvane_protocol::Assets;

    fn playback(speed_permille: u32, looped: bool) -> Playback {
        let open = || -> Option<RecordedEvents> {
            let times = [5_000, 5_000, 9_000].into_iter();
            Some(Box::new(times.map(|us| Recorded {
                time: Time(us * 1000),
                instrument: InstrumentId(0),
                event: OwnedMarketEvent::Plain(MarketEvent::Gap),
            })))
        };
        let recording = Recording {
            instruments: Vec::new(),
            assets: Assets::default(),
            open: Box::new(open),
            speed_permille,
            looped,
        };
        Playback::new(recording, Time(1_000_000_000))
    }

    fn times(mut playback: Playback, count: usize) -> Vec<i64> {
        let mut times = Vec::new();
        for _ in 0..count {
            times.push((playback.due().0 - 1_000_000_000) / 1000);
            playback.take();
        }
        times
    }

    #[test]
    fn speed_scales_the_recorded_pace() {
        assert_eq!(times(playback(1000, false), 3), [0, 0, 4_000]);
        assert_eq!(times(playback(2000, false), 3), [0, 0, 2_000]);
        assert_eq!(times(playback(500, false), 3), [0, 0, 8_000]);
    }

    #[test]
    fn a_recording_ends_or_starts_again() {
        let mut once = playback(1000, false);
        while once.take().is_some() {}
        assert_eq!(once.due(), Time::NEVER);
        let again = times(playback(1000, true), 5);
        assert_eq!(again, [0, 0, 4_000, 1_004_000, 1_004_000]);
    }

    #[test]
    fn skipped_time_is_not_caught_up() {
        let mut playback = playback(1000, false);
        playback.take();
        playback.take();
        playback.skip_to(Time(2_000_000_000));
        assert_eq!(playback.due(), Time(2_000_000_000));
    }
}
