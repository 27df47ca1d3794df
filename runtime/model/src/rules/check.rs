//! Checks an order against all rules of the documents that can be checked before it is sent.

use crate::order::OrderTerms;

use super::{CompiledRules, OrderContext, Rejection, filters, parameters, position};

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
