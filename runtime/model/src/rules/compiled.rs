//! An instrument's rules in the form that [`check`](super::check()) needs. Every bound is scaled
//! once, so that the hot path only multiplies and compares integers.

use crate::decimal::{AMOUNT_SCALE, Amount, Decimal, MARK_SCALE, SCALE_MAX, pow10};
use crate::instrument::{Filters, Instrument, LotSize, PriceFilter, SymbolStatus};
use crate::order::{OrderTerms, OrderType, Side, Surface, TimeInForce};

use super::Rule;
use super::filters::rests;
use super::ratio::{Band, Ratio, shown};

/// Why the rules of an instrument cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstrumentError {
    /// A scale is too large for the engine's integers.
    #[error("{instrument}: {field} {value} is over {SCALE_MAX}; trade it with fewer decimals")]
    Scale {
        /// The instrument.
        instrument: String,
        /// Name of the scale.
        field: &'static str,
        /// The value.
        value: u8,
    },
    /// A filter bound is below zero.
    #[error("{instrument}: {field} {value} is below 0; fix the exchange information")]
    Negative {
        /// The instrument.
        instrument: String,
        /// Filter and field name.
        field: &'static str,
        /// The value.
        value: Decimal,
    },
    /// A multiplier has more digits than exact 64-bit arithmetic can handle.
    #[error("{instrument}: {field} {value} has too many digits (18 in all, 10 decimals)")]
    Digits {
        /// The instrument.
        instrument: String,
        /// Filter and field name.
        field: &'static str,
        /// The value.
        value: Decimal,
    },
}

/// An instrument's rules, compiled once.
#[derive(Clone, Debug)]
pub struct CompiledRules {
    pub(super) surface: Surface,
    /// The rule by which the symbol accepts no orders; `None` if it accepts orders.
    pub(super) closed: Option<Rule>,
    /// One bit for each [`OrderType::code`].
    pub(super) order_types: u16,
    /// One bit for each [`TimeInForce::code`].
    pub(super) times_in_force: u8,
    pub(super) price_scale: u8,
    pub(super) qty_scale: u8,
    pub(super) price_precision: Precision,
    pub(super) qty_precision: Precision,
    pub(super) price: PriceFilter,
    pub(super) lot_size: LotSize,
    pub(super) market_lot_size: LotSize,
    /// `PERCENT_PRICE`. Futures only, because no route returns the index price of spot.
    pub(super) percent: Option<Band>,
    /// `PERCENT_PRICE` around the stop price of a conditional order.
    pub(super) stop_percent: Option<Band>,
    /// `PERCENT_PRICE_BY_SIDE` for BUY and SELL.
    pub(super) by_side: Option<[Band; 2]>,
    /// `marketTakeBound` as a band around the mark price.
    pub(super) take: Option<Band>,
    /// Bounds of the notional filters, in the order in which they are checked.
    pub(super) notionals: Vec<NotionalBound>,
    pub(super) orders_max: u32,
    pub(super) algo_orders_max: u32,
}

/// `pricePrecision` or `quantityPrecision`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Precision {
    /// The allowed number of decimals.
    pub(super) decimals: u8,
    /// The smallest step with that many decimals, as a mantissa. 1 allows all.
    pub(super) unit: i64,
}

impl Precision {
    const fn new(precision: Option<u8>, scale: u8) -> Self {
        match precision {
            Some(decimals) if decimals < scale => Self {
                decimals,
                unit: pow10(scale - decimals),
            },
            _ => Self {
                decimals: scale,
                unit: 1,
            },
        }
    }
}

/// How the notional of an order is computed. It indexes the bounds of a [`NotionalBound`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotionalBasis {
    /// Price times quantity.
    Price,
    /// Reference price times quantity.
    Reference,
    /// `quoteOrderQty`.
    Quote,
}

