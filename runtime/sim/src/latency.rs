//! The travel time of orders and responses. The driver adds these delays around the venue; the venue
//! itself has no delay. The driver delays market data by itself.
//!
//! - *Constant*: every message takes the same time.
//! - *Recorded*: drawn from the feed latency of the recording. An observation is the receive time
//!   minus the event time, which includes the unknown offset between two clocks. The smallest
//!   observation so far is used as that offset plus the shortest travel time, and is subtracted:
//!   `latency = observation - smallest observation`. Draws use the last [`WINDOW`] observations, so
//!   that a slow minute of the recording is slow for orders too.
//!
//! Draws are seeded and use integers only, so they are the same on every machine.

use windvane_model::random::SplitMix64;

/// The number of observations that a draw chooses from.
pub const WINDOW: usize = 1024;

/// The latency model of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyModel {
    /// Every message takes the same time.
    Constant {
        /// From the strategy to the venue, or back, nanoseconds.
        order_ns: i64,
    },
    /// Drawn from the recording.
    Recorded,
}

/// Draws latencies.
#[derive(Clone, Debug)]
pub struct Latency {
    model: LatencyModel,
    random: SplitMix64,
    smallest: i64,
    window: Vec<i64>,
    next: usize,
}

impl Latency {
    /// A source of latencies. The same seed and observations give the same draws.
    pub fn new(model: LatencyModel, seed: u64) -> Self {
        Self {
            model,
            random: SplitMix64::new(seed),
            smallest: i64::MAX,
            window: Vec::new(),
            next: 0,
        }
    }

    /// Records one feed latency of the recording, receive time minus event time in nanoseconds. It
    /// may be negative, because the clocks differ.
    #[inline]
    pub fn observe(&mut self, latency_ns: i64) {
        if matches!(self.model, LatencyModel::Constant { .. }) {
            return;
        }
        self.smallest = self.smallest.min(latency_ns);
        if self.window.len() < WINDOW {
            self.window.push(latency_ns);
        } else {
            self.window[self.next] = latency_ns;
            self.next = (self.next + 1) % WINDOW;
        }
    }

    /// The travel time of the next order or response, nanoseconds, never negative.
    #[inline]
    pub fn order(&mut self) -> i64 {
        match self.model {
            LatencyModel::Constant { order_ns } => order_ns.max(0),
            LatencyModel::Recorded if self.window.is_empty() => 0,
            LatencyModel::Recorded => {
                let drawn = self.window[self.random.below(self.window.len() as u64) as usize];
                drawn.saturating_sub(self.smallest)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn constant_latency_ignores_observations() {
        let mut latency = Latency::new(LatencyModel::Constant { order_ns: 5 }, 1);
        latency.observe(1_000);
        assert_eq!(latency.order(), 5);
    }

    #[test]
    fn the_clock_offset_is_removed() {
        let mut latency = Latency::new(LatencyModel::Recorded, 1);
        assert_eq!(latency.order(), 0, "nothing was observed");
        latency.observe(-7_000);
        assert_eq!(latency.order(), 0);
    }

    proptest! {
        #[test]
        fn draws_are_observed_jitters(
            seed: u64,
            observed in proptest::collection::vec(-1_000_000_i64..1_000_000, 1..3_000)
        ) {
            let latency = || Latency::new(LatencyModel::Recorded, seed);
            let (mut one, mut two) = (latency(), latency());
            for latency_ns in &observed {
                one.observe(*latency_ns);
                two.observe(*latency_ns);
            }
            let smallest = observed.iter().min().unwrap();
            let window = &observed[observed.len().saturating_sub(WINDOW)..];
            for _ in 0..50 {
                let drawn = one.order();
                prop_assert_eq!(drawn, two.order());
                prop_assert!(window.contains(&(drawn + smallest)));
            }
        }
    }
}
