//! Tests of conditional orders: triggers, protection, and how they continue.

mod common;

use common::*;
use windvane_model::{
    Decimal, OrderStatus, OrderTerms, OrderType, Price, Qty, Side, TimeInForce, WorkingType,
};

fn bench() -> Bench {
    let mut bench = Bench::new(config());
    bench.top(FUTURES, (600_000, 500), (600_010, 500));
    bench.trade(FUTURES, 600_005, 1, true);
    bench
}

#[test]
fn each_order_type_and_side_triggers_as_documented() {
    use OrderType::{StopMarket, TakeProfitMarket};
    let table = [
        (StopMarket, Side::Buy, 600_100, true),
        (StopMarket, Side::Sell, 599_900, false),
        (TakeProfitMarket, Side::Buy, 599_900, false),
        (TakeProfitMarket, Side::Sell, 600_100, true),
    ];
    for (order_type, side, stop_price, rises) in table {
        let mut bench = bench();
        let report = bench
            .place("a", stop(order_type, side, stop_price, 10))
            .unwrap();
        assert_eq!(report.status, OrderStatus::New);
        bench.messages.clear();
        let (near, at) = if rises {
            (stop_price - 1, stop_price)
        } else {
            (stop_price + 1, stop_price)
        };
        bench.trade(FUTURES, near, 1, true);
        assert_eq!(bench.filled(), [], "{order_type} {side} at {near}");
        bench.trade(FUTURES, at, 1, true);
        assert_eq!(bench.filled().len(), 1, "{order_type} {side} at {at}");
        bench.trade(FUTURES, at, 1, true);
        assert_eq!(bench.filled().len(), 1, "it fills only once");
    }
}

#[test]
fn an_order_that_would_trigger_at_once_is_refused() {
    let mut bench = bench();
    let cases = [
        (OrderType::StopMarket, Side::Buy, 600_005),
        (OrderType::StopMarket, Side::Sell, 600_005),
        (OrderType::TakeProfitMarket, Side::Buy, 600_006),
        (OrderType::TakeProfitMarket, Side::Sell, 600_004),
    ];
    for (order_type, side, price) in cases {
        assert_eq!(
            bench.place("a", stop(order_type, side, price, 10)),
            Err(-2021)
        );
    }
}

#[test]
fn a_stop_limit_rests_at_its_price_once_triggered() {
    let mut bench = bench();
    let mut terms = stop(OrderType::Stop, Side::Buy, 600_100, 10);
    terms.price = Some(Price(599_000));
    bench.place("a", terms).unwrap();
    assert_eq!(bench.venue.queue_ahead(FUTURES, Side::Buy), None);
    bench.trade(FUTURES, 600_100, 1, false);
    assert_eq!(
        bench.venue.queue_ahead(FUTURES, Side::Buy),
        Some((599_000, None))
    );
    assert_eq!(
        bench.cancel(FUTURES, "a").unwrap().status,
        OrderStatus::Canceled
    );
}

#[test]
fn a_waiting_order_can_be_cancelled() {
    let mut bench = bench();
    bench
        .place("a", stop(OrderType::StopMarket, Side::Buy, 600_100, 10))
        .unwrap();
    bench.cancel(FUTURES, "a").unwrap();
    bench.messages.clear();
    bench.trade(FUTURES, 600_200, 1, false);
    assert_eq!(bench.messages, []);
}

#[test]
fn by_mark_price_the_mid_counts_until_a_mark_is_recorded() {
    let mut bench = bench();
    let mut terms = stop(OrderType::StopMarket, Side::Buy, 600_100, 10);
    terms.working_type = Some(WorkingType::MarkPrice);
    bench.place("a", terms).unwrap();
    bench.messages.clear();
    bench.trade(FUTURES, 600_500, 1, false);
    bench.top(FUTURES, (600_090, 500), (600_109, 500));
    assert_eq!(bench.filled(), []);
    bench.top(FUTURES, (600_090, 500), (600_110, 500));
    assert_eq!(bench.filled(), [(600_110, 10, false)]);

    terms.stop_price = Some(Price(601_000));
    bench.place("b", terms).unwrap();
    bench.mark(60_050, 0, windvane_model::Time::NEVER);
    bench.messages.clear();
    bench.top(FUTURES, (602_000, 500), (602_010, 500));
    assert_eq!(bench.filled(), []);
    bench.mark(60_100, 0, windvane_model::Time::NEVER);
    assert_eq!(bench.filled(), []);
    bench.mark(601_000, 0, windvane_model::Time::NEVER);
    assert_eq!(bench.filled(), [(602_010, 10, false)]);
}

#[test]
fn close_position_closes_all_and_expires_without_a_position() {
    let mut bench = bench();
    bench.place("open", market(FUTURES, Side::Buy, 30)).unwrap();
    let mut terms = OrderTerms::new(FUTURES, Side::Sell, OrderType::StopMarket);
    terms.stop_price = Some(Price(599_900));
    terms.close_position = true;
    bench.place("a", terms).unwrap();
    bench.place("more", market(FUTURES, Side::Buy, 5)).unwrap();
    terms.stop_price = Some(Price(599_800));
    bench.place("b", terms).unwrap();
    bench.trade(FUTURES, 599_900, 1, true);
    assert_eq!(bench.position(), 0);
    bench.messages.clear();
    bench.trade(FUTURES, 599_800, 1, true);
    assert_eq!(bench.statuses(), [OrderStatus::Expired]);
}

