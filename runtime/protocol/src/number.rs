//! Parses decimal text into an exact integer and its scale. No floating point, no rounding: digits
//! that do not fit are an error.

use windvane_model::decimal::pow10;

/// A decimal exactly as the text spells it: `mantissa / 10^scale`, with trailing zeros kept.
///
/// A venue writes all prices of a symbol with the same number of decimals. So neighbouring
/// mantissas can usually be compared and copied without conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Number {
    /// The digits without the decimal point.
    pub mantissa: i64,
    /// Digits after the decimal point, at most 18.
    pub scale: u8,
}

/// Why a text is not a usable number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// Not `digits` or `digits.digits` with an optional minus. Exponents are refused.
    #[error("{0:?} is not a plain decimal (digits with at most one point, no exponent)")]
    Malformed(String),
    /// More significant digits than 64 bits hold, or more than 18 decimals.
    #[error("{0:?} has more digits than 64 bits hold")]
    TooLong(String),
    /// The number has non-zero digits below the requested scale.
    #[error("{value} has too many non-zero digits for {scale} decimal places")]
    TooFine {
        /// The number.
        value: Number,
        /// The requested scale.
        scale: u8,
    },
    /// The number does not fit in 64 bits at the requested scale.
    #[error("{value} does not fit in 64 bits at {scale} decimal places")]
    TooLarge {
        /// The number.
        value: Number,
        /// The requested scale.
        scale: u8,
    },
}

/// The longest text, in bytes, that needs no overflow check.
const SAFE_DIGITS: usize = 18;

impl Number {
    /// Parses `digits` or `digits.digits`, with an optional minus.
    pub fn parse(text: &[u8]) -> Result<Self, NumberError> {
        let malformed = || NumberError::Malformed(String::from_utf8_lossy(text).into_owned());
        let (negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let point = digits.iter().position(|&b| b == b'.');
        let (whole, fraction) = match point {
            Some(at) if at + 1 < digits.len() => (&digits[..at], &digits[at + 1..]),
            Some(_) => return Err(malformed()),
            None => (digits, &digits[..0]),
        };
        let is_digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
        if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
            return Err(malformed());
        }
        let magnitude = sum(whole, fraction).or_else(|| {
            // Trailing zeros do not change the value: without them the digits may fit.
            let end = fraction
                .iter()
                .rposition(|&b| b != b'0')
                .map_or(0, |at| at + 1);
            sum(whole, &fraction[..end])
        });
        let Some(Self { mantissa, scale }) = magnitude else {
            return Err(NumberError::TooLong(
                String::from_utf8_lossy(text).into_owned(),
            ));
        };
        Ok(Self {
            mantissa: if negative { -mantissa } else { mantissa },
            scale,
        })
    }

    /// The exact mantissa at `scale` decimal places.
    #[inline]
    pub fn at(self, scale: u8) -> Result<i64, NumberError> {
        if self.scale == scale {
            return Ok(self.mantissa);
        }
        self.rescaled(scale)
    }

    /// The number times 10^18, exactly. Keys of numbers with different scales can be compared.
    pub fn key(self) -> i128 {
        // 63 bits of mantissa and 60 bits of power fit in 127 bits.
        i128::from(self.mantissa) * i128::from(pow10(18 - self.scale))
    }

    fn rescaled(self, scale: u8) -> Result<i64, NumberError> {
        if scale > self.scale {
            let factor = 10_i64.checked_pow(u32::from(scale - self.scale));
            return factor
                .and_then(|factor| self.mantissa.checked_mul(factor))
                .ok_or(NumberError::TooLarge { value: self, scale });
        }
        let divisor = pow10(self.scale - scale);
        if self.mantissa % divisor == 0 {
            Ok(self.mantissa / divisor)
        } else {
            Err(NumberError::TooFine { value: self, scale })
        }
    }
}

