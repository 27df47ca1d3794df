//! Checks of an order on arrival: parameters by type, modes, precision and filters
//! (docs/interface/orders.md#mandatory-parameters, docs/interface/orders.md#filters). Each check is
//! pure and concerns one order. Whether the account can afford it is checked elsewhere.
//!
//! Choices where the documents are open:
//! - `PERCENT_PRICE` compares orders that have a price with the mark price on futures and the index
//!   price on spot (mark or mid without an index), with -4016 and -4024.
//! - The price of a STOP or `TAKE_PROFIT` order is also compared with its own stop price, with the
//!   same multipliers and -4183 and -4184. The stop price itself has no band.
//! - Market orders use `MARKET_LOT_SIZE`, or `LOT_SIZE` if the symbol has no such filter.
//! - The spot filters NOTIONAL, `MIN_NOTIONAL` and `MAX_NOTIONAL` use price times quantity, or
//!   `quoteOrderQty` if it is sent.

use serde::{Deserialize, Serialize};
use windvane_model::decimal::{MARK_SCALE, pow10};
use windvane_model::instrument::{LotSize, PriceFilter, SymbolStatus};
use windvane_model::{
    Amount, Instrument, OrderTerms, OrderType, PositionSide, Price, Side, Surface,
};

use crate::code::Code;
use crate::config::{Rate, VenueConfigError};

/// Scale of a [`Rate`].
const RATE_SCALE: u32 = 8;

/// An instrument's fractions as integers.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Fractions {
    /// `PERCENT_PRICE` for buys and for sells: lower and upper multiplier.
    percent: Option<(Rate, Rate)>,
    by_side: Option<[(Rate, Rate); 2]>,
    pub(crate) take_bound: Option<Rate>,
    pub(crate) trigger_protect: Option<Rate>,
    pub(crate) liquidation_fee: Option<Rate>,
}

impl Fractions {
    pub(crate) fn new(instrument: &Instrument) -> Result<Self, VenueConfigError> {
        let rate = |field, value| {
            windvane_model::decimal::exact_mantissa(value, 8)
                .filter(|mantissa| *mantissa >= 0)
                .map(Rate)
                .ok_or_else(|| VenueConfigError::Filter {
                    instrument: instrument.name(),
                    field,
                    value,
                })
        };
        let optional = |field, value: Option<_>| value.map(|v| rate(field, v)).transpose();
        let percent = instrument.filters.percent_price.map(|f| {
            Ok((
                rate("multiplierDown", f.multiplier_down)?,
                rate("multiplierUp", f.multiplier_up)?,
            ))
        });
        let by_side = instrument.filters.percent_price_by_side.map(|f| {
            Ok([
                (
                    rate("bidMultiplierDown", f.bid_multiplier_down)?,
                    rate("bidMultiplierUp", f.bid_multiplier_up)?,
                ),
                (
                    rate("askMultiplierDown", f.ask_multiplier_down)?,
                    rate("askMultiplierUp", f.ask_multiplier_up)?,
                ),
            ])
        });
        Ok(Self {
            percent: percent.transpose()?,
            by_side: by_side.transpose()?,
            take_bound: optional("marketTakeBound", instrument.market_take_bound)?,
            trigger_protect: optional("triggerProtect", instrument.trigger_protect)?,
            liquidation_fee: optional("liquidationFee", instrument.liquidation_fee)?,
        })
    }
}

/// The inputs of the checks besides the order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) instrument: &'a Instrument,
    pub(crate) fractions: &'a Fractions,
    pub(crate) hedge: bool,
    pub(crate) batch: bool,
    /// Mark price (or mid), scale 8; 0 if unknown.
    pub(crate) mark: i64,
    /// Reference price of the spot percent filters, scale 8; 0 if unknown.
    pub(crate) index: i64,
}

type Check = Result<(), Code>;

const fn ensure(holds: bool, code: Code) -> Check {
    if holds { Ok(()) } else { Err(code) }
}

