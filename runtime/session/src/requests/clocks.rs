//! The venue's clocks. They are read periodically, and soon after a request was refused because of
//! its timestamp.

use windvane_client_core::budget::Lane;
use windvane_client_core::outcome::NotDone;
use windvane_model::live::LiveInput;
use windvane_model::{Surface, Time};

use super::call::Purpose;
use super::clock_reads::{AGAIN_MS, CLOCK_EVERY_MS, ClockRead};
use super::done::Done;
use super::state::Requests;
use crate::surface::venue_surface;

/// Only one of this many failures in a row is logged.
const LOGGED_EVERY: u64 = 30;

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
