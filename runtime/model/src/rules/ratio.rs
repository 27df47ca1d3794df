//! Fractions of a reference price in exact integers, and numbers for messages.

use crate::decimal::{Decimal, pow10};

/// A fraction of a reference price as two 64-bit factors, so that comparing a price with it
/// is two widening multiplications that cannot overflow 128 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ratio {
    /// Multiplies the reference price.
    reference_factor: i64,
    /// Multiplies the price.
    price_factor: i64,
    /// Scale of `reference * reference_factor` as a price.
    scale: u8,
}

impl Ratio {
    /// `price / 10^price_scale` against `reference / 10^reference_scale * multiplier`, both
    /// sides brought to the larger scale. `None` where a factor leaves 64 bits.
    pub(super) fn new(multiplier: Decimal, price_scale: u8, reference_scale: u8) -> Option<Self> {
        let multiplier = multiplier.normalize();
        let mantissa = i64::try_from(multiplier.mantissa()).ok()?;
        let bound_scale = reference_scale + u8::try_from(multiplier.scale()).ok()?;
        let scale = bound_scale.max(price_scale);
        if scale - price_scale > 18 {
            return None;
        }
        Some(Self {
            // At most 10^12: the bound's scale is below the price's, which SCALE_MAX limits.
            reference_factor: mantissa.checked_mul(pow10(scale - bound_scale))?,
            price_factor: pow10(scale - price_scale),
            scale,
        })
    }

    #[inline]
    const fn bound(&self, reference: i64) -> i128 {
        reference as i128 * self.reference_factor as i128
    }

    /// The bound for a message.
    pub(super) fn shown(&self, reference: i64) -> Decimal {
        shown(self.bound(reference), self.scale)
    }

    /// The price is over the fraction of the reference.
    #[inline]
    pub(super) const fn is_below(&self, price: i64, reference: i64) -> bool {
        self.bound(reference) < price as i128 * self.price_factor as i128
    }

    /// The price is under the fraction of the reference.
    #[inline]
    pub(super) const fn is_above(&self, price: i64, reference: i64) -> bool {
        self.bound(reference) > price as i128 * self.price_factor as i128
    }
}

/// The prices that a filter allows around a reference price.
#[derive(Clone, Copy, Debug)]
pub(super) struct Band {
    pub(super) floor: Ratio,
    /// `None` where the multiplier is 0, which disables it.
    pub(super) cap: Option<Ratio>,
}

/// `mantissa / 10^scale` for a message: low decimals are dropped where a [`Decimal`], which has
/// 96 bits and 28 decimals, cannot hold them.
pub(super) fn shown(mut mantissa: i128, mut scale: u8) -> Decimal {
    while scale > 0 && (scale > 28 || mantissa.unsigned_abs() >> 96 != 0) {
        mantissa /= 10;
        scale -= 1;
    }
    crate::decimal::decimal(mantissa, scale)
}
