//! The check of an order against everything that the documents let us know beforehand.

use crate::order::OrderTerms;

use super::{CompiledRules, Rejection, filters, parameters, position};

/// What the rules must know beyond the order and its instrument. A price that is absent, or not
/// over 0, is unknown: rules that need it are left to the venue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderContext {
    /// The account is in hedge mode.
    pub hedge_mode: bool,
    /// Mark price at [`MARK_SCALE`](crate::decimal::MARK_SCALE).
    pub mark: Option<i64>,
    /// Price of the last trade, at the instrument's price scale, as the two below.
    pub last: Option<i64>,
    /// Best bid.
    pub best_bid: Option<i64>,
    /// Best ask.
    pub best_ask: Option<i64>,
    /// Open orders of the account on the symbol, conditional ones included.
    pub open_orders: u32,
    /// Open conditional orders of the account on the symbol.
    pub open_algo_orders: u32,
}

/// Checks an order; the first broken rule is told.
///
/// In this order: symbol, type, mandatory and unwanted parameters, time in force, position rules,
/// prices, quantities, trailing stop, bands around a reference price, notional, order counts,
/// the market that a MARKET order meets (spec 1, Symbol rules and Place order; spec 2, Exchange
/// information and New order).
///
/// The bounds of the arithmetic: every product has two 64-bit factors and fits 128 bits; there
/// is no other operation that could overflow.
///
/// # Errors
/// The rule, the value that breaks it and its bound.
#[inline]
pub fn check(
    rules: &CompiledRules,
    terms: &OrderTerms,
    context: &OrderContext,
) -> Result<(), Rejection> {
    if let Some(rule) = rules.closed {
        return Err(rule.plain());
    }
    parameters::check(rules, terms)?;
    position::check(rules, terms, context.hedge_mode)?;
    filters::check_prices(rules, terms)?;
    filters::check_quantities(rules, terms)?;
    filters::check_trailing(rules, terms, context)?;
    filters::check_bands(rules, terms, context)?;
    filters::check_notional(rules, terms, context)?;
    filters::check_counts(rules, terms, context)?;
    filters::check_market(rules, terms, context)
}
