//! Rounds numbers on the wire as the venue's choices demand. The control port always reports exact
//! numbers.

use windvane_model::decimal::{MARK_SCALE, div_half_even, pow10};
use windvane_model::{Amount, Instrument};

use super::{AverageRounding, Choices, EntryRounding, FeeRounding, ProfitRounding};
use crate::figures::{amount, fine_price};

/// Decimals of a rounded commission.
const FEE_DECIMALS: u32 = 4;
/// Decimals of a rounded profit.
const PROFIT_DECIMALS: u32 = 2;

/// An entry price.
pub(crate) fn entry_price(choices: &Choices, rules: &Instrument, price: i64) -> String {
    match choices.of::<EntryRounding>() {
        EntryRounding::Fine => fine_price(price),
        EntryRounding::Tick => fine_price(to_tick(rules, price)),
    }
}

/// An order's average price.
pub(crate) fn average_price(choices: &Choices, rules: &Instrument, price: i64) -> String {
    match choices.of::<AverageRounding>() {
        AverageRounding::Fine => fine_price(price),
        AverageRounding::Tick => fine_price(to_tick(rules, price)),
    }
}

/// A commission.
pub(crate) fn fee(choices: &Choices, fee: Amount) -> String {
    match choices.of::<FeeRounding>() {
        FeeRounding::Exact => amount(fee),
        FeeRounding::Rounded => rounded(fee, FEE_DECIMALS),
    }
}

/// A realized profit.
pub(crate) fn profit(choices: &Choices, profit: Amount) -> String {
    match choices.of::<ProfitRounding>() {
        ProfitRounding::Exact => amount(profit),
        ProfitRounding::Rounded => rounded(profit, PROFIT_DECIMALS),
    }
}

fn rounded(value: Amount, decimals: u32) -> String {
    let rounded = value.to_decimal().round_dp(decimals);
    rounded.normalize().to_string()
}

/// A price of scale 8 as the nearest multiple of the tick, half to even.
fn to_tick(rules: &Instrument, price: i64) -> i64 {
    let tick = rules.filters.price;
    let tick = tick.map_or(1, |filter| filter.tick_size.max(1));
    let scale = MARK_SCALE.saturating_sub(rules.price_scale);
    let tick = i128::from(tick) * i128::from(pow10(scale));
    let rounded = div_half_even(i128::from(price), tick) * tick;
    i64::try_from(rounded).unwrap_or(price)
}