/// Runs every check, in the order in which a venue would find the errors: symbol, enum values,
/// parameters, numbers, filters.
pub(crate) fn check(context: &Context<'_>, terms: &OrderTerms) -> Check {
    symbol(context.instrument)?;
    enum_values(context.instrument, terms)?;
    modes(context, terms)?;
    parameters(context.instrument.surface, terms)?;
    trailing(context, terms)?;
    prices(context.instrument, terms)?;
    quantity(context.instrument, terms)?;
    percent(context, terms)?;
    notional(context, terms)
}

fn symbol(instrument: &Instrument) -> Check {
    ensure(!instrument.symbol.starts_with("TEST"), Code::BadSymbol)?;
    ensure(
        instrument.status == SymbolStatus::Trading,
        Code::MarketStatus,
    )
}

fn enum_values(instrument: &Instrument, terms: &OrderTerms) -> Check {
    let order_type = terms.order_type;
    let known = match order_type {
        OrderType::Liquidation => false,
        OrderType::TrailingStopMarket => instrument.surface == Surface::Futures,
        OrderType::Limit
        | OrderType::Market
        | OrderType::Stop
        | OrderType::StopMarket
        | OrderType::TakeProfit
        | OrderType::TakeProfitMarket => true,
    };
    let listed = instrument.order_types.is_empty() || instrument.order_types.contains(&order_type);
    ensure(known && listed, Code::InvalidOrderType)?;
    let Some(tif) = terms.time_in_force else {
        return Ok(());
    };
    ensure(!order_type.is_market(), Code::TifNotRequired)?;
    let listed = instrument.times_in_force.is_empty() || instrument.times_in_force.contains(&tif);
    ensure(listed, Code::InvalidTif)
}

fn modes(context: &Context<'_>, terms: &OrderTerms) -> Check {
    let both = terms.position_side == PositionSide::Both;
    if context.instrument.surface == Surface::Spot {
        ensure(both, Code::PositionSideNotRequired)?;
        ensure(!terms.reduce_only, Code::ReduceOnlyNotRequired)?;
        return ensure(!terms.close_position, Code::ClosePositionNotRequired);
    }
    ensure(both != context.hedge, Code::PositionSideMismatch)?;
    let forbidden = context.hedge || terms.close_position;
    ensure(
        !(terms.reduce_only && forbidden),
        Code::ReduceOnlyNotRequired,
    )?;
    if terms.close_position {
        let closes = matches!(
            terms.order_type,
            OrderType::StopMarket | OrderType::TakeProfitMarket
        );
        // A batch cannot contain closePosition (docs/interface/orders.md#place-several-orders).
        ensure(closes && !context.batch, Code::ClosePositionNotRequired)?;
        ensure(terms.qty.is_none(), Code::QtyWithClosePosition)?;
        let opens = matches!(
            (terms.position_side, terms.side),
            (PositionSide::Long, Side::Buy) | (PositionSide::Short, Side::Sell)
        );
        ensure(!opens, Code::PositionSideMismatch)?;
    }
    Ok(())
}

fn parameters(surface: Surface, terms: &OrderTerms) -> Check {
    let order_type = terms.order_type;
    let trailing = order_type == OrderType::TrailingStopMarket;
    let stops = order_type.is_conditional() && !trailing;
    let by_quote =
        surface == Surface::Spot && order_type == OrderType::Market && terms.side == Side::Buy;
    let needs_tif = order_type == OrderType::Limit;
    ensure(
        !needs_tif || terms.time_in_force.is_some(),
        Code::NoTimeInForce,
    )?;
    let price = (Code::NoPrice, Code::PriceNotRequired);
    exactly(!order_type.is_market(), terms.price.is_some(), price)?;
    let stop_price = (Code::NoStopPrice, Code::StopPriceNotRequired);
    exactly(stops, terms.stop_price.is_some(), stop_price)?;
    let callback = (Code::NoCallbackRate, Code::CallbackRateNotRequired);
    exactly(trailing, terms.callback_ppm.is_some(), callback)?;
    // The table of mandatory parameters allows either for MARKET
    // (docs/interface/orders.md#place-a-spot-order). The rules of market orders mention the quote
    // amount only for buys.
    let quoted = by_quote && terms.qty.is_none();
    let quote_qty = (Code::NoQuoteQty, Code::QuoteQtyNotRequired);
    exactly(quoted, terms.quote_qty.is_some(), quote_qty)?;
    let needs_qty = !quoted && !terms.close_position;
    let qty = (Code::NoQty, Code::QtyNotRequired);
    exactly(needs_qty, terms.qty.is_some(), qty)?;
    let activation = terms.activation_price.is_some() && !trailing;
    let spot = surface == Surface::Spot;
    ensure(!activation, Code::ActivationPriceNotRequired)?;
    ensure(
        !(terms.price_protect && (spot || !stops)),
        Code::PriceProtectNotRequired,
    )?;
    ensure(
        !(spot && terms.working_type.is_some()),
        Code::WorkingTypeNotRequired,
    )
}

