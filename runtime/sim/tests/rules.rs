//! Tests of every parameter and filter rule of docs/interface/orders.md#orders, with the code of
//! each violation.

mod common;

use common::*;
use windvane_model::instrument::{
    LotSize, Notional, PercentPrice, PercentPriceBySide, PriceFilter, SymbolStatus,
};
use windvane_model::{
    Decimal, Instrument, InstrumentId, NewOrder, OrderTerms, OrderType, PositionSide, Price, Qty,
    Request, Side, Surface, TimeInForce, WorkingType,
};
use windvane_sim::VenueMessage;

fn place(rules: Instrument, terms: OrderTerms) -> Result<(), i32> {
    let mut bench = Bench::with(config(), vec![rules]);
    bench.top(InstrumentId(0), (600_000, 500), (600_010, 500));
    bench.place("a", terms).map(|_| ())
}

fn good() -> OrderTerms {
    limit(FUTURES, Side::Buy, 599_000, 10, TimeInForce::Gtc)
}

fn with(change: impl FnOnce(&mut OrderTerms)) -> OrderTerms {
    let mut terms = good();
    change(&mut terms);
    terms
}

fn rules(surface: Surface, change: impl FnOnce(&mut Instrument)) -> Instrument {
    let mut rules = instrument(surface);
    change(&mut rules);
    rules
}

#[test]
fn parameters_belong_to_their_type() {
    let futures = instrument(Surface::Futures);
    assert_eq!(place(futures.clone(), good()), Ok(()));
    // The documents do not limit the working type to some order types.
    let working = with(|t| t.working_type = Some(WorkingType::MarkPrice));
    assert_eq!(place(futures.clone(), working), Ok(()));
    let cases: Vec<(OrderTerms, i32)> = vec![
        (with(|t| t.price = None), -1102),
        (with(|t| t.qty = None), -1102),
        (with(|t| t.time_in_force = None), -1102),
        (with(|t| t.stop_price = Some(Price(1))), -1106),
        (with(|t| t.callback_ppm = Some(1_000)), -1106),
        (with(|t| t.activation_price = Some(Price(1))), -1106),
        (with(|t| t.price_protect = true), -1106),
        (with(|t| t.quote_qty = Some(whole(1))), -1106),
        (with(|t| t.close_position = true), -1106),
        (with(|t| t.position_side = PositionSide::Long), -4061),
        (with(|t| t.order_type = OrderType::Liquidation), -1116),
        (with(|t| t.order_type = OrderType::Market), -1114),
        (with(|t| t.instrument = InstrumentId(9)), -1121),
        (with(|t| t.qty = Some(Qty(0))), -4003),
        (with(|t| t.price = Some(Price(0))), -4001),
    ];
    for (terms, code) in cases {
        assert_eq!(place(futures.clone(), terms), Err(code), "{terms:?}");
    }
    let stop_market = stop(OrderType::StopMarket, Side::Sell, 590_000, 10);
    let mut closes = stop_market;
    closes.close_position = true;
    assert_eq!(place(futures.clone(), closes), Err(-4137));
    closes.qty = None;
    assert_eq!(place(futures.clone(), closes), Ok(()));
    closes.reduce_only = true;
    assert_eq!(place(futures.clone(), closes), Err(-1106));
    let mut zero = stop_market;
    zero.stop_price = Some(Price(0));
    assert_eq!(place(futures, zero), Err(-4006));
}

#[test]
fn callback_rates_are_limited_more_in_a_batch() {
    let mut bench = Bench::new(config());
    bench.top(FUTURES, (600_000, 500), (600_010, 500));
    let mut terms = OrderTerms::new(FUTURES, Side::Sell, OrderType::TrailingStopMarket);
    terms.qty = Some(Qty(1));
    for (name, ppm, expected) in [("a", 999, false), ("b", 1_000, true), ("c", 50_000, true)] {
        terms.callback_ppm = Some(ppm);
        assert_eq!(bench.place(name, terms).is_ok(), expected, "{ppm}");
    }
    terms.callback_ppm = Some(40_001);
    bench.messages.clear();
    bench.request(&Request::PlaceBatch(vec![NewOrder {
        client_order_id: id("d"),
        terms,
    }]));
    assert_eq!(bench.messages.len(), 1, "a rejected order gives no event");
}

