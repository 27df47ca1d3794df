//! Average true range.

use super::{Fixed, Wilder};

/// Wilder's average of the true range: the range of a bar, extended to the close of the bar before.
#[derive(Clone, Debug)]
pub struct Atr {
    last_close: Option<i64>,
    mean: Wilder,
}

impl Atr {
    /// An average over `length` bars; 0 counts as 1. The usual length is 14.
    pub const fn new(length: u32) -> Self {
        Self {
            last_close: None,
            mean: Wilder::new(length),
        }
    }

    /// Adds a bar. Returns `None` until `length` bars were added. The first bar's range is its own.
    pub fn update(&mut self, high: i64, low: i64, close: i64) -> Option<Fixed> {
        let last = self.last_close.replace(close);
        let (top, bottom) = match last {
            Some(last) => (high.max(last), low.min(last)),
            None => (high, low),
        };
        self.mean.update(top.saturating_sub(bottom))
    }

    /// The average; `None` until `length` bars were added.
    pub const fn value(&self) -> Option<Fixed> {
        self.mean.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_stays_near_the_exact_average(
            bars in prop::collection::vec((1_000_i64..2_000, 0_i64..500, 0_i64..500), 1..80),
            length in 1_usize..20,
        ) {
            let mut atr = Atr::new(length as u32);
            let (mut ranges, mut last): (Vec<f64>, Option<i64>) = (Vec::new(), None);
            for (low, range, at) in bars {
                let (high, close) = (low + range, low + at.min(range));
                let naive = high.max(last.unwrap_or(high)) - low.min(last.unwrap_or(low));
                ranges.push(naive as f64);
                last = Some(close);
                let got = atr.update(high, low, close);
                prop_assert_eq!(got.is_some(), ranges.len() >= length);
                if let Some(got) = got {
                    let n = length as f64;
                    let first = ranges[..length].iter().sum::<f64>() / n;
                    let want = ranges[length..].iter().fold(first, |m, r| (m * (n - 1.0) + r) / n);
                    prop_assert!((got.bits() as f64 / 65_536.0 - want).abs() < 0.001);
                }
            }
        }
    }
}
