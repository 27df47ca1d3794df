//! Missed fills, when the venue does not list the account's trades, or when two missed fills cancel
//! each other out, so that the account's position looks right.

use windvane_model::effect::Adjustment;
use windvane_model::live::LiveInput;
use windvane_model::protocol::Refusal;
use windvane_model::run_state::RunState;
use windvane_model::state_report::{AccountTrade, StateReport, Subject};
use windvane_model::{
    Amount, Input, Notice, OrderStatus, Outcome, PositionSide, Qty, Reply, Side, Surface,
    VenueOrderId,
};

use super::reconciliation::{adjustments, qty, round, trade};
use super::support::{Account, BTC, MM, fill, instrument, limit, report, update};
use super::world::{live_config, position, ready, ready_with};

const FUTURES: Surface = Surface::Futures;

#[test]
fn without_account_trades_order_totals_close_a_gap() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
    while let Some(subject) = account.take_question() {
        let outcome = match subject {
            Subject::OpenOrders { .. } => Outcome::Done(StateReport::OpenOrders(Vec::new())),
            Subject::Trades { .. } => Outcome::Refused(Refusal {
                code: 404,
                msg: String::new(),
            }),
            Subject::Account { .. } => Outcome::Done(StateReport::Account(account.own_account())),
            _ => Outcome::Done(super::world::nothing(subject)),
        };
        account.answer(subject, outcome);
    }
    let mut filled = report(id, OrderStatus::Filled, 10);
    filled.cum_quote = instrument().notional(990, 10);
    for _ in 0..5 {
        account.handle(Input::Reply(&Reply::Queried {
            client_order_id: id,
            outcome: Outcome::Done(filled),
        }));
        account.pass(999);
    }
    assert_eq!(qty(&account), 10);
    assert!(account.engine.order(order).is_none(), "the order is filled");
    let recovered = account.notices.iter().find_map(|notice| match notice {
        Notice::Recovered { fill, .. } => Some(*fill),
        _ => None,
    });
    let recovered = recovered.unwrap();
    assert_eq!(recovered.quote_qty, filled.cum_quote);
    assert_eq!(
        recovered.fee,
        filled.cum_quote.part(400, 1_000_000),
        "estimated"
    );
    account.update(fill(id, Side::Buy, 3, 10, 10, OrderStatus::Filled));
    assert_eq!(qty(&account), 10, "the late event was already booked");
}

/// Answers a round as a venue that does not list the account's trades. Its stream lost a fill of 4
/// and the next account event. `listed` is whether its list of open orders includes the fill.
fn round_with_lost_fill(account: &mut Account, order: windvane_model::OrderSeq, listed: &mut bool) {
    while let Some(subject) = account.take_question() {
        let outcome = match subject {
            Subject::OpenOrders { .. } => {
                let mut open = account.open_order(order);
                open.report = report(open.report.client_order_id, OrderStatus::New, 0);
                if std::mem::replace(listed, true) {
                    open.report.status = OrderStatus::PartiallyFilled;
                    open.report.executed_qty = Qty(4);
                    open.report.cum_quote = instrument().notional(990, 4);
                }
                Outcome::Done(StateReport::OpenOrders(vec![open]))
            }
            Subject::Trades { .. } => Outcome::Refused(Refusal {
                code: 404,
                msg: String::new(),
            }),
            Subject::Account { .. } => {
                let mut own = account.own_account();
                own.positions = vec![position(4)];
                Outcome::Done(StateReport::Account(own))
            }
            _ => Outcome::Done(super::world::nothing(subject)),
        };
        account.answer(subject, outcome);
    }
}

#[test]
fn without_account_trades_a_lost_fill_is_booked_once() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
    let mut filled = report(id, OrderStatus::PartiallyFilled, 4);
    filled.cum_quote = instrument().notional(990, 4);
    // The first list is older than the fill, so only a second one can show it.
    let mut listed = false;
    for _ in 0..60 {
        round_with_lost_fill(&mut account, order, &mut listed);
        if account.queries() > 0 {
            account.sent.clear();
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: id,
                outcome: Outcome::Done(filled),
            }));
        }
        assert!([0, 4].contains(&qty(&account)), "{}", qty(&account));
        account.pass(250);
        account.alive();
        account.clock();
    }
    assert_eq!(qty(&account), 4);
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    assert_eq!(own.position.qty, 4, "the strategy has it too");
    let positions = adjustments(&account)
        .into_iter()
        .filter(|adjustment| matches!(adjustment, Adjustment::Position { .. }));
    assert_eq!(positions.count(), 0, "the fill explains it");
}

