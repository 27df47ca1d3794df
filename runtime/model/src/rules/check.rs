//! Checks an order against all rules of the documents that can be checked before it is sent.

use crate::order::OrderTerms;

use super::{CompiledRules, Rejection, filters, parameters, position};

/// Facts that the rules need beyond the order and its instrument. A price that is missing, or is
/// not over 0, is unknown. Rules that need an unknown price are left to the venue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderContext {
    /// Whether the account is in hedge mode.
    pub hedge_mode: bool,
    /// Mark price at [`MARK_SCALE`](crate::decimal::MARK_SCALE).
    pub mark: Option<i64>,
    /// Price of the last trade. This price and the next two are at the instrument's price scale.
    pub last: Option<i64>,
    /// Best bid.
    pub best_bid: Option<i64>,
    /// Best ask.
    pub best_ask: Option<i64>,
    /// The account's open orders on the symbol, including conditional ones.
    pub open_orders: u32,
    /// The account's open conditional orders on the symbol.
    pub open_algo_orders: u32,
}

/// Checks an order and returns the first broken rule.
///
/// The rules are checked in this order (docs/interface/orders.md#filters,
/// docs/interface/orders.md#mandatory-parameters):
///
/// 1. Symbol and type.
/// 2. Mandatory and unwanted parameters, time in force.
/// 3. Position rules.
/// 4. Prices, quantities, trailing stop.
/// 5. Bands around a reference price.
/// 6. Notional.
/// 7. Order counts.
/// 8. The market that a MARKET order would meet.
///
/// The arithmetic cannot overflow: every product has two 64-bit factors and fits 128 bits, and no
/// other operation could overflow.
///
/// # Errors
/// Returns the broken rule, the value that breaks it and its bound.
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
