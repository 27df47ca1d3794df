//! The scales and the grid of an instrument, and arithmetic that stays on the grid.
//!
//! A price is allowed if `price - min_price` is a multiple of the tick. A quantity is allowed if
//! `qty - min_qty` is a multiple of the step (docs/interface/orders.md#filters). A limit of 0 means
//! no limit.

use crate::json::Json;
use crate::number::{Amount, NumberError, Price, Qty, clamp_i64, div_nearest, parse_scaled};
use crate::order::{Side, Surface};

/// Index of an instrument, in the order of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstrumentId(pub u32);

/// One instrument of the strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrument {
    /// Index of the instrument in events and intents.
    pub id: InstrumentId,
    /// `spot:SYMBOL` or `futures:SYMBOL`.
    pub name: String,
    /// Decimal places of price mantissas.
    pub price_scale: u8,
    /// Decimal places of quantity mantissas.
    pub qty_scale: u8,
    /// `tickSize`, a price mantissa of at least 1.
    pub tick: i64,
    /// `stepSize`, a quantity mantissa of at least 1.
    pub step: i64,
    /// `minPrice`; 0 means no limit.
    pub min_price: i64,
    /// `maxPrice`; 0 means no limit.
    pub max_price: i64,
    /// `minQty`; 0 means no limit.
    pub min_qty: i64,
    /// `maxQty`; 0 means no limit.
    pub max_qty: i64,
    /// Smallest `price * qty` of an order.
    pub min_notional: Amount,
}

impl Instrument {
    /// Reads one entry of the `instruments` of `start`. Its limits are optional.
    pub(crate) fn from_json(json: &Json) -> Result<Self, String> {
        let integer = |key: &str| -> Result<Option<i64>, String> {
            match json.get(key) {
                None | Some(Json::Null) => Ok(None),
                Some(value) => value
                    .scalar()
                    .and_then(|text| text.parse().ok())
                    .map(Some)
                    .ok_or_else(|| format!("instruments: {key} is not an integer")),
            }
        };
        let required = |key: &str| -> Result<i64, String> {
            integer(key)?.ok_or_else(|| format!("instruments: {key} is missing"))
        };
        let scale = |key: &str| -> Result<u8, String> {
            u8::try_from(required(key)?)
                .ok()
                .filter(|scale| *scale <= 18)
                .ok_or_else(|| format!("instruments: {key} is not a scale of 0 to 18"))
        };
        let index = u32::try_from(required("index")?)
            .map_err(|_| "instruments: index is negative".to_owned())?;
        let name = json.get("name").and_then(Json::scalar);
        Ok(Self {
            id: InstrumentId(index),
            name: name.ok_or("instruments: name is missing")?.to_owned(),
            price_scale: scale("price_scale")?,
            qty_scale: scale("qty_scale")?,
            // A tick or step of 0 disables the rule, so every mantissa is allowed.
            tick: required("tick")?.max(1),
            step: required("step")?.max(1),
            min_price: integer("min_price")?.unwrap_or(0),
            max_price: integer("max_price")?.unwrap_or(0),
            min_qty: integer("min_qty")?.unwrap_or(0),
            max_qty: integer("max_qty")?.unwrap_or(0),
            min_notional: Amount(integer("min_notional")?.unwrap_or(0)),
        })
    }

    /// The surface, taken from the name.
    pub fn surface(&self) -> Surface {
        if self.name.starts_with("spot:") {
            Surface::Spot
        } else {
            Surface::Futures
        }
    }

    /// Parses decimal text as a price. It may be off the grid.
    pub fn parse_price(&self, text: &str) -> Result<Price, NumberError> {
        parse_scaled(text, self.price_scale).map(Price)
    }

    /// Parses decimal text as a quantity. It may be off the grid.
    pub fn parse_qty(&self, text: &str) -> Result<Qty, NumberError> {
        parse_scaled(text, self.qty_scale).map(Qty)
    }

    /// Whether both instruments have the same grid and the same limits.
    pub(crate) const fn has_grid_of(&self, other: &Self) -> bool {
        self.tick == other.tick
            && self.min_price == other.min_price
            && self.max_price == other.max_price
            && self.step == other.step
            && self.min_qty == other.min_qty
            && self.max_qty == other.max_qty
    }

    /// The highest allowed price that is not above `price`.
    #[inline]
    pub fn floor_price(&self, price: Price) -> Option<Price> {
        let grid = Grid::new(self.min_price, self.max_price, self.tick);
        grid.floor(price.0).map(Price)
    }

    /// The lowest allowed price that is not below `price`.
    #[inline]
    pub fn ceil_price(&self, price: Price) -> Option<Price> {
        let grid = Grid::new(self.min_price, self.max_price, self.tick);
        grid.ceil(price.0).map(Price)
    }

    /// The nearest allowed price. If two are equally near, the higher one.
    #[inline]
    pub fn nearest_price(&self, price: Price) -> Option<Price> {
        match (self.floor_price(price), self.ceil_price(price)) {
            (Some(low), Some(high)) if price.0 - low.0 < high.0 - price.0 => Some(low),
            (low, high) => high.or(low),
        }
    }

