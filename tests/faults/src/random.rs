//! The only source of randomness. Each purpose of a seed has a separate sequence, so that more draws
//! for one purpose do not change the others.

use windvane_model::random::SplitMix64;

/// A random sequence.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// The sequence of a seed for a purpose.
    pub fn of(seed: u64, purpose: &str) -> Self {
        // FNV-1a over the purpose; the first output mixes it with the seed.
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        let purpose = purpose.bytes().fold(0xCBF2_9CE4_8422_2325, hash);
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ purpose;
        let mut random = Self(SplitMix64::new(state));
        random.next();
        random
    }

    /// The next 64 random bits.
    pub const fn next(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Other numbers would give every seed another life.
    #[test]
    fn the_sequences_of_a_seed_never_change() {
        let mut disk = Random::of(1, "disk");
        let drawn = [disk.next(), disk.next(), disk.next()];
        let expected = [
            16_015_191_174_892_629_910,
            4_640_777_182_071_025_290,
            9_788_027_861_807_472_279,
        ];
        assert_eq!(drawn, expected);
        let mut links = Random::of(u64::MAX, "links");
        let drawn = [(); 4].map(|()| links.below(1_000_000));
        assert_eq!(drawn, [96_126, 925_606, 474_349, 722_130]);
    }
}
