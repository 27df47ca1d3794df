//! Standard deviation and Bollinger bands.

use super::{Fixed, Window};

/// Population standard deviation of the last `length` values. It is rounded down by less than
/// 1/65536 of the input's unit if the values differ by less than 2^28, otherwise by less than 1.
#[derive(Clone, Debug)]
pub struct StdDev {
    window: Window<i64>,
    sum: i128,
    squares: i128,
}

impl StdDev {
    /// A deviation over `length` values; 0 counts as 1, and more than 65536 counts as 65536.
    pub fn new(length: u32) -> Self {
        Self {
            window: Window::new(length.min(1 << 16)),
            sum: 0,
            squares: 0,
        }
    }

    /// Adds a value. Returns `None` until `length` values were added.
    pub fn update(&mut self, value: i64) -> Option<Fixed> {
        let value = Fixed::new(value).floor();
        self.add(value, 1);
        if let Some(old) = self.window.push(value) {
            self.add(old, -1);
        }
        self.value()
    }

    fn add(&mut self, value: i64, sign: i128) {
        let value = i128::from(value);
        self.sum += sign * value;
        self.squares += sign * value * value;
    }

    /// The deviation; `None` until `length` values were added.
    pub fn value(&self) -> Option<Fixed> {
        if !self.window.is_full() {
            return None;
        }
        let n = self.window.len() as i128;
        // n^2 times the variance: at most 2^(16 + 88 + 16), and never negative.
        let scaled = (n * self.squares - self.sum * self.sum).unsigned_abs();
        // Use as many extra binary places as fit, up to 32. The root then has 16.
        let shift = (scaled.leading_zeros() & !1).min(2 * Fixed::PLACES);
        let root = (scaled << shift).isqrt() << (Fixed::PLACES - shift / 2);
        // Below 2^61 for values of at most 2^44.
        Some(Fixed::from_bits((root / n.unsigned_abs()) as i64))
    }

    /// The mean of the same values.
    pub fn mean(&self) -> Option<Fixed> {
        let full = self.window.is_full();
        full.then(|| Fixed::ratio(self.sum, self.window.len() as i128))
    }
}

/// A mean and its Bollinger bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bands {
    /// Mean minus the width.
    pub lower: Fixed,
    /// Mean.
    pub middle: Fixed,
    /// Mean plus the width.
    pub upper: Fixed,
}

/// Bollinger bands: the mean of the last `length` values and `width` standard deviations around it.
#[derive(Clone, Debug)]
pub struct Bollinger {
    deviation: StdDev,
    width_tenths: i64,
}

impl Bollinger {
    /// Bands over `length` values. `width_tenths` is their width in tenths of a deviation, usually
    /// 20.
    pub fn new(length: u32, width_tenths: u32) -> Self {
        Self {
            deviation: StdDev::new(length),
            width_tenths: i64::from(width_tenths),
        }
    }

    /// Adds a value. Returns `None` until `length` values were added.
    pub fn update(&mut self, value: i64) -> Option<Bands> {
        self.deviation.update(value);
        self.value()
    }

    /// The bands; `None` until `length` values were added. The width is rounded to the nearest
    /// 1/65536.
    pub fn value(&self) -> Option<Bands> {
        let (middle, deviation) = (self.deviation.mean()?, self.deviation.value()?);
        let width = i128::from(deviation.bits()) * i128::from(self.width_tenths);
        let width = Fixed::from_bits(crate::number::clamp_i64((width + 5) / 10));
        Some(Bands {
            lower: middle - width,
            middle,
            upper: middle + width,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(window: &[i64]) -> f64 {
        let n = window.len() as f64;
        let mean = window.iter().map(|v| *v as f64).sum::<f64>() / n;
        (window
            .iter()
            .map(|v| (*v as f64 - mean).powi(2))
            .sum::<f64>()
            / n)
            .sqrt()
    }

    proptest! {
        #[test]
        fn it_stays_near_the_exact_deviation(
            values in prop::collection::vec(600_000_i64..700_000, 1..80),
            length in 1_usize..20,
        ) {
            let mut deviation = StdDev::new(length as u32);
            let mut bands = Bollinger::new(length as u32, 25);
            for (index, value) in values.iter().enumerate() {
                let (got, bands) = (deviation.update(*value), bands.update(*value));
                prop_assert_eq!(got.is_some(), index + 1 >= length);
                let Some(got) = got else { continue };
                let want = naive(&values[index + 1 - length..=index]);
                let got = got.bits() as f64 / 65_536.0;
                prop_assert!((got - want).abs() < 1e-4, "{} {}", got, want);
                let bands = bands.unwrap();
                let width = (bands.upper - bands.middle).bits() as f64 / 65_536.0;
                prop_assert!((width - 2.5 * want).abs() < 1e-3);
                prop_assert_eq!(bands.upper - bands.middle, bands.middle - bands.lower);
            }
        }
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let mut deviation = StdDev::new(2);
        deviation.update(i64::MAX);
        assert_eq!(deviation.update(i64::MIN), Some(Fixed::new(1 << 44)));
        assert_eq!(deviation.update(i64::MIN), Some(Fixed::new(0)));
    }
}
