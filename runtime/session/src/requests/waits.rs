//! Translates the venue's limits for the engine: how long nothing may be sent, and why. The engine
//! receives this before the result of its request.

use windvane_client_core::budget::{Denial, Lane};
use windvane_client_core::outcome::WaitReason;
use windvane_model::Time;
use windvane_model::live::{LiveInput, WaitKind};
use windvane_protocol::route;

use super::call::Purpose;
use super::done::Done;
use super::state::Requests;
use super::stops::stop_reason;
use crate::exchange::Query;
use crate::surface::{engine_surface, venue_surface};

/// Margin so that the engine's timer is not earlier than the budget's.
const MARGIN_MS: u64 = 5;

impl Requests {
    /// Reports stops that began, changed or ended to the engine.
    pub(crate) fn report_stops(&mut self, now: Time) {
        let ms = self.ms(now);
        for place in 0..self.surfaces.len() {
            let surface = self.surfaces[place];
            let stop = self.gateway().stop_of(ms, venue_surface(surface));
            let stop = stop.map(|(why, left_ms)| (stop_reason(why), left_ms));
            let input = self.stops.change(surface, stop, now);
            self.done.extend(input.map(Done::Live));
        }
    }

    /// The venue refused a call because of a limit. Reports to the engine how long nothing may be
    /// sent.
    pub(super) fn report_wait(&mut self, now: Time, surface: route::Surface, why: &WaitReason) {
        if let WaitReason::Budget(denied) = why
            && denied.why == Denial::Weight
        {
            return self.probe(now, surface);
        }
        // The order limit is reported only after the venue itself refused an order, because the
        // engine counts these refusals.
        let is_by_venue = matches!(why, WaitReason::Venue(_));
        let ms = self.ms(now);
        let all = self.gateway().stopped_ms(ms, surface);
        let orders = self.gateway().orders_stopped_ms(ms, surface);
        let all = all.map(|left| (WaitKind::All, left));
        let orders = orders.filter(|_| is_by_venue);
        let orders = orders.map(|left| (WaitKind::Orders, left));
        let input = |(kind, left_ms): (WaitKind, u64)| {
            Done::Live(LiveInput::VenueWait {
                surface: engine_surface(surface),
                kind,
                wait_ms: i64::try_from(left_ms + MARGIN_MS).unwrap_or(i64::MAX),
            })
        };
        let inputs = all.into_iter().chain(orders).map(input);
        self.done.extend(inputs);
    }

    /// Our own count holds a request back, but the venue's interval may have restarted meanwhile.
    /// The header of the cheapest response shows this. Probes are limited, because many requests
    /// may be held back in a second and each probe costs weight.
    fn probe(&mut self, now: Time, surface: route::Surface) {
        if !self.probes.is_due(surface, now) {
            return;
        }
        let query = Query::Clock(engine_surface(surface));
        self.send_query(now, query, (Lane::Start, Purpose::Probe));
    }
}
