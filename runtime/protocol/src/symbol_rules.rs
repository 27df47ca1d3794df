//! The rules of a symbol as decimals, from any source, and their conversion into an [`Instrument`]
//! with scales that represent all of them exactly.

use windvane_model::decimal::{SCALE_MAX, exact_mantissa};
use windvane_model::instrument::{
    Filters, LotSize, Notional, PercentPrice, PercentPriceBySide, PriceFilter, SymbolStatus,
};
use windvane_model::{Amount, Decimal, Instrument, OrderType, Surface, TimeInForce};

use crate::assets::Assets;

/// All data that exchange information has on a symbol
/// (docs/interface/market-data.md#exchange-information), before scales are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolRules {
    /// Surface.
    pub surface: Surface,
    /// Symbol, upper case.
    pub symbol: String,
    /// Status.
    pub status: SymbolStatus,
    /// `baseAsset`.
    pub base: String,
    /// `quoteAsset`; on futures `marginAsset` where present.
    pub quote: String,
    /// `pricePrecision`.
    pub price_precision: Option<u8>,
    /// `quantityPrecision`.
    pub qty_precision: Option<u8>,
    /// `PRICE_FILTER`.
    pub price: Option<PriceRule>,
    /// `LOT_SIZE`.
    pub lot_size: Option<LotRule>,
    /// `MARKET_LOT_SIZE`.
    pub market_lot_size: Option<LotRule>,
    /// `MAX_NUM_ORDERS`.
    pub max_num_orders: Option<u32>,
    /// `MAX_NUM_ALGO_ORDERS`.
    pub max_num_algo_orders: Option<u32>,
    /// `PERCENT_PRICE`.
    pub percent_price: Option<PercentPrice>,
    /// `PERCENT_PRICE_BY_SIDE`.
    pub percent_price_by_side: Option<PercentPriceBySide>,
    /// `MIN_NOTIONAL`.
    pub min_notional: Option<Decimal>,
    /// `MAX_NOTIONAL`.
    pub max_notional: Option<Decimal>,
    /// `NOTIONAL`.
    pub notional: Option<NotionalRule>,
    /// `orderTypes` / `OrderType`.
    pub order_types: Vec<OrderType>,
    /// `timeInForce`.
    pub times_in_force: Vec<TimeInForce>,
    /// `triggerProtect`.
    pub trigger_protect: Option<Decimal>,
    /// `marketTakeBound`.
    pub market_take_bound: Option<Decimal>,
    /// `liquidationFee`.
    pub liquidation_fee: Option<Decimal>,
}

/// `PRICE_FILTER`; 0 disables a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriceRule {
    /// `minPrice`.
    pub min: Decimal,
    /// `maxPrice`.
    pub max: Decimal,
    /// `tickSize`.
    pub tick: Decimal,
}

/// `LOT_SIZE` or `MARKET_LOT_SIZE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LotRule {
    /// `minQty`.
    pub min: Decimal,
    /// `maxQty`; 0 means no maximum.
    pub max: Decimal,
    /// `stepSize`.
    pub step: Decimal,
}

/// `NOTIONAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotionalRule {
    /// `minNotional`.
    pub min: Decimal,
    /// `maxNotional`; 0 means no maximum.
    pub max: Decimal,
    /// `applyMinToMarket`.
    pub apply_min_to_market: bool,
    /// `applyMaxToMarket`.
    pub apply_max_to_market: bool,
    /// `avgPriceMins`.
    pub avg_price_mins: u32,
}