/// One bound of a notional filter.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotionalBound {
    pub(super) rule: Rule,
    pub(super) minimum: bool,
    /// Whether orders without a price are checked too.
    pub(super) market: bool,
    pub(super) amount: Amount,
    /// The bound at the scale of each [`NotionalBasis`]. It is rounded so that no notional of that
    /// scale is between it and the amount.
    pub(super) scaled: [i128; 3],
}

impl CompiledRules {
    /// Scales the rules of an instrument.
    pub fn new(instrument: &Instrument) -> Result<Self, InstrumentError> {
        check_scales(instrument)?;
        check_signs(instrument)?;
        let filters = &instrument.filters;
        let surface = instrument.surface;
        Ok(Self {
            surface,
            closed: closed(instrument),
            order_types: order_type_bits(instrument),
            times_in_force: time_in_force_bits(instrument),
            price_scale: instrument.price_scale,
            qty_scale: instrument.qty_scale,
            price_precision: Precision::new(instrument.price_precision, instrument.price_scale),
            qty_precision: Precision::new(instrument.qty_precision, instrument.qty_scale),
            price: filters.price.unwrap_or_default(),
            lot_size: filters.lot_size.unwrap_or_default(),
            market_lot_size: filters.market_lot_size.unwrap_or_default(),
            percent: percent(instrument)?,
            stop_percent: percent_around(instrument, instrument.price_scale)?,
            by_side: by_side(instrument)?,
            take: take(instrument)?,
            notionals: notionals(instrument),
            orders_max: count_max(filters.max_num_orders),
            algo_orders_max: count_max(filters.max_num_algo_orders),
        })
    }

    /// The venue's maximum number of open orders on the symbol, if the order counts for it.
    #[inline]
    pub const fn orders_max_for(&self, terms: &OrderTerms) -> Option<u32> {
        if self.orders_max < u32::MAX && rests(terms) {
            Some(self.orders_max)
        } else {
            None
        }
    }

    /// The venue's maximum number of open conditional orders on the symbol, if the order counts for
    /// it.
    #[inline]
    pub const fn algo_orders_max_for(&self, terms: &OrderTerms) -> Option<u32> {
        if self.algo_orders_max < u32::MAX && terms.order_type.is_conditional() {
            Some(self.algo_orders_max)
        } else {
            None
        }
    }

    /// Scale of the reference price of the notional filters: the mark price on futures, the
    /// last price on spot.
    pub(super) const fn reference_scale(&self) -> u8 {
        reference_scale(self.surface, self.price_scale)
    }

    #[inline]
    pub(super) const fn takes_type(&self, order_type: OrderType) -> bool {
        self.order_types & (1 << order_type.code()) != 0
    }

    #[inline]
    pub(super) const fn takes_time(&self, time: TimeInForce) -> bool {
        self.times_in_force & (1 << time.code()) != 0
    }

    #[inline]
    pub(super) fn by_side(&self, side: Side) -> Option<&Band> {
        let [buy, sell] = self.by_side.as_ref()?;
        Some(match side {
            Side::Buy => buy,
            Side::Sell => sell,
        })
    }
}

const fn reference_scale(surface: Surface, price_scale: u8) -> u8 {
    match surface {
        Surface::Spot => price_scale,
        Surface::Futures => MARK_SCALE,
    }
}

fn closed(instrument: &Instrument) -> Option<Rule> {
    if instrument.symbol.starts_with("TEST") {
        Some(Rule::SymbolTest)
    } else if instrument.status != SymbolStatus::Trading {
        Some(Rule::SymbolStatus)
    } else {
        None
    }
}

/// The listed types that the surface supports. Without a list, all types of the surface.
fn order_type_bits(instrument: &Instrument) -> u16 {
    let listed = if instrument.order_types.is_empty() {
        OrderType::ALL
    } else {
        &instrument.order_types
    };
    let sent = listed
        .iter()
        .filter(|listed| listed.is_sent_on(instrument.surface));
    sent.fold(0, |bits, listed| bits | 1 << listed.code())
}

fn time_in_force_bits(instrument: &Instrument) -> u8 {
    let listed = if instrument.times_in_force.is_empty() {
        TimeInForce::ALL
    } else {
        &instrument.times_in_force
    };
    listed.iter().fold(0, |bits, time| bits | 1 << time.code())
}

