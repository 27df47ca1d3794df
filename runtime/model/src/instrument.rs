//! An instrument's rules from exchange information
//! (docs/interface/market-data.md#exchange-information), as integers in the instrument's own
//! scales.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::decimal::{Amount, Decimal};
use crate::ids::AssetId;
use crate::order::{OrderType, Surface, TimeInForce};

/// Status of a symbol. The symbol accepts orders only in status `Trading`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SymbolStatus {
    /// `TRADING`.
    Trading,
    /// `PENDING_TRADING`, `PRE_SETTLE`, `SETTLING`, `CLOSE`, or an unknown value.
    Other(String),
}

impl fmt::Display for SymbolStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trading => "TRADING",
            Self::Other(word) => word,
        })
    }
}

/// One tradable instrument, named `spot:SYMBOL` or `futures:SYMBOL`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instrument {
    /// Surface.
    pub surface: Surface,
    /// The venue's symbol, upper case.
    pub symbol: String,
    /// Status.
    pub status: SymbolStatus,
    /// Base asset, an index into the table of assets.
    pub base: AssetId,
    /// Quote asset. On futures it is also the margin asset.
    pub quote: AssetId,
    /// Decimal places of price mantissas, enough for `tickSize`, `minPrice` and `maxPrice`.
    pub price_scale: u8,
    /// Decimal places of quantity mantissas, enough for every step and quantity bound.
    pub qty_scale: u8,
    /// `pricePrecision`. The venue rejects a price with more decimals (-1111).
    pub price_precision: Option<u8>,
    /// `quantityPrecision`. The venue rejects a quantity with more decimals (-1111).
    pub qty_precision: Option<u8>,
    /// Filters.
    pub filters: Filters,
    /// `orderTypes` / `OrderType`. Empty if unknown; then all types of the surface are allowed.
    pub order_types: Vec<OrderType>,
    /// `timeInForce`. Empty if unknown; then all values are allowed.
    pub times_in_force: Vec<TimeInForce>,
    /// `triggerProtect`: threshold for `priceProtect`, a fraction.
    #[serde(with = "rust_decimal::serde::str_option")]
    pub trigger_protect: Option<Decimal>,
    /// `marketTakeBound`: the largest distance from the mark price at which a market order may
    /// fill, a fraction.
    #[serde(with = "rust_decimal::serde::str_option")]
    pub market_take_bound: Option<Decimal>,
    /// `liquidationFee`, a fraction.
    #[serde(with = "rust_decimal::serde::str_option")]
    pub liquidation_fee: Option<Decimal>,
}

impl Instrument {
    /// An instrument that trades, has no filters and no bounds, and allows all orders of its
    /// surface. The assets are base and quote, the scales those of prices and quantities.
    pub fn unrestricted(
        surface: Surface,
        symbol: &str,
        [base, quote]: [AssetId; 2],
        [price_scale, qty_scale]: [u8; 2],
    ) -> Self {
        Self {
            surface,
            symbol: symbol.to_owned(),
            status: SymbolStatus::Trading,
            base,
            quote,
            price_scale,
            qty_scale,
            price_precision: None,
            qty_precision: None,
            filters: Filters::default(),
            order_types: Vec::new(),
            times_in_force: Vec::new(),
            trigger_protect: None,
            market_take_bound: None,
            liquidation_fee: None,
        }
    }

    /// `spot:SYMBOL` or `futures:SYMBOL`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.surface, self.symbol)
    }

    /// `price * qty`, rounded half to even to 8 decimals.
    #[inline]
    pub const fn notional(&self, price: i64, qty: i64) -> Amount {
        Amount::notional(price, self.price_scale, qty, self.qty_scale)
    }

    /// A price mantissa as a decimal.
    pub fn price(&self, mantissa: i64) -> Decimal {
        crate::decimal::decimal(i128::from(mantissa), self.price_scale)
    }

    /// A quantity mantissa as a decimal.
    pub fn qty(&self, mantissa: i64) -> Decimal {
        crate::decimal::decimal(i128::from(mantissa), self.qty_scale)
    }
}

/// The filters (docs/interface/orders.md#filters); `None` if exchange information lacks a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filters {
    /// `PRICE_FILTER`.
    pub price: Option<PriceFilter>,
    /// `LOT_SIZE`.
    pub lot_size: Option<LotSize>,
    /// `MARKET_LOT_SIZE`.
    pub market_lot_size: Option<LotSize>,
    /// `MAX_NUM_ORDERS`, `limit`.
    pub max_num_orders: Option<u32>,
    /// `MAX_NUM_ALGO_ORDERS`, `limit`.
    pub max_num_algo_orders: Option<u32>,
    /// `PERCENT_PRICE`.
    pub percent_price: Option<PercentPrice>,
    /// `PERCENT_PRICE_BY_SIDE`.
    pub percent_price_by_side: Option<PercentPriceBySide>,
    /// `MIN_NOTIONAL`: `notional` on futures, `minNotional` on spot.
    pub min_notional: Option<Amount>,
    /// `MAX_NOTIONAL`, `maxNotional`.
    pub max_notional: Option<Amount>,
    /// `NOTIONAL`.
    pub notional: Option<Notional>,
}

impl Filters {
    /// The minimum notional of an order, from either of the two filters that state one.
    pub fn least_notional(&self) -> Option<Amount> {
        let notional = self.notional.map(|filter| filter.min_notional);
        self.min_notional.or(notional)
    }
}

/// `PRICE_FILTER`, as price mantissas. A value of 0 disables its rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceFilter {
    /// `minPrice`.
    pub min_price: i64,
    /// `maxPrice`.
    pub max_price: i64,
    /// `tickSize`.
    pub tick_size: i64,
}

/// `LOT_SIZE` or `MARKET_LOT_SIZE`, as quantity mantissas. A step of 0 disables the step rule, and
/// a maximum of 0 disables the maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LotSize {
    /// `minQty`.
    pub min_qty: i64,
    /// `maxQty`.
    pub max_qty: i64,
    /// `stepSize`.
    pub step_size: i64,
}

/// `PERCENT_PRICE`. The multipliers are fractions of the reference price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PercentPrice {
    /// `multiplierUp`.
    #[serde(with = "rust_decimal::serde::str")]
    pub multiplier_up: Decimal,
    /// `multiplierDown`.
    #[serde(with = "rust_decimal::serde::str")]
    pub multiplier_down: Decimal,
}

/// `PERCENT_PRICE_BY_SIDE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PercentPriceBySide {
    /// `bidMultiplierUp`.
    #[serde(with = "rust_decimal::serde::str")]
    pub bid_multiplier_up: Decimal,
    /// `bidMultiplierDown`.
    #[serde(with = "rust_decimal::serde::str")]
    pub bid_multiplier_down: Decimal,
    /// `askMultiplierUp`.
    #[serde(with = "rust_decimal::serde::str")]
    pub ask_multiplier_up: Decimal,
    /// `askMultiplierDown`.
    #[serde(with = "rust_decimal::serde::str")]
    pub ask_multiplier_down: Decimal,
    /// `avgPriceMins`.
    pub avg_price_mins: u32,
}

/// `NOTIONAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notional {
    /// `minNotional`.
    pub min_notional: Amount,
    /// `maxNotional`; 0 disables the rule.
    pub max_notional: Amount,
    /// `applyMinToMarket`.
    pub apply_min_to_market: bool,
    /// `applyMaxToMarket`.
    pub apply_max_to_market: bool,
    /// `avgPriceMins`.
    pub avg_price_mins: u32,
}
