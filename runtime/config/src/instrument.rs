//! `[[instrument]]`: the order rules of an instrument, for recordings that do not contain them.

use serde::Deserialize;
use windvane_model::decimal::Decimal;

use super::InstrumentName;
use super::value::{positive, positive_option};

/// The rules of one instrument in the configuration. A missing rule sets no limit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstrumentRules {
    /// `spot:SYMBOL` or `futures:SYMBOL`.
    pub name: InstrumentName,
    /// Base asset. If it is missing, it is derived from the symbol.
    #[serde(default)]
    pub base: Option<String>,
    /// Quote asset; on futures it is also the margin asset. If it is missing, it is derived from
    /// the symbol.
    #[serde(default)]
    pub quote: Option<String>,
    /// `tickSize` of the exchange information: prices are multiples of it.
    #[serde(deserialize_with = "positive")]
    pub tick: Decimal,
    /// `stepSize` of `LOT_SIZE` and `MARKET_LOT_SIZE`: quantities are multiples of it.
    #[serde(deserialize_with = "positive")]
    pub step: Decimal,
    /// `minQty` of `LOT_SIZE`.
    #[serde(default, deserialize_with = "positive_option")]
    pub min_qty: Option<Decimal>,
    /// `maxQty` of `LOT_SIZE`.
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
    /// `MIN_NOTIONAL`: the smallest price times quantity of an order.
    #[serde(default, deserialize_with = "positive_option")]
    pub min_notional: Option<Decimal>,
    /// `MAX_NUM_ORDERS`: the largest number of open orders.
    #[serde(default)]
    pub max_num_orders: Option<u32>,
}