/// 0 disables a count, like other filter values.
const fn count_max(limit: Option<u32>) -> u32 {
    match limit {
        None | Some(0) => u32::MAX,
        Some(limit) => limit,
    }
}

fn check_scales(instrument: &Instrument) -> Result<(), InstrumentError> {
    let scales = [
        ("price scale", instrument.price_scale),
        ("quantity scale", instrument.qty_scale),
    ];
    for (field, value) in scales {
        if value > SCALE_MAX {
            return Err(InstrumentError::Scale {
                instrument: instrument.name(),
                field,
                value,
            });
        }
    }
    Ok(())
}

/// Steps are divisors and minimums are subtracted, so none of them may be negative.
fn check_signs(instrument: &Instrument) -> Result<(), InstrumentError> {
    let Filters {
        price,
        lot_size,
        market_lot_size,
        ..
    } = &instrument.filters;
    let price = price.unwrap_or_default();
    let lot = lot_size.unwrap_or_default();
    let market = market_lot_size.unwrap_or_default();
    let (p, q) = (instrument.price_scale, instrument.qty_scale);
    let values = [
        ("PRICE_FILTER.minPrice", price.min_price, p),
        ("PRICE_FILTER.maxPrice", price.max_price, p),
        ("PRICE_FILTER.tickSize", price.tick_size, p),
        ("LOT_SIZE.minQty", lot.min_qty, q),
        ("LOT_SIZE.maxQty", lot.max_qty, q),
        ("LOT_SIZE.stepSize", lot.step_size, q),
        ("MARKET_LOT_SIZE.minQty", market.min_qty, q),
        ("MARKET_LOT_SIZE.maxQty", market.max_qty, q),
        ("MARKET_LOT_SIZE.stepSize", market.step_size, q),
    ];
    for (field, value, scale) in values {
        if value < 0 {
            return Err(InstrumentError::Negative {
                instrument: instrument.name(),
                field,
                value: shown(i128::from(value), scale),
            });
        }
    }
    Ok(())
}

fn percent(instrument: &Instrument) -> Result<Option<Band>, InstrumentError> {
    match instrument.surface {
        Surface::Spot => Ok(None),
        Surface::Futures => percent_around(instrument, MARK_SCALE),
    }
}

/// The multipliers of `PERCENT_PRICE` for a reference price of this scale.
fn percent_around(instrument: &Instrument, scale: u8) -> Result<Option<Band>, InstrumentError> {
    let Some(filter) = instrument.filters.percent_price else {
        return Ok(None);
    };
    let up = ("PERCENT_PRICE.multiplierUp", filter.multiplier_up);
    let down = ("PERCENT_PRICE.multiplierDown", filter.multiplier_down);
    band(instrument, scale, down, up).map(Some)
}

fn by_side(instrument: &Instrument) -> Result<Option<[Band; 2]>, InstrumentError> {
    let Some(filter) = instrument.filters.percent_price_by_side else {
        return Ok(None);
    };
    let scale = reference_scale(instrument.surface, instrument.price_scale);
    let buy = band(
        instrument,
        scale,
        (
            "PERCENT_PRICE_BY_SIDE.bidMultiplierDown",
            filter.bid_multiplier_down,
        ),
        (
            "PERCENT_PRICE_BY_SIDE.bidMultiplierUp",
            filter.bid_multiplier_up,
        ),
    )?;
    let sell = band(
        instrument,
        scale,
        (
            "PERCENT_PRICE_BY_SIDE.askMultiplierDown",
            filter.ask_multiplier_down,
        ),
        (
            "PERCENT_PRICE_BY_SIDE.askMultiplierUp",
            filter.ask_multiplier_up,
        ),
    )?;
    Ok(Some([buy, sell]))
}

