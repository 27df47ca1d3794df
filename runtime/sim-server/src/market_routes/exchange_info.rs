//! Exchange information of both surfaces, built from the instruments' rules.

use windvane_model::instrument::{Filters, LotSize, SymbolStatus};
use windvane_model::{Amount, Instrument, Surface};

use super::request::Request;
use crate::json::{Json, Quoted, list};
use windvane_sim_market::Symbol;
use windvane_sim_market::fixed::Fixed;

/// Decimals of the balances of base and quote asset.
const ASSET_PRECISION: u8 = 8;
/// Start of the perpetual contracts: 2024-01-01.
const ONBOARD_MS: i64 = 1_704_067_200_000;
/// The date that services of this kind use for contracts without an end: 2100-12-25.
const DELIVERY_MS: i64 = 4_133_404_800_000;

pub(super) fn answer(request: &Request<'_>) -> String {
    let board = request.board;
    let symbols: Vec<&Symbol> = board.of(request.surface).collect();
    let mut names: Vec<&str> = Vec::new();
    for symbol in &symbols {
        for asset in [symbol.instrument.base, symbol.instrument.quote] {
            let name = board.asset(asset);
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let asset = |name: &&str| match request.surface {
        Surface::Spot => Json::new().text("asset", name).end(),
        Surface::Futures => Json::new()
            .text("asset", name)
            .plain("marginAvailable", *name == "USDT")
            .plain("autoAssetExchange", "null")
            .end(),
    };
    let entry = |symbol: &&Symbol| {
        let instrument = &symbol.instrument;
        let base = board.asset(instrument.base);
        let quote = board.asset(instrument.quote);
        match request.surface {
            Surface::Spot => spot(instrument, base, quote),
            Surface::Futures => futures(instrument, base, quote),
        }
    };
    Json::with_capacity(16 * 1024)
        .text("timezone", "UTC")
        .plain("serverTime", request.call.now_ms)
        .plain("rateLimits", rate_limits(request))
        .plain("exchangeFilters", "[]")
        .list("assets", names.iter().map(asset))
        .list("symbols", symbols.iter().map(entry))
        .end()
}

fn rate_limits(request: &Request<'_>) -> String {
    let rules = request.limits.rules(request.call.route.surface);
    list(rules.iter().map(|rule| {
        Json::new()
            .text("rateLimitType", rule.rate_limit_type)
            .text("interval", rule.interval)
            .plain("intervalNum", rule.interval_num)
            .plain("limit", rule.limit)
            .end()
    }))
}

fn status(instrument: &Instrument) -> &str {
    match &instrument.status {
        SymbolStatus::Trading => "TRADING",
        SymbolStatus::Other(word) => word,
    }
}

fn spot(instrument: &Instrument, base: &str, quote: &str) -> String {
    Json::new()
        .text("symbol", &instrument.symbol)
        .text("status", status(instrument))
        .text("baseAsset", base)
        .text("quoteAsset", quote)
        .plain("pricePrecision", price_precision(instrument))
        .plain("quantityPrecision", qty_precision(instrument))
        .plain("baseAssetPrecision", ASSET_PRECISION)
        .plain("quotePrecision", ASSET_PRECISION)
        .list("orderTypes", quoted_values(&instrument.order_types))
        .list("timeInForce", quoted_values(&instrument.times_in_force))
        .plain("ocoAllowed", false)
        .plain("filters", filters(instrument))
        .end()
}

fn futures(instrument: &Instrument, base: &str, quote: &str) -> String {
    let or_zero = |value: Option<windvane_model::Decimal>| value.unwrap_or_default();
    Json::new()
        .text("symbol", &instrument.symbol)
        .text("pair", &instrument.symbol)
        .text("contractType", "PERPETUAL")
        .plain("deliveryDate", DELIVERY_MS)
        .plain("onboardDate", ONBOARD_MS)
        .text("status", status(instrument))
        .text("maintMarginPercent", "2.5000")
        .text("requiredMarginPercent", "5.0000")
        .text("baseAsset", base)
        .text("quoteAsset", quote)
        .text("marginAsset", quote)
        .plain("pricePrecision", price_precision(instrument))
        .plain("quantityPrecision", qty_precision(instrument))
        .plain("baseAssetPrecision", ASSET_PRECISION)
        .plain("quotePrecision", ASSET_PRECISION)
        .text("underlyingType", "COIN")
        .plain("underlyingSubType", "[]")
        .plain("settlePlan", 0)
        .text("triggerProtect", or_zero(instrument.trigger_protect))
        .text("liquidationFee", or_zero(instrument.liquidation_fee))
        .text("marketTakeBound", or_zero(instrument.market_take_bound))
        .plain("filters", filters(instrument))
        .list("OrderType", quoted_values(&instrument.order_types))
        .list("timeInForce", quoted_values(&instrument.times_in_force))
        .end()
}

fn price_precision(instrument: &Instrument) -> u8 {
    instrument.price_precision.unwrap_or(instrument.price_scale)
}

fn qty_precision(instrument: &Instrument) -> u8 {
    instrument.qty_precision.unwrap_or(instrument.qty_scale)
}

fn quoted_values<T: std::fmt::Display>(values: &[T]) -> impl Iterator<Item = Quoted<&T>> {
    values.iter().map(Quoted)
}

fn filters(instrument: &Instrument) -> String {
    let Filters {
        price,
        lot_size,
        market_lot_size,
        max_num_orders,
        max_num_algo_orders,
        percent_price,
        percent_price_by_side,
        min_notional,
        max_notional,
        notional,
    } = &instrument.filters;
    let filter = |kind: &str| Json::new().text("filterType", kind);
    let at_price = |mantissa: i64| Fixed(mantissa.into(), instrument.price_scale);
    let mut all = Vec::new();
    if let Some(price) = price {
        let json = filter("PRICE_FILTER")
            .text("minPrice", at_price(price.min_price))
            .text("maxPrice", at_price(price.max_price));
        all.push(json.text("tickSize", at_price(price.tick_size)).end());
    }
    let lots = [("LOT_SIZE", lot_size), ("MARKET_LOT_SIZE", market_lot_size)];
    for (kind, lot) in lots {
        all.extend(
            lot.iter()
                .map(|lot| lot_filter(filter(kind), instrument, lot)),
        );
    }
    let counts = [
        ("MAX_NUM_ORDERS", max_num_orders),
        ("MAX_NUM_ALGO_ORDERS", max_num_algo_orders),
    ];
    for (kind, limit) in counts {
        all.extend(
            limit
                .iter()
                .map(|limit| filter(kind).plain("limit", limit).end()),
        );
    }
    if let Some(amount) = min_notional {
        let field = match instrument.surface {
            Surface::Spot => "minNotional",
            Surface::Futures => "notional",
        };
        all.push(filter("MIN_NOTIONAL").text(field, plain(*amount)).end());
    }
    if let Some(amount) = max_notional {
        let json = filter("MAX_NOTIONAL").text("maxNotional", plain(*amount));
        all.push(json.end());
    }
    if let Some(notional) = notional {
        let json = filter("NOTIONAL")
            .text("minNotional", plain(notional.min_notional))
            .text("maxNotional", plain(notional.max_notional))
            .plain("avgPriceMins", notional.avg_price_mins)
            .plain("applyMinToMarket", notional.apply_min_to_market)
            .plain("applyMaxToMarket", notional.apply_max_to_market);
        all.push(json.end());
    }
    if let Some(percent) = percent_price {
        let json = filter("PERCENT_PRICE")
            .text("multiplierUp", percent.multiplier_up)
            .text("multiplierDown", percent.multiplier_down)
            .text("multiplierDecimal", 4);
        all.push(json.end());
    }
    if let Some(percent) = percent_price_by_side {
        let json = filter("PERCENT_PRICE_BY_SIDE")
            .text("bidMultiplierUp", percent.bid_multiplier_up)
            .text("askMultiplierUp", percent.ask_multiplier_up)
            .text("bidMultiplierDown", percent.bid_multiplier_down)
            .text("askMultiplierDown", percent.ask_multiplier_down)
            .plain("avgPriceMins", percent.avg_price_mins)
            .text("multiplierDecimal", 4);
        all.push(json.end());
    }
    list(all)
}

fn lot_filter(json: Json, instrument: &Instrument, lot: &LotSize) -> String {
    let qty = |mantissa: i64| Fixed(mantissa.into(), instrument.qty_scale);
    json.text("minQty", qty(lot.min_qty))
        .text("maxQty", qty(lot.max_qty))
        .text("stepSize", qty(lot.step_size))
        .end()
}

fn plain(amount: Amount) -> Fixed {
    Fixed(amount.0, windvane_model::decimal::AMOUNT_SCALE).trimmed()
}
