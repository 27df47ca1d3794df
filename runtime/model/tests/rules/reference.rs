//! A second implementation of the rules, directly from the formulas of
//! docs/interface/orders.md#filters, in exact decimals and without regard for speed. It uses only
//! the public types of `windvane_model::rules`.
//!
//! Decimals have 28 digits, so callers use only numbers whose products fit.

use windvane_model::instrument::{LotSize, SymbolStatus};
use windvane_model::rules::{OrderContext, Rule};
use windvane_model::{
    Amount, Decimal, Instrument, OrderTerms, OrderType, PositionSide, Side, Surface, TimeInForce,
    WorkingType,
};

/// Every broken rule, in the order of the check. Only the first one is reliable: later ones may
/// check numbers that an earlier rule already rejected.
pub(crate) fn broken_rules(
    instrument: &Instrument,
    terms: &OrderTerms,
    context: &OrderContext,
) -> Vec<Rule> {
    let mut broken = Vec::new();
    if instrument.symbol.starts_with("TEST") {
        broken.push(Rule::SymbolTest);
    }
    if instrument.status != SymbolStatus::Trading {
        broken.push(Rule::SymbolStatus);
    }
    broken.extend(parameter_rules(instrument, terms));
    broken.extend(position_rules(instrument, terms, context.hedge_mode));
    let order = Numbers::new(instrument, terms, context);
    order.prices(&mut broken);
    order.quantities(&mut broken);
    order.trailing(&mut broken);
    order.bands(&mut broken);
    order.notionals(&mut broken);
    order.counts(&mut broken);
    order.market(&mut broken);
    broken
}

/// The parameters of an order, by their names in the documents.
fn sent(terms: &OrderTerms) -> Vec<&'static str> {
    let all = [
        ("price", terms.price.is_some()),
        ("quantity", terms.qty.is_some()),
        ("quoteOrderQty", terms.quote_qty.is_some()),
        ("stopPrice", terms.stop_price.is_some()),
        ("activationPrice", terms.activation_price.is_some()),
        ("callbackRate", terms.callback_ppm.is_some()),
        ("timeInForce", terms.time_in_force.is_some()),
        ("workingType", terms.working_type.is_some()),
        ("priceProtect", terms.price_protect),
        ("reduceOnly", terms.reduce_only),
        ("closePosition", terms.close_position),
    ];
    all.iter().filter(|p| p.1).map(|p| p.0).collect()
}

/// The tables "mandatory parameters by type" of both documents.
fn mandatory(surface: Surface, terms: &OrderTerms) -> Vec<&'static str> {
    let name = terms.order_type.as_str();
    match (surface, name) {
        (_, "LIMIT") => vec!["timeInForce", "quantity", "price"],
        (Surface::Spot, "MARKET") if terms.side == Side::Buy => vec!["quoteOrderQty"],
        (_, "MARKET") => vec!["quantity"],
        (_, "STOP" | "TAKE_PROFIT") => vec!["quantity", "price", "stopPrice"],
        (Surface::Spot, "STOP_MARKET" | "TAKE_PROFIT_MARKET") => vec!["quantity", "stopPrice"],
        (Surface::Futures, "STOP_MARKET" | "TAKE_PROFIT_MARKET") if terms.close_position => {
            vec!["stopPrice"]
        }
        (Surface::Futures, "STOP_MARKET" | "TAKE_PROFIT_MARKET") => vec!["stopPrice", "quantity"],
        (Surface::Futures, "TRAILING_STOP_MARKET") => vec!["callbackRate", "quantity"],
        _ => vec![],
    }
}

