//! Converts exchange information of both surfaces into [`SymbolRules`]
//! (docs/interface/market-data.md#exchange-information). Unknown fields are ignored. Decimals are
//! taken from the JSON text, whether it has them as text or as numbers.

use serde::Deserialize;
use serde_json::value::RawValue;
use windvane_model::instrument::{PercentPrice, PercentPriceBySide, SymbolStatus};
use windvane_model::{Decimal, Surface};

use crate::symbol_rules::{LotRule, NotionalRule, PriceRule, SymbolRules};
use crate::wire::enums::ContractStatus;
use crate::wire::exchange::{Symbol, SymbolFilter};
use crate::wire::{Exact, Whole, Word};

/// Why exchange information could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeInfoError {
    /// Not JSON, or a field has another type than documented.
    #[error("exchange information: {0}")]
    Json(String),
    /// A filter lacks one of its fields.
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

/// The surface of one entry of `symbols`: only futures entries have a `contractType`.
pub fn surface(entry: &str) -> Result<Surface, ExchangeInfoError> {
    Ok(surface_of(&parse::<Symbol>(entry)?))
}

/// The rules of one entry of `symbols`.
pub fn symbol_rules(entry: &str) -> Result<SymbolRules, ExchangeInfoError> {
    rules(parse::<Symbol>(entry)?)
}

/// Names of the assets in an exchange information response: those in its list of assets, and those
/// of its symbols. The list is empty if the response cannot be parsed.
pub fn assets(answer: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Listed {
        #[serde(default)]
        assets: Vec<Asset>,
        #[serde(default)]
        symbols: Vec<Assets>,
    }
    #[derive(Deserialize)]
    struct Asset {
        asset: String,
    }
    #[derive(Deserialize)]
    struct Assets {
        #[serde(rename = "baseAsset")]
        base: Option<String>,
        #[serde(rename = "quoteAsset")]
        quote: Option<String>,
        #[serde(rename = "marginAsset")]
        margin: Option<String>,
    }
    let Ok(listed) = parse::<Listed>(answer) else {
        return Vec::new();
    };
    let of_symbols = listed.symbols.into_iter();
    let of_symbols = of_symbols.flat_map(|one| [one.base, one.quote, one.margin]);
    let listed = listed.assets.into_iter().map(|one| one.asset);
    listed.chain(of_symbols.flatten()).collect()
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ExchangeInfoError> {
    serde_json::from_str(text).map_err(|error| ExchangeInfoError::Json(error.to_string()))
}

fn surface_of(symbol: &Symbol) -> Surface {
    if symbol.contract_type.is_some() {
        Surface::Futures
    } else {
        Surface::Spot
    }
}

fn rules(entry: Symbol) -> Result<SymbolRules, ExchangeInfoError> {
    let quote = entry.margin_asset.as_ref().unwrap_or(&entry.quote_asset);
    let surface = surface_of(&entry);
    let mut rules = SymbolRules::unknown(surface, &entry.symbol, &entry.base_asset, quote);
    rules.status = match entry.status.or(entry.contract_status) {
        Some(Word::Known(ContractStatus::Trading)) => SymbolStatus::Trading,
        other => SymbolStatus::Other(other.map_or_else(String::new, |word| word.to_string())),
    };
    let small = |value: Option<Whole>| value.and_then(|value| u8::try_from(value.0).ok());
    rules.price_precision = small(entry.price_precision);
    rules.qty_precision = small(entry.quantity_precision);
    // Unknown values are types that the client never sends, so they are left out.
    let types = entry.order_types.or(entry.futures_order_types);
    let types = types.unwrap_or_default().into_iter();
    rules.order_types = types.filter_map(|word| word.known().copied()).collect();
    let times = entry.times_in_force.unwrap_or_default().into_iter();
    rules.times_in_force = times.filter_map(|word| word.known().copied()).collect();
    rules.trigger_protect = entry.trigger_protect.map(|value| value.0);
    rules.market_take_bound = entry.market_take_bound.map(|value| value.0);
    rules.liquidation_fee = entry.liquidation_fee.map(|value| value.0);
    for filter in entry.filters {
        apply(&filter, &mut rules)?;
    }
    Ok(rules)
}

fn apply(filter: &SymbolFilter, rules: &mut SymbolRules) -> Result<(), ExchangeInfoError> {
    let symbol = rules.symbol.clone();
    let need = |field: &'static str, value: Option<Exact>| match value {
        Some(value) => Ok(value.0),
        None => Err(ExchangeInfoError::MissingField {
            symbol: symbol.clone(),
            filter: filter.filter_type.clone(),
            field,
        }),
    };
    let count = |value: Option<Whole>| value.and_then(|value| u32::try_from(value.0).ok());
    match filter.filter_type.as_str() {
        "PRICE_FILTER" => {
            rules.price = Some(PriceRule {
                min: need("minPrice", filter.min_price)?,
                max: need("maxPrice", filter.max_price)?,
                tick: need("tickSize", filter.tick_size)?,
            });
        }
        lot @ ("LOT_SIZE" | "MARKET_LOT_SIZE") => {
            let rule = Some(LotRule {
                min: need("minQty", filter.min_qty)?,
                max: need("maxQty", filter.max_qty)?,
                step: need("stepSize", filter.step_size)?,
            });
            if lot == "LOT_SIZE" {
                rules.lot_size = rule;
            } else {
                rules.market_lot_size = rule;
            }
        }
        "MAX_NUM_ORDERS" => {
            rules.max_num_orders = count(filter.limit.or(filter.max_num_orders));
        }
        "MAX_NUM_ALGO_ORDERS" => {
            rules.max_num_algo_orders = count(filter.limit.or(filter.max_num_algo_orders));
        }
        "PERCENT_PRICE" => {
            rules.percent_price = Some(PercentPrice {
                multiplier_up: need("multiplierUp", filter.multiplier_up)?,
                multiplier_down: need("multiplierDown", filter.multiplier_down)?,
            });
        }
        "PERCENT_PRICE_BY_SIDE" => {
            rules.percent_price_by_side = Some(PercentPriceBySide {
                bid_multiplier_up: need("bidMultiplierUp", filter.bid_multiplier_up)?,
                bid_multiplier_down: need("bidMultiplierDown", filter.bid_multiplier_down)?,
                ask_multiplier_up: need("askMultiplierUp", filter.ask_multiplier_up)?,
                ask_multiplier_down: need("askMultiplierDown", filter.ask_multiplier_down)?,
                avg_price_mins: count(filter.avg_price_mins).unwrap_or(0),
            });
        }
        // Futures use the field `notional`, spot uses `minNotional`.
        "MIN_NOTIONAL" => {
            let value = filter.notional.or(filter.min_notional);
            rules.min_notional = Some(need("notional", value)?);
        }
        "MAX_NOTIONAL" => rules.max_notional = Some(need("maxNotional", filter.max_notional)?),
        "NOTIONAL" => {
            rules.notional = Some(NotionalRule {
                min: need("minNotional", filter.min_notional)?,
                max: filter.max_notional.map_or(Decimal::ZERO, |value| value.0),
                apply_min_to_market: filter.apply_min_to_market.is_none_or(|flag| flag.0),
                apply_max_to_market: filter.apply_max_to_market.is_none_or(|flag| flag.0),
                avg_price_mins: count(filter.avg_price_mins).unwrap_or(0),
            });
        }
        // The documents do not list this filter: the venue applies it.
        _ => {}
    }
    Ok(())
}
