//! The recorded market, seen twice: first by the venue, where it happens, and a feed latency
//! later by the engine. Only the chunks between the two are held in memory.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use windvane_model::Time;

use windvane_recording::{Chunk, Chunks, RecordingError, TapeEvent};

/// How long a market event takes from the venue to the engine.
#[derive(Clone, Debug)]
pub enum FeedLatency {
    /// The recording shows the venue's time; the engine sees each event this much later.
    Constant(i64),
    /// The recording shows the engine's time; the venue's is earlier by what the event itself
    /// took: receive time less event time, less the smallest such difference of its instrument,
    /// which takes out the offset of the clocks. Events without an event time take as long as the
    /// one before them.
    Recorded {
        /// The smallest difference in nanoseconds, by instrument.
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

/// A place in the chunks held.
#[derive(Debug)]
struct Cursor {
    chunk: usize,
    index: usize,
    /// When the event at this place is seen.
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

    /// When the venue sees its next event; never after the last.
    #[inline]
    pub fn venue_time(&self) -> Time {
        self.venue.at
    }

    /// When the engine sees its next event.
    #[inline]
    pub fn engine_time(&self) -> Time {
        self.engine.at
    }

    /// The venue's next event with the chunk that holds its levels. Call only while
    /// [`Feed::venue_time`] says that there is one.
    #[inline]
    pub fn venue_event(&self) -> (&Chunk, TapeEvent) {
        self.event_at(&self.venue)
    }

    /// The engine's next event, likewise.
    #[inline]
    pub fn engine_event(&self) -> (&Chunk, TapeEvent) {
        self.event_at(&self.engine)
    }

    #[inline]
    fn event_at(&self, cursor: &Cursor) -> (&Chunk, TapeEvent) {
        let chunk = &self.chunks[cursor.chunk];
        (chunk, chunk.events[cursor.index])
    }

    /// The venue has taken its event.
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

    /// The engine has taken its event.
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

    /// How long the event that the venue sees next will be under way.
    #[inline]
    pub fn latency_ns(&self) -> i64 {
        match self.latency {
            FeedLatency::Constant(ns) => ns,
            FeedLatency::Recorded { .. } => self.last_latency_ns,
        }
    }

    /// Wall time spent with reading chunks.
    pub const fn reading(&self) -> Duration {
        self.reading
    }

    /// What the reader of the results should know of the data.
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
                        // The venue's events keep their order too.
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
                // The venue runs ahead and loads: nothing left here is the end.
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

/// The event at a cursor, while it is within its chunk.
#[inline]
fn next_in<'c>(chunks: &'c VecDeque<Chunk>, cursor: &Cursor) -> Option<&'c TapeEvent> {
    chunks.get(cursor.chunk)?.events.get(cursor.index)
}

/// What an event itself took, once the clocks' offset is taken out.
fn own_latency(event: &TapeEvent, offsets_ns: &[i64]) -> Option<i64> {
    if event.event_time.0 == 0 {
        return None;
    }
    let offset = offsets_ns.get(usize::from(event.instrument.0)).copied()?;
    Some((event.recv.0 - event.event_time.0 - offset).max(0))
}
