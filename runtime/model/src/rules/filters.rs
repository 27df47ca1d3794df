//! The symbol filters and the numeric rules of parameters (docs/interface/orders.md#filters,
//! docs/interface/orders.md#price-bands).
//!
//! Our decisions, where the documents give no formula:
//! - `MARKET_LOT_SIZE` applies to orders of type MARKET, in addition to `LOT_SIZE`.
//! - An order without a price has the notional `reference * quantity`. The reference is the mark
//!   price on futures (documented) and the last price on spot. A spot MARKET BUY has its
//!   quoteOrderQty as notional. `NOTIONAL` and `MAX_NOTIONAL` limit the same number. `NOTIONAL`
//!   does not apply to orders without a price, except with `applyMinToMarket` or
//!   `applyMaxToMarket`.
//! - `PERCENT_PRICE_BY_SIDE`: a BUY may be from bidMultiplierDown to bidMultiplierUp times the
//!   reference, a SELL uses the ask multipliers. No route returns the average over `avgPriceMins`,
//!   so the last price is used instead.
//! - `PERCENT_PRICE` compares the price of every order that has one, conditional or not, with the
//!   mark price (-4016, -4024). The codes -4183 and -4184 compare the same price with the order's
//!   own stopPrice, using the same multipliers. On futures a BUY has only the upper bound and a
//!   SELL only the lower bound; on spot both bounds apply to both sides. stopPrice itself has no
//!   band.
//! - Spot `PERCENT_PRICE` needs the index price, which no route returns. The venue checks it.
//! - Every value of 0 disables its rule. If a reference price is unknown, the venue checks the
//!   rule.
//! - `MAX_NUM_ORDERS` counts orders that can stay open. That excludes MARKET orders, and LIMIT
//!   orders with IOC or FOK.

use crate::decimal::{AMOUNT_SCALE, Decimal, MARK_SCALE, pow10};
use crate::instrument::LotSize;
use crate::order::{OrderTerms, OrderType, Side, Surface, TimeInForce, WorkingType};

use super::compiled::{NotionalBasis, Precision};
use super::ratio::{Band, Ratio, shown};
use super::{CompiledRules, OrderContext, Rejection, Rule};

/// 0.1 percent, in parts per million.
const CALLBACK_PPM_MIN: u32 = 1_000;
/// 5 percent, in parts per million.
const CALLBACK_PPM_MAX: u32 = 50_000;

/// The rules for one number: maximum decimals, over 0, minimum, maximum, step.
struct Ladder {
    precision: Rule,
    positive: Rule,
    min: Rule,
    max: Rule,
    step: Rule,
}

const PRICE: Ladder = Ladder {
    precision: Rule::BadPrecisionPrice,
    positive: Rule::PricePositive,
    min: Rule::PriceMin,
    max: Rule::PriceMax,
    step: Rule::PriceTick,
};
const STOP_PRICE: Ladder = Ladder {
    precision: Rule::BadPrecisionStopPrice,
    positive: Rule::StopPricePositive,
    min: Rule::StopPriceMin,
    max: Rule::StopPriceMax,
    step: Rule::StopPriceTick,
};
const ACTIVATION_PRICE: Ladder = Ladder {
    precision: Rule::BadPrecisionActivationPrice,
    positive: Rule::ActivationPricePositive,
    min: Rule::ActivationPriceMin,
    max: Rule::ActivationPriceMax,
    step: Rule::ActivationPriceTick,
};
const QTY: Ladder = Ladder {
    precision: Rule::BadPrecisionQty,
    positive: Rule::QtyPositive,
    min: Rule::LotMin,
    max: Rule::LotMax,
    step: Rule::LotStep,
};
const MARKET_QTY: Ladder = Ladder {
    min: Rule::MarketLotMin,
    max: Rule::MarketLotMax,
    step: Rule::MarketLotStep,
    ..QTY
};

/// `PRICE_FILTER` and `pricePrecision` on price, stopPrice and activationPrice.
#[inline]
pub(super) fn check_prices(rules: &CompiledRules, terms: &OrderTerms) -> Result<(), Rejection> {
    let prices = [
        (terms.price, &PRICE),
        (terms.stop_price, &STOP_PRICE),
        (terms.activation_price, &ACTIVATION_PRICE),
    ];
    let filter = &rules.price;
    for (price, ladder) in prices {
        if let Some(price) = price {
            let scale = rules.price_scale;
            check_sane(price.0, rules.price_precision, scale, ladder)?;
            let bounds = (filter.min_price, filter.max_price, filter.tick_size);
            check_bounds(price.0, bounds, scale, ladder)?;
        }
    }
    Ok(())
}

