//! Exchange information of both surfaces as a record (spec 1, Symbol rules; spec 2, Exchange
//! information). What the filters demand of an order is in [`crate::exchange_info`].

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::value::RawValue;
use windvane_model::{OrderType, TimeInForce};

use super::fields::record;
use super::scalar::{Exact, Flag, Json, Whole, Word};
use super::words::{ContractStatus, ContractType, RateLimitInterval, RateLimitType};

record! {
    /// Exchange information.
    ExchangeInfo {
        timezone?: String = "timezone",
        /// Milliseconds; futures: to be ignored, the time route has it.
        server_time?: Whole = "serverTime",
        /// The limits in force.
        rate_limits: Vec<RateLimit> = "rateLimits",
        /// Empty: there are no filters of the whole exchange.
        exchange_filters?: Vec<Json> = "exchangeFilters",
        assets?: Vec<Asset> = "assets",
        symbols: Vec<Symbol> = "symbols",
    }
}

record! {
    /// One limit: `limit` in every `intervalNum` times `interval`.
    RateLimit {
        limit_type: Word<RateLimitType> = "rateLimitType",
        interval: Word<RateLimitInterval> = "interval",
        interval_num: Whole = "intervalNum",
        limit: Whole = "limit",
    }
}

impl RateLimit {
    /// The interval in milliseconds; `None` where its word is not known.
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
    /// One symbol of either surface; what only one of them has is optional.
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
        /// Futures, where it stands for `status`.
        contract_status?: Word<ContractStatus> = "contractStatus",
        /// Futures; to be ignored.
        maint_margin_percent?: Exact = "maintMarginPercent",
        /// Futures; to be ignored.
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
        /// Futures spell it so.
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
    /// One filter, with the fields of all of them.
    SymbolFilter {
        filter_type: String = "filterType",
        /// `PRICE_FILTER`; 0: no bound.
        min_price?: Exact = "minPrice",
        /// `PRICE_FILTER`; 0: no bound.
        max_price?: Exact = "maxPrice",
        /// `PRICE_FILTER`; 0: any.
        tick_size?: Exact = "tickSize",
        /// `LOT_SIZE`, `MARKET_LOT_SIZE`.
        min_qty?: Exact = "minQty",
        /// `LOT_SIZE`, `MARKET_LOT_SIZE`.
        max_qty?: Exact = "maxQty",
        /// `LOT_SIZE`, `MARKET_LOT_SIZE`.
        step_size?: Exact = "stepSize",
        /// `MAX_NUM_ORDERS`, `MAX_NUM_ALGO_ORDERS`.
        limit?: Whole = "limit",
        /// `MAX_NUM_ORDERS`, as services of this shape spell `limit` too, or beside it.
        max_num_orders?: Whole = "maxNumOrders",
        /// `MAX_NUM_ALGO_ORDERS`, likewise.
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

/// The types of filters whose fields are read.
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

/// Filters. Of a filter whose type no document names only the type is read: its other fields may
/// have the names of known fields and mean something else.
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
    fn a_filter_of_an_unknown_type_costs_no_symbol() {
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