#[test]
fn spot_rejects_futures_parameters() {
    let spot = instrument(Surface::Spot);
    let quote = {
        let mut terms = OrderTerms::new(FUTURES, Side::Buy, OrderType::Market);
        terms.quote_qty = Some(whole(100));
        terms
    };
    let both = {
        let mut terms = market(FUTURES, Side::Buy, 10);
        terms.quote_qty = Some(whole(100));
        terms
    };
    let cases: Vec<(OrderTerms, Result<(), i32>)> = vec![
        (quote, Ok(())),
        (both, Err(-1106)),
        (market(FUTURES, Side::Buy, 10), Ok(())),
        (market(FUTURES, Side::Sell, 10), Ok(())),
        (with(|t| t.reduce_only = true), Err(-1106)),
        (with(|t| t.position_side = PositionSide::Long), Err(-1106)),
        (
            with(|t| t.order_type = OrderType::TrailingStopMarket),
            Err(-1116),
        ),
    ];
    for (terms, expected) in cases {
        assert_eq!(place(spot.clone(), terms), expected, "{terms:?}");
    }
}

#[test]
fn symbols_that_do_not_trade_reject_orders() {
    let test = rules(Surface::Futures, |r| r.symbol = "TESTUSDT".into());
    assert_eq!(place(test, good()), Err(-1121));
    let closed = rules(Surface::Futures, |r| {
        r.status = SymbolStatus::Other("CLOSE".into());
    });
    assert_eq!(place(closed, good()), Err(-4022));
    let market_only = rules(Surface::Futures, |r| {
        r.order_types = vec![OrderType::Market];
    });
    assert_eq!(place(market_only, good()), Err(-1116));
    let ioc_only = rules(Surface::Futures, |r| {
        r.times_in_force = vec![TimeInForce::Ioc];
    });
    assert_eq!(place(ioc_only, good()), Err(-1115));
}

#[test]
fn prices_follow_the_filter_from_the_minimum() {
    let odd = rules(Surface::Futures, |r| {
        r.filters.price = Some(PriceFilter {
            min_price: 3,
            max_price: 700_000,
            tick_size: 10,
        });
    });
    let at = |price| with(|t| t.price = Some(Price(price)));
    assert_eq!(place(odd.clone(), at(599_003)), Ok(()));
    assert_eq!(place(odd.clone(), at(599_000)), Err(-4014));
    assert_eq!(place(odd.clone(), at(1)), Err(-4013));
    assert_eq!(place(odd.clone(), at(700_003)), Err(-4002));
    let stop = stop(OrderType::StopMarket, Side::Buy, 700_013, 10);
    assert_eq!(place(odd, stop), Err(-4007));
    let coarse = rules(Surface::Futures, |r| r.price_precision = Some(0));
    assert_eq!(place(coarse.clone(), at(599_001)), Err(-1111));
    assert_eq!(place(coarse, at(599_010)), Ok(()));
}

#[test]
fn quantities_follow_the_lot_size_of_the_order_type() {
    let lots = rules(Surface::Futures, |r| {
        r.filters.lot_size = Some(LotSize {
            min_qty: 2,
            max_qty: 100,
            step_size: 3,
        });
        r.filters.market_lot_size = Some(LotSize {
            min_qty: 1,
            max_qty: 50,
            step_size: 1,
        });
    });
    let of = |qty| with(|t| t.qty = Some(Qty(qty)));
    assert_eq!(place(lots.clone(), of(5)), Ok(()));
    assert_eq!(place(lots.clone(), of(1)), Err(-4004));
    assert_eq!(place(lots.clone(), of(6)), Err(-4023));
    assert_eq!(place(lots.clone(), of(101)), Err(-4005));
    assert_eq!(place(lots.clone(), market(FUTURES, Side::Buy, 6)), Ok(()));
    assert_eq!(place(lots, market(FUTURES, Side::Buy, 51)), Err(-4005));
}

