//! Tests of the quotes on a scripted market.

use super::*;
use windvane_sdk::harness::{Harness, Intent, instrument};

/// The benchmark's parameters: 3 ticks from the best price, replaced when the mid moved by more
/// than 5.
const BENCH: &str = r#"{"qty":"0.010","reference":"touch","half_spread_ticks":3,
    "replace_threshold_ticks":5,"max_position":"100"}"#;

fn harness(params: &str) -> Harness<MarketMaker> {
    Harness::new(params, &[instrument("futures:BTCUSDT", "0.1", "0.001")]).unwrap()
}

fn book(h: &mut Harness<MarketMaker>, bid: &str, ask: &str) {
    h.book(bid, "1", ask, "1");
}

/// Side and price of each open order.
fn quotes(h: &Harness<MarketMaker>) -> Vec<(Side, i64)> {
    h.open_orders()
        .iter()
        .map(|o| (o.order.side(), o.order.price().0))
        .collect()
}

fn only(h: &Harness<MarketMaker>, side: Side) -> OrderId {
    let open = h.open_orders();
    let of_side: Vec<_> = open.iter().filter(|o| o.order.side() == side).collect();
    assert_eq!(of_side.len(), 1, "one order per side: {open:?}");
    of_side[0].id
}

#[test]
fn both_sides_are_quoted_post_only_from_the_touch() {
    let mut h = harness(BENCH);
    book(&mut h, "65000.0", "65000.2");
    assert_eq!(quotes(&h), [(Side::Buy, 649_997), (Side::Sell, 650_005)]);
    assert!(h.open_orders().iter().all(|o| o.order.is_post_only()));
}

