//! Fractions of a reference price as exact integers, and numbers for messages.

use crate::decimal::{Decimal, pow10};

/// A fraction of a reference price as two 64-bit factors. Comparing a price with it takes two
/// widening multiplications, which cannot overflow 128 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ratio {
    /// Factor for the reference price.
    reference_factor: i64,
    /// Factor for the price.
    price_factor: i64,
    /// Scale of `reference * reference_factor` as a price.
    scale: u8,
}

impl Ratio {
    /// Prepares the comparison of `price / 10^price_scale` with
    /// `reference / 10^reference_scale * multiplier`. Both sides are converted to the larger scale.
    /// `None` if a factor does not fit 64 bits.
    pub(super) fn new(multiplier: Decimal, price_scale: u8, reference_scale: u8) -> Option<Self> {
        let multiplier = multiplier.normalize();
        let mantissa = i64::try_from(multiplier.mantissa()).ok()?;
        let bound_scale = reference_scale + u8::try_from(multiplier.scale()).ok()?;
        let scale = bound_scale.max(price_scale);
        if scale - price_scale > 18 {
            return None;
        }
        Some(Self {
            // The power of ten is at most 10^12: the bound's scale is below the price's scale,
            // which SCALE_MAX limits.
            reference_factor: mantissa.checked_mul(pow10(scale - bound_scale))?,
            price_factor: pow10(scale - price_scale),
            scale,
        })
    }

    #[inline]
    const fn bound(&self, reference: i64) -> i128 {
        reference as i128 * self.reference_factor as i128
    }

    /// The bound as a decimal for a message.
    pub(super) fn shown(&self, reference: i64) -> Decimal {
        shown(self.bound(reference), self.scale)
    }

    /// Whether the price is above the fraction of the reference.
    #[inline]
    pub(super) const fn is_below(&self, price: i64, reference: i64) -> bool {
        self.bound(reference) < price as i128 * self.price_factor as i128
    }

    /// Whether the price is below the fraction of the reference.
    #[inline]
    pub(super) const fn is_above(&self, price: i64, reference: i64) -> bool {
        self.bound(reference) > price as i128 * self.price_factor as i128
    }
}

/// The prices that a filter allows around a reference price.
#[derive(Clone, Copy, Debug)]
pub(super) struct Band {
    pub(super) floor: Ratio,
    /// `None` if the multiplier is 0, which disables it.
    pub(super) cap: Option<Ratio>,
}

/// `mantissa / 10^scale` for a message. Low decimals are dropped if they do not fit a [`Decimal`],
/// which has 96 bits and 28 decimals.
pub(super) fn shown(mut mantissa: i128, mut scale: u8) -> Decimal {
    while scale > 0 && (scale > 28 || mantissa.unsigned_abs() >> 96 != 0) {
        mantissa /= 10;
        scale -= 1;
    }
    crate::decimal::decimal(mantissa, scale)
}
