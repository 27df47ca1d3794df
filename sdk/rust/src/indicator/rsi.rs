//! Relative strength index.

use super::{Fixed, Wilder};

/// Wilder's RSI, 0 to 100: the smoothed mean gain, divided by the smoothed mean gain plus the
/// smoothed mean loss.
///
/// The means have a precision of 1/65536 of the input's unit. The quotient is rounded to the
/// nearest 1/65536. Without any change the RSI is 50.
#[derive(Clone, Debug)]
pub struct Rsi {
    last: Option<i64>,
    gains: Wilder,
    losses: Wilder,
}

impl Rsi {
    /// An index over `length` changes; 0 counts as 1. The usual length is 14.
    pub const fn new(length: u32) -> Self {
        Self {
            last: None,
            gains: Wilder::new(length),
            losses: Wilder::new(length),
        }
    }

    /// Adds a value. Returns `None` until there were `length` changes.
    pub fn update(&mut self, value: i64) -> Option<Fixed> {
        let value = Fixed::new(value).floor();
        if let Some(last) = self.last.replace(value) {
            self.gains.update((value - last).max(0));
            self.losses.update((last - value).max(0));
        }
        self.value()
    }

    /// The index; `None` until there were `length` changes.
    pub fn value(&self) -> Option<Fixed> {
        let gain = i128::from(self.gains.value()?.bits());
        let loss = i128::from(self.losses.value()?.bits());
        if gain + loss == 0 {
            return Some(Fixed::new(50));
        }
        Some(Fixed::ratio(100 * gain, gain + loss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(values: &[i64], length: usize) -> Option<f64> {
        let changes: Vec<f64> = values.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        if changes.len() < length {
            return None;
        }
        let smooth = |part: &dyn Fn(f64) -> f64| {
            let first: f64 =
                changes[..length].iter().map(|c| part(*c)).sum::<f64>() / length as f64;
            changes[length..].iter().fold(first, |mean, c| {
                (mean * (length as f64 - 1.0) + part(*c)) / length as f64
            })
        };
        let (gain, loss) = (smooth(&|c| c.max(0.0)), smooth(&|c| (-c).max(0.0)));
        Some(if gain + loss == 0.0 {
            50.0
        } else {
            100.0 * gain / (gain + loss)
        })
    }

    proptest! {
        #[test]
        fn it_stays_near_the_exact_index(
            values in prop::collection::vec(100_000_i64..200_000, 1..120),
            length in 1_usize..20,
        ) {
            let mut rsi = Rsi::new(length as u32);
            for (index, value) in values.iter().enumerate() {
                let got = rsi.update(*value).map(|f| f.bits() as f64 / 65_536.0);
                let want = naive(&values[..=index], length);
                prop_assert_eq!(got.is_some(), want.is_some());
                if let (Some(got), Some(want)) = (got, want) {
                    prop_assert!((got - want).abs() < 0.01, "{} {}", got, want);
                }
            }
        }
    }

    #[test]
    fn extremes_and_standstill() {
        let run = |values: [i64; 3]| {
            let mut rsi = Rsi::new(2);
            values.map(|value| rsi.update(value))[2]
        };
        assert_eq!(run([1, 2, 3]), Some(Fixed::new(100)));
        assert_eq!(run([3, 2, 1]), Some(Fixed::new(0)));
        assert_eq!(run([2, 2, 2]), Some(Fixed::new(50)));
    }
}
