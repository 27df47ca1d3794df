//! Converts decimals of the wire into the engine's integers. A value that does not fit is an error:
//! nothing here wraps, saturates or panics.

use rust_decimal::Decimal;
use windvane_model::decimal::{AMOUNT_SCALE, div_half_even, exact_mantissa, rescale};
use windvane_model::{Amount, Time};

use super::DecodeError;

/// The largest accepted amount, in units of 1e-8. Sums of many such amounts, with eighteen more
/// digits, still fit in 128 bits.
const AMOUNT_MAX: i128 = 10_i128.pow(30);

/// The exact mantissa of a position.
pub(super) fn exact(field: &'static str, value: Decimal, scale: u8) -> Result<i64, DecodeError> {
    exact_mantissa(value, scale).ok_or(DecodeError::Figure {
        field,
        value,
        scale,
    })
}

/// The exact mantissa of the quantity of an order or a fill, which is never below 0.
pub(super) fn quantity(field: &'static str, value: Decimal, scale: u8) -> Result<i64, DecodeError> {
    if value.is_sign_negative() && !value.is_zero() {
        return Err(DecodeError::Negative { field, value });
    }
    exact(field, value, scale)
}

/// The nearest mantissa, rounded half to even: prices of fills and averages may be finer than a
/// tick.
pub(super) fn nearest(field: &'static str, value: Decimal, scale: u8) -> Result<i64, DecodeError> {
    let mantissa = rescale(value, scale).and_then(|mantissa| i64::try_from(mantissa).ok());
    mantissa.ok_or(DecodeError::Figure {
        field,
        value,
        scale,
    })
}

/// An amount of an asset, rounded half to even.
pub(super) fn amount(field: &'static str, value: Decimal) -> Result<Amount, DecodeError> {
    let amount = Amount::from_decimal(value).filter(|amount| amount.0.abs() <= AMOUNT_MAX);
    amount.ok_or(DecodeError::Figure {
        field,
        value,
        scale: AMOUNT_SCALE,
    })
}

/// Price times quantity, rounded half to even once, at the end.
pub(super) fn product(
    field: &'static str,
    price: Decimal,
    qty: Decimal,
) -> Result<Amount, DecodeError> {
    let (price, qty) = (price.normalize(), qty.normalize());
    let raw = price.mantissa().checked_mul(qty.mantissa());
    let scale = price.scale() + qty.scale();
    let to = u32::from(AMOUNT_SCALE);
    let amount = raw.and_then(|raw| {
        if scale <= to {
            return raw.checked_mul(10_i128.checked_pow(to - scale)?);
        }
        // A power of ten beyond 128 bits is more than twice any numerator, so the result rounds to
        // 0.
        let power = 10_i128.checked_pow(scale - to);
        Some(power.map_or(0, |power| div_half_even(raw, power)))
    });
    let amount = amount.filter(|amount| amount.unsigned_abs() <= AMOUNT_MAX.unsigned_abs());
    amount.map(Amount).ok_or(DecodeError::Figure {
        field,
        value: price,
        scale: AMOUNT_SCALE,
    })
}

/// Converts a time of the wire, in milliseconds.
pub(super) fn time(field: &'static str, ms: i64) -> Result<Time, DecodeError> {
    let ns = ms.checked_mul(1_000_000).map(Time);
    ns.filter(|time| *time != Time::NEVER)
        .ok_or(DecodeError::Time { field, ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::from_str_exact(text).unwrap()
    }

    #[test]
    fn a_product_is_exact_to_eight_places_and_rounds_half_to_even() {
        let of = |price, qty| product("f", decimal(price), decimal(qty));
        assert_eq!(of("6563.665", "-20"), Ok(Amount(-13_127_330_000_000)));
        assert_eq!(of("0.00000001", "0.5"), Ok(Amount(0)));
        assert_eq!(of("0.00000003", "0.5"), Ok(Amount(2)));
        assert_eq!(
            of("0.00000000000000000001", "0.00000000000000000001"),
            Ok(Amount(0))
        );
        assert!(of("79228162514264337593543950335", "10").is_err());
    }

    proptest! {
        #[test]
        fn no_decimal_panics(a: i128, b: i128, x in 0_u32..=28, y in 0_u32..=28, scale in 0_u8..=12) {
            let limit = 79_228_162_514_264_337_593_543_950_335_i128;
            let a = Decimal::from_i128_with_scale(a % limit, x);
            let b = Decimal::from_i128_with_scale(b % limit, y);
            let _ = (exact("f", a, scale), nearest("f", a, scale), amount("f", a));
            if let Ok(found) = product("f", a, b) {
                // Where a decimal holds the product exactly, both results must be equal.
                if let Some(exact) = a.checked_mul(b).filter(|p| p.scale() == x + y) {
                    prop_assert_eq!(Some(found), Amount::from_decimal(exact));
                }
            }
        }

        #[test]
        fn times_never_wrap(ms: i64) {
            if let Ok(time) = time("T", ms) {
                prop_assert_eq!(time.millis(), ms);
            }
        }
    }
}