/// `LOT_SIZE`, `MARKET_LOT_SIZE` and `quantityPrecision` on quantity. quoteOrderQty must be over 0,
/// and the lot sizes and the precision do not apply to it
/// (docs/interface/orders.md#place-a-spot-order).
#[inline]
pub(super) fn check_quantities(rules: &CompiledRules, terms: &OrderTerms) -> Result<(), Rejection> {
    if let Some(qty) = terms.qty {
        let bounds = |lot: &LotSize| (lot.min_qty, lot.max_qty, lot.step_size);
        let scale = rules.qty_scale;
        check_sane(qty.0, rules.qty_precision, scale, &QTY)?;
        check_bounds(qty.0, bounds(&rules.lot_size), scale, &QTY)?;
        if terms.order_type == OrderType::Market {
            check_bounds(qty.0, bounds(&rules.market_lot_size), scale, &MARKET_QTY)?;
        }
    }
    match terms.quote_qty {
        Some(amount) if amount.0 <= 0 => {
            Err(Rule::QuoteQtyPositive.with(shown(amount.0, AMOUNT_SCALE), Decimal::ZERO))
        }
        _ => Ok(()),
    }
}

#[inline]
fn check_sane(
    value: i64,
    precision: Precision,
    scale: u8,
    ladder: &Ladder,
) -> Result<(), Rejection> {
    if precision.unit != 1 && value % precision.unit != 0 {
        let decimals = Decimal::from(precision.decimals);
        return Err(ladder.precision.with(shown(value.into(), scale), decimals));
    }
    if value <= 0 {
        return Err(broken(ladder.positive, value, 0, scale));
    }
    Ok(())
}

/// The value must be over 0 and the bounds must not be negative, so that no difference can
/// overflow.
#[inline]
fn check_bounds(
    value: i64,
    (min, max, step): (i64, i64, i64),
    scale: u8,
    ladder: &Ladder,
) -> Result<(), Rejection> {
    if value < min {
        return Err(broken(ladder.min, value, min, scale));
    }
    if max != 0 && value > max {
        return Err(broken(ladder.max, value, max, scale));
    }
    if step != 0 && !is_multiple(value - min, step) {
        return Err(broken(ladder.step, value, step, scale));
    }
    Ok(())
}

/// `value` and `step` must not be negative.
#[inline]
const fn is_multiple(value: i64, step: i64) -> bool {
    // On many processors a 64-bit division is several times slower than a 32-bit one.
    if (value | step) >> 32 == 0 {
        (value as u32).is_multiple_of(step as u32)
    } else {
        (value as u64).is_multiple_of(step as u64)
    }
}

#[cold]
fn broken(rule: Rule, value: i64, limit: i64, scale: u8) -> Rejection {
    rule.with(shown(value.into(), scale), shown(limit.into(), scale))
}

/// Checks that the callback rate is from 0.1 to 5 percent. Checks that the activation price is on
/// the correct side of the latest price of the working type
/// (docs/interface/futures.md#trailing-stops).
#[inline]
pub(super) fn check_trailing(
    rules: &CompiledRules,
    terms: &OrderTerms,
    context: &OrderContext,
) -> Result<(), Rejection> {
    let Some(rate) = terms.callback_ppm else {
        return Ok(());
    };
    let percent = |ppm: u32| shown(ppm.into(), 4);
    if rate < CALLBACK_PPM_MIN {
        return Err(Rule::CallbackRateMin.with(percent(rate), percent(CALLBACK_PPM_MIN)));
    }
    if rate > CALLBACK_PPM_MAX {
        return Err(Rule::CallbackRateMax.with(percent(rate), percent(CALLBACK_PPM_MAX)));
    }
    let (latest, scale) = match terms.working_type {
        Some(WorkingType::MarkPrice) => (known(context.mark), MARK_SCALE),
        _ => (known(context.last), rules.price_scale),
    };
    let (Some(activation), Some(latest)) = (terms.activation_price, latest) else {
        return Ok(());
    };
    // Cross-multiplied to the same scale: 64 bits times at most 10^12.
    let left = i128::from(activation.0) * i128::from(pow10(scale));
    let right = i128::from(latest) * i128::from(pow10(rules.price_scale));
    let rule = match terms.side {
        Side::Buy if left >= right => Rule::ActivationPriceBuy,
        Side::Sell if left <= right => Rule::ActivationPriceSell,
        _ => return Ok(()),
    };
    let activation = shown(activation.0.into(), rules.price_scale);
    Err(rule.with(activation, shown(latest.into(), scale)))
}

