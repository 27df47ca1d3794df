//! Orders with late, duplicate, missing and disordered messages of the venue.

mod support;

use support::*;
use windvane_model::order_state::OrderState;
use windvane_model::{Input, Notice, OrderStatus, Outcome, PositionSide, Reply, Request, Side};

fn position(account: &Account) -> i64 {
    account
        .engine
        .ledgers()
        .account
        .at(BTC, PositionSide::Both)
        .position
        .qty
}

fn open_buy(account: &Account) -> i64 {
    account
        .engine
        .ledgers()
        .account
        .at(BTC, PositionSide::Both)
        .open_buy
}

fn ended(account: &Account) -> Vec<OrderState> {
    let state = |notice: &Notice| match notice {
        Notice::Ended { order, .. } => Some(order.state),
        _ => None,
    };
    account.notices.iter().filter_map(state).collect()
}

#[test]
fn a_fill_before_its_new_event_counts_once() {
    let mut account = Account::new(config());
    let order = account.submit(MM, limit(Side::Buy, 1000, 10));
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 5, 4, 4, OrderStatus::PartiallyFilled));
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    account.update(update(id, Side::Buy, OrderStatus::New, 0));
    let known = account.engine.order(order).unwrap();
    assert_eq!(
        (known.state, known.executed_qty),
        (OrderState::PartiallyFilled, 4)
    );
    assert_eq!((position(&account), open_buy(&account)), (4, 6));
}

#[test]
fn a_repeated_fill_counts_once() {
    let mut account = Account::new(config());
    let order = account.submit(MM, limit(Side::Buy, 1000, 10));
    let id = account.id(MM, order);
    for _ in 0..3 {
        account.update(fill(id, Side::Buy, 5, 4, 4, OrderStatus::PartiallyFilled));
    }
    account.update(fill(id, Side::Buy, 6, 6, 10, OrderStatus::Filled));
    account.update(fill(id, Side::Buy, 6, 6, 10, OrderStatus::Filled));
    assert_eq!((position(&account), open_buy(&account)), (10, 0));
    assert_eq!(ended(&account), [OrderState::Filled]);
}

#[test]
fn a_missing_fill_keeps_its_exposure_until_it_arrives() {
    let mut account = Account::new(config());
    let order = account.submit(MM, limit(Side::Buy, 1000, 10));
    let id = account.id(MM, order);
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 4));
    assert_eq!(
        account.engine.order(order).unwrap().state,
        OrderState::Canceled
    );
    assert!(open_buy(&account) >= 4, "a fill of four is not booked yet");
    assert_eq!(ended(&account), []);
    account.update(fill(id, Side::Buy, 5, 4, 4, OrderStatus::PartiallyFilled));
    assert_eq!((position(&account), open_buy(&account)), (4, 0));
    assert_eq!(ended(&account), [OrderState::Canceled]);
}

#[test]
fn a_late_fill_of_an_ended_order_is_booked() {
    let mut account = Account::new(config());
    let order = account.submit(MM, limit(Side::Buy, 1000, 10));
    let id = account.id(MM, order);
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
    account.update(fill(id, Side::Buy, 5, 4, 4, OrderStatus::Canceled));
    assert_eq!((position(&account), open_buy(&account)), (4, 0));
}

#[test]
fn an_order_of_unknown_outcome_counts_fully_and_is_queried() {
    let mut account = Account::new(config());
    let order = account.submit(MM, limit(Side::Buy, 1000, 10));
    let id = account.id(MM, order);
    account.placed(id, Outcome::Unknown);
    assert_eq!(
        account.engine.order(order).unwrap().state,
        OrderState::Unknown
    );
    assert_eq!(open_buy(&account), 10);
    account.sent.clear();
    account.pass(1_000);
    let query = Request::Query {
        instrument: BTC,
        client_order_id: id,
    };
    assert_eq!(account.sent, std::slice::from_ref(&query));
    // One reply that the order does not exist proves nothing: it stays unknown and is queried
    // again.
    account.handle(Input::Reply(&Reply::Queried {
        client_order_id: id,
        outcome: refused(-2013),
    }));
    assert_eq!(open_buy(&account), 10);
    account.sent.clear();
    account.pass(1_000);
    assert_eq!(account.sent, [query]);
    account.handle(Input::Reply(&Reply::Queried {
        client_order_id: id,
        outcome: Outcome::Done(report(id, OrderStatus::New, 0)),
    }));
    assert_eq!(account.engine.order(order).unwrap().state, OrderState::New);
}

#[test]
fn a_rejected_order_releases_its_exposure_and_reports_the_code() {
    let mut account = Account::new(config());
    let order = account.submit(MM, limit(Side::Buy, 1000, 10));
    let id = account.id(MM, order);
    account.placed(id, refused(-2019));
    assert_eq!(open_buy(&account), 0);
    let (_, _, fields) = account.events.last().copied().unwrap();
    assert_eq!((fields[0], fields[4]), (OrderState::Rejected as i64, -2019));
    assert_eq!(ended(&account), [OrderState::Rejected]);
}

#[test]
fn an_order_that_fills_before_its_cancel_is_filled() {
    let mut account = Account::new(config());
    let order = account.submit(MM, limit(Side::Buy, 1000, 10));
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    account.cancel(MM, order);
    assert_eq!(
        account.engine.order(order).unwrap().state,
        OrderState::CancelRequested
    );
    account.canceled(id, refused(-2011));
    assert_eq!(account.engine.order(order).unwrap().state, OrderState::New);
    account.update(fill(id, Side::Buy, 5, 10, 10, OrderStatus::Filled));
    assert_eq!(ended(&account), [OrderState::Filled]);
    assert_eq!(position(&account), 10);
}

#[test]
fn repeated_cancels_of_an_order_send_one_request() {
    let mut account = Account::new(config());
    let order = account.submit(MM, limit(Side::Buy, 1000, 10));
    account.cancel(MM, order);
    account.cancel(MM, order);
    let cancels = account
        .sent
        .iter()
        .filter(|r| matches!(r, Request::Cancel { .. }));
    assert_eq!(cancels.count(), 1);
}

#[test]
fn a_liquidation_is_booked_once_and_taken_from_the_strategy() {
    let mut account = Account::new(config());
    let order = account.submit(MM, limit(Side::Buy, 1000, 10));
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 5, 10, 10, OrderStatus::Filled));
    let autoclose = windvane_model::ClientOrderId::new("autoclose-1").unwrap();
    for _ in 0..2 {
        account.update(fill(autoclose, Side::Sell, 6, 10, 10, OrderStatus::Filled));
    }
    assert_eq!(position(&account), 0);
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    assert_eq!(own.position.qty, 0);
    assert_eq!(
        account
            .engine
            .ledgers()
            .external
            .at(BTC, PositionSide::Both)
            .position
            .qty,
        0
    );
}

#[test]
fn ids_of_another_epoch_or_strategy_are_not_own_orders() {
    let mut account = Account::new(config());
    account.submit(MM, limit(Side::Buy, 1000, 10));
    for foreign in ["mm.6.1", "nobody.7.1", "mm.7.2"] {
        let id = windvane_model::ClientOrderId::new(foreign).unwrap();
        account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
    }
    assert_eq!(account.engine.orders().len(), 1);
    assert_eq!(open_buy(&account), 10);
}
