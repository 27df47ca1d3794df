//! The travel time of market data and orders. The driver adds these delays around the venue; the
//! venue itself has no delay.
//!
//! - *Constant*: every message takes the same time.
//! - *Recorded*: drawn from the feed latency of the recording. An observation is the receive time
//!   minus the event time, which includes the unknown offset between two clocks. The smallest
//!   observation so far is used as that offset plus the shortest travel time, and is subtracted.
//!   The rest is the jitter of that day, and the configured constants replace the shortest travel
//!   time: `latency = constant + (observation - smallest observation)`. Draws use the last
//!   [`WINDOW`] observations, so that a slow minute of the recording is slow for orders too.
//!
//! Draws are seeded and use integers only, so they are the same on every machine.

/// The number of observations that a draw chooses from.
pub const WINDOW: usize = 1024;

/// The latency model of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyModel {
    /// Every message takes the same time.
    Constant {
        /// From the venue's event to the strategy, nanoseconds.
        feed_ns: i64,
        /// From the strategy to the venue, or back, nanoseconds.
        order_ns: i64,
    },
    /// Drawn from the recording, added to the shortest travel time.
    Recorded {
        /// The shortest travel time of market data, nanoseconds.
        feed_ns: i64,
        /// The shortest travel time of an order, nanoseconds.
        order_ns: i64,
    },
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
            random: SplitMix64(seed),
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

    /// The travel time of the market event just observed to the strategy, nanoseconds, never
    /// negative.
    #[inline]
    pub fn feed(&self) -> i64 {
        let (LatencyModel::Constant { feed_ns, .. } | LatencyModel::Recorded { feed_ns, .. }) =
            self.model;
        let newest = match self.window.len() {
            WINDOW => self.window.get((self.next + WINDOW - 1) % WINDOW),
            _ => self.window.last(),
        };
        let jitter = newest.map_or(0, |latency| latency.saturating_sub(self.smallest));
        feed_ns.saturating_add(jitter).max(0)
    }

    /// The travel time of the next order or response, nanoseconds, never negative.
    #[inline]
    pub fn order(&mut self) -> i64 {
        let (LatencyModel::Constant { order_ns, .. } | LatencyModel::Recorded { order_ns, .. }) =
            self.model;
        if self.window.is_empty() {
            return order_ns.max(0);
        }
        let drawn = self.window[self.random.below(self.window.len())];
        let jitter = drawn.saturating_sub(self.smallest);
        order_ns.saturating_add(jitter).max(0)
    }
}

/// Steele, Lea and Flood's `SplitMix64` (Fast splittable pseudorandom number generators, 2014).
#[derive(Clone, Debug)]
struct SplitMix64(u64);

impl SplitMix64 {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`, from the high half of a product.
    const fn below(&mut self, bound: usize) -> usize {
        ((self.next() as u128 * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RECORDED: LatencyModel = LatencyModel::Recorded {
        feed_ns: 100,
        order_ns: 500,
    };

    #[test]
    fn constant_latency_ignores_observations() {
        let model = LatencyModel::Constant {
            feed_ns: 1,
            order_ns: 5,
        };
        let mut latency = Latency::new(model, 1);
        latency.observe(1_000);
        assert_eq!((latency.feed(), latency.order()), (1, 5));
    }

    #[test]
    fn the_clock_offset_is_removed() {
        let mut latency = Latency::new(RECORDED, 1);
        latency.observe(-7_000);
        assert_eq!((latency.feed(), latency.order()), (100, 500));
        latency.observe(-6_000);
        assert_eq!(latency.feed(), 1_100);
    }

    #[test]
    fn the_generator_gives_the_published_sequence() {
        let mut random = SplitMix64(1_234_567);
        let first = [random.next(), random.next(), random.next()];
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    proptest! {
        #[test]
        fn draws_are_observed_jitters(
            seed: u64,
            observed in proptest::collection::vec(-1_000_000_i64..1_000_000, 1..3_000)
        ) {
            let (mut one, mut two) = (Latency::new(RECORDED, seed), Latency::new(RECORDED, seed));
            for latency_ns in &observed {
                one.observe(*latency_ns);
                two.observe(*latency_ns);
            }
            let smallest = observed.iter().min().unwrap();
            let window = &observed[observed.len().saturating_sub(WINDOW)..];
            prop_assert_eq!(one.feed(), 100 + observed.last().unwrap() - smallest);
            for _ in 0..50 {
                let drawn = one.order();
                prop_assert_eq!(drawn, two.order());
                prop_assert!(window.contains(&(drawn - 500 + smallest)));
            }
        }
    }
}