/// Why the rules cannot form an instrument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// More decimals than a scale may have.
    #[error("{symbol}: {what} {value} has more than {SCALE_MAX} decimal places")]
    TooFine {
        /// Symbol.
        symbol: String,
        /// The name of the rule.
        what: &'static str,
        /// Its value.
        value: Decimal,
    },
    /// A bound that does not fit in 64 bits at the instrument's scale.
    #[error("{symbol}: {what} {value} leaves 64 bits at {scale} decimal places")]
    TooLarge {
        /// Symbol.
        symbol: String,
        /// The name of the rule.
        what: &'static str,
        /// Its value.
        value: Decimal,
        /// The scale.
        scale: u8,
    },
    /// More decimals than the scales of the current run have.
    #[error(
        "{symbol}: {what} {value} has more than {scale} decimal places, in which this run counts: \
         restart it to trade by the new rules"
    )]
    Finer {
        /// Symbol.
        symbol: String,
        /// The name of the rule.
        what: &'static str,
        /// Its value.
        value: Decimal,
        /// The scale.
        scale: u8,
    },
    /// A negative rule.
    #[error("{symbol}: {what} {value} must not be negative")]
    Negative {
        /// Symbol.
        symbol: String,
        /// The name of the rule.
        what: &'static str,
        /// Its value.
        value: Decimal,
    },
}

impl SymbolRules {
    /// A symbol that trades and whose rules are not known.
    pub fn unknown(surface: Surface, symbol: &str, base: &str, quote: &str) -> Self {
        Self {
            surface,
            symbol: symbol.to_owned(),
            status: SymbolStatus::Trading,
            base: base.to_owned(),
            quote: quote.to_owned(),
            price_precision: None,
            qty_precision: None,
            price: None,
            lot_size: None,
            market_lot_size: None,
            max_num_orders: None,
            max_num_algo_orders: None,
            percent_price: None,
            percent_price_by_side: None,
            min_notional: None,
            max_notional: None,
            notional: None,
            order_types: Vec::new(),
            times_in_force: Vec::new(),
            trigger_protect: None,
            market_take_bound: None,
            liquidation_fee: None,
        }
    }

    /// The instrument, with the smallest scales that represent every price rule and every quantity
    /// rule.
    pub fn instrument(&self, assets: &mut Assets) -> Result<Instrument, RulesError> {
        self.instrument_for(Decimal::ZERO, Decimal::ZERO, assets)
    }

    /// Like [`Self::instrument`], with scales that also represent market data of these steps.
    /// Venues publish quantities that are finer than the step of an order.
    pub fn instrument_for(
        &self,
        price_step: Decimal,
        qty_step: Decimal,
        assets: &mut Assets,
    ) -> Result<Instrument, RulesError> {
        let prices = self.price.map(|rule| {
            [
                ("minPrice", rule.min),
                ("maxPrice", rule.max),
                ("tickSize", rule.tick),
            ]
        });
        let lots = [self.lot_size, self.market_lot_size].into_iter().flatten();
        let qtys = lots.flat_map(|rule| {
            [
                ("minQty", rule.min),
                ("maxQty", rule.max),
                ("stepSize", rule.step),
            ]
        });
        let prices = prices.into_iter().flatten();
        let price_scale = self.scale(prices.chain([("price", price_step)]))?;
        let qty_scale = self.scale(qtys.chain([("quantity", qty_step)]))?;
        Ok(Instrument {
            surface: self.surface,
            symbol: self.symbol.clone(),
            status: self.status.clone(),
            base: assets.id(&self.base),
            quote: assets.id(&self.quote),
            price_scale,
            qty_scale,
            price_precision: self.price_precision,
            qty_precision: self.qty_precision,
            filters: self.filters(price_scale, qty_scale)?,
            order_types: self.order_types.clone(),
            times_in_force: self.times_in_force.clone(),
            trigger_protect: self.trigger_protect,
            market_take_bound: self.market_take_bound,
            liquidation_fee: self.liquidation_fee,
        })
    }

