//! Post-only orders that end immediately. The strategy is paused, as after repeated rejections.

use windvane_model::input::Command;
use windvane_model::rules::Rule;
use windvane_model::{
    Input, Notice, OrderSeq, OrderStatus, OrderTerms, Outcome, Side, TimeInForce,
};

use super::support::{Account, MM, OTHER, limit, report, update};
use super::world::ready;

fn post_only(side: Side) -> OrderTerms {
    let mut terms = limit(side, 990, 1);
    terms.time_in_force = Some(TimeInForce::Gtx);
    terms
}

/// An order that the venue accepts and that ends with this status without a fill.
fn crosses(account: &mut Account, side: Side, status: OrderStatus, answered: bool) -> OrderSeq {
    let order = account.submit(MM, post_only(side));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    if answered {
        account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
        account.update(update(id, side, OrderStatus::New, 0));
        account.update(update(id, side, status, 0));
    } else {
        account.placed(id, Outcome::Done(report(id, status, 0)));
    }
    order
}

fn refusal(account: &mut Account, side: Side) -> Option<Rule> {
    let terms = post_only(side);
    let tried = account.call(MM, |callback, engine| callback.submit(engine, terms));
    tried.err().map(|rejection| rejection.rule)
}

#[test]
fn post_only_orders_that_end_at_once_wait_for_growing_pauses() {
    for status in [OrderStatus::Expired, OrderStatus::Canceled] {
        for answered in [true, false] {
            let mut account = ready();
            let mut sent = 0;
            for _ in 0..600 {
                if refusal(&mut account, Side::Buy).is_none() {
                    // The order that was just tried counts too.
                    let order = OrderSeq(account.engine.orders().iter().last().unwrap().seq.0);
                    let id = account.id(MM, order);
                    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
                    account.update(update(id, Side::Buy, status, 0));
                    sent += 1;
                }
                account.pass(99);
                account.alive();
                account.confirm_countdowns();
            }
            assert!(sent <= 12, "{status:?} {answered}: {sent} in a minute");
            let reported = account.notices.iter();
            let reported = reported.filter(|notice| matches!(notice, Notice::Crossed { .. }));
            assert_eq!(reported.count(), 1);
        }
    }
}

#[test]
fn the_pause_applies_to_one_side_of_one_strategy() {
    let mut account = ready();
    for _ in 0..3 {
        crosses(&mut account, Side::Buy, OrderStatus::Expired, true);
    }
    assert_eq!(refusal(&mut account, Side::Buy), Some(Rule::RefusalPause));
    assert_eq!(refusal(&mut account, Side::Sell), None);
    let terms = post_only(Side::Buy);
    let other = account.call(OTHER, |callback, engine| callback.submit(engine, terms));
    assert!(other.is_ok());
    assert_eq!(account.engine.refusals().count(), 1);
    account.handle(Input::Command(Command::Resume));
    assert_eq!(refusal(&mut account, Side::Buy), None);
}

#[test]
fn an_order_that_stays_open_ends_the_series() {
    let mut account = ready();
    for _ in 0..2 {
        crosses(&mut account, Side::Buy, OrderStatus::Expired, true);
    }
    let order = account.submit(MM, post_only(Side::Buy));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    account.update(update(id, Side::Buy, OrderStatus::New, 0));
    account.cancel(MM, order);
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
    for _ in 0..2 {
        crosses(&mut account, Side::Buy, OrderStatus::Expired, false);
    }
    assert_eq!(refusal(&mut account, Side::Buy), None);
}
