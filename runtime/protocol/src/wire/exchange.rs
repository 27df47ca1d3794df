//! Exchange information of both surfaces as a record
//! (docs/interface/market-data.md#exchange-information). [`crate::exchange_info`] converts the
//! filters into rules.

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::value::RawValue;
use windvane_model::{OrderType, TimeInForce};

use super::enums::{ContractStatus, ContractType, RateLimitInterval, RateLimitType};
use super::fields::record;
use super::scalar::{Exact, Flag, Json, Whole, Word};

record! {
    /// Exchange information.
    ExchangeInfo {
        timezone?: String = "timezone",
        /// Milliseconds. Ignore it on futures; the time route has the right time.
        server_time?: Whole = "serverTime",
        /// The current limits.
        rate_limits: Vec<RateLimit> = "rateLimits",
        /// Empty: the exchange as a whole has no filters.
        exchange_filters?: Vec<Json> = "exchangeFilters",
        assets?: Vec<Asset> = "assets",
        symbols: Vec<Symbol> = "symbols",
    }
}

record! {
    /// One limit: `limit` requests per `intervalNum` times `interval`.
    RateLimit {
        limit_type: Word<RateLimitType> = "rateLimitType",
        interval: Word<RateLimitInterval> = "interval",
        interval_num: Whole = "intervalNum",
        limit: Whole = "limit",
    }
}

impl RateLimit {
    /// The interval in milliseconds; `None` if its unit is unknown.
    pub fn interval_ms(&self) -> Option<i64> {
        let unit_ms = match self.interval.known()? {
            RateLimitInterval::Second => 1_000,
            RateLimitInterval::Minute => 60_000,
            RateLimitInterval::Hour => 3_600_000,
            RateLimitInterval::Day => 86_400_000,
        };
        self.interval_num.checked_mul(unit_ms)
    }
}

record! {
    /// One asset.
    Asset {
        asset: String = "asset",
        /// Futures: usable as margin in multi-assets mode.
        margin_available?: Flag = "marginAvailable",
        /// Futures: threshold of the automatic exchange in multi-assets mode.
        auto_asset_exchange?: Exact = "autoAssetExchange",
    }
}

record! {
    /// One symbol of either surface. Fields that only one surface has are optional.
    Symbol {
        symbol: String = "symbol",
        /// Futures.
        pair?: String = "pair",
        /// Futures.
        contract_type?: Word<ContractType> = "contractType",
        /// Futures; milliseconds.
        delivery_date?: Whole = "deliveryDate",
        /// Futures; milliseconds.
        onboard_date?: Whole = "onboardDate",
        status?: Word<ContractStatus> = "status",
        /// Futures; may replace `status`.
        contract_status?: Word<ContractStatus> = "contractStatus",
        /// Futures; ignore it.
        maint_margin_percent?: Exact = "maintMarginPercent",
        /// Futures; ignore it.
        required_margin_percent?: Exact = "requiredMarginPercent",
        base_asset: String = "baseAsset",
        quote_asset: String = "quoteAsset",
        /// Futures.
        margin_asset?: String = "marginAsset",
        /// Not the tick size.
        price_precision?: Whole = "pricePrecision",
        /// Not the step size.
        quantity_precision?: Whole = "quantityPrecision",
        base_asset_precision?: Whole = "baseAssetPrecision",
        quote_precision?: Whole = "quotePrecision",
        /// Futures.
        underlying_type?: String = "underlyingType",
        /// Futures.
        underlying_sub_type?: Vec<String> = "underlyingSubType",
        /// Futures.
        settle_plan?: Whole = "settlePlan",
        /// Futures: threshold of `priceProtect`.
        trigger_protect?: Exact = "triggerProtect",
        #[serde(default, deserialize_with = "filters")]
        filters: Vec<SymbolFilter> = "filters",
        /// Spot.
        order_types?: Vec<Word<OrderType>> = "orderTypes",
        /// The futures spelling of `orderTypes`.
        futures_order_types?: Vec<Word<OrderType>> = "OrderType",
        times_in_force?: Vec<Word<TimeInForce>> = "timeInForce",
        /// Futures.
        liquidation_fee?: Exact = "liquidationFee",
        /// Futures: how far from the mark price a market order may trade.
        market_take_bound?: Exact = "marketTakeBound",
        /// Spot.
        oco_allowed?: Flag = "ocoAllowed",
    }
}