/// Checks that a parameter is sent exactly when the order needs it. The first code is for a missing
/// parameter, the second for one that is not allowed.
const fn exactly(needed: bool, sent: bool, (missing, surplus): (Code, Code)) -> Check {
    match (needed, sent) {
        (true, false) => Err(missing),
        (false, true) => Err(surplus),
        _ => Ok(()),
    }
}

/// Callback rates: 0.1 to 5 percent, in a batch up to 4
/// (docs/interface/orders.md#place-several-orders).
fn trailing(context: &Context<'_>, terms: &OrderTerms) -> Check {
    let max = if context.batch { 40_000 } else { 50_000 };
    let fits = terms
        .callback_ppm
        .is_none_or(|ppm| (1_000..=max).contains(&ppm));
    ensure(fits, Code::InvalidCallbackRate)
}

fn prices(instrument: &Instrument, terms: &OrderTerms) -> Check {
    let checks = [
        (
            terms.price,
            Code::PriceNotPositive,
            Code::PriceOverMax,
            Code::PricePrecision,
        ),
        (
            terms.stop_price,
            Code::StopPriceNotPositive,
            Code::StopPriceOverMax,
            Code::StopPricePrecision,
        ),
        (
            terms.activation_price,
            Code::ActivationNotPositive,
            Code::PriceOverMax,
            Code::ActivationPrecision,
        ),
    ];
    for (price, not_positive, over_max, too_precise) in checks {
        let Some(Price(price)) = price else { continue };
        ensure(price > 0, not_positive)?;
        let (scale, decimals) = (instrument.price_scale, instrument.price_precision);
        precision(price, scale, decimals, too_precise)?;
        if let Some(filter) = &instrument.filters.price {
            price_filter(filter, price, over_max)?;
        }
    }
    Ok(())
}

fn precision(mantissa: i64, scale: u8, precision: Option<u8>, code: Code) -> Check {
    let surplus = precision.map_or(0, |p| scale.saturating_sub(p));
    ensure(mantissa % pow10(surplus) == 0, code)
}

fn price_filter(filter: &PriceFilter, price: i64, over_max: Code) -> Check {
    let PriceFilter {
        min_price,
        max_price,
        tick_size,
    } = *filter;
    ensure(min_price == 0 || price >= min_price, Code::PriceUnderMin)?;
    ensure(max_price == 0 || price <= max_price, over_max)?;
    let steps = tick_size == 0 || (price - min_price) % tick_size == 0;
    ensure(steps, Code::PriceTick)
}

fn quantity(instrument: &Instrument, terms: &OrderTerms) -> Check {
    if let Some(quote) = terms.quote_qty {
        ensure(quote.0 > 0, Code::AmountNotPositive)?;
    }
    let Some(qty) = terms.qty else { return Ok(()) };
    ensure(qty.0 > 0, Code::QtyNotPositive)?;
    let (scale, decimals) = (instrument.qty_scale, instrument.qty_precision);
    precision(qty.0, scale, decimals, Code::QtyPrecision)?;
    let filters = &instrument.filters;
    let lot = match filters.market_lot_size {
        Some(lot) if terms.order_type.is_market() => Some(lot),
        _ => filters.lot_size,
    };
    let Some(LotSize {
        min_qty,
        max_qty,
        step_size,
    }) = lot
    else {
        return Ok(());
    };
    ensure(qty.0 >= min_qty, Code::QtyUnderMin)?;
    ensure(max_qty == 0 || qty.0 <= max_qty, Code::QtyOverMax)?;
    let steps = step_size == 0 || (qty.0 - min_qty) % step_size == 0;
    ensure(steps, Code::QtyStep)
}

