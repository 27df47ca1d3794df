//! Numbers as text: the single form of each decimal in result files. Only integers are used, and
//! the functions that append do not allocate.
//!
//! A decimal has no exponent, no plus sign, no trailing zeros after its point and no point without
//! digits after it. Zero is `0`, never `-0`. So `0.0200` at scale 4 is written as `0.02`, and
//! `61800.0` at scale 1 as `61800`.

use windvane_model::decimal::{AMOUNT_SCALE, Amount};

const DIGIT_PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut i = 0;
    while i < 100 {
        pairs[2 * i] = b'0' + (i / 10) as u8;
        pairs[2 * i + 1] = b'0' + (i % 10) as u8;
        i += 1;
    }
    pairs
};

/// Number of digits of the longest 128-bit integer.
const DIGITS_MAX: usize = 39;

/// Writes the digits of `value` at the end of `digits`. Returns the index of the first digit.
fn write_digits(digits: &mut [u8; DIGITS_MAX], mut value: u64) -> usize {
    let mut at = DIGITS_MAX;
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&DIGIT_PAIRS[pair..pair + 2]);
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&DIGIT_PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    at
}

/// Appends an integer.
pub fn push_integer(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    let mut digits = [b'0'; DIGITS_MAX];
    let start = write_digits(&mut digits, value.unsigned_abs());
    out.extend_from_slice(&digits[start..]);
}

/// Appends `mantissa / 10^scale` in the form described above.
pub fn push_decimal(out: &mut Vec<u8>, mantissa: i128, scale: u8) {
    if mantissa == 0 {
        out.push(b'0');
        return;
    }
    if mantissa < 0 {
        out.push(b'-');
    }
    match u64::try_from(mantissa.unsigned_abs()) {
        Ok(magnitude) => push_narrow(out, magnitude, scale),
        Err(_) => push_wide(out, mantissa.unsigned_abs(), scale),
    }
}

fn push_narrow(out: &mut Vec<u8>, mut magnitude: u64, scale: u8) {
    let mut scale = usize::from(scale);
    while scale >= 4 && magnitude.is_multiple_of(10_000) {
        magnitude /= 10_000;
        scale -= 4;
    }
    while scale > 0 && magnitude.is_multiple_of(10) {
        magnitude /= 10;
        scale -= 1;
    }
    let mut digits = [b'0'; DIGITS_MAX];
    let start = write_digits(&mut digits, magnitude);
    push_pointed(out, &digits, start, scale);
}

/// For values above 64 bits. Prices, quantities and usual amounts are never that large, so it may
/// be slow.
fn push_wide(out: &mut Vec<u8>, mut magnitude: u128, scale: u8) {
    let mut scale = usize::from(scale);
    while scale > 0 && magnitude.is_multiple_of(10) {
        magnitude /= 10;
        scale -= 1;
    }
    let mut digits = [b'0'; DIGITS_MAX];
    let mut start = DIGITS_MAX;
    while magnitude > 0 {
        start -= 1;
        digits[start] = b'0' + (magnitude % 10) as u8;
        magnitude /= 10;
    }
    push_pointed(out, &digits, start, scale);
}

/// Appends the digits from `start` on, with a point before the last `scale` digits. All digits
/// before `start` are `0`, so small numbers get their leading zeros from there.
fn push_pointed(out: &mut Vec<u8>, digits: &[u8; DIGITS_MAX], start: usize, scale: usize) {
    let point = DIGITS_MAX - scale.min(DIGITS_MAX - 1);
    let whole = start.min(point - 1);
    out.extend_from_slice(&digits[whole..point]);
    if point < DIGITS_MAX {
        out.push(b'.');
        out.extend_from_slice(&digits[point..]);
    }
}

/// `mantissa / 10^scale` in the form described above.
pub fn decimal_text(mantissa: i128, scale: u8) -> String {
    let mut out = Vec::with_capacity(24);
    push_decimal(&mut out, mantissa, scale);
    // The bytes are ASCII, so nothing is replaced.
    String::from_utf8_lossy(&out).into_owned()
}

/// An amount in the form described above.
pub fn amount_text(amount: Amount) -> String {
    decimal_text(amount.0, AMOUNT_SCALE)
}

/// Appends a CSV field with any characters. It is quoted if necessary (RFC 4180).
pub fn push_field(out: &mut Vec<u8>, text: &str) {
    if text
        .bytes()
        .any(|b| matches!(b, b',' | b'"' | b'\n' | b'\r'))
    {
        out.push(b'"');
        out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use windvane_model::decimal::Decimal;

    #[test]
    fn decimals_have_one_form() {
        let cases: [(i128, u8, &str); 12] = [
            (0, 8, "0"),
            (618_003, 1, "61800.3"),
            (618_000, 1, "61800"),
            (200, 4, "0.02"),
            (-1, 8, "-0.00000001"),
            (-150_000_000, 8, "-1.5"),
            (7, 0, "7"),
            (1_000_000, 0, "1000000"),
            (1, 12, "0.000000000001"),
            (i128::from(u64::MAX) + 1, 0, "18446744073709551616"),
            (10_i128.pow(30), 8, "10000000000000000000000"),
            (10_i128.pow(30) + 1, 8, "10000000000000000000000.00000001"),
        ];
        for (mantissa, scale, expected) in cases {
            assert_eq!(decimal_text(mantissa, scale), expected);
        }
        assert_eq!(decimal_text(i128::MIN, 0), i128::MIN.to_string());
    }

    #[test]
    fn fields_are_quoted_only_when_they_must_be() {
        let mut out = Vec::new();
        push_field(&mut out, "mm-btc");
        push_field(&mut out, ",a\"b");
        assert_eq!(out, b"mm-btc\",a\"\"b\"");
    }

    proptest! {
        #[test]
        fn decimals_agree_with_rust_decimal(mantissa in any::<i64>(), scale in 0_u8..=12) {
            let expected = Decimal::from_i128_with_scale(mantissa.into(), scale.into()).normalize();
            prop_assert_eq!(decimal_text(mantissa.into(), scale), expected.to_string());
        }

        #[test]
        fn integers_agree_with_the_standard_library(value in any::<i64>()) {
            let mut out = Vec::new();
            push_integer(&mut out, value);
            prop_assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }
}