/// Checks the price of every order that has one: `PERCENT_PRICE` by side against the mark price,
/// `PERCENT_PRICE_BY_SIDE`, and `PERCENT_PRICE` against the order's stop price.
#[inline]
pub(super) fn check_bands(
    rules: &CompiledRules,
    terms: &OrderTerms,
    context: &OrderContext,
) -> Result<(), Rejection> {
    let Some(price) = terms.price else {
        return Ok(());
    };
    if let (Some(band), Some(mark)) = (&rules.percent, known(context.mark)) {
        let band_rules = (Rule::PercentDown, Rule::PercentUp);
        check_side(rules, band, terms.side, price.0, mark, band_rules)?;
    }
    if let (Some(band), Some(reference)) = (rules.by_side(terms.side), reference(rules, context)) {
        check_floor(rules, &band.floor, price.0, reference, Rule::BySideDown)?;
        check_cap(rules, band.cap.as_ref(), price.0, reference, Rule::BySideUp)?;
    }
    check_stop_band(rules, terms, price.0)
}

/// Checks the price of a STOP or `TAKE_PROFIT` order against its own stop price (-4183, -4184).
#[inline]
fn check_stop_band(rules: &CompiledRules, terms: &OrderTerms, price: i64) -> Result<(), Rejection> {
    let (Some(band), Some(stop_price)) = (&rules.stop_percent, terms.stop_price) else {
        return Ok(());
    };
    let (down, up) = (Rule::StopPercentDown, Rule::StopPercentUp);
    match rules.surface {
        Surface::Futures => check_side(rules, band, terms.side, price, stop_price.0, (down, up)),
        Surface::Spot => {
            check_floor(rules, &band.floor, price, stop_price.0, down)?;
            check_cap(rules, band.cap.as_ref(), price, stop_price.0, up)
        }
    }
}

/// Checks the best price that a futures MARKET order would meet: `PERCENT_PRICE` (-4131), and
/// marketTakeBound, the largest distance from the mark price in either direction. The venue checks
/// it if the mark price is unknown or the opposite side of the book is empty.
#[inline]
pub(super) fn check_market(
    rules: &CompiledRules,
    terms: &OrderTerms,
    context: &OrderContext,
) -> Result<(), Rejection> {
    if terms.order_type != OrderType::Market || rules.surface != Surface::Futures {
        return Ok(());
    }
    let opposite = match terms.side {
        Side::Buy => context.best_ask,
        Side::Sell => context.best_bid,
    };
    let (Some(best), Some(mark)) = (known(opposite), known(context.mark)) else {
        return Ok(());
    };
    if let Some(band) = &rules.percent {
        let band_rules = (Rule::MarketPercentDown, Rule::MarketPercentUp);
        check_side(rules, band, terms.side, best, mark, band_rules)?;
    }
    if let Some(band) = &rules.take {
        check_floor(rules, &band.floor, best, mark, Rule::MarketTakeDown)?;
        check_cap(rules, band.cap.as_ref(), best, mark, Rule::MarketTakeUp)?;
    }
    Ok(())
}

/// The price of a buy must not be above the cap, and that of a sell not below the floor.
#[inline]
fn check_side(
    rules: &CompiledRules,
    band: &Band,
    side: Side,
    price: i64,
    reference: i64,
    (down, up): (Rule, Rule),
) -> Result<(), Rejection> {
    match side {
        Side::Buy => check_cap(rules, band.cap.as_ref(), price, reference, up),
        Side::Sell => check_floor(rules, &band.floor, price, reference, down),
    }
}

#[inline]
fn check_cap(
    rules: &CompiledRules,
    cap: Option<&Ratio>,
    price: i64,
    reference: i64,
    rule: Rule,
) -> Result<(), Rejection> {
    match cap {
        Some(cap) if cap.is_below(price, reference) => {
            Err(outside(rules, cap, price, reference, rule))
        }
        _ => Ok(()),
    }
}

