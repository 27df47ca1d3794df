//! Seeded random numbers, the same on every machine. This module has no other source of randomness.

/// `SplitMix64`: 64 bits of state, full period.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
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

    /// A number from 0 to `below - 1`.
    pub const fn below(&mut self, below: i64) -> i64 {
        let product = self.bits() as u128 * below.unsigned_abs() as u128;
        (product >> 64) as i64
    }

    /// Number of consecutive heads in coin tosses, at most `most`.
    pub fn heads(&mut self, most: u32) -> u32 {
        self.bits().trailing_zeros().min(most)
    }
}