record! {
    /// One filter, with the fields of all filter types.
    SymbolFilter {
        filter_type: String = "filterType",
        /// `PRICE_FILTER`; 0 means no bound.
        min_price?: Exact = "minPrice",
        /// `PRICE_FILTER`; 0 means no bound.
        max_price?: Exact = "maxPrice",
        /// `PRICE_FILTER`; 0 allows any price.
        tick_size?: Exact = "tickSize",
        /// `LOT_SIZE`, `MARKET_LOT_SIZE`.
        min_qty?: Exact = "minQty",
        /// `LOT_SIZE`, `MARKET_LOT_SIZE`.
        max_qty?: Exact = "maxQty",
        /// `LOT_SIZE`, `MARKET_LOT_SIZE`.
        step_size?: Exact = "stepSize",
        /// `MAX_NUM_ORDERS`, `MAX_NUM_ALGO_ORDERS`.
        limit?: Whole = "limit",
        /// `MAX_NUM_ORDERS`: some services of this kind send it instead of `limit`, or with it.
        max_num_orders?: Whole = "maxNumOrders",
        /// `MAX_NUM_ALGO_ORDERS`: some services of this kind send it instead of `limit`, or with
        /// it.
        max_num_algo_orders?: Whole = "maxNumAlgoOrders",
        /// `MIN_NOTIONAL` of futures.
        notional?: Exact = "notional",
        /// `MIN_NOTIONAL` and `NOTIONAL` of spot.
        min_notional?: Exact = "minNotional",
        /// `MAX_NOTIONAL`, `NOTIONAL`.
        max_notional?: Exact = "maxNotional",
        /// `NOTIONAL`, `PERCENT_PRICE_BY_SIDE`.
        avg_price_mins?: Whole = "avgPriceMins",
        /// `NOTIONAL`.
        apply_min_to_market?: Flag = "applyMinToMarket",
        /// `NOTIONAL`.
        apply_max_to_market?: Flag = "applyMaxToMarket",
        /// `PERCENT_PRICE`.
        multiplier_up?: Exact = "multiplierUp",
        /// `PERCENT_PRICE`.
        multiplier_down?: Exact = "multiplierDown",
        /// `PERCENT_PRICE`, `PERCENT_PRICE_BY_SIDE`.
        multiplier_decimal?: Exact = "multiplierDecimal",
        /// `PERCENT_PRICE_BY_SIDE`.
        bid_multiplier_up?: Exact = "bidMultiplierUp",
        /// `PERCENT_PRICE_BY_SIDE`.
        ask_multiplier_up?: Exact = "askMultiplierUp",
        /// `PERCENT_PRICE_BY_SIDE`.
        bid_multiplier_down?: Exact = "bidMultiplierDown",
        /// `PERCENT_PRICE_BY_SIDE`.
        ask_multiplier_down?: Exact = "askMultiplierDown",
    }
}

/// The filter types whose fields are parsed.
const FILTER_TYPES: [&str; 8] = [
    "PRICE_FILTER",
    "LOT_SIZE",
    "MARKET_LOT_SIZE",
    "MAX_NUM_ORDERS",
    "MAX_NUM_ALGO_ORDERS",
    "MIN_NOTIONAL",
    "MAX_NOTIONAL",
    "NOTIONAL",
];

/// Parses filters. If no document lists a filter's type, only the type is parsed: its other fields
/// may share names with known fields but mean something else.
fn filters<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SymbolFilter>, D::Error> {
    #[derive(serde::Deserialize, serde::Serialize)]
    struct TypeAlone {
        #[serde(rename = "filterType")]
        filter_type: String,
    }
    let rows = Vec::<Box<RawValue>>::deserialize(deserializer)?;
    let read = |row: Box<RawValue>| {
        let own: TypeAlone = serde_json::from_str(row.get())?;
        let is_known = own.filter_type.starts_with("PERCENT_PRICE")
            || FILTER_TYPES.contains(&own.filter_type.as_str());
        if is_known {
            return serde_json::from_str(row.get());
        }
        serde_json::to_string(&own).and_then(|text| serde_json::from_str(&text))
    };
    let rows = rows.into_iter().map(read);
    rows.collect::<Result<_, serde_json::Error>>()
        .map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_with_an_unknown_filter_type_is_parsed() {
        let text = r#"{"symbol":"BTCUSDT","status":"TRADING","baseAsset":"BTC","quoteAsset":"USDT",
            "filters":[{"filterType":"POSITION_RISK_CONTROL","limit":"none"},
            {"filterType":"MAX_NUM_ORDERS","limit":200}]}"#;
        let symbol: Symbol = serde_json::from_str(text).unwrap();
        let limits: Vec<_> = symbol.filters.iter().map(|filter| filter.limit).collect();
        assert_eq!(limits, [None, Some(Whole(200))]);
        let wrong = text.replace(":200", ":\"x\"");
        assert!(serde_json::from_str::<Symbol>(&wrong).is_err());
    }
}
