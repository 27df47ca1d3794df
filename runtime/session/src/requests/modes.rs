//! The account's position mode and asset mode. Reading them costs much weight, and the user stream
//! reports changes, so responses are cached for a while.

use std::collections::BTreeMap;

use windvane_client_core::budget::Lane;
use windvane_model::Time;
use windvane_protocol::adapter::EncodedCall;
use windvane_protocol::route::Surface;

use super::Requests;
use super::engine_requests::CallOutcome;

/// Age up to which a cached response counts.
pub const MODES_AGE_MS: i64 = 60_000;
/// Below this remaining weight, the cheapest sufficient reads are used. It is twice the maximum
/// cost of a full round of reads.
const PLENTY: u32 = 250;
/// For a start, this threshold is the weight limit divided by this number. A run that is killed
/// repeatedly starts about ten times in one interval of the limit.
const START_PARTS: u32 = 2;

/// The last responses of the routes that report the modes
/// ([`Capabilities::modes`](crate::Capabilities::modes)).
#[derive(Debug, Default)]
pub(super) struct Modes {
    known: BTreeMap<&'static str, (Time, String)>,
    /// Whether opening orders wait until the modes are known.
    pub(super) are_needed: bool,
}

impl Modes {
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// Caches a response if its route reports a mode.
    pub(super) fn keep(&mut self, now: Time, (route, text): (&'static str, &str), modes: &[&str]) {
        if modes.contains(&route) {
            self.known.insert(route, (now, text.to_owned()));
        }
    }

    /// The last response of a route. An old one is returned only with `any_age`.
    fn last(&self, now: Time, route: &str, any_age: bool) -> Option<String> {
        let (at, text) = self.known.get(route)?;
        (any_age || now < at.plus_ms(MODES_AGE_MS)).then(|| text.clone())
    }
}

impl Requests {
    /// Below this remaining weight, the cheapest sufficient reads are used.
    pub(super) fn plenty(&self, now: Time, surface: Surface, lane: Lane) -> u32 {
        match lane {
            Lane::Start => self.gateway().weight_limit(self.ms(now), surface) / START_PARTS,
            _ => PLENTY,
        }
    }

    /// The replacement for a read of a mode: a fresh cached response, or any cached response if
    /// little weight is left. With little weight and no cached response, the read is postponed.
    /// `None` if the venue must be asked.
    pub(super) fn known_mode(
        &self,
        now: Time,
        call: &EncodedCall,
        lane: Lane,
    ) -> Option<CallOutcome> {
        let route = call.route.name;
        if !self.exchange.capabilities().modes.contains(&route) {
            return None;
        }
        let surface = call.route.surface;
        let plenty = if self.modes.are_needed {
            // The maximum cost of a round of reads. Opening orders wait for it.
            PLENTY / 2
        } else {
            self.plenty(now, surface, lane)
        };
        let is_short = self.gateway().weight_left(self.ms(now), surface, lane) < plenty;
        match self.modes.last(now, route, is_short || lane == Lane::Close) {
            Some(text) => Some(CallOutcome::Done(text)),
            None if is_short => Some(CallOutcome::Postponed),
            None => None,
        }
    }
}
