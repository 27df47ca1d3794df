//! Exchange information of both surfaces to [`SymbolRules`] (spec 1, Symbol rules; spec 2,
//! Exchange information). Unknown fields are ignored; decimals come from the JSON text, written
//! as text or as numbers.

use std::str::FromStr;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use windvane_engine::instrument::{PercentPrice, PercentPriceBySide, SymbolStatus};
use windvane_engine::{Decimal, OrderType, Surface, TimeInForce};

use crate::symbol_rules::{LotRule, NotionalRule, PriceRule, SymbolRules};

/// Why exchange information could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeInfoError {
    /// Not JSON, or a field of another type than documented.
    #[error("exchange information: {0}")]
    Json(String),
    /// A filter without one of its fields.
    #[error("exchange information of {symbol}: {filter} without {field:?}")]
    MissingField {
        /// Symbol.
        symbol: String,
        /// Type of the filter.
        filter: String,
        /// The absent field.
        field: &'static str,
    },
}

#[derive(Deserialize)]
struct Listing<'a> {
    #[serde(borrow)]
    symbols: Vec<&'a RawValue>,
}

/// Symbol and JSON text of every entry of `symbols`, for [`symbol_rules`].
pub fn entries(text: &str) -> Result<Vec<(String, &str)>, ExchangeInfoError> {
    #[derive(Deserialize)]
    struct Name {
        symbol: String,
    }
    let listing: Listing<'_> = parse(text)?;
    let named = |entry: &&'_ RawValue| parse::<Name>(entry.get()).map(|name| name.symbol);
    let mut entries = Vec::with_capacity(listing.symbols.len());
    for entry in listing.symbols {
        entries.push((named(&entry)?, entry.get()));
    }
    Ok(entries)
}

/// The surface of one entry of `symbols`: a `contractType` is of futures only.
pub fn surface(entry: &str) -> Result<Surface, ExchangeInfoError> {
    Ok(parse::<Entry>(entry)?.surface())
}

/// The rules of one entry of `symbols`.
pub fn symbol_rules(entry: &str) -> Result<SymbolRules, ExchangeInfoError> {
    parse::<Entry>(entry)?.rules()
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ExchangeInfoError> {
    serde_json::from_str(text).map_err(|error| ExchangeInfoError::Json(error.to_string()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    symbol: String,
    status: Option<String>,
    contract_status: Option<String>,
    contract_type: Option<String>,
    base_asset: String,
    quote_asset: String,
    margin_asset: Option<String>,
    price_precision: Option<Exact>,
    quantity_precision: Option<Exact>,
    #[serde(default)]
    filters: Vec<Filter>,
    #[serde(default, alias = "OrderType")]
    order_types: Vec<String>,
    #[serde(default)]
    time_in_force: Vec<String>,
    trigger_protect: Option<Exact>,
    market_take_bound: Option<Exact>,
    liquidation_fee: Option<Exact>,
}

/// Every field of every filter.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Filter {
    #[serde(rename = "filterType")]
    kind: String,
    min_price: Option<Exact>,
    max_price: Option<Exact>,
    tick_size: Option<Exact>,
    min_qty: Option<Exact>,
    max_qty: Option<Exact>,
    step_size: Option<Exact>,
    #[serde(alias = "maxNumOrders", alias = "maxNumAlgoOrders")]
    limit: Option<Exact>,
    notional: Option<Exact>,
    min_notional: Option<Exact>,
    max_notional: Option<Exact>,
    apply_min_to_market: Option<bool>,
    apply_max_to_market: Option<bool>,
    avg_price_mins: Option<Exact>,
    multiplier_up: Option<Exact>,
    multiplier_down: Option<Exact>,
    bid_multiplier_up: Option<Exact>,
    bid_multiplier_down: Option<Exact>,
    ask_multiplier_up: Option<Exact>,
    ask_multiplier_down: Option<Exact>,
}

/// A decimal read from the JSON text itself, in quotes or not.
struct Exact(Decimal);

impl<'de> Deserialize<'de> for Exact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        let text = raw.get().trim_matches('"');
        let value = if text.contains(['e', 'E']) {
            Decimal::from_scientific(text)
        } else {
            Decimal::from_str_exact(text).or_else(|_| Decimal::from_str(text))
        };
        value
            .map(Self)
            .map_err(|error| serde::de::Error::custom(format!("{text:?} is no decimal: {error}")))
    }
}

impl Entry {
    fn surface(&self) -> Surface {
        if self.contract_type.is_some() {
            Surface::Futures
        } else {
            Surface::Spot
        }
    }