    /// The nearest allowed price that is not worse for `side` than `price`: rounded down for a buy,
    /// up for a sell.
    #[inline]
    pub fn passive_price(&self, side: Side, price: Price) -> Option<Price> {
        match side {
            Side::Buy => self.floor_price(price),
            Side::Sell => self.ceil_price(price),
        }
    }

    /// Converts a mark, index or average price to the nearest allowed price.
    pub fn price_of(&self, amount: Amount) -> Option<Price> {
        self.nearest_price(Price(rescale(amount.0, Amount::SCALE, self.price_scale)))
    }

    /// `price` plus a number of ticks.
    #[inline]
    #[must_use]
    pub const fn plus_ticks(&self, price: Price, ticks: i64) -> Price {
        Price(price.0.saturating_add(ticks.saturating_mul(self.tick)))
    }

    /// The number of whole ticks from `from` to `to`, rounded toward zero.
    #[inline]
    pub const fn ticks_between(&self, from: Price, to: Price) -> i64 {
        to.0.saturating_sub(from.0) / self.tick
    }

    /// The largest allowed quantity that is not above `qty`. `None` below the minimum.
    #[inline]
    pub fn floor_qty(&self, qty: Qty) -> Option<Qty> {
        let grid = Grid::new(self.min_qty, self.max_qty, self.step);
        grid.floor(qty.0).filter(|q| *q > 0).map(Qty)
    }

    /// The smallest allowed quantity that is not below `qty`. `None` above the maximum.
    #[inline]
    pub fn ceil_qty(&self, qty: Qty) -> Option<Qty> {
        let grid = Grid::new(self.min_qty, self.max_qty, self.step);
        grid.ceil(qty.0.max(1)).map(Qty)
    }

    /// `price * qty`, rounded half to even to 8 decimals.
    pub fn notional(&self, price: Price, qty: Qty) -> Amount {
        let product = i128::from(price.0) * i128::from(qty.0);
        let places = u32::from(self.price_scale) + u32::from(self.qty_scale);
        let scale = u32::from(Amount::SCALE);
        if places <= scale {
            return Amount(clamp_i64(
                product.saturating_mul(10_i128.pow(scale - places)),
            ));
        }
        let unit = 10_i128.pow(places - scale);
        let (quotient, rest) = (product.div_euclid(unit), product.rem_euclid(unit));
        let up = rest * 2 > unit || (rest * 2 == unit && quotient % 2 != 0);
        Amount(clamp_i64(quotient + i128::from(up)))
    }

    /// The largest allowed quantity whose notional at `price` is not above `amount`.
    pub fn qty_for(&self, amount: Amount, price: Price) -> Option<Qty> {
        if price.0 <= 0 || amount.0 <= 0 {
            return None;
        }
        let places = u32::from(self.price_scale) + u32::from(self.qty_scale);
        let scale = u32::from(Amount::SCALE);
        let (mut above, mut below) = (i128::from(amount.0), i128::from(price.0));
        if places >= scale {
            above = above.checked_mul(10_i128.pow(places - scale))?;
        } else {
            below *= 10_i128.pow(scale - places);
        }
        self.floor_qty(Qty(clamp_i64(above / below)))
    }

    /// Whether an order with this price and quantity reaches the minimum notional.
    pub fn reaches_min_notional(&self, price: Price, qty: Qty) -> bool {
        self.notional(price, qty) >= self.min_notional
    }
}

/// The allowed values `low + k * unit` up to `high`.
struct Grid {
    low: i64,
    high: i64,
    unit: i64,
}

impl Grid {
    #[inline]
    const fn new(low: i64, high: i64, unit: i64) -> Self {
        let high = if high == 0 { i64::MAX } else { high };
        Self { low, high, unit }
    }

    #[inline]
    fn floor(&self, value: i64) -> Option<i64> {
        let value = value.min(self.high);
        let below = value.checked_sub(self.low).filter(|d| *d >= 0)?;
        Some(value - below % self.unit)
    }

    #[inline]
    fn ceil(&self, value: i64) -> Option<i64> {
        let value = value.max(self.low);
        let rest = value.checked_sub(self.low)? % self.unit;
        let up = if rest == 0 { 0 } else { self.unit - rest };
        value.checked_add(up).filter(|v| *v <= self.high)
    }
}

