//! The account's modes. They cost much to ask for, and the user stream tells when they change: an
//! answer is kept for a while.

use std::collections::BTreeMap;

use windvane_client_core::budget::Lane;
use windvane_engine::Time;
use windvane_venue::route::Surface;
use windvane_venue::speak::Asked;

use super::Requests;
use super::parts::Became;

/// An answer counts for so long, while the user stream misses nothing.
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
    known: BTreeMap<&'static str, Answer>,
    /// Nothing opens before the modes are known.
    pub(super) are_needed: bool,
}

#[derive(Debug)]
struct Answer {
    at: Time,
    text: String,
    /// A change since then may have been missed: it counts only where nothing newer can be had.
    is_doubtful: bool,
}

impl Modes {
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// A change may have been missed.
    pub(super) fn doubt(&mut self) {
        for answer in self.known.values_mut() {
            answer.is_doubtful = true;
        }
    }

    /// Keeps an answer, if its route tells a mode.
    pub(super) fn keep(&mut self, now: Time, (route, text): (&'static str, &str), modes: &[&str]) {
        if modes.contains(&route) {
            let answer = Answer {
                at: now,
                text: text.to_owned(),
                is_doubtful: false,
            };
            self.known.insert(route, answer);
        }
    }

    /// The last answer of a route; an old one only where `any_age` will do.
    fn last(&self, now: Time, route: &str, any_age: bool) -> Option<String> {
        let answer = self.known.get(route)?;
        let is_fresh = !answer.is_doubtful && now < answer.at.plus_ms(MODES_AGE_MS);
        (any_age || is_fresh).then(|| answer.text.clone())
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_for_a_minute_unless_a_change_may_have_been_missed() {
        let (mut modes, route) = (Modes::default(), "futures.position_mode");
        let at = |ms| Time(0).plus_ms(ms);
        let text = r#"{"dualSidePosition":false}"#;
        modes.keep(at(0), (route, text), &[route]);
        assert_eq!(modes.last(at(59_000), route, false).unwrap(), text);
        assert_eq!(modes.last(at(60_000), route, false), None);
        modes.keep(at(61_000), (route, text), &[route]);
        modes.doubt();
        assert_eq!(modes.last(at(61_001), route, false), None);
        assert_eq!(modes.last(at(61_001), route, true).unwrap(), text);
        modes.keep(at(62_000), (route, text), &[route]);
        assert_eq!(modes.last(at(62_001), route, false).unwrap(), text);
    }
}
