//! A seeded sequence of numbers, the same on every machine. The caller brings the seed, so this is
//! not a source of randomness. Do not use it for secrets.

/// `SplitMix64` by Steele, Lea and Flood ("Fast splittable pseudorandom number generators", 2014):
/// 64 bits of state, full period.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Starts with a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.bits() as u128 * bound as u128) >> 64) as u64
    }

    /// A number from 0 to `bound - 1`, for signed arithmetic; `bound` counts as its absolute value.
    pub const fn below_signed(&mut self, bound: i64) -> i64 {
        self.below(bound.unsigned_abs()) as i64
    }

    /// How many coin tosses in a row show heads, at most `most`.
    pub fn heads(&mut self, most: u32) -> u32 {
        self.bits().trailing_zeros().min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published sequence for this seed.
    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = SplitMix64::new(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(drawn, published);
    }
}
