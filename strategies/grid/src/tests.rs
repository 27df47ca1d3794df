//! Tests of the grid on a scripted market.

use super::*;
use windvane_sdk::harness::{Harness, Intent, instrument};

const PARAMS: &str = r#"{"qty":"0.010","levels":2,"step_ticks":10,"centre":"100.0"}"#;

fn harness(params: &str) -> Harness<Grid> {
    Harness::new(params, &[instrument("futures:BTCUSDT", "0.1", "0.001")]).unwrap()
}

/// Side and price of each open order, lowest price first.
fn orders(h: &Harness<Grid>) -> Vec<(Side, i64)> {
    let open = h.open_orders();
    let mut list: Vec<_> = open
        .iter()
        .map(|o| (o.order.side(), o.order.price().0))
        .collect();
    list.sort_by_key(|(_, price)| *price);
    list
}

fn order_at(h: &Harness<Grid>, price: i64) -> OrderId {
    let open = h.open_orders();
    open.iter().find(|o| o.order.price().0 == price).unwrap().id
}

#[test]
fn the_grid_is_placed_around_the_centre() {
    let mut h = harness(PARAMS);
    h.book("99.9", "1", "100.1", "1");
    let want = [
        (Side::Buy, 980),
        (Side::Buy, 990),
        (Side::Sell, 1_010),
        (Side::Sell, 1_020),
    ];
    assert_eq!(orders(&h), want);
    assert!(h.open_orders().iter().all(|o| o.order.is_post_only()));
}

