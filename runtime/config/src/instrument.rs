//! `[[instrument]]`: the rules of an instrument where the recording does not carry them.

use serde::Deserialize;
use windvane_model::decimal::Decimal;

use super::InstrumentName;
use super::value::{positive, positive_option};

/// The rules of one instrument as a person writes them; a rule that is missing does not bind.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstrumentRules {
    /// `spot:SYMBOL` or `futures:SYMBOL`.
    pub name: InstrumentName,
    /// Base asset; without one it is taken from the symbol.
    #[serde(default)]
    pub base: Option<String>,
    /// Quote asset, which on futures is the margin asset; without one it is taken from the symbol.
    #[serde(default)]
    pub quote: Option<String>,
    /// `tickSize`.
    #[serde(deserialize_with = "positive")]
    pub tick: Decimal,
    /// `stepSize` of `LOT_SIZE` and `MARKET_LOT_SIZE`.
    #[serde(deserialize_with = "positive")]
    pub step: Decimal,
    /// `minQty`.
    #[serde(default, deserialize_with = "positive_option")]
    pub min_qty: Option<Decimal>,
    /// `maxQty`.
    #[serde(default, deserialize_with = "positive_option")]
    pub max_qty: Option<Decimal>,
    /// `maxQty` of `MARKET_LOT_SIZE`.
    #[serde(default, deserialize_with = "positive_option")]
    pub max_market_qty: Option<Decimal>,
    /// `minPrice`.
    #[serde(default, deserialize_with = "positive_option")]
    pub min_price: Option<Decimal>,
    /// `maxPrice`.
    #[serde(default, deserialize_with = "positive_option")]
    pub max_price: Option<Decimal>,
    /// `MIN_NOTIONAL`.
    #[serde(default, deserialize_with = "positive_option")]
    pub min_notional: Option<Decimal>,
    /// `MAX_NUM_ORDERS`.
    #[serde(default)]
    pub max_num_orders: Option<u32>,
}