#[inline]
fn check_floor(
    rules: &CompiledRules,
    floor: &Ratio,
    price: i64,
    reference: i64,
    rule: Rule,
) -> Result<(), Rejection> {
    if floor.is_above(price, reference) {
        return Err(outside(rules, floor, price, reference, rule));
    }
    Ok(())
}

#[cold]
fn outside(
    rules: &CompiledRules,
    ratio: &Ratio,
    price: i64,
    reference: i64,
    rule: Rule,
) -> Rejection {
    let limit = ratio.shown(reference);
    rule.with(shown(price.into(), rules.price_scale), limit)
}

/// Checks `MIN_NOTIONAL`, `MAX_NOTIONAL` and `NOTIONAL`. Reduce-only orders are exempt from
/// minimums (-4164). Orders with closePosition are skipped, because they have no quantity.
#[inline]
pub(super) fn check_notional(
    rules: &CompiledRules,
    terms: &OrderTerms,
    context: &OrderContext,
) -> Result<(), Rejection> {
    if rules.notionals.is_empty() {
        return Ok(());
    }
    let Some((notional, basis)) = notional(rules, terms, context) else {
        return Ok(());
    };
    for bound in &rules.notionals {
        let exempt = bound.minimum && terms.reduce_only;
        if exempt || (terms.price.is_none() && !bound.market) {
            continue;
        }
        let limit = bound.scaled[basis as usize];
        let breaks = if bound.minimum {
            notional < limit
        } else {
            notional > limit
        };
        if breaks {
            let scale = match basis {
                NotionalBasis::Price => rules.price_scale + rules.qty_scale,
                NotionalBasis::Reference => rules.reference_scale() + rules.qty_scale,
                NotionalBasis::Quote => AMOUNT_SCALE,
            };
            let limit = shown(bound.amount.0, AMOUNT_SCALE);
            return Err(bound.rule.with(shown(notional, scale), limit));
        }
    }
    Ok(())
}

#[inline]
fn notional(
    rules: &CompiledRules,
    terms: &OrderTerms,
    context: &OrderContext,
) -> Option<(i128, NotionalBasis)> {
    let product = |price: i64, qty: i64| i128::from(price) * i128::from(qty);
    match (terms.quote_qty, terms.qty, terms.price) {
        (Some(amount), ..) => Some((amount.0, NotionalBasis::Quote)),
        (None, Some(qty), Some(price)) => Some((product(price.0, qty.0), NotionalBasis::Price)),
        (None, Some(qty), None) => {
            let reference = reference(rules, context)?;
            Some((product(reference, qty.0), NotionalBasis::Reference))
        }
        (None, None, _) => None,
    }
}

/// Checks `MAX_NUM_ORDERS` (which includes algo orders) and `MAX_NUM_ALGO_ORDERS`. Both count the
/// new order.
#[inline]
pub(super) fn check_counts(
    rules: &CompiledRules,
    terms: &OrderTerms,
    context: &OrderContext,
) -> Result<(), Rejection> {
    let algo = terms.order_type.is_conditional();
    if context.open_orders >= rules.orders_max && rests(terms) {
        let count = Decimal::from(u64::from(context.open_orders) + 1);
        return Err(Rule::MaxNumOrders.with(count, rules.orders_max.into()));
    }
    if algo && context.open_algo_orders >= rules.algo_orders_max {
        let count = Decimal::from(u64::from(context.open_algo_orders) + 1);
        return Err(Rule::MaxNumAlgoOrders.with(count, rules.algo_orders_max.into()));
    }
    Ok(())
}

/// Whether the order can stay open, in the book or until its trigger.
#[inline]
pub(super) const fn rests(terms: &OrderTerms) -> bool {
    let is_immediate = terms.order_type.is_market()
        || matches!(
            terms.time_in_force,
            Some(TimeInForce::Ioc | TimeInForce::Fok)
        );
    terms.order_type.is_conditional() || !is_immediate
}

/// The reference price for orders without a price, at [`CompiledRules::reference_scale`].
#[inline]
const fn reference(rules: &CompiledRules, context: &OrderContext) -> Option<i64> {
    match rules.surface {
        Surface::Spot => known(context.last),
        Surface::Futures => known(context.mark),
    }
}

#[inline]
const fn known(price: Option<i64>) -> Option<i64> {
    match price {
        Some(price) if price > 0 => Some(price),
        _ => None,
    }
}
