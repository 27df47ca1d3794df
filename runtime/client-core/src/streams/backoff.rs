//! Pauses before new connections. They double, and half of each pause is random, from a seed.

use windvane_model::random::SplitMix64;

/// A number from 0 to `most`, both included. It spreads clients out in time.
pub(super) fn up_to(random: &mut SplitMix64, most: u64) -> u64 {
    let drawn = random.bits();
    most.checked_add(1).map_or(drawn, |count| drawn % count)
}

/// Pauses that double from the first to the longest one.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    first_ms: u64,
    longest_ms: u64,
    failures: u32,
}

impl Backoff {
    pub(super) const fn new(first_ms: u64, longest_ms: u64) -> Self {
        Self {
            first_ms,
            longest_ms,
            failures: 0,
        }
    }

    /// The pause after one more failure. At least half of the doubled pause is fixed; the rest is
    /// random.
    pub(super) fn next_ms(&mut self, random: &mut SplitMix64) -> u64 {
        let factor = 1_u64 << self.failures.min(32);
        self.failures = self.failures.saturating_add(1);
        let whole = self.first_ms.saturating_mul(factor).min(self.longest_ms);
        whole / 2 + up_to(random, whole - whole / 2)
    }

    /// The connection lasted long enough, so the next pause is the first one again.
    pub(super) const fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_the_longest_and_half_of_them_is_random() {
        let mut backoff = Backoff::new(500, 30_000);
        let mut random = SplitMix64::new(1);
        for whole in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            let pause = backoff.next_ms(&mut random);
            assert!(whole / 2 <= pause && pause <= whole, "{pause} of {whole}");
        }
        backoff.reset();
        assert!(backoff.next_ms(&mut random) <= 500);
    }

    #[test]
    fn seeds_decide_the_pauses() {
        let pauses = |seed| {
            let (mut backoff, mut random) = (Backoff::new(500, 30_000), SplitMix64::new(seed));
            [(); 6].map(|()| backoff.next_ms(&mut random))
        };
        assert_eq!(pauses(1), pauses(1));
        assert_ne!(pauses(1), pauses(2));
    }
}