#[test]
fn missed_fills_that_cancel_out_are_still_found() {
    let mut account = ready();
    let bought = account.rest();
    let (bought_id, number) = (account.id(MM, bought), 1);
    let order = account.submit(MM, limit(Side::Sell, 1_010, 10));
    account.confirm_countdowns();
    let sold_id = account.id(MM, order);
    let mut sold = report(sold_id, OrderStatus::New, 0);
    sold.order_id = VenueOrderId(2);
    account.placed(sold_id, Outcome::Done(sold));
    let mut rests = update(sold_id, Side::Sell, OrderStatus::New, 0);
    rests.order_id = VenueOrderId(2);
    account.update(rests);
    // Both were filled without an event. A later trade of another order has an event.
    let reported = account.submit(MM, limit(Side::Buy, 980, 10));
    account.confirm_countdowns();
    let mut reported = fill(
        account.id(MM, reported),
        Side::Buy,
        9,
        10,
        10,
        OrderStatus::Filled,
    );
    reported.order_id = VenueOrderId(3);
    account.update(reported);
    account.wait(31);
    let mut filled = report(bought_id, OrderStatus::Filled, 10);
    filled.order_id = VenueOrderId(number);
    account.handle(Input::Reply(&Reply::Queried {
        client_order_id: bought_id,
        outcome: Outcome::Done(filled),
    }));
    round(&mut account, &[], &[], |_| {});
    let mut late = fill(bought_id, Side::Buy, 7, 10, 10, OrderStatus::Filled);
    late.order_id = VenueOrderId(number);
    account.update(late);
    sold.status = OrderStatus::Filled;
    sold.executed_qty = Qty(10);
    let missed = AccountTrade {
        side: Side::Sell,
        ..trade(2, 6, 10)
    };
    let mut asked_from = None;
    for _ in 0..120 {
        while let Some(subject) = account.take_question() {
            let state_report = match subject {
                Subject::Trades { from, .. } => {
                    asked_from = asked_from.max(from);
                    let reported = from.is_none_or(|from| from.0 <= 6);
                    StateReport::Trades {
                        trades: reported.then_some(missed).into_iter().collect(),
                        more: false,
                    }
                }
                Subject::Account { .. } => {
                    let mut own = account.own_account();
                    own.positions = vec![position(10)];
                    StateReport::Account(own)
                }
                _ => super::world::nothing(subject),
            };
            account.tell(subject, state_report);
        }
        for _ in 0..account.take_queries() {
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: sold_id,
                outcome: Outcome::Done(sold),
            }));
        }
        account.alive();
        account.clock();
        account.pass(248);
    }
    let positions = adjustments(&account)
        .into_iter()
        .filter(|one| matches!(one, Adjustment::Position { .. }));
    assert_eq!(positions.count(), 0);
    assert_eq!(qty(&account), 10);
    assert!(asked_from.is_some_and(|from| from.0 <= 6), "{asked_from:?}");
}

#[test]
fn without_account_trades_a_missing_own_fill_is_no_adjustment() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    let listed = account.open_order(order);
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
    // The list of open orders was read just before the order filled.
    let mut open = vec![listed];
    let mut filled = report(id, OrderStatus::Filled, 10);
    filled.cum_quote = instrument().notional(990, 10);
    for _ in 0..40 {
        while let Some(subject) = account.take_question() {
            let outcome = match subject {
                Subject::OpenOrders { .. } => {
                    Outcome::Done(StateReport::OpenOrders(std::mem::take(&mut open)))
                }
                Subject::Trades { .. } => Outcome::Refused(Refusal {
                    code: -1130,
                    msg: String::new(),
                }),
                Subject::Account { .. } => {
                    let mut own = account.own_account();
                    own.positions = vec![position(10)];
                    Outcome::Done(StateReport::Account(own))
                }
                _ => Outcome::Done(super::world::nothing(subject)),
            };
            account.answer(subject, outcome);
        }
        for _ in 0..account.take_queries() {
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: id,
                outcome: Outcome::Done(filled),
            }));
        }
        account.alive();
        account.pass(250);
    }
    assert_eq!(adjustments(&account), []);
    assert_eq!(qty(&account), 10);
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    assert_eq!(own.position.qty, 10, "it belongs to the strategy");
}

/// A venue that does not list the account's trades reports another balance, while an order is in
/// flight that may never arrive. `behind` queries for the order are always in flight.
fn differing_while_lost(behind: usize) -> Account {
    let mut live = live_config();
    live.absence_ms = 65_000;
    let mut account = ready_with(live);
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Unknown);
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
    let total = account.own_account().balances[0].total + Amount(5);
    let mut asked = 0;
    for _ in 0..80 {
        while let Some(subject) = account.take_question() {
            let outcome = match subject {
                Subject::OpenOrders { .. } => Outcome::Done(StateReport::OpenOrders(Vec::new())),
                Subject::Trades { .. } => Outcome::Refused(Refusal {
                    code: -1130,
                    msg: String::new(),
                }),
                Subject::Account { .. } => {
                    let mut own = account.own_account();
                    own.balances[0].total = total;
                    Outcome::Done(StateReport::Account(own))
                }
                _ => Outcome::Done(super::world::nothing(subject)),
            };
            account.answer(subject, outcome);
        }
        asked += account.take_queries();
        while asked > behind {
            asked -= 1;
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: id,
                outcome: super::support::refused(-2013),
            }));
        }
        account.alive();
        account.clock();
        account.pass(250);
    }
    assert!(account.engine.order(order).is_some(), "it may still arrive");
    account
}

#[test]
fn an_order_that_never_arrived_does_not_explain_a_difference() {
    let account = differing_while_lost(0);
    assert_eq!(adjustments(&account).len(), 1);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_denial_older_than_the_snapshot_settles_nothing() {
    let account = differing_while_lost(1);
    assert_eq!(adjustments(&account), []);
}