/// The digits of both parts as one integer; `None` if they do not fit in 64 bits or have more than
/// 18 decimals.
fn sum(whole: &[u8], fraction: &[u8]) -> Option<Number> {
    if fraction.len() > 18 {
        return None;
    }
    let mut mantissa = 0_i64;
    for &digit in whole.iter().chain(fraction) {
        mantissa = mantissa
            .checked_mul(10)?
            .checked_add(i64::from(digit - b'0'))?;
    }
    Some(Number {
        mantissa,
        scale: fraction.len() as u8,
    })
}

/// Parses the number from the start of `text` to a closing quote. Returns it with the number of
/// bytes read, the quote included. Returns `None` for every text that [`Number::parse`] must
/// decide.
#[inline]
pub(crate) fn scan_quoted(text: &[u8]) -> Option<(Number, usize)> {
    let mut mantissa = 0_u64;
    let mut point = usize::MAX;
    let mut at = 0;
    loop {
        let byte = *text.get(at)?;
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        } else if byte == b'.' && point == usize::MAX && at > 0 {
            point = at;
        } else if byte == b'"' {
            break;
        } else {
            return None;
        }
        at += 1;
    }
    let scale = if point == usize::MAX {
        0
    } else {
        at - point - 1
    };
    let point_is_last = point != usize::MAX && scale == 0;
    // The decimal point counts as a byte, so `at` is never less than the number of digits.
    if at == 0 || at > SAFE_DIGITS || point_is_last {
        return None;
    }
    let number = Number {
        mantissa: mantissa as i64,
        scale: scale as u8,
    };
    Some((number, at + 1))
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let magnitude = self.mantissa.unsigned_abs();
        if self.scale == 0 {
            return write!(f, "{sign}{magnitude}");
        }
        let one = pow10(self.scale).unsigned_abs();
        let (whole, fraction) = (magnitude / one, magnitude % one);
        write!(
            f,
            "{sign}{whole}.{fraction:0width$}",
            width = usize::from(self.scale)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn trailing_zeros_are_kept_while_they_fit() {
        let number = |mantissa, scale| Number { mantissa, scale };
        assert_eq!(
            Number::parse(b"61837.63000000"),
            Ok(number(6_183_763_000_000, 8))
        );
        assert_eq!(Number::parse(b"-0.00010000"), Ok(number(-10_000, 8)));
        assert_eq!(
            Number::parse(b"922337203685477.000000000"),
            Ok(number(922_337_203_685_477, 0))
        );
    }

    #[test]
    fn only_plain_decimals_are_accepted() {
        for text in ["", ".", "5.", ".5", "1e3", "+1", "1.2.3", "-", "1 ", "NaN"] {
            let error = Number::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error, NumberError::Malformed(text.to_owned()));
        }
        let long = "12345678901234567890";
        assert_eq!(
            Number::parse(long.as_bytes()),
            Err(NumberError::TooLong(long.to_owned()))
        );
    }

    #[test]
    fn only_non_zero_digits_below_the_scale_are_an_error() {
        let value = Number::parse(b"61837.63000000").unwrap();
        assert_eq!(value.at(2), Ok(6_183_763));
        assert_eq!(value.at(8), Ok(6_183_763_000_000));
        let error = value.at(1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "61837.63000000 has too many non-zero digits for 1 decimal places"
        );
        assert!(matches!(value.at(18), Err(NumberError::TooLarge { .. })));
    }

    proptest! {
        #[test]
        fn text_round_trips(mantissa: i64, scale in 0_u8..=18) {
            prop_assume!(mantissa != i64::MIN);
            let number = Number { mantissa, scale };
            prop_assert_eq!(Number::parse(number.to_string().as_bytes()), Ok(number));
        }

        #[test]
        fn the_quoted_scan_agrees_with_parse(text in "[-0-9.e]{0,24}") {
            let quoted = format!("{text}\",\"q\":");
            if let Some((number, taken)) = scan_quoted(quoted.as_bytes()) {
                prop_assert_eq!(Number::parse(text.as_bytes()), Ok(number));
                prop_assert_eq!(taken, text.len() + 1);
            }
        }
    }
}
