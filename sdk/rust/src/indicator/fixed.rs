//! A binary fixed-point number, for values between two mantissas.

use crate::number::Price;

/// A value with 16 binary places, in the unit of its inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fixed(i64);

impl Fixed {
    /// Number of binary places.
    pub const PLACES: u32 = 16;
    /// The value 1.
    pub const ONE: Self = Self(1 << Self::PLACES);
    /// The largest integer that is converted exactly.
    pub(crate) const INPUT_MAX: i64 = 1 << 44;

    /// Converts an integer. Values beyond 2^44 saturate.
    #[inline]
    pub const fn new(value: i64) -> Self {
        let value = if value > Self::INPUT_MAX {
            Self::INPUT_MAX
        } else if value < -Self::INPUT_MAX {
            -Self::INPUT_MAX
        } else {
            value
        };
        Self(value << Self::PLACES)
    }

    /// Creates a value from a number of 1/65536.
    #[inline]
    pub const fn from_bits(bits: i64) -> Self {
        Self(bits)
    }

    /// The value in units of 1/65536.
    #[inline]
    pub const fn bits(self) -> i64 {
        self.0
    }

    /// `above / below`, rounded to the nearest 1/65536, halves away from zero. It saturates.
    /// `below` must be positive.
    pub(crate) fn ratio(above: i128, below: i128) -> Self {
        let scaled = above.saturating_mul(1 << Self::PLACES);
        Self(crate::number::clamp_i64(crate::number::div_nearest(
            scaled, below,
        )))
    }

    /// The nearest integer. Halves are rounded up.
    #[inline]
    pub const fn round(self) -> i64 {
        (self.0 + (1 << (Self::PLACES - 1))) >> Self::PLACES
    }

    /// The largest integer that is not above the value.
    #[inline]
    pub const fn floor(self) -> i64 {
        self.0 >> Self::PLACES
    }

    /// The nearest price mantissa. It may be off the grid.
    pub const fn price(self) -> Price {
        Price(self.round())
    }
}

impl std::ops::Add for Fixed {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::ops::Sub for Fixed {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_up_at_halves() {
        assert_eq!(Fixed::from_bits(3 << 15).round(), 2);
        assert_eq!(Fixed::from_bits(-(3 << 15)).round(), -1);
        assert_eq!(Fixed::from_bits(-(3 << 15)).floor(), -2);
        assert_eq!(Fixed::new(i64::MAX).round(), 1 << 44);
    }
}