/// Whether a parameter is allowed for the type, from the descriptions in both parameter tables.
fn goes_with(parameter: &str, surface: Surface, terms: &OrderTerms) -> bool {
    let name = terms.order_type.as_str();
    let futures = surface == Surface::Futures;
    let stop_limit = ["STOP", "TAKE_PROFIT"].contains(&name);
    let stop_market = ["STOP_MARKET", "TAKE_PROFIT_MARKET"].contains(&name);
    let trailing = name == "TRAILING_STOP_MARKET";
    let spot_market_buy = !futures && name == "MARKET" && terms.side == Side::Buy;
    match parameter {
        "price" | "timeInForce" => name == "LIMIT" || stop_limit,
        "quantity" => !spot_market_buy,
        "quoteOrderQty" => spot_market_buy,
        "stopPrice" => stop_limit || stop_market,
        "activationPrice" | "callbackRate" => trailing,
        "workingType" | "reduceOnly" => futures,
        "priceProtect" => futures && (stop_limit || stop_market),
        "closePosition" => futures && stop_market,
        other => panic!("unknown parameter {other}"),
    }
}

fn missing_rule(parameter: &str) -> Rule {
    match parameter {
        "price" => Rule::MandatoryPrice,
        "quantity" => Rule::MandatoryQty,
        "quoteOrderQty" => Rule::MandatoryQuoteQty,
        "stopPrice" => Rule::MandatoryStopPrice,
        "callbackRate" => Rule::MandatoryCallbackRate,
        "timeInForce" => Rule::MandatoryTimeInForce,
        other => panic!("{other} is never mandatory"),
    }
}

fn unwanted_rule(parameter: &str) -> Rule {
    match parameter {
        "price" => Rule::NotRequiredPrice,
        "quantity" => Rule::NotRequiredQty,
        "quoteOrderQty" => Rule::NotRequiredQuoteQty,
        "stopPrice" => Rule::NotRequiredStopPrice,
        "activationPrice" => Rule::NotRequiredActivationPrice,
        "callbackRate" => Rule::NotRequiredCallbackRate,
        "timeInForce" => Rule::TimeInForceNotRequired,
        "workingType" => Rule::NotRequiredWorkingType,
        "priceProtect" => Rule::NotRequiredPriceProtect,
        "reduceOnly" => Rule::NotRequiredReduceOnly,
        "closePosition" => Rule::ClosePositionType,
        other => panic!("unknown parameter {other}"),
    }
}

/// Order type, mandatory parameters, unwanted parameters, time in force.
pub(crate) fn parameter_rules(instrument: &Instrument, terms: &OrderTerms) -> Vec<Rule> {
    let surface = instrument.surface;
    let spot = [
        "LIMIT",
        "MARKET",
        "STOP",
        "TAKE_PROFIT",
        "STOP_MARKET",
        "TAKE_PROFIT_MARKET",
    ];
    let name = terms.order_type.as_str();
    let on_surface =
        spot.contains(&name) || (surface == Surface::Futures && name == "TRAILING_STOP_MARKET");
    let listed =
        instrument.order_types.is_empty() || instrument.order_types.contains(&terms.order_type);

    let mut broken = Vec::new();
    if !on_surface || !listed {
        broken.push(Rule::OrderTypeInvalid);
    }
    let sent = sent(terms);
    let mut missing: Vec<Rule> = mandatory(surface, terms)
        .into_iter()
        .filter(|parameter| !sent.contains(parameter))
        .map(missing_rule)
        .collect();
    missing.sort();
    broken.extend(missing);
    let unwanted = sent
        .iter()
        .filter(|parameter| !goes_with(parameter, surface, terms));
    broken.extend(unwanted.map(|parameter| unwanted_rule(parameter)));
    if let Some(time) = terms.time_in_force {
        let listed = &instrument.times_in_force;
        if !listed.is_empty() && !listed.contains(&time) {
            broken.push(Rule::TimeInForceInvalid);
        }
    }
    broken
}

