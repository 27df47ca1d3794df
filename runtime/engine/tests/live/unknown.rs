//! Promise 2 (docs/promises.md#2-unknown-is-a-state): an unknown outcome stays unknown until evidence
//! shows what happened to the order.

use windvane_model::effect::Adjustment;
use windvane_model::order_state::OrderState;
use windvane_model::rules::Rule;
use windvane_model::run_state::RunState;
use windvane_model::{Input, Notice, OrderStatus, Outcome, PositionSide, Reply, Side};

use super::support::{Account, BTC, MM, OTHER, limit, refused, report};
use super::world::ready;

fn queried(account: &mut Account, outcome: Outcome<windvane_model::protocol::OrderReport>) {
    let id = account.id(MM, windvane_model::OrderSeq(1));
    account.handle(Input::Reply(&Reply::Queried {
        client_order_id: id,
        outcome,
    }));
}

fn lost() -> Account {
    let mut account = ready();
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Unknown);
    account.sent.clear();
    account
}

#[test]
fn a_lost_order_keeps_its_exposure_and_is_never_sent_again() {
    let mut account = lost();
    account.seconds(120);
    assert_eq!(account.places(), 0);
    assert!(account.queries() > 50);
    let holding = account.engine.ledgers().account.at(BTC, PositionSide::Both);
    assert_eq!(holding.open_buy, 10);
}

#[test]
fn a_strategy_with_an_unknown_order_opens_nothing() {
    let mut account = lost();
    let rejected = account.call(MM, |callback, engine| {
        callback.submit(engine, limit(Side::Buy, 990, 10)).err()
    });
    assert_eq!(rejected.map(|one| one.rule), Some(Rule::Degraded));
    account.submit(OTHER, limit(Side::Buy, 990, 10));
    account.confirm_countdowns();
    assert_eq!(account.places(), 1, "other strategies are not affected");
    let id = account.id(MM, windvane_model::OrderSeq(1));
    let rests = Outcome::Done(report(id, OrderStatus::New, 0));
    account.placed(id, rests);
    account.submit(MM, limit(Side::Buy, 990, 10));
    account.confirm_countdowns();
    assert_eq!(account.places(), 2);
}

#[test]
fn an_order_of_unknown_outcome_is_listed_until_it_is_settled() {
    let mut account = lost();
    account.wait(1);
    assert_eq!(
        account.engine.unknown_orders(),
        [],
        "it may be settled at once"
    );
    account.wait(2);
    let [unknown] = account.engine.unknown_orders()[..] else {
        panic!("one strategy in one instrument")
    };
    assert_eq!(
        (unknown.strategy, unknown.instrument, unknown.count),
        (MM, BTC, 1)
    );
    let words = account.engine.describe_unknown_orders(&unknown);
    assert_eq!(words.what, "strategy mm in futures:BTCUSDT");
    assert!(
        words.reason.contains("1 order is not known"),
        "{}",
        words.reason
    );
    assert!(
        words.what_to_do.contains("opens nothing more"),
        "{}",
        words.what_to_do
    );
    // Other strategies are not degraded.
    assert_eq!(account.engine.run_state(), RunState::Ready);
    let id = account.id(MM, windvane_model::OrderSeq(1));
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    assert_eq!(account.engine.unknown_orders(), []);
}

#[test]
fn absence_settles_nothing_while_the_request_may_still_arrive() {
    settles_late_by_the_answer(-2013);
}

/// The documents do not define the code for a query of an order that is not found.
#[test]
fn the_code_for_an_unknown_order_also_counts_as_absence() {
    settles_late_by_the_answer(-2011);
}

fn settles_late_by_the_answer(code: i32) {
    let mut account = lost();
    // The request may arrive for six seconds, and a query may be twelve seconds old.
    for _ in 0..17 {
        account.pass(999);
        for _ in 0..account.take_queries() {
            queried(&mut account, refused(code));
        }
    }
    let order = windvane_model::OrderSeq(1);
    assert_eq!(
        account.engine.order(order).unwrap().state,
        OrderState::Unknown
    );
    account.pass(1_500);
    assert_eq!(account.take_queries(), 1);
    queried(&mut account, refused(code));
    assert!(account.engine.order(order).is_none(), "it never arrived");
    assert!(account.notices.iter().any(|notice| matches!(
        notice,
        Notice::Adjusted {
            adjustment: Adjustment::Absent { .. },
            ..
        }
    )));
}

#[test]
fn absence_is_as_old_as_its_query() {
    let mut account = lost();
    account.pass(1_000);
    assert_eq!(account.take_queries(), 1);
    // The process stalls. The venue responded at once, but the response is processed much later.
    account.now = account.now.plus_ms(60_000);
    queried(&mut account, refused(-2013));
    let order = windvane_model::OrderSeq(1);
    let state = |account: &Account| account.engine.order(order).map(|order| order.state);
    assert_eq!(state(&account), Some(OrderState::Unknown));
    account.pass(1_000);
    assert_eq!(account.take_queries(), 1);
    queried(&mut account, refused(-2013));
    assert_eq!(state(&account), None, "it never arrived");
}

#[test]
fn other_rejections_of_the_query_never_settle_an_order() {
    let mut account = lost();
    for _ in 0..30 {
        queried(&mut account, refused(-1003));
        account.pass(999);
    }
    let order = windvane_model::OrderSeq(1);
    assert_eq!(
        account.engine.order(order).unwrap().state,
        OrderState::Unknown
    );
}

#[test]
fn a_late_response_settles_an_unknown_order() {
    let mut account = lost();
    let order = windvane_model::OrderSeq(1);
    let id = account.id(MM, order);
    queried(&mut account, Outcome::Done(report(id, OrderStatus::New, 0)));
    assert_eq!(account.engine.order(order).unwrap().state, OrderState::New);
}

#[test]
fn a_settled_order_is_not_queried_again() {
    let mut account = lost();
    let order = windvane_model::OrderSeq(1);
    let id = account.id(MM, order);
    account.pass(1_000);
    assert_eq!(account.queries(), 1);
    account.sent.clear();
    queried(&mut account, Outcome::Done(report(id, OrderStatus::New, 0)));
    account.wait(20);
    assert_eq!(
        account.queries(),
        0,
        "a query per second would use the weight of all orders"
    );
}

#[test]
fn a_lost_cancel_is_sent_again_while_the_order_is_open() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.cancel(MM, order);
    account.canceled(id, Outcome::Unknown);
    account.sent.clear();
    account.pass(1_000);
    assert_eq!(account.queries(), 1);
    queried(&mut account, Outcome::Done(report(id, OrderStatus::New, 0)));
    let cancels = account.sent.iter();
    let cancels =
        cancels.filter(|request| matches!(request, windvane_model::Request::Cancel { .. }));
    assert_eq!(cancels.count(), 1);
}

#[test]
fn a_rejected_cancel_is_repeated_only_after_a_query() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.cancel(MM, order);
    account.canceled(id, super::support::refused(-2011));
    account.sent.clear();
    let cancels = |account: &Account| {
        let is_cancel = |request: &&_| matches!(request, windvane_model::Request::Cancel { .. });
        account.sent.iter().filter(is_cancel).count()
    };
    for _ in 0..20 {
        account.pass(10);
        account.cancel(MM, order);
    }
    assert_eq!((cancels(&account), account.queries()), (0, 0));
    account.pass(1_000);
    assert_eq!(account.queries(), 1);
    queried(&mut account, Outcome::Done(report(id, OrderStatus::New, 0)));
    assert_eq!(cancels(&account), 1);
}
