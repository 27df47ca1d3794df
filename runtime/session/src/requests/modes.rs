//! The account's position mode and asset mode. Reading them costs much weight, and the user stream
//! reports changes, so responses are cached for a while.

use std::collections::BTreeMap;

use windvane_model::Time;

/// Age up to which a cached response counts.
pub const MODES_AGE_MS: i64 = 60_000;

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

    /// Caches a response if its route is in `modes`: the routes that report the account's position
    /// mode and asset mode.
    pub(super) fn keep(&mut self, now: Time, (route, text): (&'static str, &str), modes: &[&str]) {
        if modes.contains(&route) {
            self.known.insert(route, (now, text.to_owned()));
        }
    }

    /// The last response of a route. An old one is returned only with `any_age`.
    pub(super) fn last(&self, now: Time, route: &str, any_age: bool) -> Option<String> {
        let (at, text) = self.known.get(route)?;
        (any_age || now < at.plus_ms(MODES_AGE_MS)).then(|| text.clone())
    }
}
