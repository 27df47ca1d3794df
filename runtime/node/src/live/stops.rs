//! Times in which the venue accepts no requests. The client learns of them by a 418, 403, 429 or
//! -1016. This module passes them on to the engine, which then sends no opening orders.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use windvane_client::Client;
use windvane_client::budget::Denial;
use windvane_engine::Surface;
use windvane_engine::live::{LiveInput, StopReason};
use windvane_venue::error::Limit;

use super::carrier::venue_surface;

/// The client is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// An end that moves by less is the same.
const SAME: Duration = Duration::from_millis(500);

/// The stops that the engine knows.
#[derive(Debug, Default)]
pub struct Stops {
    looked: Option<Instant>,
    told: BTreeMap<Surface, (StopReason, Instant)>,
}

impl Stops {
    /// A stop that began, changed or ended since the last look.
    pub fn next(&mut self, client: &Client, surfaces: &[Surface]) -> Option<LiveInput> {
        let now = Instant::now();
        if self.looked.is_some_and(|at| now < at + LOOK_EVERY) {
            return None;
        }
        for &surface in surfaces {
            let stop = client.stop_of(venue_surface(surface));
            let stop = stop.map(|(why, left)| (reason(why), left));
            if let Some(input) = self.change(surface, stop, now) {
                return Some(input);
            }
        }
        self.looked = Some(now);
        None
    }

    fn change(
        &mut self,
        surface: Surface,
        stop: Option<(StopReason, Duration)>,
        now: Instant,
    ) -> Option<LiveInput> {
        let told = self.told.get(&surface).copied();
        let (why, left) = match (stop, told) {
            (None, None) => return None,
            (None, Some((why, _))) => {
                self.told.remove(&surface);
                (why, Duration::ZERO)
            }
            (Some((why, left)), told) => {
                let ends = now + left;
                let same = |(known, end): (StopReason, Instant)| {
                    known == why && ends.max(end) - ends.min(end) < SAME
                };
                if told.is_some_and(same) {
                    return None;
                }
                self.told.insert(surface, (why, ends));
                (why, left)
            }
        };
        Some(LiveInput::Stopped {
            surface,
            why,
            for_ms: i64::try_from(left.as_millis()).unwrap_or(i64::MAX),
        })
    }
}

/// Why the venue accepts no request, in the engine's words.
pub const fn reason(why: Denial) -> StopReason {
    match why {
        Denial::Banned => StopReason::Ban,
        Denial::Stopped(Limit::Firewall) => StopReason::Firewall,
        Denial::Stopped(Limit::Closed) => StopReason::Closing,
        _ => StopReason::Limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_told_once_and_again_when_it_changes_or_ends() {
        let (mut stops, now) = (Stops::default(), Instant::now());
        let surface = Surface::Futures;
        let ban = |s| Some((StopReason::Ban, Duration::from_secs(s)));
        let for_ms = |input: Option<LiveInput>| match input {
            Some(LiveInput::Stopped { for_ms, .. }) => Some(for_ms),
            _ => None,
        };
        assert_eq!(for_ms(stops.change(surface, None, now)), None);
        assert_eq!(for_ms(stops.change(surface, ban(60), now)), Some(60_000));
        assert_eq!(for_ms(stops.change(surface, ban(60), now)), None);
        assert_eq!(for_ms(stops.change(surface, ban(90), now)), Some(90_000));
        assert_eq!(for_ms(stops.change(surface, None, now)), Some(0));
        assert_eq!(for_ms(stops.change(surface, None, now)), None);
    }
}