#[test]
fn the_first_mid_is_the_default_centre() {
    let mut h = harness(r#"{"qty":"0.010","levels":1,"step_ticks":10}"#);
    h.book("200.0", "1", "200.2", "1");
    assert_eq!(orders(&h), [(Side::Buy, 1_991), (Side::Sell, 2_011)]);
    h.settle();
    h.intents();
    h.book("205.0", "1", "205.2", "1");
    assert_eq!(h.intents(), [], "the grid does not follow the market");
}

#[test]
fn a_fill_places_the_other_side_of_its_rung() {
    let mut h = harness(PARAMS);
    h.book("99.9", "1", "100.1", "1");
    h.settle();
    let bid = order_at(&h, 990);
    h.book("98.9", "1", "99.1", "1");
    h.fill(bid, "99.0", "0.010");
    assert!(orders(&h).contains(&(Side::Sell, 1_000)));
    h.settle();
    let ask = order_at(&h, 1_000);
    h.fill(ask, "100.0", "0.010");
    assert!(orders(&h).contains(&(Side::Buy, 990)));
    assert_eq!(h.position(), Qty(0));
}

#[test]
fn a_partial_fill_keeps_the_order() {
    let mut h = harness(PARAMS);
    h.book("99.9", "1", "100.1", "1");
    h.settle();
    let before = orders(&h);
    h.fill(order_at(&h, 990), "99.0", "0.004");
    assert_eq!(orders(&h), before);
}

#[test]
fn the_rest_of_a_cancelled_order_is_ordered_again() {
    let mut h = harness(PARAMS);
    h.book("99.9", "1", "100.1", "1");
    h.settle();
    let bid = order_at(&h, 990);
    h.fill(bid, "99.0", "0.004");
    h.confirm_cancel(bid);
    h.book("99.9", "1", "100.1", "1");
    let again = order_at(&h, 990);
    let open = h.open_orders();
    let order = open.iter().find(|o| o.id == again).unwrap();
    assert_eq!(order.order.qty(), Qty(6));
}

#[test]
fn the_position_is_limited_to_levels_times_quantity() {
    let mut h = harness(PARAMS);
    h.book("99.9", "1", "100.1", "1");
    h.settle();
    for price in [990, 980] {
        h.fill(order_at(&h, price), "98.0", "0.010");
    }
    h.book("90.0", "1", "90.1", "1");
    h.settle();
    assert_eq!(h.position(), Qty(20));
    assert!(
        orders(&h).iter().all(|(side, _)| *side == Side::Sell),
        "{:?}",
        orders(&h)
    );
}

#[test]
fn an_order_that_would_take_waits_until_it_rests() {
    let mut h = harness(PARAMS);
    h.book("98.5", "1", "98.6", "1");
    assert_eq!(
        orders(&h),
        [(Side::Buy, 980), (Side::Sell, 1_010), (Side::Sell, 1_020)]
    );
    h.book("99.5", "1", "99.6", "1");
    assert_eq!(orders(&h).len(), 4);
}

#[test]
fn spot_begins_flat_with_buys_only() {
    let spot = instrument("spot:BTCUSDT", "0.1", "0.001");
    let mut h = Harness::<Grid>::new(PARAMS, std::slice::from_ref(&spot)).unwrap();
    h.book("99.9", "1", "100.1", "1");
    assert_eq!(
        orders(&h),
        [(Side::Buy, 980), (Side::Buy, 990), (Side::Buy, 1_000)]
    );
    h.settle();
    h.fill(order_at(&h, 1_000), "100.0", "0.010");
    assert!(orders(&h).contains(&(Side::Sell, 1_010)));
    let short = r#"{"qty":"0.010","long_only":false}"#;
    assert!(
        Harness::<Grid>::new(short, &[spot])
            .unwrap_err()
            .contains("long_only")
    );
}

#[test]
fn a_rejected_rung_waits_for_its_timer() {
    let mut h = harness(PARAMS);
    h.refuse_next(202);
    h.book("99.9", "1", "100.1", "1");
    assert_eq!(orders(&h).len(), 3);
    h.book("99.8", "1", "100.1", "1");
    assert_eq!(orders(&h).len(), 3);
    h.advance_ms(RETRY_MS);
    assert_eq!(orders(&h).len(), 4);
    h.reject(order_at(&h, 990), -2019);
    h.book("99.9", "1", "100.1", "1");
    assert_eq!(orders(&h).len(), 3);
    h.advance_ms(RETRY_MS);
    assert_eq!(orders(&h).len(), 4);
}

#[test]
fn a_hot_swap_keeps_centre_sides_and_orders() {
    let params = r#"{"qty":"0.010","levels":2,"step_ticks":10}"#;
    let mut h = harness(params);
    h.book("99.9", "1", "100.1", "1");
    h.settle();
    h.fill(order_at(&h, 990), "99.0", "0.010");
    h.settle();
    h.intents();
    let before = orders(&h);
    h.swap(params).unwrap();
    h.book("97.0", "1", "97.1", "1");
    let placed = h
        .intents()
        .iter()
        .any(|intent| matches!(intent, Intent::Submit(..)));
    assert!(!placed, "no order is placed twice");
    assert_eq!(orders(&h), before);
    assert!(
        h.swap(r#"{"qty":"0.020","levels":2,"step_ticks":10}"#)
            .unwrap_err()
            .contains("qty")
    );
}

#[test]
fn fills_during_a_restart_count_for_their_rung() {
    let mut h = harness(PARAMS);
    h.book("99.9", "1", "100.1", "1");
    h.settle();
    let (bid, state) = (order_at(&h, 990), h.strategy.save());
    h.fill(bid, "99.0", "0.010");
    let instruments = [instrument("futures:BTCUSDT", "0.1", "0.001")];
    h.strategy = Grid::new(Params::parse(PARAMS.as_bytes()).unwrap(), &instruments).unwrap();
    h.strategy.load(Grid::STATE_SCHEMA, &state).unwrap();
    h.intents();
    // The order is reported as ended. The earlier process did not receive the fill.
    h.confirm_cancel(bid);
    h.book("99.9", "1", "100.1", "1");
    let intents = h.intents();
    let again = intents.iter().any(|intent| match intent {
        Intent::Submit(_, order) => order.price().0 == 990,
        _ => false,
    });
    assert!(!again, "the rung must not buy twice: {intents:?}");
}

#[test]
fn a_closed_position_starts_a_new_grid() {
    let mut h = harness(PARAMS);
    h.book("99.9", "1", "100.1", "1");
    h.settle();
    let laid = orders(&h);
    h.fill(order_at(&h, 990), "99.0", "0.010");
    h.settle();
    h.runtime_state(RuntimeState::Halted);
    for order in h.open_orders() {
        h.confirm_cancel(order.id);
    }
    h.set_position("0", "0");
    h.runtime_state(RuntimeState::Ready);
    assert_eq!(
        orders(&h),
        laid,
        "the closed quantity must not be sold at 100.0"
    );
}

#[test]
fn a_halt_keeps_the_sides_of_the_rungs() {
    let mut h = harness(PARAMS);
    h.book("99.9", "1", "100.1", "1");
    h.settle();
    h.fill(order_at(&h, 990), "99.0", "0.010");
    h.settle();
    let before = orders(&h);
    h.runtime_state(RuntimeState::Halted);
    for order in h.open_orders() {
        h.confirm_cancel(order.id);
    }
    h.runtime_state(RuntimeState::Ready);
    assert_eq!(orders(&h), before);
}
