//! Numbers of the contract: integers with a known scale, and their decimal text. No floating point.

use std::fmt;

/// The contract's value for a missing value.
pub(crate) const NONE: i64 = i64::MIN;

/// A price: a mantissa at the instrument's price scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Price(pub i64);

/// A quantity: a mantissa at the instrument's quantity scale. Positions are signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Qty(pub i64);

/// An amount of money, a mark price, a rate or an average price, in units of 1e-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(pub i64);

/// Nanoseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub i64);

impl Amount {
    /// Decimal places of an amount.
    pub const SCALE: u8 = 8;

    /// Parses decimal text such as `0.0004`.
    pub fn parse(text: &str) -> Result<Self, NumberError> {
        parse_scaled(text, Self::SCALE).map(Self)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, Self::SCALE)
    }
}

impl Time {
    /// Creates a time from milliseconds since the epoch.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }
    /// Creates a time from milliseconds since the epoch and the nanoseconds of that millisecond.
    /// The contract passes times in this form.
    #[inline]
    pub(crate) const fn from_parts(ms: i64, ns: u32) -> Self {
        Self(ms.saturating_mul(1_000_000).saturating_add(ns as i64))
    }
    /// Milliseconds since the epoch, and the nanoseconds of that millisecond.
    #[inline]
    pub(crate) const fn parts(self) -> (i64, u32) {
        let ns = self.0.rem_euclid(1_000_000);
        (self.millis(), ns as u32)
    }
    /// Whole milliseconds since the epoch.
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }
    /// The time `ms` milliseconds later.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms.saturating_mul(1_000_000)))
    }
}

/// Why text is not a number of the required scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError {
    /// Not a decimal number.
    NotANumber,
    /// More decimal places than the scale permits.
    TooPrecise(u8),
    /// Outside the range of a 64-bit integer.
    TooLarge,
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber => f.write_str("is not a decimal number"),
            Self::TooPrecise(scale) => write!(f, "has more than {scale} decimal places"),
            Self::TooLarge => f.write_str("is too large"),
        }
    }
}

impl std::error::Error for NumberError {}

/// Converts decimal text (`-12.50`, `1e-3`) to a mantissa at `scale`, without rounding.
pub(crate) fn parse_scaled(text: &str, scale: u8) -> Result<i64, NumberError> {
    let (body, exponent) = match text.split_once(['e', 'E']) {
        Some((body, exponent)) => {
            let exponent: i32 = exponent.parse().map_err(|_| NumberError::NotANumber)?;
            (body, exponent)
        }
        None => (text, 0),
    };
    let (negative, digits) = match body.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, body),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(NumberError::NotANumber);
    }
    let mut mantissa: i64 = 0;
    for byte in whole.bytes().chain(fraction.bytes()) {
        if !byte.is_ascii_digit() {
            return Err(NumberError::NotANumber);
        }
        mantissa = mantissa
            .checked_mul(10)
            .and_then(|m| m.checked_add(i64::from(byte - b'0')))
            .ok_or(NumberError::TooLarge)?;
    }
    let shift = i64::from(scale) + i64::from(exponent) - fraction.len() as i64;
    let scaled = shift_decimal(mantissa, shift, scale)?;
    Ok(if negative { -scaled } else { scaled })
}

/// `mantissa * 10^shift`. It fails if digits would be lost.
fn shift_decimal(mut mantissa: i64, shift: i64, scale: u8) -> Result<i64, NumberError> {
    for _ in 0..shift.unsigned_abs() {
        if mantissa == 0 {
            break;
        }
        if shift > 0 {
            mantissa = mantissa.checked_mul(10).ok_or(NumberError::TooLarge)?;
        } else if mantissa % 10 == 0 {
            mantissa /= 10;
        } else {
            return Err(NumberError::TooPrecise(scale));
        }
    }
    Ok(mantissa)
}

/// Writes a mantissa at `scale` as decimal text with all its decimal places.
pub(crate) fn write_scaled(f: &mut dyn fmt::Write, mantissa: i64, scale: u8) -> fmt::Result {
    let sign = if mantissa < 0 { "-" } else { "" };
    let power = 10_u64.saturating_pow(u32::from(scale));
    let magnitude = mantissa.unsigned_abs();
    if scale == 0 {
        return write!(f, "{sign}{magnitude}");
    }
    let (whole, fraction) = (magnitude / power, magnitude % power);
    write!(
        f,
        "{sign}{whole}.{fraction:0width$}",
        width = usize::from(scale)
    )
}

/// `a / b` rounded to the nearest integer, halves away from zero. `b` must be above 0.
pub(crate) const fn div_nearest(a: i128, b: i128) -> i128 {
    let half = b / 2;
    if a >= 0 {
        (a + half) / b
    } else {
        (a - half) / b
    }
}

/// Clamps the value to the range of `i64`.
pub(crate) fn clamp_i64(value: i128) -> i64 {
    value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_read_exactly_or_refused() {
        assert_eq!(parse_scaled("65000.10", 2), Ok(6_500_010));
        assert_eq!(parse_scaled("65000.100", 2), Ok(6_500_010));
        assert_eq!(parse_scaled("-.5", 1), Ok(-5));
        assert_eq!(parse_scaled("1e-3", 3), Ok(1));
        assert_eq!(parse_scaled("1.5E2", 0), Ok(150));
        assert_eq!(parse_scaled("0.001", 2), Err(NumberError::TooPrecise(2)));
        assert_eq!(parse_scaled("1e30", 2), Err(NumberError::TooLarge));
        for bad in ["", "-", ".", "1,5", "abc", "1e", "--1", "+1", "0x1"] {
            assert_eq!(parse_scaled(bad, 2), Err(NumberError::NotANumber), "{bad}");
        }
    }

    #[test]
    fn a_time_is_two_numbers_of_at_most_53_bits() {
        let time = Time(1_704_067_200_123_456_789);
        assert_eq!(time.parts(), (1_704_067_200_123, 456_789));
        for time in [time, Time(0), Time(-1), Time(i64::MAX)] {
            let (ms, ns) = time.parts();
            assert!(ms < 1 << 53 && ns < 1_000_000);
            assert_eq!(Time::from_parts(ms, ns), time);
        }
    }

    #[test]
    fn a_huge_exponent_is_parsed_at_once() {
        assert_eq!(parse_scaled("0e2000000000", 2), Ok(0));
        assert_eq!(
            parse_scaled("1e-2000000000", 2),
            Err(NumberError::TooPrecise(2))
        );
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        assert_eq!(div_nearest(5, 2), 3);
        assert_eq!(div_nearest(-5, 2), -3);
        assert_eq!(div_nearest(4, 3), 1);
        assert_eq!(div_nearest(-4, 3), -1);
    }

    proptest! {
        #[test]
        fn written_numbers_read_back(mantissa in -1_000_000_000_000_i64..1_000_000_000_000, scale in 0_u8..9) {
            let mut text = String::new();
            write_scaled(&mut text, mantissa, scale).unwrap();
            prop_assert_eq!(parse_scaled(&text, scale), Ok(mantissa));
        }
    }
}
