//! The only source of randomness: `SplitMix64` (Steele, Lea, Flood, 2014). Each purpose of a seed
//! has a separate sequence, so that more draws for one purpose do not change the others.

/// A random sequence.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed for a purpose.
    pub fn of(seed: u64, purpose: &str) -> Self {
        // FNV-1a over the purpose; the first output mixes it with the seed.
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        let purpose = purpose.bytes().fold(0xCBF2_9CE4_8422_2325, hash);
        let mut random = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ purpose);
        random.next();
        random
    }

    /// The next 64 random bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = high.saturating_sub(low).max(0).unsigned_abs();
        low.saturating_add_unsigned(self.below(span.saturating_add(1)))
    }

    /// True with a probability of `ppm` in a million.
    pub const fn chance(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.below(1_000_000) < ppm as u64
    }

    /// One element of the slice; `None` if it is empty.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len() as u64) as usize)
    }

    /// Nanoseconds until the next event of a kind that happens every `mean_s` seconds on average.
    pub fn wait_ns(&mut self, mean_s: u32) -> i64 {
        // Uniform up to twice the mean: bounded, and the same integer on every machine.
        1 + self.below(u64::from(mean_s) * 2_000_000_000).cast_signed()
    }
}
