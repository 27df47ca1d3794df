//! Wilder's smoothing, which RSI and ATR use.

use super::Fixed;

/// The mean of the first `length` values, then `mean += (value - mean) / length`.
///
/// Each step is rounded to the nearest 1/65536, halves away from zero.
#[derive(Clone, Debug)]
pub struct Wilder {
    /// The sum of the first values, later the mean, in units of 1/65536.
    bits: i64,
    length: i64,
    seen: i64,
}

impl Wilder {
    /// A mean over `length` values; 0 counts as 1.
    pub const fn new(length: u32) -> Self {
        let length = if length == 0 { 1 } else { length as i64 };
        Self {
            bits: 0,
            length,
            seen: 0,
        }
    }

    /// Adds a value.
    #[inline]
    pub const fn update(&mut self, value: i64) -> Option<Fixed> {
        let value = Fixed::new(value).bits();
        if self.seen < self.length {
            self.seen += 1;
            self.bits = self.bits.saturating_add(value);
            if self.seen == self.length {
                self.bits = self.rounded(self.bits);
            }
        } else {
            self.bits += self.rounded(value.saturating_sub(self.bits));
        }
        self.value()
    }

    /// The mean; `None` until `length` values were added.
    #[inline]
    pub const fn value(&self) -> Option<Fixed> {
        if self.seen < self.length {
            None
        } else {
            Some(Fixed::from_bits(self.bits))
        }
    }

    const fn rounded(&self, bits: i64) -> i64 {
        let half = self.length / 2;
        bits.saturating_add(if bits < 0 { -half } else { half }) / self.length
    }
}
