//! A small random number generator (splitmix64), so that a test can repeat the draws of a seed.

/// Draws numbers from a seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number from `from` (inclusive) to `to` (exclusive).
    pub const fn between(&mut self, from: u64, to: u64) -> u64 {
        let width = if to > from { to - from } else { 1 };
        from + self.bits() % width
    }

    /// One element of the slice; `None` if it is empty.
    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.between(0, all.len() as u64) as usize)
    }
}
