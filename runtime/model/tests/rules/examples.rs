//! At least one example per rule, with the message, value, bound and code.

use windvane_model::instrument::{
    Filters, LotSize, Notional, PercentPrice, PercentPriceBySide, PriceFilter, SymbolStatus,
};
use windvane_model::rules::{CompiledRules, InstrumentError, OrderContext, Rule, check};
use windvane_model::{
    Amount, AssetId, Decimal, Instrument, InstrumentId, OrderTerms, OrderType, PositionSide, Price,
    Qty, Side, Surface, TimeInForce, WorkingType,
};

fn number(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn amount(text: &str) -> Amount {
    Amount::from_decimal(number(text)).unwrap()
}

/// A liquid symbol: tick 0.10 starting at 0.05 (which is not a multiple of it), step 0.001.
pub(crate) fn instrument(surface: Surface) -> Instrument {
    let futures = surface == Surface::Futures;
    Instrument {
        surface,
        symbol: "BTCUSDT".to_owned(),
        status: SymbolStatus::Trading,
        base: AssetId(0),
        quote: AssetId(1),
        price_scale: 2,
        qty_scale: 3,
        price_precision: Some(2),
        qty_precision: Some(3),
        filters: Filters {
            price: Some(PriceFilter {
                min_price: 0,
                max_price: 100_000_000,
                tick_size: 10,
            }),
            lot_size: Some(LotSize {
                min_qty: 1,
                max_qty: 1_000_000,
                step_size: 1,
            }),
            market_lot_size: Some(LotSize {
                min_qty: 1,
                max_qty: 120_000,
                step_size: 1,
            }),
            max_num_orders: Some(200),
            max_num_algo_orders: Some(10),
            percent_price: futures.then(|| PercentPrice {
                multiplier_up: number("1.05"),
                multiplier_down: number("0.95"),
            }),
            min_notional: Some(amount("5")),
            ..Filters::default()
        },
        order_types: Vec::new(),
        times_in_force: Vec::new(),
        trigger_protect: Some(number("0.05")),
        market_take_bound: futures.then(|| number("0.05")),
        liquidation_fee: None,
    }
}

fn futures() -> Instrument {
    instrument(Surface::Futures)
}

fn spot() -> Instrument {
    instrument(Surface::Spot)
}

/// A limit order of 0.1 at 60,000.00 with GTX.
fn limit(side: Side) -> OrderTerms {
    OrderTerms {
        price: Some(Price(6_000_000)),
        qty: Some(Qty(100)),
        time_in_force: Some(TimeInForce::Gtx),
        ..OrderTerms::new(InstrumentId(0), side, OrderType::Limit)
    }
}

fn market(side: Side) -> OrderTerms {
    OrderTerms {
        qty: Some(Qty(100)),
        ..OrderTerms::new(InstrumentId(0), side, OrderType::Market)
    }
}

fn trailing(side: Side, activation: i64, callback_ppm: u32) -> OrderTerms {
    OrderTerms {
        qty: Some(Qty(100)),
        activation_price: Some(Price(activation)),
        callback_ppm: Some(callback_ppm),
        ..OrderTerms::new(InstrumentId(0), side, OrderType::TrailingStopMarket)
    }
}

fn close(side: Side, position_side: PositionSide) -> OrderTerms {
    OrderTerms {
        stop_price: Some(Price(6_000_000)),
        close_position: true,
        position_side,
        ..OrderTerms::new(InstrumentId(0), side, OrderType::StopMarket)
    }
}

/// Mark and last price are 60,000, and the book is 59,999.90 to 60,000.10.
fn context() -> OrderContext {
    OrderContext {
        mark: Some(6_000_000_000_000),
        last: Some(6_000_000),
        best_bid: Some(5_999_990),
        best_ask: Some(6_000_010),
        ..OrderContext::default()
    }
}

fn judge(instrument: &Instrument, terms: &OrderTerms, context: &OrderContext) -> String {
    let rules = CompiledRules::new(instrument).unwrap();
    match check(&rules, terms, context) {
        Ok(()) => "passes".to_owned(),
        Err(rejection) => rejection.to_string(),
    }
}

#[track_caller]
fn passes(instrument: &Instrument, terms: &OrderTerms) {
    assert_eq!(judge(instrument, terms, &context()), "passes");
}

#[track_caller]
fn fails(instrument: &Instrument, terms: &OrderTerms, start: &str) {
    let verdict = judge(instrument, terms, &context());
    assert!(verdict.starts_with(start), "{verdict}");
}

#[test]
fn ordinary_orders_of_every_type_pass() {
    for side in [Side::Buy, Side::Sell] {
        passes(&futures(), &limit(side));
        passes(&spot(), &limit(side));
        passes(&futures(), &market(side));
        passes(&futures(), &close(side, PositionSide::Both));
        for order_type in [OrderType::Stop, OrderType::TakeProfit] {
            let mut terms = limit(side);
            terms.order_type = order_type;
            terms.stop_price = Some(Price(6_000_000));
            passes(&futures(), &terms);
            passes(&spot(), &terms);
            terms.time_in_force = None;
            passes(&futures(), &terms);
            passes(&spot(), &terms);
        }
        for order_type in [OrderType::StopMarket, OrderType::TakeProfitMarket] {
            let mut terms = market(side);
            terms.order_type = order_type;
            terms.stop_price = Some(Price(6_000_000));
            passes(&futures(), &terms);
            passes(&spot(), &terms);
        }
    }
    passes(&futures(), &trailing(Side::Buy, 5_900_000, 1_000));
    passes(&futures(), &trailing(Side::Sell, 6_100_000, 50_000));
}

#[test]
fn test_symbols_and_symbols_that_do_not_trade_accept_no_order() {
    let mut test = futures();
    test.symbol = "TESTUSDT".to_owned();
    fails(&test, &limit(Side::Buy), "SYMBOL_TEST: ");
    let mut settling = futures();
    settling.status = SymbolStatus::Other("SETTLING".to_owned());
    fails(&settling, &limit(Side::Buy), "SYMBOL_STATUS: ");
}

#[test]
fn unlisted_types_and_times_in_force_are_rejected() {
    let mut narrow = futures();
    narrow.order_types = vec![OrderType::Market];
    narrow.times_in_force = vec![TimeInForce::Gtc];
    fails(&narrow, &limit(Side::Buy), "ORDER_TYPE: ");
    narrow.order_types.push(OrderType::Limit);
    fails(&narrow, &limit(Side::Buy), "TIME_IN_FORCE: ");
    fails(
        &spot(),
        &trailing(Side::Buy, 5_900_000, 1_000),
        "ORDER_TYPE: ",
    );
    let mut liquidation = limit(Side::Buy);
    liquidation.order_type = OrderType::Liquidation;
    fails(&futures(), &liquidation, "ORDER_TYPE: ");
}

#[test]
fn spot_market_orders_buy_by_quote_and_sell_by_quantity() {
    let mut buy = market(Side::Buy);
    fails(&spot(), &buy, "MANDATORY.quoteOrderQty: ");
    buy.quote_qty = Some(amount("100"));
    fails(&spot(), &buy, "NOT_REQUIRED.quantity: ");
    buy.qty = None;
    passes(&spot(), &buy);
    // LOT_SIZE does not apply: 5.00000001 does not buy whole steps.
    buy.quote_qty = Some(amount("5.00000001"));
    passes(&spot(), &buy);
    buy.quote_qty = Some(amount("4.99999999"));
    fails(
        &spot(),
        &buy,
        "MIN_NOTIONAL: notional 4.99999999 must be at least 5 (venue code -4164)",
    );
    buy.quote_qty = Some(Amount(-1));
    fails(
        &spot(),
        &buy,
        "QUOTE_ORDER_QTY.positive: quoteOrderQty -0.00000001 must be over 0",
    );
    passes(&spot(), &market(Side::Sell));
}

#[test]
fn spot_accepts_no_position_parameters() {
    let mut terms = limit(Side::Sell);
    terms.reduce_only = true;
    fails(&spot(), &terms, "NOT_REQUIRED.reduceOnly: ");
    terms.reduce_only = false;
    terms.position_side = PositionSide::Long;
    fails(&spot(), &terms, "NOT_REQUIRED.positionSide: ");
    terms.position_side = PositionSide::Both;
    terms.working_type = Some(WorkingType::MarkPrice);
    fails(&spot(), &terms, "NOT_REQUIRED.workingType: ");
    fails(
        &spot(),
        &close(Side::Sell, PositionSide::Both),
        "MANDATORY.quantity: ",
    );
    let mut sized = close(Side::Sell, PositionSide::Both);
    sized.qty = Some(Qty(100));
    fails(&spot(), &sized, "CLOSE_POSITION.type: ");
}

#[test]
fn position_sides_follow_the_position_mode() {
    let hedge = OrderContext {
        hedge_mode: true,
        ..context()
    };
    let mut terms = limit(Side::Buy);
    let verdict = judge(&futures(), &terms, &hedge);
    assert!(verdict.starts_with("POSITION_SIDE: "), "{verdict}");
    terms.position_side = PositionSide::Short;
    assert_eq!(judge(&futures(), &terms, &hedge), "passes");
    fails(&futures(), &terms, "POSITION_SIDE: ");
    terms.reduce_only = true;
    let verdict = judge(&futures(), &terms, &hedge);
    assert!(verdict.starts_with("REDUCE_ONLY.hedgeMode: "), "{verdict}");
}

#[test]
fn close_position_has_no_quantity_and_must_close() {
    let mut terms = close(Side::Sell, PositionSide::Both);
    terms.reduce_only = true;
    fails(&futures(), &terms, "REDUCE_ONLY.closePosition: ");
    terms.reduce_only = false;
    terms.qty = Some(Qty(1));
    fails(&futures(), &terms, "CLOSE_POSITION.quantity: ");
    let hedge = OrderContext {
        hedge_mode: true,
        ..context()
    };
    for (side, position_side, wanted) in [
        (Side::Buy, PositionSide::Long, "CLOSE_POSITION.side: "),
        (Side::Sell, PositionSide::Short, "CLOSE_POSITION.side: "),
        (Side::Sell, PositionSide::Long, "passes"),
        (Side::Buy, PositionSide::Short, "passes"),
    ] {
        let verdict = judge(&futures(), &close(side, position_side), &hedge);
        assert!(
            verdict.starts_with(wanted),
            "{side} {position_side}: {verdict}"
        );
    }
}

#[test]
fn prices_must_satisfy_the_price_filter() {
    let at = |price: i64| OrderTerms {
        price: Some(Price(price)),
        ..limit(Side::Buy)
    };
    let mut market = futures();
    market.filters.percent_price = None;
    market.filters.price = Some(PriceFilter {
        min_price: 5_005,
        max_price: 7_000_000,
        tick_size: 10,
    });
    // Ticks start at minPrice: 60,000.05 is on a tick, 60,000.10 is not.
    passes(&market, &at(6_000_005));
    fails(
        &market,
        &at(6_000_010),
        "PRICE_FILTER.tickSize: price 60000.1 must be the minimum plus a multiple of 0.1 \
         (venue code -4014)",
    );
    fails(
        &market,
        &at(5_004),
        "PRICE_FILTER.minPrice: price 50.04 must be at least 50.05 (venue code -4013)",
    );
    fails(
        &market,
        &at(7_000_001),
        "PRICE_FILTER.maxPrice: price 70000.01 must be at most 70000 (venue code -4002)",
    );
    fails(
        &market,
        &at(0),
        "PRICE.positive: price 0 must be over 0 (venue code -4001)",
    );
    fails(&market, &at(-5), "PRICE.positive: ");
}

#[test]
fn a_zero_disables_its_rule_of_the_price_filter() {
    let at = |price: i64| OrderTerms {
        price: Some(Price(price)),
        ..limit(Side::Buy)
    };
    let mut market = futures();
    market.filters.percent_price = None;
    let mut with = |min_price, max_price, tick_size| {
        market.filters.price = Some(PriceFilter {
            min_price,
            max_price,
            tick_size,
        });
        market.clone()
    };
    fails(
        &with(0, 7_000_000, 10),
        &at(6_000_001),
        "PRICE_FILTER.tickSize: ",
    );
    passes(&with(0, 7_000_000, 10), &at(6_000_010));
    passes(&with(0, 0, 10), &at(700_000_000));
    passes(&with(0, 0, 0), &at(6_000_001));
    fails(
        &with(7_000_000, 0, 0),
        &at(6_000_001),
        "PRICE_FILTER.minPrice: ",
    );
}

#[test]
fn stop_and_activation_prices_must_satisfy_the_price_filter() {
    let stop = |price: i64| OrderTerms {
        stop_price: Some(Price(price)),
        ..close(Side::Sell, PositionSide::Both)
    };
    fails(
        &futures(),
        &stop(6_000_001),
        "PRICE_FILTER.tickSize.stopPrice: stopPrice 60000.01 ",
    );
    fails(
        &futures(),
        &stop(100_000_010),
        "PRICE_FILTER.maxPrice.stopPrice: ",
    );
    fails(&futures(), &stop(0), "STOP_PRICE.positive: ");
    let activation = |price: i64| trailing(Side::Buy, price, 1_000);
    fails(
        &futures(),
        &activation(5_900_001),
        "PRICE_FILTER.tickSize.activationPrice: ",
    );
    fails(
        &futures(),
        &activation(100_000_010),
        "PRICE_FILTER.maxPrice.activationPrice: ",
    );
    fails(&futures(), &activation(-1), "ACTIVATION_PRICE.positive: ");
    let mut high = futures();
    high.filters.price = Some(PriceFilter {
        min_price: 6_500_000,
        ..PriceFilter::default()
    });
    fails(&high, &stop(6_000_000), "PRICE_FILTER.minPrice.stopPrice: ");
    fails(
        &high,
        &activation(6_000_000),
        "PRICE_FILTER.minPrice.activationPrice: ",
    );
}

#[test]
fn numbers_keep_to_the_precision_of_the_symbol() {
    let mut coarse = futures();
    coarse.price_precision = Some(1);
    coarse.qty_precision = Some(1);
    let mut terms = limit(Side::Buy);
    passes(&coarse, &terms);
    terms.price = Some(Price(6_000_001));
    fails(
        &coarse,
        &terms,
        "BAD_PRECISION.price: price 60000.01 must have at most 1 decimals (venue code -1111)",
    );
    terms.price = Some(Price(6_000_000));
    terms.qty = Some(Qty(101));
    fails(&coarse, &terms, "BAD_PRECISION.quantity: quantity 0.101 ");
    let mut stop = close(Side::Sell, PositionSide::Both);
    stop.stop_price = Some(Price(6_000_001));
    fails(&coarse, &stop, "BAD_PRECISION.stopPrice: ");
    let activation = trailing(Side::Buy, 5_900_001, 1_000);
    fails(&coarse, &activation, "BAD_PRECISION.activationPrice: ");
}

#[test]
fn quantities_must_satisfy_lot_size_and_market_lot_size() {
    let mut lots = futures();
    lots.filters.lot_size = Some(LotSize {
        min_qty: 3,
        max_qty: 1_000,
        step_size: 5,
    });
    lots.filters.market_lot_size = Some(LotSize {
        min_qty: 8,
        max_qty: 500,
        step_size: 10,
    });
    let sized = |qty: i64, mut terms: OrderTerms| {
        terms.qty = Some(Qty(qty));
        terms
    };
    let resting = |qty: i64| sized(qty, limit(Side::Buy));
    let taking = |qty: i64| sized(qty, market(Side::Buy));
    passes(&lots, &resting(103));
    fails(
        &lots,
        &resting(105),
        "LOT_SIZE.stepSize: quantity 0.105 must be the minimum plus a multiple of 0.005 \
         (venue code -4023)",
    );
    fails(
        &lots,
        &resting(2),
        "LOT_SIZE.minQty: quantity 0.002 must be at least 0.003 ",
    );
    fails(
        &lots,
        &resting(1_003),
        "LOT_SIZE.maxQty: quantity 1.003 must be at most 1 ",
    );
    fails(&lots, &resting(0), "QUANTITY.positive: ");
    passes(&lots, &taking(108));
    fails(&lots, &taking(103), "MARKET_LOT_SIZE.stepSize: ");
    fails(&lots, &taking(3), "MARKET_LOT_SIZE.minQty: ");
    fails(&lots, &taking(503), "MARKET_LOT_SIZE.maxQty: ");
    fails(&lots, &taking(105), "LOT_SIZE.stepSize: ");
}

#[test]
fn callback_rates_are_from_0_1_to_5_percent() {
    let rate = |ppm: u32| trailing(Side::Buy, 5_900_000, ppm);
    fails(
        &futures(),
        &rate(999),
        "CALLBACK_RATE.min: callbackRate 0.0999 must be at least 0.1 (venue code -1130)",
    );
    fails(
        &futures(),
        &rate(50_001),
        "CALLBACK_RATE.max: callbackRate 5.0001 must be at most 5 ",
    );
}

#[test]
fn activation_prices_must_not_trigger_at_once() {
    let buy = trailing(Side::Buy, 6_000_000, 1_000);
    fails(
        &futures(),
        &buy,
        "ACTIVATION_PRICE.buy: A BUY needs an activationPrice below the latest price, else it \
         triggers at once: activationPrice 60000 against 60000 (venue code -2021)",
    );
    fails(
        &futures(),
        &trailing(Side::Sell, 6_000_000, 1_000),
        "ACTIVATION_PRICE.sell: ",
    );
    // The latest price depends on the working type.
    let mut by_mark = trailing(Side::Buy, 6_000_000, 1_000);
    by_mark.working_type = Some(WorkingType::MarkPrice);
    let mut context = context();
    context.mark = Some(6_000_000_000_001);
    assert_eq!(judge(&futures(), &by_mark, &context), "passes");
    context.mark = None;
    assert_eq!(
        judge(&futures(), &by_mark, &context),
        "passes",
        "the venue decides"
    );
}

#[test]
fn futures_prices_must_be_within_the_percent_band_of_the_mark() {
    let at = |side: Side, price: i64| OrderTerms {
        price: Some(Price(price)),
        ..limit(side)
    };
    passes(&futures(), &at(Side::Buy, 6_300_000));
    fails(
        &futures(),
        &at(Side::Buy, 6_300_010),
        "PERCENT_PRICE.multiplierUp: price 63000.1 must be at most 63000 (venue code -4016)",
    );
    passes(&futures(), &at(Side::Buy, 100_000));
    passes(&futures(), &at(Side::Sell, 5_700_000));
    fails(
        &futures(),
        &at(Side::Sell, 5_699_990),
        "PERCENT_PRICE.multiplierDown: price 56999.9 must be at least 57000 (venue code -4024)",
    );
    passes(&futures(), &at(Side::Sell, 9_000_000));
    let blind = OrderContext::default();
    assert_eq!(
        judge(&futures(), &at(Side::Buy, 9_000_000), &blind),
        "passes"
    );
}

#[test]
fn on_spot_only_percent_price_by_side_is_checked() {
    let mut market = spot();
    market.filters.percent_price = Some(PercentPrice {
        multiplier_up: number("1.01"),
        multiplier_down: number("0.99"),
    });
    let far = OrderTerms {
        price: Some(Price(9_000_000)),
        ..limit(Side::Buy)
    };
    passes(&market, &far);
    market.filters.percent_price_by_side = Some(PercentPriceBySide {
        bid_multiplier_up: number("1.2"),
        bid_multiplier_down: number("0.2"),
        ask_multiplier_up: number("5"),
        ask_multiplier_down: number("0.8"),
        avg_price_mins: 5,
    });
    fails(
        &market,
        &far,
        "PERCENT_PRICE_BY_SIDE.multiplierUp: price 90000 must be at most 72000 (venue code -4016)",
    );
    let mut sell = far;
    sell.side = Side::Sell;
    passes(&market, &sell);
    sell.price = Some(Price(4_799_990));
    fails(
        &market,
        &sell,
        "PERCENT_PRICE_BY_SIDE.multiplierDown: price 47999.9 must be at least",
    );
    assert_eq!(judge(&market, &sell, &OrderContext::default()), "passes");
}

#[test]
fn market_orders_need_a_best_price_near_the_mark() {
    let mut context = context();
    context.best_ask = Some(6_300_010);
    context.best_bid = Some(6_300_000);
    let verdict = |instrument: &Instrument, side, context: &OrderContext| {
        judge(instrument, &market(side), context)
    };
    assert_eq!(
        verdict(&futures(), Side::Buy, &context),
        "PERCENT_PRICE.multiplierUp.market: best ask 63000.1 must be at most 63000 \
         (venue code -4131)"
    );
    let mut unfiltered = futures();
    unfiltered.filters.percent_price = None;
    assert_eq!(
        verdict(&unfiltered, Side::Buy, &context),
        "MARKET_TAKE_BOUND.above: best price 63000.1 must be at most 63000 (venue code -4131)"
    );
    assert_eq!(verdict(&unfiltered, Side::Sell, &context), "passes");
    context.best_bid = Some(5_699_990);
    assert!(verdict(&futures(), Side::Sell, &context).starts_with("PERCENT_PRICE.multiplierDown."));
    assert!(verdict(&unfiltered, Side::Sell, &context).starts_with("MARKET_TAKE_BOUND.below: "));
    context.mark = None;
    assert_eq!(
        verdict(&futures(), Side::Sell, &context),
        "passes",
        "the venue decides"
    );
    let mut spot_sell = spot();
    spot_sell.market_take_bound = Some(number("0.0001"));
    passes(&spot_sell, &market(Side::Sell));
}

#[test]
fn notionals_reach_the_minimum_unless_reduce_only() {
    let mut small = limit(Side::Buy);
    small.price = Some(Price(499_990));
    small.qty = Some(Qty(1));
    fails(
        &futures(),
        &small,
        "MIN_NOTIONAL: notional 4.9999 must be at least 5 (venue code -4164)",
    );
    small.reduce_only = true;
    passes(&futures(), &small);
    small.reduce_only = false;
    small.price = Some(Price(500_000));
    passes(&futures(), &small);
    // The notional of a market order uses the mark price.
    let mut taking = market(Side::Buy);
    taking.qty = Some(Qty(1));
    passes(&futures(), &taking);
    let mut rich = futures();
    rich.filters.min_notional = Some(amount("60.00000001"));
    fails(
        &rich,
        &taking,
        "MIN_NOTIONAL: notional 60 must be at least 60.00000001",
    );
    let blind = OrderContext::default();
    assert_eq!(judge(&rich, &taking, &blind), "passes", "the venue decides");
}

#[test]
fn notional_bounds_between_two_possible_notionals_are_exact() {
    // Prices and quantities are whole numbers, so no notional is between 5 and 6.
    let mut whole = futures();
    (whole.price_scale, whole.qty_scale) = (0, 0);
    (whole.price_precision, whole.qty_precision) = (None, None);
    whole.filters = Filters::default();
    let priced = |price: i64| OrderTerms {
        price: Some(Price(price)),
        qty: Some(Qty(1)),
        ..limit(Side::Buy)
    };
    whole.filters.min_notional = Some(amount("5.5"));
    fails(
        &whole,
        &priced(5),
        "MIN_NOTIONAL: notional 5 must be at least 5.5 ",
    );
    passes(&whole, &priced(6));
    whole.filters.min_notional = None;
    whole.filters.max_notional = Some(amount("5.5"));
    passes(&whole, &priced(5));
    fails(
        &whole,
        &priced(6),
        "MAX_NOTIONAL: notional 6 must be at most 5.5 ",
    );
}

#[test]
fn spot_notional_filters_have_both_bounds_and_market_exceptions() {
    let mut market_spot = spot();
    market_spot.filters.min_notional = None;
    market_spot.filters.notional = Some(Notional {
        min_notional: amount("10000"),
        max_notional: amount("20000"),
        apply_min_to_market: false,
        apply_max_to_market: true,
        avg_price_mins: 5,
    });
    let sized = |qty: i64, mut terms: OrderTerms| {
        terms.qty = Some(Qty(qty));
        terms
    };
    fails(
        &market_spot,
        &sized(100, limit(Side::Buy)),
        "NOTIONAL.minNotional: notional 6000 ",
    );
    passes(&market_spot, &sized(200, limit(Side::Buy)));
    fails(
        &market_spot,
        &sized(400, limit(Side::Buy)),
        "NOTIONAL.maxNotional: notional 24000 ",
    );
    passes(&market_spot, &sized(100, market(Side::Sell)));
    fails(
        &market_spot,
        &sized(400, market(Side::Sell)),
        "NOTIONAL.maxNotional: notional 24000 ",
    );
    market_spot.filters.notional = None;
    market_spot.filters.max_notional = Some(amount("5999.99"));
    fails(
        &market_spot,
        &limit(Side::Buy),
        "MAX_NOTIONAL: notional 6000 must be at most 5999.99 (venue code -1013)",
    );
}

#[test]
fn order_count_limits_apply_to_orders_that_can_stay_open() {
    let full = OrderContext {
        open_orders: 200,
        ..context()
    };
    let resting = limit(Side::Buy);
    assert_eq!(
        judge(&futures(), &resting, &full),
        "MAX_NUM_ORDERS: open orders 201 must be at most 200 (venue code -2025)"
    );
    let mut taking = limit(Side::Buy);
    taking.time_in_force = Some(TimeInForce::Ioc);
    assert_eq!(judge(&futures(), &taking, &full), "passes");
    assert_eq!(judge(&futures(), &market(Side::Buy), &full), "passes");
    let algo = OrderContext {
        open_algo_orders: 10,
        ..context()
    };
    let stop = close(Side::Sell, PositionSide::Both);
    assert_eq!(
        judge(&futures(), &stop, &algo),
        "MAX_NUM_ALGO_ORDERS: open algo orders 11 must be at most 10 (venue code -4045)"
    );
    assert_eq!(judge(&futures(), &resting, &algo), "passes");
}

#[test]
fn instruments_beyond_exact_arithmetic_are_rejected_by_name() {
    let mut scaled = futures();
    scaled.price_scale = 13;
    let error = CompiledRules::new(&scaled).unwrap_err();
    assert!(
        matches!(error, InstrumentError::Scale { value: 13, .. }),
        "{error}"
    );
    let mut negative = futures();
    negative.filters.price = Some(PriceFilter {
        tick_size: -10,
        ..PriceFilter::default()
    });
    assert_eq!(
        CompiledRules::new(&negative).unwrap_err().to_string(),
        "futures:BTCUSDT: PRICE_FILTER.tickSize -0.1 is below 0; fix the exchange information"
    );
    let mut below = futures();
    below.market_take_bound = Some(Decimal::MIN);
    let error = CompiledRules::new(&below).unwrap_err();
    assert!(matches!(error, InstrumentError::Negative { .. }), "{error}");
    below.market_take_bound = Some(Decimal::MAX);
    assert!(CompiledRules::new(&below).is_err());
    let mut long = futures();
    long.market_take_bound = Some(number("0.0500000000000000001"));
    let error = CompiledRules::new(&long).unwrap_err();
    assert!(matches!(error, InstrumentError::Digits { .. }), "{error}");
}

#[test]
fn rule_numbers_match_the_contract() {
    assert_eq!(Rule::UnknownInstrument.number(), 1);
    assert_eq!(Rule::MandatoryPrice.number(), 30);
    assert_eq!(Rule::PriceTick.number(), 102);
    assert_eq!(Rule::MinNotional.number(), 130);
    assert_eq!(Rule::RiskOrderNotional.number(), 200);
}
