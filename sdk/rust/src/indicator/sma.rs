//! Simple moving average.

use super::{Fixed, Window};

/// Mean of the last `length` values, rounded to the nearest 1/65536, halves away from zero.
#[derive(Clone, Debug)]
pub struct Sma {
    window: Window<i64>,
    sum: i128,
}

impl Sma {
    /// A mean over `length` values; 0 counts as 1.
    pub fn new(length: u32) -> Self {
        Self {
            window: Window::new(length),
            sum: 0,
        }
    }

    /// Adds a value. Returns `None` until `length` values were added.
    pub fn update(&mut self, value: i64) -> Option<Fixed> {
        let value = Fixed::new(value).floor();
        self.sum += i128::from(value);
        if let Some(old) = self.window.push(value) {
            self.sum -= i128::from(old);
        }
        self.value()
    }

    /// The mean; `None` until `length` values were added.
    pub fn value(&self) -> Option<Fixed> {
        let full = self.window.is_full();
        full.then(|| Fixed::ratio(self.sum, self.window.len() as i128))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_mean_of_the_window(
            values in prop::collection::vec(-1_000_000_000_i64..1_000_000_000, 1..100),
            length in 1_usize..20,
        ) {
            let mut sma = Sma::new(length as u32);
            for (index, value) in values.iter().enumerate() {
                let got = sma.update(*value);
                let seen = &values[..=index];
                let naive = (seen.len() >= length).then(|| {
                    let window = &seen[seen.len() - length..];
                    Fixed::ratio(window.iter().map(|v| i128::from(*v)).sum(), length as i128)
                });
                prop_assert_eq!(got, naive);
            }
        }
    }
}
