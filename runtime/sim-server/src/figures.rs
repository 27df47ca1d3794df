//! Formats numbers for the wire: decimal text without exponents or trailing zeros.

use windvane_model::decimal::{MARK_SCALE, decimal};
use windvane_model::{Amount, Instrument, Level};
use windvane_sim_market::Symbol;

use crate::json::list;

/// An amount of an asset.
pub(crate) fn amount(amount: Amount) -> String {
    amount.to_decimal().to_string()
}

/// A price mantissa of an instrument.
pub(crate) fn price(rules: &Instrument, mantissa: i64) -> String {
    rules.price(mantissa).to_string()
}

/// A quantity mantissa of an instrument.
pub(crate) fn qty(rules: &Instrument, mantissa: i64) -> String {
    rules.qty(mantissa).to_string()
}

/// A price of scale 8: marks, averages.
pub(crate) fn fine_price(mantissa: i64) -> String {
    decimal(i128::from(mantissa), MARK_SCALE).to_string()
}

/// A callback rate in percent, from parts per million.
pub(crate) fn percent(ppm: u32) -> String {
    decimal(i128::from(ppm), 4).to_string()
}

/// `[[price, qty], ...]`.
pub(crate) fn levels(symbol: &Symbol, levels: impl Iterator<Item = Level>) -> String {
    list(levels.map(|level| {
        let price = symbol.price(level.price);
        format!("[\"{price}\",\"{}\"]", symbol.qty(level.qty.into()))
    }))
}