#[test]
fn percent_filters_limit_buys_above_and_sells_below() {
    let percent = |r: &mut Instrument| {
        r.filters.percent_price = Some(PercentPrice {
            multiplier_up: Decimal::new(105, 2),
            multiplier_down: Decimal::new(95, 2),
        });
    };
    let futures = rules(Surface::Futures, percent);
    let at = |side, price| limit(FUTURES, side, price, 10, TimeInForce::Gtc);
    // The mid is 60,000.5, so the bounds are 63,000.525 and 57,000.475.
    assert_eq!(place(futures.clone(), at(Side::Buy, 630_005)), Ok(()));
    assert_eq!(place(futures.clone(), at(Side::Buy, 630_006)), Err(-4016));
    assert_eq!(place(futures.clone(), at(Side::Sell, 570_005)), Ok(()));
    assert_eq!(place(futures.clone(), at(Side::Sell, 570_004)), Err(-4024));
    assert_eq!(place(futures, at(Side::Buy, 500_000)), Ok(()));
    let spot = rules(Surface::Spot, percent);
    assert_eq!(place(spot, at(Side::Buy, 500_000)), Err(-4024));
    let by_side = rules(Surface::Spot, |r| {
        r.filters.percent_price_by_side = Some(PercentPriceBySide {
            bid_multiplier_up: Decimal::new(11, 1),
            bid_multiplier_down: Decimal::new(5, 1),
            ask_multiplier_up: Decimal::new(2, 0),
            ask_multiplier_down: Decimal::new(9, 1),
            avg_price_mins: 5,
        });
    });
    assert_eq!(place(by_side.clone(), at(Side::Buy, 661_000)), Err(-4016));
    assert_eq!(place(by_side, at(Side::Sell, 661_000)), Ok(()));
}

/// The bands of a stop-limit order, from the documents alone; the engine has its own table. The
/// filter (docs/interface/orders.md#price-bands) mentions `price` and `markPrice`. The names of
/// -4183 and -4184 (docs/interface/errors.md#40xx) contain STOP where -4016 and -4024 contain the
/// mark price. The mark price is 60,000.0. Stop and limit prices are tenths of the quote asset.
#[test]
fn stop_limit_prices_have_bands_around_mark_and_stop() {
    use OrderType::{Stop, TakeProfit};
    let percent = |r: &mut Instrument| {
        r.filters.percent_price = Some(PercentPrice {
            multiplier_up: Decimal::new(102, 2),
            multiplier_down: Decimal::new(98, 2),
        });
    };
    let placed = |surface, (order_type, side, stop_price, price): (_, _, i64, i64)| {
        let mut bench = Bench::with(config(), vec![rules(surface, percent)]);
        let id = InstrumentId(0);
        bench.top(id, (599_990, 500), (600_010, 500));
        bench.trade(id, 600_000, 1, true);
        let mut terms = stop(order_type, side, stop_price, 10);
        terms.instrument = id;
        terms.price = Some(Price(price));
        terms.time_in_force = Some(TimeInForce::Gtc);
        bench.place("a", terms).map(|_| ())
    };
    // The band of the mark price is 58,800.0 to 61,200.0.
    for (order, expected) in [
        ((Stop, Side::Sell, 594_000, 587_999), Err(-4024)),
        ((Stop, Side::Sell, 594_000, 588_000), Ok(())),
        ((Stop, Side::Sell, 594_000, 700_000), Ok(())),
        // 0.98 of the stop price is 59,976.0.
        ((TakeProfit, Side::Sell, 612_000, 599_759), Err(-4184)),
        ((TakeProfit, Side::Sell, 612_000, 599_760), Ok(())),
        ((Stop, Side::Buy, 606_000, 612_001), Err(-4016)),
        ((Stop, Side::Buy, 606_000, 612_000), Ok(())),
        ((Stop, Side::Buy, 606_000, 100_000), Ok(())),
        // 1.02 of the stop price is 59,976.0.
        ((TakeProfit, Side::Buy, 588_000, 599_761), Err(-4183)),
        ((TakeProfit, Side::Buy, 588_000, 599_760), Ok(())),
        // Outside both bands, the code is that of the mark price.
        ((Stop, Side::Sell, 599_000, 500_000), Err(-4024)),
    ] {
        assert_eq!(placed(Surface::Futures, order), expected, "{order:?}");
    }
    // On spot, both sides have both bounds.
    for (order, expected) in [
        ((TakeProfit, Side::Sell, 606_000, 593_879), Err(-4184)),
        ((Stop, Side::Sell, 594_000, 605_881), Err(-4183)),
        ((Stop, Side::Buy, 606_000, 593_879), Err(-4184)),
        ((Stop, Side::Buy, 606_000, 593_880), Ok(())),
        ((Stop, Side::Buy, 606_000, 587_000), Err(-4024)),
    ] {
        assert_eq!(placed(Surface::Spot, order), expected, "{order:?}");
    }
}

