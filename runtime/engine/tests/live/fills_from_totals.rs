//! The response to an order request reports a fill, and the user stream is seconds late.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::Adjustment;
use windvane_model::instrument::Instrument;
use windvane_model::live::LiveInput;
use windvane_model::protocol::{
    AccountReason, AccountUpdate, BalanceUpdate, OrderUpdate, PositionUpdate,
};
use windvane_model::run_state::RunState;
use windvane_model::state_report::{StateReport, Subject};
use windvane_model::{
    Amount, ClientOrderId, Input, InstrumentId, Notice, OrderSeq, OrderStatus, Outcome,
    PositionSide, Reply, Side, StrategyId, Surface, UserEvent, VenueOrderId,
};

use super::reconciliation::{adjustments, qty, round, trade};
use super::succession::{killed, next_config};
use super::support::{Account, BTC, MM, USDT, fill, instrument, limit, market, report};
use super::world::{nothing, position, ready, ready_with_limit};

/// A market order that the response reports as filled: 10 at 99.0. Its event has not arrived.
fn stated(account: &mut Account, side: Side) -> OrderSeq {
    stated_as(account, side, 1)
}

/// Like [`stated`], with this venue order id.
fn stated_as(account: &mut Account, side: Side, number: i64) -> OrderSeq {
    let order = account.submit(MM, market(side, 10));
    account.confirm_countdowns();
    account.sent.clear();
    let id = account.id(MM, order);
    let mut filled = report(id, OrderStatus::Filled, 10);
    filled.order_id = VenueOrderId(number);
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

/// The event of such an order, without the commission.
fn without_commission(id: ClientOrderId) -> OrderUpdate {
    let mut event = fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled);
    if let Some(fill) = &mut event.fill {
        fill.fee = Amount::ZERO;
    }
    event
}

/// The stream reconnects, and the first round lists the account trade of such an order with this
/// commission.
fn list_after_reconnect(account: &mut Account, fee: Amount) {
    let surface = Surface::Futures;
    account.live(LiveInput::StreamDown { surface });
    account.live(LiveInput::StreamUp { surface });
    let mut listed = trade(1, 1, 10);
    listed.fill.fee = fee;
    round(account, &[], &[listed], |_| {});
}

#[test]
fn a_fill_in_a_response_is_booked_within_a_second() {
    let mut account = ready();
    let order = stated(&mut account, Side::Buy);
    account.pass(200);
    assert_eq!(qty(&account), 0, "its event may still arrive");
    account.pass(100);
    assert_eq!(qty(&account), 10);
    assert!(account.engine.order(order).is_none(), "the order is filled");
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn an_event_that_arrives_at_once_is_booked_directly() {
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
    // The events of the two parts arrive ten seconds later.
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
fn an_estimate_is_kept_while_the_event_lacks_the_commission() {
    let mut account = ready();
    let before = balance(&account);
    let order = stated(&mut account, Side::Buy);
    let id = account.id(MM, order);
    account.pass(300);
    let estimate = instrument().notional(990, 10).part(400, 1_000_000);
    account.update(without_commission(id));
    assert_eq!(balance(&account), before - estimate);
    assert_eq!(own_fees(&account), estimate);
    // The listed trade includes it.
    list_after_reconnect(&mut account, Amount(3_000_000));
    assert_eq!(balance(&account), before - Amount(3_000_000));
    assert_eq!(own_fees(&account), Amount(3_000_000));
}

#[test]
fn an_account_trade_replaces_an_estimate_from_before_a_restart() {
    let mut account = ready();
    let before = balance(&account);
    let order = stated(&mut account, Side::Buy);
    let id = account.id(MM, order);
    account.pass(300);
    account.update(without_commission(id));
    // In the new configuration the instrument and the strategy have other indexes.
    let mut config = next_config();
    config.strategies.reverse();
    let other = Instrument {
        symbol: "ETHUSDT".to_owned(),
        ..instrument()
    };
    config.instruments.insert(0, other);
    let mut account = killed(account, config);
    let (strategy, place) = (StrategyId(1), InstrumentId(1));
    account.begin();
    while let Some(subject) = account.take_question() {
        let state_report = match subject {
            Subject::Account { .. } => {
                let mut own = account.own_account();
                own.positions = vec![PositionUpdate {
                    instrument: place,
                    ..position(10)
                }];
                StateReport::Account(own)
            }
            Subject::Trades { instrument, .. } if instrument == place => {
                let mut listed = trade(1, 1, 10);
                listed.fill.fee = Amount(3_000_000);
                StateReport::Trades {
                    trades: vec![listed],
                    more: false,
                }
            }
            _ => nothing(subject),
        };
        account.tell(subject, state_report);
    }
    assert_eq!(balance(&account), before - Amount(3_000_000));
    let own = &account.engine.ledgers().strategies[usize::from(strategy.0)];
    let own = own.at(place, PositionSide::Both).position;
    assert_eq!((own.qty, own.fees), (10, Amount(3_000_000)));
}

#[test]
fn an_account_trade_replaces_the_estimated_commission_too() {
    let mut account = ready();
    let before = balance(&account);
    let order = stated(&mut account, Side::Buy);
    account.pass(300);
    list_after_reconnect(&mut account, Amount(3_000_000));
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
fn the_loss_limit_counts_a_fill_in_a_response_before_booking() {
    let mut account = ready_with_limit(Amount(5 * 100_000_000));
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
fn a_fill_that_only_event_totals_show_degrades_within_seconds() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    // One event for two parts: its total is 10, and it reports the last 4, a taker fill.
    let mut event = fill(id, Side::Buy, 2, 4, 10, OrderStatus::Filled);
    if let Some(fill) = &mut event.fill {
        fill.maker = false;
    }
    account.update(event);
    for half in 0..12 {
        account.pass(500);
        account.alive();
        account.clock();
        account.confirm_countdowns();
        account.sync();
        if account.take_queries() > 0 {
            // The query is stale.
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: id,
                outcome: Outcome::Done(report(id, OrderStatus::New, 0)),
            }));
        }
        if half > 2 {
            let reasons = account.engine.degraded_reasons();
            let reason = DegradedReason::Reconciliation(Surface::Futures);
            assert_eq!(
                reasons,
                [reason],
                "rounds that agree meanwhile do not clear it: {half}"
            );
        }
    }
    let id = account.id(MM, order);
    let mut part = fill(id, Side::Buy, 1, 6, 6, OrderStatus::PartiallyFilled);
    part.order_id = VenueOrderId(1);
    account.update(part);
    account.seconds(2);
    assert_eq!(account.engine.degraded_reasons(), []);
}

