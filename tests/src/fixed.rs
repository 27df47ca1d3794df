//! Exact decimal numbers of the checker, as 128-bit mantissas. They repeat code of the runtime on
//! purpose: the checker must be independent.

use rust_decimal::Decimal;

/// Decimal places of amounts.
pub const AMOUNT_SCALE: u32 = 8;
/// Decimal places of quantities and prices; no instrument has more.
pub const QTY_SCALE: u32 = 12;

/// The mantissa of a decimal text at a scale; `None` if it is not a number or has more places.
pub fn mantissa(text: &str, scale: u32) -> Option<i128> {
    if text.contains(['e', 'E', '_']) {
        return None;
    }
    let value: Decimal = text.parse().ok()?;
    let value = value.normalize();
    let places = scale.checked_sub(value.scale())?;
    value.mantissa().checked_mul(10_i128.checked_pow(places)?)
}

/// `numerator / denominator` for a positive denominator, rounded half to even.
pub fn half_even(numerator: i128, denominator: i128) -> i128 {
    let floor = numerator.div_euclid(denominator);
    let rest = numerator.rem_euclid(denominator);
    match (rest * 2).cmp(&denominator) {
        std::cmp::Ordering::Less => floor,
        std::cmp::Ordering::Greater => floor + 1,
        std::cmp::Ordering::Equal => floor + floor.rem_euclid(2),
    }
}

/// Price times quantity as an amount, rounded half to even.
pub fn notional(price: i128, qty: i128) -> i128 {
    half_even(price * qty, 10_i128.pow(2 * QTY_SCALE - AMOUNT_SCALE))
}

/// An amount as text.
pub fn show(amount: i128) -> String {
    let limit = 79_228_162_514_264_337_593_543_950_335_i128;
    Decimal::from_i128_with_scale(amount.clamp(-limit, limit), AMOUNT_SCALE)
        .normalize()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_exactly_or_rejected() {
        assert_eq!(mantissa("-0.5", 8), Some(-50_000_000));
        assert_eq!(mantissa("1.10", 1), Some(11));
        assert_eq!(mantissa("1.11", 1), None);
        assert_eq!(mantissa("", 8), None);
        assert_eq!(mantissa("1e5", 8), None);
    }

    #[test]
    fn halves_are_rounded_to_even() {
        for (n, d, expected) in [(5, 2, 2), (7, 2, 4), (-5, 2, -2), (-7, 2, -4), (-8, 3, -3)] {
            assert_eq!(half_even(n, d), expected, "{n}/{d}");
        }
        assert_eq!(
            notional(618_003 * 10_i128.pow(11), 6 * 10_i128.pow(9)),
            37_080_180_000
        );
        assert_eq!(show(-12_000_000), "-0.12");
    }
}