    fn rules(self) -> Result<SymbolRules, ExchangeInfoError> {
        let quote = self.margin_asset.as_ref().unwrap_or(&self.quote_asset);
        let mut rules = SymbolRules::unknown(self.surface(), &self.symbol, &self.base_asset, quote);
        rules.status = match self.status.or(self.contract_status).as_deref() {
            Some("TRADING") => SymbolStatus::Trading,
            other => SymbolStatus::Other(other.unwrap_or_default().to_owned()),
        };
        let small = |value: Option<Exact>| value.and_then(|value| u8::try_from(value.0).ok());
        rules.price_precision = small(self.price_precision);
        rules.qty_precision = small(self.quantity_precision);
        // Words that we do not know are types that we never send.
        let types = self.order_types.iter();
        rules.order_types = types
            .filter_map(|word| OrderType::from_text(word))
            .collect();
        let times = self.time_in_force.iter();
        rules.times_in_force = times
            .filter_map(|word| TimeInForce::from_text(word))
            .collect();
        rules.trigger_protect = self.trigger_protect.map(|value| value.0);
        rules.market_take_bound = self.market_take_bound.map(|value| value.0);
        rules.liquidation_fee = self.liquidation_fee.map(|value| value.0);
        for filter in self.filters {
            filter.apply(&mut rules)?;
        }
        Ok(rules)
    }
}

impl Filter {
    fn apply(self, rules: &mut SymbolRules) -> Result<(), ExchangeInfoError> {
        let (symbol, filter) = (rules.symbol.clone(), self.kind.clone());
        let need = |field: &'static str, value: Option<Exact>| match value {
            Some(value) => Ok(value.0),
            None => Err(ExchangeInfoError::MissingField {
                symbol: symbol.clone(),
                filter: filter.clone(),
                field,
            }),
        };
        let count = |value: Option<Exact>| value.and_then(|value| u32::try_from(value.0).ok());
        match self.kind.as_str() {
            "PRICE_FILTER" => {
                rules.price = Some(PriceRule {
                    min: need("minPrice", self.min_price)?,
                    max: need("maxPrice", self.max_price)?,
                    tick: need("tickSize", self.tick_size)?,
                });
            }
            lot @ ("LOT_SIZE" | "MARKET_LOT_SIZE") => {
                let rule = Some(LotRule {
                    min: need("minQty", self.min_qty)?,
                    max: need("maxQty", self.max_qty)?,
                    step: need("stepSize", self.step_size)?,
                });
                if lot == "LOT_SIZE" {
                    rules.lot_size = rule;
                } else {
                    rules.market_lot_size = rule;
                }
            }
            "MAX_NUM_ORDERS" => rules.max_num_orders = count(self.limit),
            "MAX_NUM_ALGO_ORDERS" => rules.max_num_algo_orders = count(self.limit),
            "PERCENT_PRICE" => {
                rules.percent_price = Some(PercentPrice {
                    multiplier_up: need("multiplierUp", self.multiplier_up)?,
                    multiplier_down: need("multiplierDown", self.multiplier_down)?,
                });
            }
            "PERCENT_PRICE_BY_SIDE" => {
                rules.percent_price_by_side = Some(PercentPriceBySide {
                    bid_multiplier_up: need("bidMultiplierUp", self.bid_multiplier_up)?,
                    bid_multiplier_down: need("bidMultiplierDown", self.bid_multiplier_down)?,
                    ask_multiplier_up: need("askMultiplierUp", self.ask_multiplier_up)?,
                    ask_multiplier_down: need("askMultiplierDown", self.ask_multiplier_down)?,
                    avg_price_mins: count(self.avg_price_mins).unwrap_or(0),
                });
            }
            // Futures spell the field `notional`, spot `minNotional`.
            "MIN_NOTIONAL" => {
                let value = self.notional.or(self.min_notional);
                rules.min_notional = Some(need("notional", value)?);
            }
            "MAX_NOTIONAL" => rules.max_notional = Some(need("maxNotional", self.max_notional)?),
            "NOTIONAL" => {
                rules.notional = Some(NotionalRule {
                    min: need("minNotional", self.min_notional)?,
                    max: self.max_notional.map_or(Decimal::ZERO, |value| value.0),
                    apply_min_to_market: self.apply_min_to_market.unwrap_or(true),
                    apply_max_to_market: self.apply_max_to_market.unwrap_or(true),
                    avg_price_mins: count(self.avg_price_mins).unwrap_or(0),
                });
            }
            // A filter that the documents do not know: the venue judges by it.
            _ => {}
        }
        Ok(())
    }
}