/// Converts a mantissa from scale `from` to the nearest one at scale `to`, halves away from zero.
fn rescale(mantissa: i64, from: u8, to: u8) -> i64 {
    let mantissa = i128::from(mantissa);
    if to >= from {
        clamp_i64(mantissa.saturating_mul(10_i128.pow(u32::from(to - from))))
    } else {
        clamp_i64(div_nearest(mantissa, 10_i128.pow(u32::from(from - to))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn instrument(min_price: i64, tick: i64) -> Instrument {
        Instrument {
            id: InstrumentId(0),
            name: "futures:BTCUSDT".to_owned(),
            price_scale: 2,
            qty_scale: 3,
            tick,
            step: 5,
            min_price,
            max_price: 100_000,
            min_qty: 2,
            max_qty: 1_000,
            min_notional: Amount(500_000_000),
        }
    }

    #[test]
    fn the_grid_starts_at_the_minimum() {
        let i = instrument(3, 10);
        assert_eq!(i.floor_price(Price(29)), Some(Price(23)));
        assert_eq!(i.ceil_price(Price(29)), Some(Price(33)));
        assert_eq!(i.nearest_price(Price(28)), Some(Price(33)), "a tie goes up");
        assert_eq!(i.nearest_price(Price(27)), Some(Price(23)));
        assert_eq!(i.floor_price(Price(2)), None);
        assert_eq!(i.ceil_price(Price(-7)), Some(Price(3)));
    }

    #[test]
    fn results_stay_within_the_limits() {
        let i = instrument(3, 10);
        assert_eq!(i.floor_price(Price(200_000)), Some(Price(99_993)));
        assert_eq!(i.ceil_price(Price(99_994)), None);
        assert_eq!(i.nearest_price(Price(99_999)), Some(Price(99_993)));
        assert_eq!(i.floor_qty(Qty(1)), None);
        assert_eq!(i.floor_qty(Qty(11)), Some(Qty(7)));
        assert_eq!(i.ceil_qty(Qty(0)), Some(Qty(2)));
        assert_eq!(i.ceil_qty(Qty(998)), None);
    }

    #[test]
    fn without_a_minimum_quantities_stay_above_zero() {
        let mut i = instrument(0, 1);
        i.min_qty = 0;
        assert_eq!(i.floor_qty(Qty(4)), None);
        assert_eq!(i.floor_qty(Qty(-4)), None);
        assert_eq!(i.ceil_qty(Qty(0)), Some(Qty(5)));
    }

    #[test]
    fn notional_is_half_even_and_invertible() {
        let i = instrument(0, 1);
        assert_eq!(
            i.notional(Price(6_500_010), Qty(10)),
            Amount(65_000_100_000)
        );
        assert!(i.reaches_min_notional(Price(100), Qty(5_000)));
        assert!(!i.reaches_min_notional(Price(100), Qty(4_999)));
        let mut fine = instrument(0, 1);
        (fine.price_scale, fine.qty_scale) = (8, 1);
        assert_eq!(fine.notional(Price(1), Qty(5)), Amount(0));
        assert_eq!(fine.notional(Price(3), Qty(5)), Amount(2));
        assert_eq!(
            i.qty_for(Amount(65_000_100_000), Price(6_500_010)),
            Some(Qty(7))
        );
        assert_eq!(i.qty_for(Amount(0), Price(1)), None);
    }

    #[test]
    fn marks_become_prices() {
        let i = instrument(0, 10);
        assert_eq!(i.price_of(Amount(1_234_500_000)), Some(Price(1_240)));
        assert_eq!(i.price_of(Amount(1_234_499_999)), Some(Price(1_230)));
    }

    #[test]
    fn ticks_go_both_ways() {
        let i = instrument(0, 10);
        assert_eq!(i.plus_ticks(Price(100), -3), Price(70));
        assert_eq!(i.ticks_between(Price(100), Price(70)), -3);
        assert_eq!(i.ticks_between(Price(100), Price(109)), 0);
    }

    #[test]
    fn an_invalid_instrument_names_its_field() {
        let good =
            br#"{"index":1,"name":"spot:ABC","price_scale":2,"qty_scale":0,"tick":1,"step":1}"#;
        let read = Instrument::from_json(&Json::parse(good).unwrap()).unwrap();
        assert_eq!((read.id, read.surface()), (InstrumentId(1), Surface::Spot));
        let bad =
            br#"{"index":1,"name":"spot:ABC","price_scale":99,"qty_scale":0,"tick":1,"step":1}"#;
        let error = Instrument::from_json(&Json::parse(bad).unwrap()).unwrap_err();
        assert!(error.contains("price_scale"), "{error}");
    }

    proptest! {
        #[test]
        fn rounded_prices_are_allowed_and_nearest(price in -500_i64..110_000, min in 0_i64..50, tick in 1_i64..40) {
            let i = instrument(min, tick);
            let allowed = |p: Price| (p.0 - min) % tick == 0 && p.0 >= min && p.0 <= i.max_price;
            for rounded in [i.floor_price(Price(price)), i.ceil_price(Price(price)), i.nearest_price(Price(price))] {
                prop_assert!(rounded.is_none_or(allowed));
            }
            if let (Some(low), true) = (i.floor_price(Price(price)), price <= i.max_price) {
                prop_assert!(low.0 <= price && price - low.0 < tick);
            }
            if let (Some(high), true) = (i.ceil_price(Price(price)), price >= min) {
                prop_assert!(high.0 >= price && high.0 - price < tick);
            }
        }
    }
}
