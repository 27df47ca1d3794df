//! The venue's clocks. They are read periodically, and soon after a request was refused because of
//! its timestamp.

use std::collections::BTreeMap;

use windvane_client_core::budget::Lane;
use windvane_client_core::clock::{Offset, Sample, estimate};
use windvane_client_core::outcome::{NotDone, Refusal};
use windvane_model::live::LiveInput;
use windvane_model::{Surface, Time};

use super::{Done, Purpose, Requests};
use crate::exchange::{Exchange, Query};
use crate::surface::{engine_surface, venue_surface};

/// Interval of the reads of a clock.
pub const CLOCK_EVERY_MS: i64 = 60_000;
/// Pause after a failed read, and minimum time between a read and a new one because of a refused
/// timestamp.
const AGAIN_MS: i64 = 2_000;
/// Samples for each read; the best one counts.
pub const CLOCK_SAMPLES: usize = 3;
/// Only one of this many failures in a row is logged.
const LOGGED_EVERY: u64 = 30;

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
    due: BTreeMap<Surface, Time>,
    /// When each clock was read last.
    read: BTreeMap<Surface, Time>,
    /// Failed reads in a row.
    failed: BTreeMap<Surface, u64>,
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
        purpose: &Purpose,
        exchange: &dyn Exchange,
    ) {
        let Err(not_done @ NotDone::Refused(Refusal::Venue { called_route, .. })) = result else {
            return;
        };
        if !exchange.is_of_clock(not_done) || matches!(purpose, Purpose::Clock(_)) {
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

impl Requests {
    /// Starts the periodic reads of the clocks.
    pub(crate) fn watch_clocks(&mut self, now: Time) {
        for surface in &self.surfaces {
            self.clocks.due.insert(*surface, now);
        }
    }

    pub(super) fn read_clock(&mut self, now: Time, surface: Surface) {
        self.request_clock(now, ClockRead::new(surface, now));
    }

    fn request_clock(&mut self, now: Time, mut reading: ClockRead) {
        let query = reading.next_query(now);
        // Clock reads use the heartbeat lane, because heartbeats need the clock.
        self.send_query(now, query, (Lane::Heartbeat, Purpose::Clock(reading)));
    }

    /// The result of a read.
    pub(super) fn clock_read(
        &mut self,
        now: Time,
        mut reading: ClockRead,
        result: Result<String, NotDone>,
    ) {
        let surface = reading.surface;
        let result = result.map_err(|not_done| not_done.to_string());
        let offset = match result.and_then(|text| reading.take(now, &text, &*self.exchange)) {
            Ok(Some(offset)) => offset,
            Ok(None) => return self.request_clock(now, reading),
            Err(why) => return self.clock_failed(now, surface, &why),
        };
        self.gateway().set_offset(venue_surface(surface), offset);
        if let Some(count) = self.clocks.failed.remove(&surface) {
            tracing::info!(%surface, count, "the venue's clock can be read again");
        }
        self.clocks.read.insert(surface, now);
        self.clocks.due.insert(surface, now.plus_ms(CLOCK_EVERY_MS));
        self.done.push_back(Done::Live(LiveInput::Clock {
            surface,
            offset_ns: offset.offset_us.saturating_mul(1_000),
            error_ns: offset.error_us.saturating_mul(1_000),
        }));
    }

    fn clock_failed(&mut self, now: Time, surface: Surface, why: &str) {
        let failed = self.clocks.failed.entry(surface).or_default();
        if failed.is_multiple_of(LOGGED_EVERY) {
            tracing::warn!(%surface, why, repeated = *failed, "the venue's clock could not be read");
        }
        *failed += 1;
        self.clocks.due.insert(surface, now.plus_ms(AGAIN_MS));
    }
}