/// Position side, reduceOnly and closePosition (docs/interface/orders.md#place-a-futures-order).
pub(crate) fn position_rules(
    instrument: &Instrument,
    terms: &OrderTerms,
    hedge: bool,
) -> Vec<Rule> {
    let both = terms.position_side == PositionSide::Both;
    if instrument.surface == Surface::Spot {
        return if both {
            vec![]
        } else {
            vec![Rule::NotRequiredPositionSide]
        };
    }
    let wrong_way = matches!(
        (terms.side.as_str(), terms.position_side.as_str()),
        ("BUY", "LONG") | ("SELL", "SHORT")
    );
    let close = terms.close_position;
    let all = [
        (Rule::PositionSideMode, hedge == both),
        (Rule::ReduceOnlyHedge, hedge && terms.reduce_only),
        (Rule::ReduceOnlyClose, close && terms.reduce_only),
        (Rule::ClosePositionQty, close && terms.qty.is_some()),
        (Rule::ClosePositionSide, close && wrong_way),
    ];
    all.iter()
        .filter(|rule| rule.1)
        .map(|rule| rule.0)
        .collect()
}

/// The order's numbers as decimals.
struct Numbers<'a> {
    instrument: &'a Instrument,
    terms: &'a OrderTerms,
    context: &'a OrderContext,
    price: Option<Decimal>,
    qty: Option<Decimal>,
    mark: Option<Decimal>,
    last: Option<Decimal>,
}

impl<'a> Numbers<'a> {
    fn new(instrument: &'a Instrument, terms: &'a OrderTerms, context: &'a OrderContext) -> Self {
        let over_zero = |value: Option<i64>| value.filter(|value| *value > 0);
        Self {
            instrument,
            terms,
            context,
            price: terms.price.map(|price| at(price.0, instrument.price_scale)),
            qty: terms.qty.map(|qty| at(qty.0, instrument.qty_scale)),
            mark: over_zero(context.mark).map(|mark| at(mark, 8)),
            last: over_zero(context.last).map(|last| at(last, instrument.price_scale)),
        }
    }

    fn prices(&self, broken: &mut Vec<Rule>) {
        let price_at = |mantissa| at(mantissa, self.instrument.price_scale);
        let rows = [
            (
                self.price,
                [
                    Rule::BadPrecisionPrice,
                    Rule::PricePositive,
                    Rule::PriceMin,
                    Rule::PriceMax,
                    Rule::PriceTick,
                ],
            ),
            (
                self.terms.stop_price.map(|price| price_at(price.0)),
                [
                    Rule::BadPrecisionStopPrice,
                    Rule::StopPricePositive,
                    Rule::StopPriceMin,
                    Rule::StopPriceMax,
                    Rule::StopPriceTick,
                ],
            ),
            (
                self.terms.activation_price.map(|price| price_at(price.0)),
                [
                    Rule::BadPrecisionActivationPrice,
                    Rule::ActivationPricePositive,
                    Rule::ActivationPriceMin,
                    Rule::ActivationPriceMax,
                    Rule::ActivationPriceTick,
                ],
            ),
        ];
        let filter = self.instrument.filters.price.unwrap_or_default();
        let (min, max) = (price_at(filter.min_price), price_at(filter.max_price));
        let tick = price_at(filter.tick_size);
        for (price, [precision, positive, below, above, off_tick]) in rows {
            let Some(price) = price else { continue };
            if too_precise(price, self.instrument.price_precision) {
                broken.push(precision);
            }
            if price <= Decimal::ZERO {
                broken.push(positive);
            }
            if min != Decimal::ZERO && price < min {
                broken.push(below);
            }
            if max != Decimal::ZERO && price > max {
                broken.push(above);
            }
            if tick != Decimal::ZERO && (price - min) % tick != Decimal::ZERO {
                broken.push(off_tick);
            }
        }
    }

    fn quantities(&self, broken: &mut Vec<Rule>) {
        let filters = &self.instrument.filters;
        if let Some(qty) = self.qty {
            if too_precise(qty, self.instrument.qty_precision) {
                broken.push(Rule::BadPrecisionQty);
            }
            if qty <= Decimal::ZERO {
                broken.push(Rule::QtyPositive);
            }
            let rules = [Rule::LotMin, Rule::LotMax, Rule::LotStep];
            self.lot(qty, filters.lot_size, rules, broken);
            if self.terms.order_type.as_str() == "MARKET" {
                let rules = [Rule::MarketLotMin, Rule::MarketLotMax, Rule::MarketLotStep];
                self.lot(qty, filters.market_lot_size, rules, broken);
            }
        }
        if self.terms.quote_qty.is_some_and(|amount| amount.0 <= 0) {
            broken.push(Rule::QuoteQtyPositive);
        }
    }

