//! Exponential moving average.

use super::Fixed;

/// `ema += 2 / (length + 1) * (value - ema)`. The first value is the first average.
///
/// Each step is rounded to the nearest 1/65536 of the input's unit, halves away from zero. So the
/// average differs from the exact one by less than `length / 131072` units.
#[derive(Clone, Copy, Debug)]
pub struct Ema {
    value: i64,
    divisor: i64,
    seen: u32,
}

impl Ema {
    /// An average over `length` values; 0 counts as 1.
    pub const fn new(length: u32) -> Self {
        Self {
            value: 0,
            divisor: length as i64 + 1,
            seen: 0,
        }
    }

    /// Adds a value and returns the average.
    #[inline]
    pub const fn update(&mut self, value: i64) -> Fixed {
        let value = Fixed::new(value).bits();
        if self.seen == 0 || self.divisor == 1 {
            self.value = value;
        } else {
            // Both are at most 2^60 in size, so nothing can overflow here.
            let doubled = 2 * (value - self.value);
            let half = self.divisor / 2;
            self.value += (doubled + if doubled < 0 { -half } else { half }) / self.divisor;
        }
        self.seen = self.seen.saturating_add(1);
        Fixed::from_bits(self.value)
    }

    /// The average so far; `None` before the first value.
    #[inline]
    pub const fn value(&self) -> Option<Fixed> {
        if self.seen == 0 {
            None
        } else {
            Some(Fixed::from_bits(self.value))
        }
    }

    /// The state for [`Ema::load`]: the bits of the average, and the number of values.
    pub const fn save(&self) -> (i64, i64) {
        (self.value, self.seen as i64)
    }

    /// Continues with a saved average. The length does not change.
    pub fn load(&mut self, bits: i64, seen: i64) {
        let max = Fixed::INPUT_MAX << Fixed::PLACES;
        self.value = bits.clamp(-max, max);
        self.seen = u32::try_from(seen).unwrap_or(0);
    }

    /// Whether at least `length` values were added.
    #[inline]
    pub const fn is_ready(&self) -> bool {
        self.seen as i64 + 1 >= self.divisor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_stays_near_the_exact_average(
            values in prop::collection::vec(0_i64..10_000_000_000, 1..300),
            length in 1_u32..200,
        ) {
            let mut ema = Ema::new(length);
            let mut exact = values[0] as f64;
            for value in values {
                exact += (value as f64 - exact) * 2.0 / (f64::from(length) + 1.0);
                let got = ema.update(value).bits() as f64 / 65_536.0;
                prop_assert!((got - exact).abs() < f64::from(length) / 131_072.0 + 1e-4, "{got} {exact}");
            }
        }
    }

    #[test]
    fn it_is_ready_after_its_length() {
        let mut ema = Ema::new(3);
        assert_eq!(ema.value(), None);
        assert_eq!(ema.update(8), Fixed::new(8));
        assert_eq!(ema.update(16), Fixed::new(12));
        assert!(!ema.is_ready());
        ema.update(16);
        assert!(ema.is_ready());
    }

    #[test]
    fn length_one_follows_the_value() {
        let mut ema = Ema::new(1);
        for value in [5, 9, -3] {
            assert_eq!(ema.update(value), Fixed::new(value));
        }
        assert_eq!(Ema::new(0).update(7), Fixed::new(7));
    }
}
