//! The recorded market as two views. The venue sees each event first. The engine sees it later,
//! after the feed latency. Only the chunks between the two views are in memory.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use windvane_model::Time;

use windvane_recording::{Chunk, Chunks, RecordingError, TapeEvent};

/// How long a market event takes from the venue to the engine.
#[derive(Clone, Debug)]
pub enum FeedLatency {
    /// Recorded times are the venue's. The engine sees each event this many nanoseconds later.
    Constant(i64),
    /// Recorded times are the engine's. The venue sees each event earlier, by the event's own
    /// latency: its receive time minus its event time, minus the smallest such difference of its
    /// instrument. That minimum removes the offset of the clocks. An event without an event time
    /// uses the latency of the event before it.
    Recorded {
        /// The smallest difference per instrument, nanoseconds.
        offsets_ns: Vec<i64>,
    },
}

/// Both views of the market.
pub struct Feed {
    tape: Box<dyn Chunks>,
    latency: FeedLatency,
    chunks: VecDeque<Chunk>,
    ended: bool,
    venue: Cursor,
    engine: Cursor,
    last_latency_ns: i64,
    reading: Duration,
}

/// A position in the loaded chunks.
#[derive(Debug)]
struct Cursor {
    chunk: usize,
    index: usize,
    /// When this view sees the event at this position.
    at: Time,
}

impl Feed {
    /// Starts at the first event of a tape.
    pub fn new(tape: impl Chunks + 'static, latency: FeedLatency) -> Result<Self, RecordingError> {
        let start = || Cursor {
            chunk: 0,
            index: 0,
            at: Time::NEVER,
        };
        let mut feed = Self {
            tape: Box::new(tape),
            latency,
            chunks: VecDeque::new(),
            ended: false,
            venue: start(),
            engine: start(),
            last_latency_ns: 0,
            reading: Duration::ZERO,
        };
        feed.load()?;
        feed.settle_venue()?;
        feed.settle_engine();
        Ok(feed)
    }

    /// When the venue sees its next event. `Time::NEVER` after the last event.
    #[inline]
    pub fn venue_time(&self) -> Time {
        self.venue.at
    }

    /// When the engine sees its next event. `Time::NEVER` after the last event.
    #[inline]
    pub fn engine_time(&self) -> Time {
        self.engine.at
    }

    /// The venue's next event, and the chunk that contains its levels. Call it only while
    /// [`Feed::venue_time`] is not `Time::NEVER`.
    #[inline]
    pub fn venue_event(&self) -> (&Chunk, TapeEvent) {
        self.event_at(&self.venue)
    }

    /// The engine's next event, and its chunk. Call it only while [`Feed::engine_time`] is not
    /// `Time::NEVER`.
    #[inline]
    pub fn engine_event(&self) -> (&Chunk, TapeEvent) {
        self.event_at(&self.engine)
    }

    #[inline]
    fn event_at(&self, cursor: &Cursor) -> (&Chunk, TapeEvent) {
        let chunk = &self.chunks[cursor.chunk];
        (chunk, chunk.events[cursor.index])
    }

    /// Moves the venue's view to its next event.
    #[inline]
    pub fn advance_venue(&mut self) -> Result<(), RecordingError> {
        self.venue.index += 1;
        if let FeedLatency::Constant(_) = self.latency
            && let Some(event) = next_in(&self.chunks, &self.venue)
        {
            self.venue.at = event.recv;
            return Ok(());
        }
        self.settle_venue()
    }

    /// Moves the engine's view to its next event.
    #[inline]
    pub fn advance_engine(&mut self) {
        self.engine.index += 1;
        if let FeedLatency::Constant(ns) = self.latency
            && let Some(event) = next_in(&self.chunks, &self.engine)
        {
            self.engine.at = event.recv.plus_ns(ns);
            return;
        }
        self.settle_engine();
    }

    /// Feed latency of the venue's next event, nanoseconds.
    #[inline]
    pub fn latency_ns(&self) -> i64 {
        match self.latency {
            FeedLatency::Constant(ns) => ns,
            FeedLatency::Recorded { .. } => self.last_latency_ns,
        }
    }

    /// Wall time spent reading chunks.
    pub const fn reading(&self) -> Duration {
        self.reading
    }

    /// Messages about the data that the reader of the results needs.
    pub fn notices(&self) -> &[String] {
        self.tape.notices()
    }

    fn settle_venue(&mut self) -> Result<(), RecordingError> {
        loop {
            let Some(chunk) = self.chunks.get(self.venue.chunk) else {
                if !self.load()? {
                    self.venue.at = Time::NEVER;
                    return Ok(());
                }
                continue;
            };
            if let Some(event) = chunk.events.get(self.venue.index) {
                let seen = match &self.latency {
                    FeedLatency::Constant(_) => event.recv,
                    FeedLatency::Recorded { offsets_ns } => {
                        let latency = own_latency(event, offsets_ns);
                        self.last_latency_ns = latency.unwrap_or(self.last_latency_ns);
                        let at = event.recv.plus_ns(-self.last_latency_ns);
                        // The venue's events keep their order too, so time never goes back.
                        if self.venue.at == Time::NEVER {
                            at
                        } else {
                            at.max(self.venue.at)
                        }
                    }
                };
                self.venue.at = seen;
                return Ok(());
            }
            self.venue.chunk += 1;
            self.venue.index = 0;
        }
    }

    fn settle_engine(&mut self) {
        loop {
            let Some(chunk) = self.chunks.get(self.engine.chunk) else {
                // The venue's view is ahead and loads the chunks. If none is left here, the market
                // has ended.
                self.engine.at = Time::NEVER;
                return;
            };
            if let Some(event) = chunk.events.get(self.engine.index) {
                self.engine.at = match self.latency {
                    FeedLatency::Constant(ns) => event.recv.plus_ns(ns),
                    FeedLatency::Recorded { .. } => event.recv,
                };
                return;
            }
            self.engine.index = 0;
            self.engine.chunk += 1;
            if self.venue.chunk > 0 {
                if let Some(chunk) = self.chunks.pop_front() {
                    self.tape.recycle(chunk);
                }
                self.engine.chunk -= 1;
                self.venue.chunk -= 1;
            }
        }
    }

    fn load(&mut self) -> Result<bool, RecordingError> {
        if self.ended {
            return Ok(false);
        }
        let began = Instant::now();
        match self.tape.next_chunk()? {
            Some(chunk) => self.chunks.push_back(chunk),
            None => self.ended = true,
        }
        self.reading += began.elapsed();
        Ok(!self.ended)
    }
}

/// The event at a cursor, or `None` at the end of the chunk.
#[inline]
fn next_in<'c>(chunks: &'c VecDeque<Chunk>, cursor: &Cursor) -> Option<&'c TapeEvent> {
    chunks.get(cursor.chunk)?.events.get(cursor.index)
}

/// The latency of one event, without the offset of the clocks. `None` if it has no event time.
fn own_latency(event: &TapeEvent, offsets_ns: &[i64]) -> Option<i64> {
    if event.event_time.0 == 0 {
        return None;
    }
    let offset = offsets_ns.get(usize::from(event.instrument.0)).copied()?;
    Some((event.recv.0 - event.event_time.0 - offset).max(0))
}
