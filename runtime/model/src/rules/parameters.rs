//! The mandatory and the forbidden parameters of an order
//! (docs/interface/orders.md#mandatory-parameters).
//!
//! Our decisions, where the documents are incomplete:
//! - A quantity is mandatory, except with closePosition. The futures table of the documents does
//!   not list it for `STOP_MARKET`, `TAKE_PROFIT_MARKET` and `TRAILING_STOP_MARKET`.
//! - A spot MARKET BUY has only quoteOrderQty.
//! - workingType is allowed for every futures type, because the documents do not tie it to any
//!   type.

use crate::order::{OrderTerms, OrderType, Side, Surface};

use super::{CompiledRules, Rejection, Rule};

const PRICE: u16 = 1;
const QTY: u16 = 1 << 1;
const QUOTE_QTY: u16 = 1 << 2;
const STOP_PRICE: u16 = 1 << 3;
const ACTIVATION_PRICE: u16 = 1 << 4;
const CALLBACK_RATE: u16 = 1 << 5;
const TIME_IN_FORCE: u16 = 1 << 6;
const WORKING_TYPE: u16 = 1 << 7;
const PRICE_PROTECT: u16 = 1 << 8;
const REDUCE_ONLY: u16 = 1 << 9;
const CLOSE_POSITION: u16 = 1 << 10;

/// The mandatory and the optional parameters of an order.
struct Shape {
    mandatory: u16,
    optional: u16,
}

const fn shape(mandatory: u16, optional: u16) -> Shape {
    Shape {
        mandatory,
        optional,
    }
}

/// Checks that no mandatory parameter is missing, and then that no other parameter is present
/// without effect.
#[inline]
pub(super) fn check(rules: &CompiledRules, terms: &OrderTerms) -> Result<(), Rejection> {
    if !rules.takes_type(terms.order_type) {
        return Err(Rule::OrderTypeInvalid.plain());
    }
    let shape = match rules.surface {
        Surface::Spot => spot_shape(terms),
        Surface::Futures => futures_shape(terms),
    };
    let sent = sent(terms);
    let missing = shape.mandatory & !sent;
    if missing != 0 {
        return Err(missing_rule(missing).plain());
    }
    let unwanted = sent & !(shape.mandatory | shape.optional);
    if unwanted != 0 {
        return Err(unwanted_rule(unwanted).plain());
    }
    match terms.time_in_force {
        Some(time) if !rules.takes_time(time) => Err(Rule::TimeInForceInvalid.plain()),
        _ => Ok(()),
    }
}

#[inline]
const fn spot_shape(terms: &OrderTerms) -> Shape {
    use OrderType as T;
    match (terms.order_type, terms.side) {
        (T::Limit, _) => shape(PRICE | QTY | TIME_IN_FORCE, 0),
        (T::Market, Side::Buy) => shape(QUOTE_QTY, 0),
        (T::Market, Side::Sell) => shape(QTY, 0),
        (T::Stop | T::TakeProfit, _) => shape(PRICE | QTY | STOP_PRICE, TIME_IN_FORCE),
        (T::StopMarket | T::TakeProfitMarket, _) => shape(QTY | STOP_PRICE, 0),
        // Rejected earlier: the surface does not have this type.
        (T::TrailingStopMarket | T::Liquidation, _) => shape(0, 0),
    }
}

#[inline]
const fn futures_shape(terms: &OrderTerms) -> Shape {
    use OrderType as T;
    // closePosition with a quantity has its own error code, which the position rules return.
    let qty = if terms.close_position { 0 } else { QTY };
    let always = WORKING_TYPE | REDUCE_ONLY;
    match terms.order_type {
        T::Limit => shape(PRICE | QTY | TIME_IN_FORCE, always),
        T::Market => shape(QTY, always),
        T::Stop | T::TakeProfit => shape(
            PRICE | QTY | STOP_PRICE,
            always | TIME_IN_FORCE | PRICE_PROTECT,
        ),
        T::StopMarket | T::TakeProfitMarket => shape(
            STOP_PRICE | qty,
            always | QTY | PRICE_PROTECT | CLOSE_POSITION,
        ),
        T::TrailingStopMarket => shape(QTY | CALLBACK_RATE, always | ACTIVATION_PRICE),
        T::Liquidation => shape(0, 0),
    }
}

#[inline]
const fn sent(terms: &OrderTerms) -> u16 {
    const fn bit(sent: bool, bit: u16) -> u16 {
        if sent { bit } else { 0 }
    }
    bit(terms.price.is_some(), PRICE)
        | bit(terms.qty.is_some(), QTY)
        | bit(terms.quote_qty.is_some(), QUOTE_QTY)
        | bit(terms.stop_price.is_some(), STOP_PRICE)
        | bit(terms.activation_price.is_some(), ACTIVATION_PRICE)
        | bit(terms.callback_ppm.is_some(), CALLBACK_RATE)
        | bit(terms.time_in_force.is_some(), TIME_IN_FORCE)
        | bit(terms.working_type.is_some(), WORKING_TYPE)
        | bit(terms.price_protect, PRICE_PROTECT)
        | bit(terms.reduce_only, REDUCE_ONLY)
        | bit(terms.close_position, CLOSE_POSITION)
}

/// The rule of the lowest missing bit.
#[cold]
const fn missing_rule(missing: u16) -> Rule {
    match 1 << missing.trailing_zeros() {
        PRICE => Rule::MandatoryPrice,
        QTY => Rule::MandatoryQty,
        QUOTE_QTY => Rule::MandatoryQuoteQty,
        STOP_PRICE => Rule::MandatoryStopPrice,
        CALLBACK_RATE => Rule::MandatoryCallbackRate,
        // No other parameter is ever mandatory.
        _ => Rule::MandatoryTimeInForce,
    }
}

/// The rule of the lowest unwanted bit.
#[cold]
const fn unwanted_rule(unwanted: u16) -> Rule {
    match 1 << unwanted.trailing_zeros() {
        PRICE => Rule::NotRequiredPrice,
        QTY => Rule::NotRequiredQty,
        QUOTE_QTY => Rule::NotRequiredQuoteQty,
        STOP_PRICE => Rule::NotRequiredStopPrice,
        ACTIVATION_PRICE => Rule::NotRequiredActivationPrice,
        CALLBACK_RATE => Rule::NotRequiredCallbackRate,
        TIME_IN_FORCE => Rule::TimeInForceNotRequired,
        WORKING_TYPE => Rule::NotRequiredWorkingType,
        PRICE_PROTECT => Rule::NotRequiredPriceProtect,
        REDUCE_ONLY => Rule::NotRequiredReduceOnly,
        // The last bit, CLOSE_POSITION.
        _ => Rule::ClosePositionType,
    }
}
