//! Times in which the venue accepts no requests, and the probes that find out whether one is over.

use std::collections::BTreeMap;

use windvane_client_core::budget::Denial;
use windvane_model::live::{LiveInput, StopReason};
use windvane_model::{Surface, Time, planted};
use windvane_protocol::error::Limit;
use windvane_protocol::route;

/// Minimum time between two probes of the used weight.
const PROBE_EVERY_MS: i64 = 5_000;
/// A stop whose end moves by less than this counts as unchanged.
const SAME_NS: u64 = 500_000_000;

/// When each surface was probed last.
#[derive(Debug, Default)]
pub(super) struct Probes(BTreeMap<route::Surface, Time>);

impl Probes {
    /// Whether a probe of a surface is due now. If so, it counts as made.
    pub(super) fn is_due(&mut self, surface: route::Surface, now: Time) -> bool {
        let last = self.0.get(&surface);
        let is_due = last.is_none_or(|last| now >= last.plus_ms(PROBE_EVERY_MS));
        if is_due {
            self.0.insert(surface, now);
        }
        is_due
    }
}

/// Times in which the venue accepts no requests, as the engine knows them. The engine sends no
/// opening orders then. The venue reports a stop by 418, 403, 429 or -1016.
#[derive(Debug, Default)]
pub(super) struct Stops(BTreeMap<Surface, Stop>);

#[derive(Clone, Copy, Debug)]
struct Stop {
    why: StopReason,
    /// Its present end, and the end that the engine received.
    end: Time,
    reported_end: Time,
}

impl Stops {
    /// When the next stop ends.
    pub(super) fn next(&self) -> Option<Time> {
        self.0.values().map(|stop| stop.end).min()
    }

    /// The input for the engine if a stop began, changed or ended.
    pub(super) fn change(
        &mut self,
        surface: Surface,
        stop: Option<(StopReason, u64)>,
        now: Time,
    ) -> Option<LiveInput> {
        let reported_end = self.0.get(&surface).copied();
        let (why, left_ms) = match (stop, reported_end) {
            (None, None) => return None,
            (None, Some(stop)) => {
                if !planted!(EndedStopKept) {
                    self.0.remove(&surface);
                }
                (stop.why, 0)
            }
            (Some((why, left_ms)), before) => {
                let left = i64::try_from(left_ms).unwrap_or(i64::MAX);
                let end = Time(now.0.saturating_add(left.saturating_mul(1_000_000)));
                let is_same =
                    |stop: &Stop| stop.why == why && end.0.abs_diff(stop.reported_end.0) < SAME_NS;
                let same = before.filter(is_same);
                let reported_end = same.map_or(end, |stop| stop.reported_end);
                self.0.insert(
                    surface,
                    Stop {
                        why,
                        end,
                        reported_end,
                    },
                );
                if same.is_some() {
                    return None;
                }
                (why, left_ms)
            }
        };
        Some(LiveInput::Stopped {
            surface,
            why,
            for_ms: i64::try_from(left_ms).unwrap_or(i64::MAX),
        })
    }
}

/// The engine's reason for a stop of the venue.
pub const fn stop_reason(why: Denial) -> StopReason {
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
    fn probes_for_held_back_orders_are_rate_limited() {
        let mut probes = Probes::default();
        let futures = route::Surface::Futures;
        // 30 orders a second, for a minute.
        let times = (0..1_800).map(|nth| Time::from_millis(nth * 1_000 / 30));
        let made = times.filter(|at| probes.is_due(futures, *at)).count();
        assert_eq!(made, 12);
        assert!(probes.is_due(route::Surface::Spot, Time(0)));
    }

    #[test]
    fn a_stop_is_reported_when_it_begins_changes_or_ends() {
        let (mut stops, now) = (Stops::default(), Time(0));
        let surface = Surface::Futures;
        let ban = |s: u64| Some((StopReason::Ban, s * 1_000));
        let for_ms = |input: Option<LiveInput>| match input {
            Some(LiveInput::Stopped { for_ms, .. }) => Some(for_ms),
            _ => None,
        };
        assert_eq!(for_ms(stops.change(surface, None, now)), None);
        assert_eq!(for_ms(stops.change(surface, ban(60), now)), Some(60_000));
        assert_eq!(for_ms(stops.change(surface, ban(60), now)), None);
        // The end moves by some milliseconds: nothing is reported, but the next check moves with
        // it.
        let same = Some((StopReason::Ban, 60_400));
        assert_eq!(for_ms(stops.change(surface, same, now)), None);
        assert_eq!(stops.next(), Some(Time::from_millis(60_400)));
        assert_eq!(for_ms(stops.change(surface, ban(90), now)), Some(90_000));
        assert_eq!(stops.next(), Some(Time::from_millis(90_000)));
        assert_eq!(for_ms(stops.change(surface, None, now)), Some(0));
        assert_eq!(for_ms(stops.change(surface, None, now)), None);
    }
}