    /// The instrument `known` under these rules. It keeps its scales and assets.
    ///
    /// # Errors
    /// A rule needs more decimals than these scales have, or it is negative or too large.
    pub fn at_scales_of(&self, known: &Instrument) -> Result<Instrument, RulesError> {
        let (price_scale, qty_scale) = (known.price_scale, known.qty_scale);
        let price = self.price.map(|rule| ("tickSize", rule.tick, price_scale));
        let lots = [self.lot_size, self.market_lot_size].into_iter().flatten();
        let steps = lots.map(|rule| ("stepSize", rule.step, qty_scale));
        for (what, value, scale) in price.into_iter().chain(steps) {
            if value.normalize().scale() > u32::from(scale) {
                return Err(RulesError::Finer {
                    symbol: self.symbol.clone(),
                    what,
                    value,
                    scale,
                });
            }
        }
        Ok(Instrument {
            status: self.status.clone(),
            price_precision: self.price_precision,
            qty_precision: self.qty_precision,
            filters: self.filters(price_scale, qty_scale)?,
            order_types: self.order_types.clone(),
            times_in_force: self.times_in_force.clone(),
            trigger_protect: self.trigger_protect,
            market_take_bound: self.market_take_bound,
            liquidation_fee: self.liquidation_fee,
            ..known.clone()
        })
    }

    fn filters(&self, price_scale: u8, qty_scale: u8) -> Result<Filters, RulesError> {
        let price = |what, value| self.mantissa(what, value, price_scale);
        let qty = |what, value| self.mantissa(what, value, qty_scale);
        let lot = |rule: Option<LotRule>| {
            let Some(rule) = rule else { return Ok(None) };
            Ok(Some(LotSize {
                min_qty: qty("minQty", rule.min)?,
                max_qty: qty("maxQty", rule.max)?,
                step_size: qty("stepSize", rule.step)?,
            }))
        };
        let price_filter = match self.price {
            Some(rule) => Some(PriceFilter {
                min_price: price("minPrice", rule.min)?,
                max_price: price("maxPrice", rule.max)?,
                tick_size: price("tickSize", rule.tick)?,
            }),
            None => None,
        };
        let notional = match self.notional {
            Some(rule) => Some(Notional {
                min_notional: self.amount("minNotional", rule.min)?,
                max_notional: self.amount("maxNotional", rule.max)?,
                apply_min_to_market: rule.apply_min_to_market,
                apply_max_to_market: rule.apply_max_to_market,
                avg_price_mins: rule.avg_price_mins,
            }),
            None => None,
        };
        let amount = |what, value: Option<Decimal>| value.map(|v| self.amount(what, v)).transpose();
        Ok(Filters {
            price: price_filter,
            lot_size: lot(self.lot_size)?,
            market_lot_size: lot(self.market_lot_size)?,
            max_num_orders: self.max_num_orders,
            max_num_algo_orders: self.max_num_algo_orders,
            percent_price: self.percent_price,
            percent_price_by_side: self.percent_price_by_side,
            min_notional: amount("minNotional", self.min_notional)?,
            max_notional: amount("maxNotional", self.max_notional)?,
            notional,
        })
    }

    fn scale(
        &self,
        values: impl Iterator<Item = (&'static str, Decimal)>,
    ) -> Result<u8, RulesError> {
        let mut scale = 0;
        for (what, value) in values {
            let needed = value.normalize().scale();
            if needed > u32::from(SCALE_MAX) {
                let symbol = self.symbol.clone();
                return Err(RulesError::TooFine {
                    symbol,
                    what,
                    value,
                });
            }
            scale = scale.max(needed as u8);
        }
        Ok(scale)
    }

    fn mantissa(&self, what: &'static str, value: Decimal, scale: u8) -> Result<i64, RulesError> {
        let symbol = || self.symbol.clone();
        if value.is_sign_negative() && !value.is_zero() {
            let symbol = symbol();
            return Err(RulesError::Negative {
                symbol,
                what,
                value,
            });
        }
        exact_mantissa(value, scale).ok_or_else(|| RulesError::TooLarge {
            symbol: symbol(),
            what,
            value,
            scale,
        })
    }

    fn amount(&self, what: &'static str, value: Decimal) -> Result<Amount, RulesError> {
        Amount::from_decimal(value).ok_or_else(|| RulesError::TooLarge {
            symbol: self.symbol.clone(),
            what,
            value,
            scale: windvane_model::decimal::AMOUNT_SCALE,
        })
    }
}
