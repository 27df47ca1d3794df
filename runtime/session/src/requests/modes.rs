//! The account's modes. They cost much to ask for, and the user stream tells when they change: an
//! answer is kept for a while.

use std::collections::BTreeMap;

use windvane_client_core::budget::Lane;
use windvane_model::Time;
use windvane_protocol::route::Surface;
use windvane_protocol::speak::Asked;

use super::Requests;
use super::parts::Became;

/// An answer counts for so long.
pub const MODES_AGE_MS: i64 = 60_000;
/// With less weight left than this, readings are the cheapest that suffice: it is what a whole round
/// of them costs at most, and as much again.
const PLENTY: u32 = 250;
/// The same for a start, as a part of the limit: a run that is killed again and again starts some ten times
/// in an interval.
const START_PARTS: u32 = 2;

/// The last answers of the routes that tell the modes ([`Capabilities::modes`](crate::Capabilities::modes)).
#[derive(Debug, Default)]
pub(super) struct Modes {
    known: BTreeMap<&'static str, (Time, String)>,
    /// Nothing opens before the modes are known.
    pub(super) are_needed: bool,
}

impl Modes {
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// Keeps an answer, if its route tells a mode.
    pub(super) fn keep(&mut self, now: Time, (route, text): (&'static str, &str), modes: &[&str]) {
        if modes.contains(&route) {
            self.known.insert(route, (now, text.to_owned()));
        }
    }

    /// The last answer of a route; an old one only where `any_age` will do.
    fn last(&self, now: Time, route: &str, any_age: bool) -> Option<String> {
        let (at, text) = self.known.get(route)?;
        (any_age || now < at.plus_ms(MODES_AGE_MS)).then(|| text.clone())
    }
}

impl Requests {
    /// With less weight left than this, readings are the cheapest that suffice.
    pub(super) fn plenty(&self, now: Time, surface: Surface, lane: Lane) -> u32 {
        match lane {
            Lane::Start => self.gateway().weight_limit(self.ms(now), surface) / START_PARTS,
            _ => PLENTY,
        }
    }

    /// What is known of one of the account's modes without asking, if it is to be used: a fresh
    /// answer, or, where little weight is left, any answer, or none.
    pub(super) fn known_mode(&self, now: Time, call: &Asked, lane: Lane) -> Option<Became> {
        let route = call.route.name;
        if !self.exchange.capabilities().modes.contains(&route) {
            return None;
        }
        let surface = call.route.surface;
        let plenty = if self.modes.are_needed {
            // What a round costs at most. Nothing opens without it.
            PLENTY / 2
        } else {
            self.plenty(now, surface, lane)
        };
        let is_short = self.gateway().weight_left(self.ms(now), surface, lane) < plenty;
        match self.modes.last(now, route, is_short || lane == Lane::Close) {
            Some(text) => Some(Became::Done(text)),
            None if is_short => Some(Became::Postponed),
            None => None,
        }
    }
}