    fn lot(
        &self,
        qty: Decimal,
        lot: Option<LotSize>,
        [below, above, off_step]: [Rule; 3],
        broken: &mut Vec<Rule>,
    ) {
        let Some(lot) = lot else { return };
        let scale = self.instrument.qty_scale;
        let (min, max) = (at(lot.min_qty, scale), at(lot.max_qty, scale));
        let step = at(lot.step_size, scale);
        if qty < min {
            broken.push(below);
        }
        if max != Decimal::ZERO && qty > max {
            broken.push(above);
        }
        if step != Decimal::ZERO && (qty - min) % step != Decimal::ZERO {
            broken.push(off_step);
        }
    }

    fn trailing(&self, broken: &mut Vec<Rule>) {
        if let Some(ppm) = self.terms.callback_ppm {
            let percent = Decimal::from(ppm) / Decimal::from(10_000);
            if percent < Decimal::new(1, 1) {
                broken.push(Rule::CallbackRateMin);
            }
            if percent > Decimal::from(5) {
                broken.push(Rule::CallbackRateMax);
            }
        }
        let latest = match self.terms.working_type {
            Some(WorkingType::MarkPrice) => self.mark,
            Some(WorkingType::ContractPrice) | None => self.last,
        };
        let activation = self.terms.activation_price;
        if let (Some(activation), Some(latest)) = (activation, latest) {
            let activation = at(activation.0, self.instrument.price_scale);
            // "BUY requires activationPrice smaller than the latest price; SELL larger".
            match self.terms.side {
                Side::Buy if activation >= latest => broken.push(Rule::ActivationPriceBuy),
                Side::Sell if activation <= latest => broken.push(Rule::ActivationPriceSell),
                _ => {}
            }
        }
    }

    fn reference(&self) -> Option<Decimal> {
        match self.instrument.surface {
            Surface::Spot => self.last,
            Surface::Futures => self.mark,
        }
    }

    fn bands(&self, broken: &mut Vec<Rule>) {
        let Some(price) = self.price else { return };
        let rules = (Rule::PercentUp, Rule::PercentDown);
        self.percent_price(price, rules, broken);
        let filter = self.instrument.filters.percent_price_by_side;
        if let (Some(filter), Some(reference)) = (filter, self.reference()) {
            let (down, up) = match self.terms.side {
                Side::Buy => (filter.bid_multiplier_down, filter.bid_multiplier_up),
                Side::Sell => (filter.ask_multiplier_down, filter.ask_multiplier_up),
            };
            if price < reference * down {
                broken.push(Rule::BySideDown);
            }
            if up != Decimal::ZERO && price > reference * up {
                broken.push(Rule::BySideUp);
            }
        }
        self.stop_band(price, broken);
    }

    /// "limit price above the cap" and "below the floor" of the stop price (-4183, -4184).
    fn stop_band(&self, price: Decimal, broken: &mut Vec<Rule>) {
        let filter = self.instrument.filters.percent_price;
        let (Some(filter), Some(stop)) = (filter, self.terms.stop_price) else {
            return;
        };
        let stop = at(stop.0, self.instrument.price_scale);
        let (spot, buy) = (
            self.instrument.surface == Surface::Spot,
            self.terms.side == Side::Buy,
        );
        if (spot || !buy) && price < stop * filter.multiplier_down {
            broken.push(Rule::StopPercentDown);
        }
        let up = filter.multiplier_up;
        if (spot || buy) && up != Decimal::ZERO && price > stop * up {
            broken.push(Rule::StopPercentUp);
        }
    }

