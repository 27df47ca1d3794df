//! Position side, reduce-only and close-position rules
//! (docs/interface/orders.md#place-a-futures-order).
//!
//! The terms are checked as they would be sent. In hedge mode the venue forbids the reduce-only
//! flag, so a caller that enforces reduce-only itself clears the flag before the check.

use crate::order::{OrderTerms, PositionSide, Side, Surface};

use super::{CompiledRules, Rejection, Rule};

#[inline]
pub(super) fn check(
    rules: &CompiledRules,
    terms: &OrderTerms,
    hedge_mode: bool,
) -> Result<(), Rejection> {
    let sided = terms.position_side != PositionSide::Both;
    if rules.surface == Surface::Spot {
        if sided {
            return Err(Rule::NotRequiredPositionSide.plain());
        }
        return Ok(());
    }
    if sided != hedge_mode {
        return Err(Rule::PositionSideMode.plain());
    }
    if terms.reduce_only && hedge_mode {
        return Err(Rule::ReduceOnlyHedge.plain());
    }
    if terms.close_position {
        return check_close(terms);
    }
    Ok(())
}

fn check_close(terms: &OrderTerms) -> Result<(), Rejection> {
    if terms.reduce_only {
        return Err(Rule::ReduceOnlyClose.plain());
    }
    if terms.qty.is_some() {
        return Err(Rule::ClosePositionQty.plain());
    }
    match (terms.side, terms.position_side) {
        (Side::Buy, PositionSide::Long) | (Side::Sell, PositionSide::Short) => {
            Err(Rule::ClosePositionSide.plain())
        }
        _ => Ok(()),
    }
}