#[test]
fn a_trailing_stop_needs_its_activation_and_then_its_callback() {
    let mut bench = bench();
    let mut terms = OrderTerms::new(FUTURES, Side::Sell, OrderType::TrailingStopMarket);
    terms.qty = Some(Qty(10));
    terms.callback_ppm = Some(10_000);
    terms.activation_price = Some(Price(600_005));
    assert_eq!(bench.place("a", terms), Err(-2021));
    terms.activation_price = Some(Price(610_000));
    bench.place("a", terms).unwrap();
    bench.messages.clear();
    // It moved back by more than 1 percent, but was never activated.
    for price in [609_000, 600_000] {
        bench.trade(FUTURES, price, 1, true);
    }
    assert_eq!(bench.filled(), []);
    // 1 percent under 620,000 is 613,800.
    for price in [620_000, 613_801] {
        bench.trade(FUTURES, price, 1, true);
    }
    assert_eq!(bench.filled(), []);
    bench.trade(FUTURES, 613_800, 1, true);
    assert_eq!(bench.filled(), [(600_000, 10, false)]);
}

#[test]
fn a_trailing_buy_waits_for_a_low_enough_price() {
    let mut bench = bench();
    let mut terms = OrderTerms::new(FUTURES, Side::Buy, OrderType::TrailingStopMarket);
    terms.qty = Some(Qty(10));
    terms.callback_ppm = Some(10_000);
    terms.activation_price = Some(Price(590_000));
    bench.place("a", terms).unwrap();
    bench.messages.clear();
    for price in [595_000, 610_000, 590_000, 595_899] {
        bench.trade(FUTURES, price, 1, true);
        assert_eq!(bench.filled(), []);
    }
    bench.trade(FUTURES, 595_900, 1, true);
    assert_eq!(bench.filled(), [(600_010, 10, false)]);
}

#[test]
fn trailing_stops_without_activation_use_the_latest_price() {
    let mut bench = bench();
    let mut terms = OrderTerms::new(FUTURES, Side::Buy, OrderType::TrailingStopMarket);
    terms.qty = Some(Qty(10));
    terms.callback_ppm = Some(1_000);
    bench.place("a", terms).unwrap();
    bench.messages.clear();
    for price in [599_000, 599_598] {
        bench.trade(FUTURES, price, 1, true);
    }
    assert_eq!(bench.filled(), []);
    bench.trade(FUTURES, 599_599, 1, true);
    assert_eq!(bench.filled(), [(600_010, 10, false)]);
}

#[test]
fn price_protection_expires_an_order_far_from_the_mark() {
    let mut rules = instrument(windvane_model::Surface::Futures);
    rules.trigger_protect = Some(Decimal::new(1, 3));
    for (protect, status) in [(true, OrderStatus::Expired), (false, OrderStatus::Filled)] {
        let mut bench = Bench::with(config(), vec![rules.clone()]);
        bench.top(FUTURES, (600_000, 500), (600_010, 500));
        bench.trade(FUTURES, 600_005, 1, true);
        let mut terms = stop(OrderType::StopMarket, Side::Buy, 601_000, 10);
        terms.price_protect = protect;
        bench.place("a", terms).unwrap();
        bench.messages.clear();
        bench.trade(FUTURES, 601_000, 1, false);
        assert_eq!(bench.statuses(), [status]);
    }
}

#[test]
fn a_triggered_order_without_enough_funds_expires() {
    let mut bench = bench();
    bench
        .place(
            "a",
            stop(OrderType::StopMarket, Side::Buy, 600_100, 100_000),
        )
        .unwrap();
    bench.messages.clear();
    bench.trade(FUTURES, 600_100, 1, false);
    assert_eq!(bench.statuses(), [OrderStatus::Expired]);
}

#[test]
fn a_spot_stop_sells_without_a_lock_before() {
    let mut bench = bench();
    bench.top(SPOT, (600_000, 500), (600_010, 500));
    let mut terms = OrderTerms::new(SPOT, Side::Sell, OrderType::Stop);
    terms.qty = Some(Qty(1_000));
    terms.price = Some(Price(598_000));
    terms.stop_price = Some(Price(599_000));
    terms.time_in_force = Some(TimeInForce::Ioc);
    bench.place("a", terms).unwrap();
    assert_eq!(
        bench.balance(windvane_model::Surface::Spot, BTC).1,
        whole(0)
    );
    bench.messages.clear();
    bench.trade(SPOT, 598_990, 1, true);
    assert_eq!(bench.filled(), [(600_000, 500, false)]);
    assert_eq!(bench.statuses().last(), Some(&OrderStatus::Expired));
}