#[test]
fn quotes_around_the_mid_never_cross() {
    let mut h = harness(r#"{"qty":"0.010","reference":"mid","half_spread_ticks":2}"#);
    book(&mut h, "100.0", "100.3");
    assert_eq!(
        quotes(&h),
        [(Side::Buy, 999), (Side::Sell, 1_004)],
        "the mid of 1001.5 is rounded outward"
    );
    let mut tight = harness(r#"{"qty":"0.010","reference":"mid","half_spread_ticks":0}"#);
    book(&mut tight, "100.0", "100.1");
    assert_eq!(quotes(&tight), [(Side::Buy, 1_000), (Side::Sell, 1_001)]);
}

#[test]
fn quotes_stay_within_the_threshold() {
    let mut h = harness(BENCH);
    book(&mut h, "65000.0", "65000.2");
    h.settle();
    h.intents();
    for (bid, ask) in [
        ("65000.5", "65000.7"),
        ("64999.5", "64999.7"),
        ("65000.4", "65000.8"),
    ] {
        book(&mut h, bid, ask);
        assert_eq!(h.intents(), [], "{bid}");
    }
    book(&mut h, "65000.6", "65000.7");
    assert!(matches!(
        h.intents().as_slice(),
        [Intent::Cancel(_), Intent::Cancel(_)]
    ));
}

#[test]
fn a_replacement_waits_for_the_cancel() {
    let mut h = harness(BENCH);
    book(&mut h, "65000.0", "65000.2");
    h.settle();
    book(&mut h, "65001.0", "65001.2");
    h.intents();
    book(&mut h, "65001.1", "65001.3");
    assert_eq!(h.intents(), [], "cancels are in flight");
    h.settle();
    assert_eq!(quotes(&h), [(Side::Buy, 650_008), (Side::Sell, 650_016)]);
}

#[test]
fn a_fill_during_a_cancel_places_no_second_order() {
    let mut h = harness(BENCH);
    book(&mut h, "65000.0", "65000.2");
    h.settle();
    let bid = only(&h, Side::Buy);
    book(&mut h, "64999.0", "64999.2");
    h.fill(bid, "64999.7", "0.004");
    assert_eq!(only(&h, Side::Buy), bid, "the cancel is still in flight");
    h.confirm_cancel(bid);
    let next = only(&h, Side::Buy);
    assert_ne!(next, bid);
    assert_eq!(h.position(), Qty(4));
}

#[test]
fn a_filled_side_is_quoted_again_at_once() {
    let mut h = harness(BENCH);
    book(&mut h, "65000.0", "65000.2");
    h.settle();
    let (bid, ask) = (only(&h, Side::Buy), only(&h, Side::Sell));
    h.fill(bid, "64999.7", "0.004");
    assert_eq!(only(&h, Side::Buy), bid, "a partly filled order stays");
    h.fill(bid, "64999.7", "0.006");
    assert_ne!(only(&h, Side::Buy), bid);
    assert_eq!(only(&h, Side::Sell), ask);
}

#[test]
fn inventory_moves_both_quotes_against_it() {
    let skewed = r#"{"qty":"0.010","half_spread_ticks":5,"replace_threshold_ticks":1,
        "skew_ticks_per_qty":2}"#;
    let mut h = harness(skewed);
    h.set_position("0.020", "65000.0");
    book(&mut h, "65000.0", "65000.2");
    assert_eq!(
        quotes(&h),
        [(Side::Buy, 649_991), (Side::Sell, 650_003)],
        "both quotes are 4 ticks lower"
    );
    h.settle();
    let bid = only(&h, Side::Buy);
    h.fill(bid, "64999.1", "0.010");
    h.settle();
    assert_eq!(quotes(&h), [(Side::Buy, 649_989), (Side::Sell, 650_001)]);
}

#[test]
fn the_position_stays_within_its_bounds() {
    let mut h = harness(r#"{"qty":"0.010","half_spread_ticks":1,"max_position":"0.015"}"#);
    h.set_position("0.012", "65000.0");
    book(&mut h, "65000.0", "65000.2");
    let qtys: Vec<_> = h
        .open_orders()
        .iter()
        .map(|o| (o.order.side(), o.order.qty()))
        .collect();
    assert_eq!(qtys, [(Side::Buy, Qty(3)), (Side::Sell, Qty(10))]);
    h.settle();
    let bid = only(&h, Side::Buy);
    h.fill(bid, "64999.9", "0.003");
    assert_eq!(
        quotes(&h),
        [(Side::Sell, 650_003)],
        "the position limit allows no buy"
    );
}

#[test]
fn spot_offers_only_what_it_bought() {
    let spot = instrument("spot:BTCUSDT", "0.1", "0.001");
    let params = r#"{"qty":"0.010","half_spread_ticks":1}"#;
    let mut h = Harness::<MarketMaker>::new(params, &[spot]).unwrap();
    book(&mut h, "65000.0", "65000.2");
    assert_eq!(quotes(&h), [(Side::Buy, 649_999)]);
    h.settle();
    let bid = only(&h, Side::Buy);
    h.fill(bid, "64999.9", "0.010");
    assert_eq!(quotes(&h).len(), 2);
}

#[test]
fn a_rejected_side_waits_for_its_timer() {
    let mut h = harness(BENCH);
    h.refuse_next(202);
    book(&mut h, "65000.0", "65000.2");
    assert_eq!(quotes(&h), [(Side::Sell, 650_005)]);
    assert!(
        h.logs()[0].1.contains("Buy quote refused"),
        "{:?}",
        h.logs()
    );
    book(&mut h, "65000.1", "65000.3");
    assert_eq!(quotes(&h).len(), 1, "no retry before the timer");
    h.advance_ms(RETRY_MS);
    assert_eq!(quotes(&h).len(), 2);
    let bid = only(&h, Side::Buy);
    h.reject(bid, -2019);
    assert_eq!(quotes(&h).len(), 1);
    h.advance_ms(RETRY_MS);
    assert_eq!(quotes(&h).len(), 2);
}

#[test]
fn an_expired_quote_waits_for_the_next_book() {
    let mut h = harness(BENCH);
    book(&mut h, "65000.0", "65000.2");
    let bid = only(&h, Side::Buy);
    h.expire(bid);
    assert_eq!(quotes(&h).len(), 1);
    book(&mut h, "64999.0", "64999.2");
    assert!(quotes(&h).contains(&(Side::Buy, 649_987)));
}

#[test]
fn a_refused_cancel_is_requested_again() {
    let mut h = harness(BENCH);
    book(&mut h, "65000.0", "65000.2");
    h.settle();
    book(&mut h, "65001.0", "65001.2");
    let bid = only(&h, Side::Buy);
    h.accept(bid);
    h.intents();
    book(&mut h, "65001.1", "65001.3");
    assert_eq!(h.intents(), [Intent::Cancel(bid)]);
}

#[test]
fn no_quote_on_an_incomplete_book_or_while_not_ready() {
    let mut h = harness(BENCH);
    h.book_empty();
    assert_eq!(quotes(&h), []);
    h.runtime_state(RuntimeState::Paused);
    book(&mut h, "65000.0", "65000.2");
    assert_eq!(quotes(&h), []);
    h.runtime_state(RuntimeState::Ready);
    assert_eq!(quotes(&h).len(), 2);
    h.settle();
    h.runtime_state(RuntimeState::Degraded);
    assert_eq!(h.intents().len(), 4, "two quotes and their cancels");
}

#[test]
fn after_a_hot_swap_open_quotes_are_adopted() {
    let mut h = harness(BENCH);
    book(&mut h, "65000.0", "65000.2");
    h.settle();
    h.intents();
    h.swap(BENCH).unwrap();
    book(&mut h, "65000.0", "65000.2");
    assert_eq!(quotes(&h), [(Side::Buy, 649_997), (Side::Sell, 650_005)]);
    assert!(
        !h.intents()
            .iter()
            .any(|intent| matches!(intent, Intent::Submit(..))),
        "no quote is placed twice"
    );
}

#[test]
fn changes_of_a_whole_book_update_quotes() {
    let mut h = harness(BENCH);
    h.book_levels(&[(650_000, 5), (649_999, 5)], &[(650_002, 5)]);
    assert_eq!(quotes(&h), [(Side::Buy, 649_997), (Side::Sell, 650_005)]);
}
