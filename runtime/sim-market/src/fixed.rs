//! Decimal text of integers with a fixed scale: `61800.30` is 6180030 at scale 2. Trailing zeros
//! are kept, as services of this kind write them. This module does not parse.

use std::fmt;

/// A mantissa and its number of decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed(pub i128, pub u8);

impl Fixed {
    /// This value at another scale. Digits beyond it are truncated towards zero.
    #[must_use]
    pub const fn at(self, scale: u8) -> Self {
        if scale >= self.1 {
            Self(self.0 * 10_i128.pow((scale - self.1) as u32), scale)
        } else {
            Self(self.0 / 10_i128.pow((self.1 - scale) as u32), scale)
        }
    }

    /// Without trailing zeros: `5` for 5.00.
    #[must_use]
    pub const fn trimmed(self) -> Self {
        let Self(mut mantissa, mut scale) = self;
        while scale > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        Self(mantissa, scale)
    }
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(mantissa, scale) = *self;
        let mut digits = [b'0'; 48];
        let mut at = digits.len();
        let mut left = mantissa.unsigned_abs();
        let mut written = 0;
        while left > 0 || written <= usize::from(scale) {
            if written == usize::from(scale) && scale > 0 {
                at -= 1;
                digits[at] = b'.';
            }
            at -= 1;
            // Division of 64-bit numbers is several times faster than of 128-bit ones, and nearly
            // always sufficient.
            let digit = if let Ok(small) = u64::try_from(left) {
                left = u128::from(small / 10);
                small % 10
            } else {
                let digit = (left % 10) as u64;
                left /= 10;
                digit
            };
            digits[at] = b'0' + digit as u8;
            written += 1;
        }
        if mantissa < 0 {
            at -= 1;
            digits[at] = b'-';
        }
        // The buffer contains only ASCII.
        f.write_str(std::str::from_utf8(&digits[at..]).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_the_scale() {
        let cases = [
            (6_180_030, 2, "61800.30"),
            (5, 3, "0.005"),
            (0, 0, "0"),
            (0, 2, "0.00"),
            (-5, 1, "-0.5"),
            (12, 0, "12"),
            (i128::from(i64::MAX) * 1000, 8, "92233720368547.75807000"),
        ];
        for (mantissa, scale, text) in cases {
            assert_eq!(Fixed(mantissa, scale).to_string(), text);
        }
    }

    #[test]
    fn scales_change_and_zeros_are_trimmed() {
        assert_eq!(Fixed(12_345, 2).at(1).to_string(), "123.4");
        assert_eq!(Fixed(12_345, 2).at(4).to_string(), "123.4500");
        assert_eq!(Fixed(12_300, 2).trimmed().to_string(), "123");
    }
}
