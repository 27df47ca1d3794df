//! The answer to an order states a fill, and the user stream is seconds behind.

use windvane_engine::effect::Adjustment;
use windvane_engine::engine::{Doubt, RunState};
use windvane_engine::protocol::{AccountReason, AccountUpdate, BalanceUpdate, PositionUpdate};
use windvane_engine::{
    Amount, Input, Notice, OrderSeq, OrderStatus, Outcome, PositionSide, Reply, Side, Surface,
    UserEvent,
};

use super::reconciliation::{adjustments, qty, round, trade};
use super::support::{Account, BTC, MM, USDT, fill, instrument, market, report};
use super::world::{booting, live_config, position, ready};

/// A market order that the venue answers as filled: 10 at 990. Its event has not come.
fn stated(account: &mut Account, side: Side) -> OrderSeq {
    let order = account.submit(MM, market(side, 10));
    account.confirm_countdowns();
    account.sent.clear();
    let id = account.id(MM, order);
    let mut filled = report(id, OrderStatus::Filled, 10);
    filled.cum_quote = instrument().notional(990, 10);
    account.placed(id, Outcome::Done(filled));
    order
}

fn balance(account: &Account) -> Amount {
    account.engine.balance(Surface::Futures, USDT).total
}

fn own_fees(account: &Account) -> Amount {
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    own.position.fees
}

#[test]
fn a_stated_fill_is_booked_within_a_second() {
    let mut account = ready();
    let order = stated(&mut account, Side::Buy);
    account.pass(200);
    assert_eq!(qty(&account), 0, "its event may still come");
    account.pass(100);
    assert_eq!(qty(&account), 10);
    assert!(account.engine.order(order).is_none(), "it is filled");
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn an_event_that_comes_at_once_is_booked_itself() {
    let mut account = ready();
    let order = stated(&mut account, Side::Buy);
    let id = account.id(MM, order);
    account.pass(200);
    account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
    account.pass(1_000);
    let booked: Vec<i64> = (account.notices.iter())
        .filter_map(|notice| match notice {
            Notice::Filled { fill, .. } => Some(fill.trade_id.0),
            _ => None,
        })
        .collect();
    assert_eq!(booked, [1]);
}

#[test]
fn a_late_event_replaces_the_estimated_commission_once() {
    let mut account = ready();
    let before = balance(&account);
    let order = stated(&mut account, Side::Buy);
    let id = account.id(MM, order);
    account.pass(300);
    let quote = instrument().notional(990, 10);
    let estimate = quote.part(400, 1_000_000);
    assert_eq!(balance(&account), before - estimate);
    assert_eq!(own_fees(&account), estimate);
    // Two parts, as they were filled, ten seconds later.
    account.wait(10);
    let fee = Amount(1_000_000);
    for (trade, part, executed) in [(1, 4, 4), (2, 6, 10)] {
        let mut event = fill(id, Side::Buy, trade, part, executed, OrderStatus::Filled);
        if let Some(fill) = &mut event.fill {
            fill.fee = fee;
        }
        account.update(event);
        account.update(event);
    }
    assert_eq!(qty(&account), 10, "not booked again");
    assert_eq!(own_fees(&account), fee + fee);
    assert_eq!(balance(&account), before - fee - fee);
}

#[test]
fn an_account_trade_replaces_the_estimated_commission_too() {
    let mut account = ready();
    let before = balance(&account);
    let order = stated(&mut account, Side::Buy);
    account.pass(300);
    let mut listed = trade(1, 1, 10);
    listed.fill.fee = Amount(3_000_000);
    account.live(windvane_engine::live::LiveInput::StreamDown {
        surface: Surface::Futures,
    });
    account.live(windvane_engine::live::LiveInput::StreamUp {
        surface: Surface::Futures,
    });
    round(&mut account, &[], &[listed], |_| {});
    assert_eq!(qty(&account), 10);
    assert_eq!(own_fees(&account), Amount(3_000_000));
    assert_eq!(balance(&account), before - Amount(3_000_000));
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
    assert_eq!(own_fees(&account), Amount(3_000_000), "once");
    let moved = adjustments(&account);
    let is_position = |one: &Adjustment| matches!(one, Adjustment::Position { .. });
    assert!(!moved.iter().any(is_position), "{moved:?}");
}

#[test]
fn the_loss_limit_counts_a_stated_fill_before_it_is_booked() {
    let mut config = super::support::config();
    config.live = Some(live_config());
    config.limits.max_daily_loss = Some(Amount(5 * 100_000_000));
    let mut account = Account::new(config);
    account.engine.continue_folder(5);
    account.begin();
    account.sync();
    account.top(989, 991);
    let order = account.submit(MM, market(Side::Buy, 10_000));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    let mut filled = report(id, OrderStatus::Filled, 10_000);
    filled.cum_quote = instrument().notional(990, 10_000);
    account.placed(id, Outcome::Done(filled));
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account.top(979, 981);
    assert_eq!(qty(&account), 0, "not booked yet");
    assert_eq!(account.engine.run_state(), RunState::Halted);
}

#[test]
fn a_fill_that_only_events_count_is_a_degraded_reason_within_seconds() {
    let mut account = booting(live_config());
    account.begin();
    account.sync();
    let order = account.rest();
    let id = account.id(MM, order);
    // One event for two parts: it counts 10 and tells the last 4.
    account.update(fill(id, Side::Buy, 2, 4, 10, OrderStatus::Filled));
    for _ in 0..4 {
        account.pass(500);
        if account.take_queries() > 0 {
            // The query is behind.
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: id,
                outcome: Outcome::Done(report(id, OrderStatus::New, 0)),
            }));
        }
    }
    let doubts = account.engine.doubts();
    assert_eq!(doubts, [Doubt::Reconciliation(Surface::Futures)]);
}

