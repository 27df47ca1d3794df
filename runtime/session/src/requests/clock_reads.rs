//! The reads of the venue's clocks: one read, and when each clock is read next.

use std::collections::BTreeMap;

use windvane_client_core::clock::{Offset, Sample, estimate};
use windvane_client_core::outcome::{NotDone, Refusal};
use windvane_model::{Surface, Time};

use crate::exchange::{Exchange, Query};
use crate::surface::engine_surface;

/// Interval of the reads of a clock.
pub const CLOCK_EVERY_MS: i64 = 60_000;
/// Pause after a failed read, and minimum time between a read and a new one because of a refused
/// timestamp.
pub(super) const AGAIN_MS: i64 = 2_000;
/// Samples for each read; the best one counts.
pub const CLOCK_SAMPLES: usize = 3;

/// A clock read in progress.
#[derive(Debug)]
pub(crate) struct ClockRead {
    pub(crate) surface: Surface,
    samples: Vec<Sample>,
    sent: Time,
}

impl ClockRead {
    /// A read without samples.
    pub(crate) const fn new(surface: Surface, now: Time) -> Self {
        Self {
            surface,
            samples: Vec::new(),
            sent: now,
        }
    }

    /// Starts the next sample and returns the query for it.
    pub(crate) const fn next_query(&mut self, now: Time) -> Query<'static> {
        self.sent = now;
        Query::Clock(self.surface)
    }

    /// Takes a response. Returns the offset once there are enough samples.
    ///
    /// # Errors
    /// The reason why the clock could not be read.
    pub(crate) fn take(
        &mut self,
        now: Time,
        text: &str,
        exchange: &dyn Exchange,
    ) -> Result<Option<Offset>, String> {
        let server_ms = exchange
            .clock_ms(text)
            .ok_or_else(|| format!("unexpected response {text:?}"))?;
        self.samples.push(Sample {
            sent_us: self.sent.0.div_euclid(1_000),
            received_us: now.0.div_euclid(1_000),
            server_ms,
        });
        if self.samples.len() < CLOCK_SAMPLES {
            return Ok(None);
        }
        let offset = estimate(&self.samples);
        let set_back = || "the local clock was set back meanwhile".to_owned();
        offset.map(Some).ok_or_else(set_back)
    }
}

/// When each clock is read next.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    pub(super) due: BTreeMap<Surface, Time>,
    /// When each clock was read last.
    pub(super) read: BTreeMap<Surface, Time>,
    /// Failed reads in a row.
    pub(super) failed: BTreeMap<Surface, u64>,
}

impl Clocks {
    /// A clock that is due. It is not due again before this read ends.
    pub(super) fn due(&mut self, now: Time) -> Option<Surface> {
        let mut due = self.due.iter();
        let (surface, _) = due.find(|(_, at)| **at <= now)?;
        let surface = *surface;
        self.due.remove(&surface);
        Some(surface)
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.due.values().min().copied()
    }

    /// Reads the clock of a surface soon if a request was refused because of its timestamp: the
    /// offset changed.
    pub(super) fn note_result(
        &mut self,
        now: Time,
        result: &Result<String, NotDone>,
        is_clock_read: bool,
        exchange: &dyn Exchange,
    ) {
        let Err(not_done @ NotDone::Refused(Refusal::Venue { called_route, .. })) = result else {
            return;
        };
        if !exchange.is_of_clock(not_done) || is_clock_read {
            return;
        }
        let surface = engine_surface(called_route.route.surface);
        let read = self.read.get(&surface);
        let soon = read.map_or(now, |read| read.plus_ms(AGAIN_MS).max(now));
        if let Some(due) = self.due.get_mut(&surface) {
            *due = soon.min(*due);
        }
    }
}