    /// "BUY: price <= markPrice * multiplierUp; SELL: price >= markPrice * multiplierDown".
    fn percent_price(&self, price: Decimal, (over, under): (Rule, Rule), broken: &mut Vec<Rule>) {
        if self.instrument.surface == Surface::Spot {
            return;
        }
        let filter = self.instrument.filters.percent_price;
        let (Some(filter), Some(mark)) = (filter, self.mark) else {
            return;
        };
        let up = filter.multiplier_up;
        match self.terms.side {
            Side::Buy if up != Decimal::ZERO && price > mark * up => broken.push(over),
            Side::Sell if price < mark * filter.multiplier_down => broken.push(under),
            _ => {}
        }
    }

    fn notionals(&self, broken: &mut Vec<Rule>) {
        let filters = &self.instrument.filters;
        let bounds = [filters.min_notional, filters.max_notional];
        if bounds == [None, None] && filters.notional.is_none() {
            return;
        }
        let priced = self.price.is_some();
        let notional = match (self.terms.quote_qty, self.qty, self.price) {
            (Some(amount), ..) => Some(money(amount)),
            (None, Some(qty), Some(price)) => Some(price * qty),
            (None, Some(qty), None) => self.reference().map(|reference| reference * qty),
            (None, None, _) => None,
        };
        let Some(notional) = notional else { return };
        let exempt = self.terms.reduce_only;
        if filters
            .min_notional
            .is_some_and(|min| notional < money(min))
            && !exempt
        {
            broken.push(Rule::MinNotional);
        }
        if let Some(filter) = filters.notional {
            let applies = priced || filter.apply_min_to_market;
            if applies && !exempt && notional < money(filter.min_notional) {
                broken.push(Rule::NotionalMin);
            }
        }
        let over = |max: Amount| max != Amount::ZERO && notional > money(max);
        if filters.max_notional.is_some_and(over) {
            broken.push(Rule::MaxNotional);
        }
        if let Some(filter) = filters.notional {
            let applies = priced || filter.apply_max_to_market;
            if applies && over(filter.max_notional) {
                broken.push(Rule::NotionalMax);
            }
        }
    }

    fn counts(&self, broken: &mut Vec<Rule>) {
        let filters = &self.instrument.filters;
        let full = |open: u32, limit: Option<u32>| limit.is_some_and(|max| max > 0 && open >= max);
        let name = self.terms.order_type.as_str();
        let now_or_never = matches!(
            self.terms.time_in_force,
            Some(TimeInForce::Ioc | TimeInForce::Fok)
        );
        let rests = name != "MARKET" && !(name == "LIMIT" && now_or_never);
        if rests && full(self.context.open_orders, filters.max_num_orders) {
            broken.push(Rule::MaxNumOrders);
        }
        let algo = !["MARKET", "LIMIT"].contains(&name);
        if algo && full(self.context.open_algo_orders, filters.max_num_algo_orders) {
            broken.push(Rule::MaxNumAlgoOrders);
        }
    }

    fn market(&self, broken: &mut Vec<Rule>) {
        let futures_market = self.terms.order_type == OrderType::Market
            && self.instrument.surface == Surface::Futures;
        let best = match self.terms.side {
            Side::Buy => self.context.best_ask,
            Side::Sell => self.context.best_bid,
        };
        let best = best.filter(|best| *best > 0);
        let (true, Some(best), Some(mark)) = (futures_market, best, self.mark) else {
            return;
        };
        let best = at(best, self.instrument.price_scale);
        let rules = (Rule::MarketPercentUp, Rule::MarketPercentDown);
        self.percent_price(best, rules, broken);
        let bound = self.instrument.market_take_bound.unwrap_or_default();
        if bound != Decimal::ZERO && (best - mark).abs() > mark * bound {
            broken.push(if best > mark {
                Rule::MarketTakeUp
            } else {
                Rule::MarketTakeDown
            });
        }
    }
}

fn at(mantissa: i64, scale: u8) -> Decimal {
    Decimal::new(mantissa, u32::from(scale))
}

fn money(amount: Amount) -> Decimal {
    Decimal::from_i128_with_scale(amount.0, 8)
}

fn too_precise(value: Decimal, precision: Option<u8>) -> bool {
    precision.is_some_and(|precision| value.normalize().scale() > u32::from(precision))
}
