//! When a conditional order triggers, it may expire and continue as an order with a new venue order
//! id under the same client order id (`trigger-events` of `docs/open-points.md`).

use windvane_model::order_state::OrderState;
use windvane_model::{
    OrderSeq, OrderStatus, OrderTerms, OrderType, Outcome, PositionSide, Price, Qty, Side, Time,
    VenueOrderId,
};

use super::support::{Account, BTC, MM, fill, report, update};
use super::world::ready;

/// The venue's time of the trigger.
const TRIGGERED: Time = Time(100);

/// A buy stop of 10 that waits at the venue with venue order id 1.
fn waiting() -> (Account, OrderSeq) {
    let mut account = ready();
    let mut terms = OrderTerms::new(BTC, Side::Buy, OrderType::StopMarket);
    terms.qty = Some(Qty(10));
    terms.stop_price = Some(Price(1_010));
    let order = account.submit(MM, terms);
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    account.update(update(id, Side::Buy, OrderStatus::New, 0));
    (account, order)
}

/// Sends an event with the trigger's time for the venue order id `number`.
fn tell(account: &mut Account, order: OrderSeq, status: OrderStatus, number: i64) {
    let mut update = update(account.id(MM, order), Side::Buy, status, 0);
    (update.order_id, update.transaction_time) = (VenueOrderId(number), TRIGGERED);
    account.update(update);
}

/// Checks that the order is open, reserves its whole quantity, and fills once.
fn goes_on(account: &mut Account, order: OrderSeq) {
    assert_eq!(account.engine.order(order).unwrap().state, OrderState::New);
    let open = |account: &Account| {
        let holding = account.engine.ledgers().account.at(BTC, PositionSide::Both);
        (holding.position.qty, holding.open_buy)
    };
    assert_eq!(open(account), (0, 10));
    let id = account.id(MM, order);
    let mut filled = fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled);
    (filled.order_id, filled.transaction_time) = (VenueOrderId(2), TRIGGERED);
    account.update(filled);
    assert!(account.engine.order(order).is_none());
    assert_eq!(open(account), (10, 0));
}

#[test]
fn a_triggered_order_continues_under_a_new_venue_id() {
    let (mut account, order) = waiting();
    tell(&mut account, order, OrderStatus::Expired, 1);
    tell(&mut account, order, OrderStatus::New, 2);
    goes_on(&mut account, order);
}

#[test]
fn the_end_of_the_old_venue_id_may_arrive_last() {
    let (mut account, order) = waiting();
    tell(&mut account, order, OrderStatus::New, 2);
    tell(&mut account, order, OrderStatus::Expired, 1);
    goes_on(&mut account, order);
}

#[test]
fn a_response_about_the_old_venue_id_does_not_end_the_order() {
    let (mut account, order) = waiting();
    tell(&mut account, order, OrderStatus::Expired, 1);
    tell(&mut account, order, OrderStatus::New, 2);
    let id = account.id(MM, order);
    let expired = report(id, OrderStatus::Expired, 0);
    account.canceled(id, Outcome::Done(expired));
    goes_on(&mut account, order);
}

#[test]
fn the_end_of_the_new_venue_id_ends_the_order() {
    let (mut account, order) = waiting();
    tell(&mut account, order, OrderStatus::Expired, 1);
    tell(&mut account, order, OrderStatus::New, 2);
    tell(&mut account, order, OrderStatus::Canceled, 2);
    assert!(account.engine.order(order).is_none());
}

#[test]
fn a_late_event_of_an_expired_order_does_not_reopen_it() {
    let (mut account, order) = waiting();
    tell(&mut account, order, OrderStatus::Expired, 1);
    tell(&mut account, order, OrderStatus::New, 1);
    assert!(account.engine.order(order).is_none());
}
