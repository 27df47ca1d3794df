//! Tests of the crossing on a scripted market.

use super::*;
use windvane_sdk::harness::{Harness, Intent, instrument};

const PARAMS: &str = r#"{"qty":"0.010","fast":2,"slow":3}"#;
const FLIP: &str = r#"{"qty":"0.010","fast":2,"slow":3,"mode":"flip_each_sign"}"#;

fn harness(params: &str) -> Harness<EmaCross> {
    Harness::new(params, &[instrument("futures:BTCUSDT", "0.1", "0.001")]).unwrap()
}

fn trades(h: &mut Harness<EmaCross>, prices: &[&str]) {
    for price in prices {
        h.trade(price, "1");
    }
}

fn submitted(h: &mut Harness<EmaCross>) -> Vec<(OrderId, Order)> {
    let submits = h.intents().into_iter().map(|intent| match intent {
        Intent::Submit(id, order) => (id, order),
        other => panic!("unexpected {other:?}"),
    });
    submits.collect()
}

#[test]
fn each_change_of_sign_is_one_market_order() {
    let mut h = harness(FLIP);
    trades(&mut h, &["100", "110", "120"]);
    assert!(
        submitted(&mut h).is_empty(),
        "the first sign must not count as a crossing"
    );
    trades(&mut h, &["90", "80"]);
    let orders = submitted(&mut h);
    assert_eq!(orders.len(), 1);
    assert_eq!(
        (orders[0].1.side(), orders[0].1.qty()),
        (Side::Sell, Qty(10))
    );
    trades(&mut h, &["150", "160", "50"]);
    let sides: Vec<Side> = submitted(&mut h).iter().map(|(_, o)| o.side()).collect();
    assert_eq!(sides, [Side::Buy, Side::Sell]);
}

#[test]
fn equal_averages_do_not_cross() {
    let mut h = harness(FLIP);
    trades(&mut h, &["100", "100", "100", "110"]);
    assert!(submitted(&mut h).is_empty());
}

#[test]
fn a_reduce_only_exit_comes_before_the_next_entry() {
    let mut h = harness(PARAMS);
    trades(&mut h, &["100", "90", "80", "120"]);
    let orders = submitted(&mut h);
    assert_eq!((orders.len(), orders[0].1.side()), (1, Side::Buy));
    h.accept(orders[0].0);
    h.fill(orders[0].0, "120", "0.010");
    trades(&mut h, &["60", "50"]);
    let exit = submitted(&mut h);
    assert_eq!(exit.len(), 1, "the entry waits for the exit");
    assert!(exit[0].1.is_reduce_only());
    h.fill(exit[0].0, "60", "0.010");
    let entry = submitted(&mut h);
    assert_eq!((entry.len(), entry[0].1.side()), (1, Side::Sell));
    assert!(!entry[0].1.is_reduce_only());
}

#[test]
fn a_partial_exit_is_completed() {
    let mut h = harness(PARAMS);
    trades(&mut h, &["100", "90", "80", "120"]);
    let entry = submitted(&mut h)[0].0;
    h.fill(entry, "120", "0.010");
    trades(&mut h, &["60"]);
    let exit = submitted(&mut h)[0].0;
    h.fill(exit, "60", "0.004");
    h.expire(exit);
    let rest = submitted(&mut h);
    assert_eq!((rest.len(), rest[0].1.qty()), (1, Qty(6)));
    assert!(rest[0].1.is_reduce_only());
}

#[test]
fn a_rejected_order_is_tried_again_after_a_wait() {
    let mut h = harness(PARAMS);
    h.refuse_next(7);
    trades(&mut h, &["100", "90", "80", "120", "121"]);
    assert!(submitted(&mut h).is_empty());
    h.advance_ms(RETRY_MS);
    let order = submitted(&mut h)[0].0;
    h.reject(order, -2019);
    assert!(submitted(&mut h).is_empty());
    h.advance_ms(RETRY_MS);
    assert_eq!(submitted(&mut h).len(), 1);
}

#[test]
fn no_entry_while_the_runtime_is_not_ready() {
    let mut h = harness(PARAMS);
    h.runtime_state(RuntimeState::Paused);
    trades(&mut h, &["100", "90", "80", "120"]);
    assert!(submitted(&mut h).is_empty());
    h.runtime_state(RuntimeState::Ready);
    assert_eq!(submitted(&mut h).len(), 1);
}

#[test]
fn spot_is_long_only_and_spends_the_quote_asset() {
    let spot = instrument("spot:BTCUSDT", "0.1", "0.001");
    let mut h = Harness::<EmaCross>::new(PARAMS, &[spot]).unwrap();
    trades(&mut h, &["100", "90", "80", "120"]);
    let buy = submitted(&mut h);
    assert_eq!(
        (buy[0].1.qty(), buy[0].1.quote_qty()),
        (Qty(0), Amount(120_000_000))
    );
    h.fill(buy[0].0, "120", "0.010");
    trades(&mut h, &["60", "50"]);
    let sell = submitted(&mut h);
    assert_eq!((sell.len(), sell[0].1.qty()), (1, Qty(10)));
    h.fill(sell[0].0, "60", "0.010");
    assert!(submitted(&mut h).is_empty(), "it must stay flat");
}

#[test]
fn a_hot_swap_keeps_averages_and_target_position() {
    let mut h = harness(PARAMS);
    trades(&mut h, &["100", "90", "80", "120"]);
    let entry = submitted(&mut h)[0].0;
    let before = (h.strategy.fast.value(), h.strategy.want);
    h.swap(PARAMS).unwrap();
    assert_eq!((h.strategy.fast.value(), h.strategy.want), before);
    assert_eq!(h.strategy.working, Some(entry));
    h.fill(entry, "120", "0.010");
    assert!(submitted(&mut h).is_empty());
}

#[test]
fn averages_are_plotted_every_few_trades() {
    let mut h = harness(r#"{"qty":"0.010","plot_every":2}"#);
    trades(&mut h, &["100", "101", "102"]);
    assert_eq!(h.plots().len(), 4);
    assert_eq!(h.plots()[0], ("ema fast".to_owned(), 1_000, 1));
}

#[test]
fn invalid_parameters_are_refused_by_name() {
    let error = |params: &str| {
        let i = instrument("futures:BTCUSDT", "0.1", "0.001");
        Harness::<EmaCross>::new(params, &[i]).unwrap_err()
    };
    assert!(error(r#"{"qty":"0.01","fast":20,"slow":10}"#).contains("params.fast"));
    assert!(error("{}").contains("params.qty"));
    assert!(error(r#"{"qty":"0.01","mode":"x"}"#).contains("flip_each_sign"));
    assert!(error(r#"{"qty":"0.01","fsat":3}"#).contains("params.fsat"));
}