/// `|best - mark| <= mark * bound` as a band: from `1 - bound` to `1 + bound` times the mark.
fn take(instrument: &Instrument) -> Result<Option<Band>, InstrumentError> {
    let field = "marketTakeBound";
    let bound = instrument.market_take_bound.unwrap_or_default();
    if bound.is_zero() || instrument.surface == Surface::Spot {
        return Ok(None);
    }
    if bound.is_sign_negative() {
        return Err(negative(instrument, field, bound));
    }
    let down = Decimal::ONE - bound.min(Decimal::ONE);
    match Decimal::ONE.checked_add(bound) {
        Some(up) => band(instrument, MARK_SCALE, (field, down), (field, up)).map(Some),
        None => Err(digits(instrument, field, bound)),
    }
}

fn band(
    instrument: &Instrument,
    reference_scale: u8,
    (down_field, down): (&'static str, Decimal),
    (up_field, up): (&'static str, Decimal),
) -> Result<Band, InstrumentError> {
    let ratio = |field, multiplier: Decimal| {
        if multiplier.is_sign_negative() && !multiplier.is_zero() {
            return Err(negative(instrument, field, multiplier));
        }
        Ratio::new(multiplier, instrument.price_scale, reference_scale)
            .ok_or_else(|| digits(instrument, field, multiplier))
    };
    Ok(Band {
        floor: ratio(down_field, down)?,
        cap: if up.is_zero() {
            None
        } else {
            Some(ratio(up_field, up)?)
        },
    })
}

fn negative(instrument: &Instrument, field: &'static str, value: Decimal) -> InstrumentError {
    InstrumentError::Negative {
        instrument: instrument.name(),
        field,
        value,
    }
}

fn digits(instrument: &Instrument, field: &'static str, value: Decimal) -> InstrumentError {
    InstrumentError::Digits {
        instrument: instrument.name(),
        field,
        value,
    }
}

/// Minimums come first, so that the rejection of a notional that breaks both bounds names the
/// minimum. A bound of 0 is off.
fn notionals(instrument: &Instrument) -> Vec<NotionalBound> {
    let filters = &instrument.filters;
    let notional = filters.notional;
    let bounds = [
        (Rule::MinNotional, true, true, filters.min_notional),
        (
            Rule::NotionalMin,
            true,
            notional.is_some_and(|filter| filter.apply_min_to_market),
            notional.map(|filter| filter.min_notional),
        ),
        (Rule::MaxNotional, false, true, filters.max_notional),
        (
            Rule::NotionalMax,
            false,
            notional.is_some_and(|filter| filter.apply_max_to_market),
            notional.map(|filter| filter.max_notional),
        ),
    ];
    let mut compiled = Vec::new();
    for (rule, minimum, market, amount) in bounds {
        if let Some(amount) = amount.filter(|amount| amount.0 > 0) {
            compiled.push(NotionalBound {
                rule,
                minimum,
                market,
                amount,
                scaled: scaled_amounts(instrument, amount, minimum),
            });
        }
    }
    compiled
}

fn scaled_amounts(instrument: &Instrument, amount: Amount, minimum: bool) -> [i128; 3] {
    let reference = reference_scale(instrument.surface, instrument.price_scale);
    [
        scaled_amount(
            amount,
            instrument.price_scale + instrument.qty_scale,
            minimum,
        ),
        scaled_amount(amount, reference + instrument.qty_scale, minimum),
        amount.0,
    ]
}

/// Converts an amount over 0 to `scale`, rounded up for a minimum and down for a maximum. The
/// result is exactly as strict as the amount, because notionals at that scale are whole numbers. It
/// saturates at the limit of 128 bits, which is beyond every product of two 64-bit numbers.
fn scaled_amount(amount: Amount, scale: u8, minimum: bool) -> i128 {
    if scale >= AMOUNT_SCALE {
        return amount
            .0
            .saturating_mul(i128::from(pow10(scale - AMOUNT_SCALE)));
    }
    let divisor = i128::from(pow10(AMOUNT_SCALE - scale));
    let floor = amount.0 / divisor;
    floor + i128::from(minimum && amount.0 % divisor != 0)
}