#[test]
fn fills_that_are_booked_out_of_their_order_leave_the_venues_entry_and_balance() {
    let mut account = ready();
    let start = balance(&account);
    let maker = account.rest();
    let maker_id = account.id(MM, maker);
    // 10 are sold at 990, and the event is late. 10 more are sold at the market, which the answer states.
    let sold = account.submit(MM, market(Side::Sell, 10));
    account.confirm_countdowns();
    let sold_id = account.id(MM, sold);
    let mut filled = report(sold_id, OrderStatus::Filled, 10);
    filled.order_id = windvane_engine::VenueOrderId(2);
    filled.cum_quote = instrument().notional(1_010, 10);
    account.placed(sold_id, Outcome::Done(filled));
    account.pass(300);
    assert_eq!(qty(&account), -10);
    // The venue bought 4 at 1000 before: flat, long 4, short 6.
    let bought = fill(maker_id, Side::Buy, 1, 4, 4, OrderStatus::PartiallyFilled);
    account.update(bought);
    let mut event = fill(sold_id, Side::Sell, 2, 10, 10, OrderStatus::Filled);
    event.order_id = filled.order_id;
    if let Some(fill) = &mut event.fill {
        fill.quote_qty = filled.cum_quote;
        fill.fee = filled.cum_quote.part(400, 1_000_000);
    }
    account.update(event);
    let fees = own_fees(&account);
    // The venue: 4 of the sale close what was bought at 1000; 6 are short at 1010.
    let gain = instrument().notional(10, 4);
    let cost = -instrument().notional(1_010, 6);
    let stated = AccountUpdate {
        surface: Surface::Futures,
        reason: AccountReason::Order,
        balances: vec![BalanceUpdate {
            asset: USDT,
            total: start + gain - fees,
            locked: Amount::ZERO,
            change: Amount::ZERO,
        }],
        positions: vec![PositionUpdate {
            cost,
            ..position(-6)
        }],
        transaction_time: account.now,
        event_time: account.now,
    };
    account.handle(Input::User(&UserEvent::Account(stated)));
    let held = account.engine.ledgers().account.at(BTC, PositionSide::Both);
    assert_eq!((held.position.qty, held.position.cost), (-6, cost));
    assert_eq!(balance(&account), start + gain - fees);
    account.pass(4_000);
    assert_eq!(account.engine.doubts(), []);
    let instruments = account.engine.instruments();
    assert_eq!(account.engine.ledgers().first_difference(instruments), None);
}