#[test]
fn a_market_order_rejects_a_best_price_out_of_bounds() {
    let bound = rules(Surface::Futures, |r| {
        r.market_take_bound = Some(Decimal::new(1, 2));
    });
    let mut bench = Bench::with(config(), vec![bound]);
    bench.mark(600_000, 0, windvane_model::Time::NEVER);
    let asks = [level(605_990, 10), level(606_000, 10), level(606_001, 10)];
    bench.depth(FUTURES, 1, true, &[level(590_000, 10)], &asks);
    let report = bench.place("a", market(FUTURES, Side::Buy, 30)).unwrap();
    assert_eq!(report.executed_qty.0, 20);
    assert_eq!(bench.place("b", market(FUTURES, Side::Sell, 1)), Err(-4131));
}

#[test]
fn the_take_bound_is_rounded_towards_the_mark() {
    let bound = rules(Surface::Futures, |r| {
        r.market_take_bound = Some(Decimal::new(1, 2));
    });
    let mut bench = Bench::with(config(), vec![bound]);
    // The exact bounds are 59,400.495 and 60,600.505.
    bench.mark(600_005, 0, windvane_model::Time::NEVER);
    let bids = [level(594_005, 10), level(594_004, 10)];
    let asks = [level(606_005, 10), level(606_006, 10)];
    bench.depth(FUTURES, 1, true, &bids, &asks);
    for (name, side) in [("a", Side::Sell), ("b", Side::Buy)] {
        let report = bench.place(name, market(FUTURES, side, 20)).unwrap();
        assert_eq!(report.executed_qty.0, 10);
    }
}

#[test]
fn notional_has_its_bounds_and_exemptions() {
    let futures = rules(Surface::Futures, |r| {
        r.filters.min_notional = Some(whole(100));
    });
    let of = |qty| with(|t| t.qty = Some(Qty(qty)));
    assert_eq!(place(futures.clone(), of(2)), Ok(()));
    assert_eq!(place(futures.clone(), of(1)), Err(-4164));
    assert_eq!(
        place(futures.clone(), market(FUTURES, Side::Buy, 1)),
        Err(-4164)
    );
    let mut bench = Bench::with(config(), vec![futures]);
    bench.top(FUTURES, (600_000, 500), (600_010, 500));
    bench.place("a", market(FUTURES, Side::Buy, 3)).unwrap();
    let mut reducing = market(FUTURES, Side::Sell, 1);
    reducing.reduce_only = true;
    assert!(bench.place("b", reducing).is_ok());

    let spot = rules(Surface::Spot, |r| {
        r.filters.notional = Some(Notional {
            min_notional: whole(100),
            max_notional: whole(500),
            apply_min_to_market: false,
            apply_max_to_market: true,
            avg_price_mins: 5,
        });
    });
    assert_eq!(place(spot.clone(), of(1)), Err(-4164));
    assert_eq!(place(spot.clone(), of(9)), Err(-1013));
    assert_eq!(place(spot.clone(), market(FUTURES, Side::Sell, 1)), Ok(()));
    assert_eq!(place(spot, market(FUTURES, Side::Sell, 9)), Err(-1013));
}

#[test]
fn open_orders_are_counted() {
    let few = rules(Surface::Futures, |r| {
        r.filters.max_num_orders = Some(3);
        r.filters.max_num_algo_orders = Some(1);
    });
    let mut bench = Bench::with(config(), vec![few]);
    bench.top(FUTURES, (600_000, 500), (600_010, 500));
    let stop = stop(OrderType::StopMarket, Side::Buy, 610_000, 1);
    bench.place("a", stop).unwrap();
    assert_eq!(bench.place("b", stop), Err(-4045));
    bench.place("b", good()).unwrap();
    bench.place("c", good()).unwrap();
    assert_eq!(bench.place("d", good()), Err(-2025));
    assert!(bench.place("e", market(FUTURES, Side::Buy, 1)).is_ok());
    bench.cancel(FUTURES, "b").unwrap();
    assert!(bench.place("d", good()).is_ok());
}

#[test]
fn more_than_ten_cancels_at_once_are_refused() {
    let mut bench = Bench::new(config());
    bench.request(&Request::CancelBatch {
        instrument: FUTURES,
        client_order_ids: (0..11).map(|n| id(&n.to_string())).collect(),
    });
    assert_eq!(bench.messages.len(), 11);
    assert!(
        bench
            .messages
            .iter()
            .all(|m| format!("{m:?}").contains("-4032"))
    );
    assert!(matches!(bench.messages[0], VenueMessage::Reply(_)));
}
