//! Exact numbers: powers of ten, amounts of money in units of 1e-8, and conversion to and from
//! [`Decimal`], the number type of all interfaces. No floating point.

use serde::{Deserialize, Serialize};

pub use rust_decimal::Decimal;

/// Decimal places of every [`Amount`].
pub const AMOUNT_SCALE: u8 = 8;
/// The number of [`Amount`] units in one whole unit of the asset.
pub const AMOUNT_ONE: i128 = 100_000_000;
/// Decimal places of mark and index prices (mantissas in `i64`).
pub const MARK_SCALE: u8 = 8;
/// The largest allowed price or quantity scale of an instrument.
pub const SCALE_MAX: u8 = 12;

const POW10: [i64; 19] = {
    let mut table = [1_i64; 19];
    let mut i = 1;
    while i < 19 {
        table[i] = table[i - 1] * 10;
        i += 1;
    }
    table
};

/// Ten to the power of `exponent`; `exponent` is at most 18.
///
/// # Panics
/// Panics if `exponent` is over 18. No scale in the engine reaches that (see [`SCALE_MAX`]).
#[inline]
pub const fn pow10(exponent: u8) -> i64 {
    POW10[exponent as usize]
}

/// `numerator / denominator`, rounded half to even. The denominator must be positive.
#[inline]
pub const fn div_half_even(numerator: i128, denominator: i128) -> i128 {
    // 64-bit division is several times faster than 128-bit division, and nearly all values fit.
    if let (Some(n), Some(d)) = (narrow(numerator), narrow(denominator)) {
        let quotient = n / d;
        let remainder = n % d;
        return round_half_even(quotient as i128, remainder as i128, d as i128);
    }
    round_half_even(
        numerator / denominator,
        numerator % denominator,
        denominator,
    )
}

const fn narrow(value: i128) -> Option<i64> {
    if value >= i64::MIN as i128 && value <= i64::MAX as i128 {
        Some(value as i64)
    } else {
        None
    }
}

const fn round_half_even(quotient: i128, remainder: i128, denominator: i128) -> i128 {
    let twice = remainder.unsigned_abs() * 2;
    let whole = denominator.unsigned_abs();
    let away = if remainder < 0 { -1 } else { 1 };
    if twice > whole || (twice == whole && quotient % 2 != 0) {
        quotient + away
    } else {
        quotient
    }
}

/// An amount of one asset, in units of 1e-8. Signed; the asset is known from the context.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Amount(pub i128);

impl Amount {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Rounds a decimal half to even to 8 places. `None` if it does not fit.
    pub fn from_decimal(value: Decimal) -> Option<Self> {
        rescale(value, AMOUNT_SCALE).map(Self)
    }

    /// The amount as a decimal without trailing zeros.
    ///
    /// Amounts that do not fit the 96 bits of a [`Decimal`] (7.9e20 whole units) are clamped.
    pub fn to_decimal(self) -> Decimal {
        decimal(self.0, AMOUNT_SCALE)
    }

    /// `price * qty` of mantissas with the given scales, rounded half to even to 8 places.
    #[inline]
    pub const fn notional(price: i64, price_scale: u8, qty: i64, qty_scale: u8) -> Self {
        let raw = price as i128 * qty as i128;
        let scale = price_scale + qty_scale;
        Self(if scale <= AMOUNT_SCALE {
            raw * pow10(AMOUNT_SCALE - scale) as i128
        } else {
            div_half_even(raw, pow10(scale - AMOUNT_SCALE) as i128)
        })
    }

    /// `numerator / denominator` of this amount, rounded half to even.
    #[inline]
    #[must_use]
    pub const fn part(self, numerator: i64, denominator: i64) -> Self {
        Self(div_half_even(
            self.0 * numerator as i128,
            denominator as i128,
        ))
    }

    /// Absolute value.
    #[inline]
    #[must_use]
    pub const fn abs(self) -> Self {
        Self(self.0.abs())
    }
}

macro_rules! amount_op {
    ($trait:ident, $method:ident, $assign:ident, $assign_method:ident, $op:tt) => {
        impl std::ops::$trait for Amount {
            type Output = Self;
            #[inline]
            fn $method(self, other: Self) -> Self {
                Self(self.0 $op other.0)
            }
        }
        impl std::ops::$assign for Amount {
            #[inline]
            fn $assign_method(&mut self, other: Self) {
                self.0 = self.0 $op other.0;
            }
        }
    };
}
amount_op!(Add, add, AddAssign, add_assign, +);
amount_op!(Sub, sub, SubAssign, sub_assign, -);

impl std::ops::Neg for Amount {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl std::iter::Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, |total, amount| total + amount)
    }
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.to_decimal(), f)
    }
}

/// The decimal `mantissa / 10^scale` without trailing zeros, clamped to the range of [`Decimal`].
pub fn decimal(mantissa: i128, scale: u8) -> Decimal {
    let limit = 79_228_162_514_264_337_593_543_950_335_i128;
    Decimal::from_i128_with_scale(mantissa.clamp(-limit, limit), u32::from(scale)).normalize()
}

/// The mantissa of `value` at `scale` decimal places, rounded half to even. `None` if it does not
/// fit 128 bits.
pub fn rescale(value: Decimal, scale: u8) -> Option<i128> {
    let mantissa = value.mantissa();
    let from = value.scale();
    let to = u32::from(scale);
    if from <= to {
        mantissa.checked_mul(10_i128.checked_pow(to - from)?)
    } else {
        Some(div_half_even(mantissa, 10_i128.checked_pow(from - to)?))
    }
}

/// The exact mantissa of `value` at `scale` decimal places. `None` if digits would be lost or the
/// mantissa does not fit 64 bits.
pub fn exact_mantissa(value: Decimal, scale: u8) -> Option<i64> {
    let value = value.normalize();
    if value.scale() > u32::from(scale) {
        return None;
    }
    i64::try_from(rescale(value, scale)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_rounds_half_to_even_on_both_sides_of_zero() {
        let cases = [
            (5, 2, 2),
            (7, 2, 4),
            (-5, 2, -2),
            (-7, 2, -4),
            (8, 3, 3),
            (-8, 3, -3),
            (1, 3, 0),
        ];
        for (n, d, expected) in cases {
            assert_eq!(div_half_even(n, d), expected, "{n}/{d}");
        }
        let wide = 10_i128.pow(30);
        assert_eq!(div_half_even(wide * 5 + wide / 2, wide), 6);
        assert_eq!(div_half_even(wide * 4 + wide / 2, wide), 4);
    }

    #[test]
    fn notional_of_a_futures_fill_is_exact() {
        // 61800.30 * 0.006
        assert_eq!(Amount::notional(618_003, 1, 6, 3).to_string(), "370.8018");
    }

    #[test]
    fn exact_mantissa_refuses_to_lose_digits() {
        let value: Decimal = "0.125".parse().unwrap();
        assert_eq!(exact_mantissa(value, 3), Some(125));
        assert_eq!(exact_mantissa(value, 2), None);
    }
}