#[test]
fn fills_booked_out_of_order_lead_to_the_venues_entry_and_balance() {
    let mut account = ready();
    let first = account.rest();
    let id = account.id(MM, first);
    account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
    let start = balance(&account);
    let resting = account.submit(MM, limit(Side::Sell, 1_050, 4));
    account.confirm_countdowns();
    let resting = account.id(MM, resting);
    let mut rests = report(resting, OrderStatus::New, 0);
    rests.order_id = VenueOrderId(2);
    account.placed(resting, Outcome::Done(rests));
    // The venue sold 4 of the 10 at 100.0, and that event is late. Then it bought 10 at 99.0, as
    // the response reports.
    let bought = stated_as(&mut account, Side::Buy, 3);
    account.pass(300);
    assert_eq!(qty(&account), 20);
    let fees = own_fees(&account);
    let mut sold = fill(resting, Side::Sell, 2, 4, 4, OrderStatus::Filled);
    sold.order_id = VenueOrderId(2);
    account.update(sold);
    let id = account.id(MM, bought);
    let mut event = fill(id, Side::Buy, 3, 10, 10, OrderStatus::Filled);
    event.order_id = VenueOrderId(3);
    if let Some(fill) = &mut event.fill {
        fill.quote_qty = instrument().notional(990, 10);
        fill.fee = fill.quote_qty.part(400, 1_000_000);
    }
    account.update(event);
    assert!(own_fees(&account) > fees, "the sale has its commission");
    // At the venue, the sale at 100.0 realizes no profit, and the position is 6 at 100.0 and 10 at
    // 99.0.
    let spent = own_fees(&account) - first_fee();
    let cost = instrument().notional(1_000, 6) + instrument().notional(990, 10);
    let stated = AccountUpdate {
        surface: Surface::Futures,
        reason: AccountReason::Order,
        balances: vec![BalanceUpdate {
            asset: USDT,
            total: start - spent,
            locked: Amount::ZERO,
            change: Amount::ZERO,
        }],
        positions: vec![PositionUpdate {
            cost,
            ..position(16)
        }],
        transaction_time: account.now,
        event_time: account.now,
    };
    account.handle(Input::User(&UserEvent::Account(stated)));
    let held = account.engine.ledgers().account.at(BTC, PositionSide::Both);
    assert_eq!((held.position.qty, held.position.cost), (16, cost));
    assert_eq!(balance(&account), start - spent);
    account.pass(4_000);
    assert_eq!(account.engine.degraded_reasons(), []);
    let instruments = account.engine.instruments();
    assert_eq!(account.engine.ledgers().first_difference(instruments), None);
}

/// The commission of the first fill of 10 at 100.0.
fn first_fee() -> Amount {
    fill(
        ClientOrderId::new("x").unwrap(),
        Side::Buy,
        1,
        10,
        10,
        OrderStatus::Filled,
    )
    .fill
    .unwrap()
    .fee
}