fn percent(context: &Context<'_>, terms: &OrderTerms) -> Check {
    let Some(price) = terms.price else {
        return Ok(());
    };
    let by_mark = (Code::PriceOverMultiplier, Code::PriceUnderMultiplier);
    percent_price(context, terms.side, price.0, by_mark)?;
    let (Some(stop), Some(band)) = (terms.stop_price, context.fractions.percent) else {
        return Ok(());
    };
    let by_stop = (Code::StopOverMultiplier, Code::StopUnderMultiplier);
    let reference = (stop.0, context.instrument.price_scale);
    within(context, terms.side, price.0, reference, band, by_stop)
}

/// `PERCENT_PRICE` and `PERCENT_PRICE_BY_SIDE` for a price of the order or of a counterparty. They
/// pass if the reference price is unknown.
pub(crate) fn percent_price(
    context: &Context<'_>,
    side: Side,
    price: i64,
    codes: (Code, Code),
) -> Check {
    let spot = context.instrument.surface == Surface::Spot;
    let reference = if spot { context.index } else { context.mark };
    if reference == 0 {
        return Ok(());
    }
    let by_side = context.fractions.by_side.map(|s| s[side as usize]);
    for band in [context.fractions.percent, by_side].into_iter().flatten() {
        within(context, side, price, (reference, MARK_SCALE), band, codes)?;
    }
    Ok(())
}

/// Checks a price against a band around a reference price of the given scale. The first code is for
/// a price above the band, the second for one below. On futures, a buy has only the upper bound and
/// a sell only the lower one; on spot, both have both.
fn within(
    context: &Context<'_>,
    side: Side,
    price: i64,
    (reference, scale): (i64, u8),
    (down, up): (Rate, Rate),
    (over, under): (Code, Code),
) -> Check {
    // Both sides have the scale of a rate plus those of price and reference, so this is exact.
    let unit = i128::from(pow10(context.instrument.price_scale));
    let price = i128::from(price) * 10_i128.pow(RATE_SCALE + u32::from(scale));
    let bound = |rate: Rate| i128::from(reference) * i128::from(rate.0) * unit;
    let spot = context.instrument.surface == Surface::Spot;
    let capped = spot || side == Side::Buy;
    let floored = spot || side == Side::Sell;
    ensure(!capped || price <= bound(up), over)?;
    ensure(!floored || price >= bound(down), under)
}

fn notional(context: &Context<'_>, terms: &OrderTerms) -> Check {
    let (instrument, filters) = (context.instrument, &context.instrument.filters);
    let exempt = terms.reduce_only || terms.close_position;
    let Some(value) = value(context, terms).filter(|_| !exempt) else {
        return Ok(());
    };
    let min = filters.min_notional.unwrap_or_default();
    ensure(value >= min, Code::MinNotional)?;
    if instrument.surface == Surface::Futures {
        return Ok(());
    }
    let max = filters.max_notional.filter(|max| max.0 > 0);
    ensure(max.is_none_or(|max| value <= max), Code::MaxNotional)?;
    let Some(rule) = filters.notional else {
        return Ok(());
    };
    let market = terms.order_type.is_market();
    if !market || rule.apply_min_to_market {
        ensure(value >= rule.min_notional, Code::MinNotional)?;
    }
    let bounded = rule.max_notional.0 > 0 && (!market || rule.apply_max_to_market);
    ensure(!bounded || value <= rule.max_notional, Code::MaxNotional)
}

/// Price times quantity. Market orders use the mark price; `None` if it is unknown.
fn value(context: &Context<'_>, terms: &OrderTerms) -> Option<Amount> {
    if let Some(quote) = terms.quote_qty {
        return Some(quote);
    }
    let qty = terms.qty?.0;
    match terms.price {
        Some(price) => Some(context.instrument.notional(price.0, qty)),
        None if context.mark > 0 => Some(Amount::notional(
            context.mark,
            MARK_SCALE,
            qty,
            context.instrument.qty_scale,
        )),
        None => None,
    }
}
