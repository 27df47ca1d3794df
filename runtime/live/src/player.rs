//! Plays recordings as the market of a paper run: their events in order, at the recorded pace or
//! faster. The time is the recording's. The wall clock only decides how long to wait.

use std::str::FromStr;
use std::time::{Duration, Instant};

use windvane_model::{Instrument, InstrumentId, MarketEvent, Time};

use windvane_recording::{Chunk, Recording, RecordingError, Tape};

/// The speed of a playback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Thousandths of the recorded speed.
    Permille(u64),
    /// Without any wait.
    Max,
}

impl Default for Pace {
    fn default() -> Self {
        Self::Permille(1_000)
    }
}

impl FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let wrong = || "must be `max` or a number over 0 such as 1, 10 or 0.5".to_owned();
        let value: rust_decimal::Decimal = text.parse().map_err(|_| wrong())?;
        let permille = windvane_model::decimal::rescale(value, 3);
        let permille = permille.and_then(|permille| u64::try_from(permille).ok());
        match permille {
            Some(permille) if permille > 0 => Ok(Self::Permille(permille)),
            _ => Err(wrong()),
        }
    }
}

/// A playback of recordings.
pub struct Player {
    tape: Tape,
    chunk: Chunk,
    at: usize,
    /// The delay between the recording of an event and its delivery to the engine, as in a
    /// backtest.
    feed_ns: i64,
    pace: Pace,
    /// The wall clock and the recording's time when the playback started.
    origin: Option<(Instant, Time)>,
}

impl Player {
    /// Starts after the events that the account received before. `last_market` is the time of the last
    /// one and the number of events at that time.
    ///
    /// # Errors
    /// A recording cannot be read.
    pub fn new(
        recordings: &[Recording],
        instruments: &[Instrument],
        feed_ns: i64,
        pace: Pace,
        last_market: (Time, u64),
    ) -> Result<Self, RecordingError> {
        let mut player = Self {
            tape: Tape::new(recordings, instruments)?,
            chunk: Chunk::default(),
            at: 0,
            feed_ns,
            pace,
            origin: None,
        };
        player.load()?;
        let (last, mut left) = last_market;
        while player.time() <= last && player.time() != Time::NEVER {
            if player.time() == last {
                if left == 0 {
                    break;
                }
                left -= 1;
            }
            player.step()?;
        }
        Ok(player)
    }

    /// When the engine receives the next event; [`Time::NEVER`] after the last.
    pub fn time(&self) -> Time {
        let event = self.chunk.events.get(self.at);
        event.map_or(Time::NEVER, |event| event.recv.plus_ns(self.feed_ns))
    }

    /// The delay from the recording of an event to the engine.
    pub const fn feed_ns(&self) -> i64 {
        self.feed_ns
    }

    /// The next event.
    pub fn event(&self) -> Option<(InstrumentId, MarketEvent<'_>)> {
        let event = self.chunk.events.get(self.at)?;
        Some((event.instrument, event.market(&self.chunk.levels)))
    }

    /// Whether all events were played.
    pub fn has_ended(&self) -> bool {
        self.time() == Time::NEVER
    }

    /// Ends the playback: no event is left.
    pub fn end(&mut self) {
        self.chunk.events.clear();
    }

    /// Moves to the next event.
    ///
    /// # Errors
    /// The rest of the recording cannot be read.
    pub fn step(&mut self) -> Result<(), RecordingError> {
        self.at += 1;
        if self.at >= self.chunk.events.len() {
            self.load()?;
        }
        Ok(())
    }

    /// How long to wait until the time `due`. `now` is the playback's position.
    pub fn wait(&mut self, now: Time, due: Time) -> Duration {
        let Pace::Permille(permille) = self.pace else {
            return Duration::ZERO;
        };
        let (wall, virtual_time) = *self.origin.get_or_insert_with(|| (Instant::now(), now));
        let ahead = i128::from(due.0) - i128::from(virtual_time.0);
        let ahead = (ahead.max(0) * 1_000 / i128::from(permille)).min(i128::from(i64::MAX));
        let ahead = Duration::from_nanos(u64::try_from(ahead).unwrap_or(u64::MAX));
        ahead.saturating_sub(wall.elapsed())
    }

    fn load(&mut self) -> Result<(), RecordingError> {
        self.at = 0;
        let spare = std::mem::take(&mut self.chunk);
        self.tape.recycle(spare);
        self.chunk = self.tape.next_chunk()?.unwrap_or_default();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_a_number_or_max() {
        assert_eq!("max".parse(), Ok(Pace::Max));
        assert_eq!("1".parse(), Ok(Pace::Permille(1_000)));
        assert_eq!("0.5".parse(), Ok(Pace::Permille(500)));
        for wrong in ["0", "-1", "fast", "", "0.0001"] {
            assert!(wrong.parse::<Pace>().is_err(), "{wrong}");
        }
    }
}
