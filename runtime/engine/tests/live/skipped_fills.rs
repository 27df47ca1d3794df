//! One order event for several fills: the accumulated quantity counts more than the fills that are known.
//! The missing ones are looked for at once.

use windvane_model::doubt::Doubt;
use windvane_model::protocol::{OrderUpdate, Refusal};
use windvane_model::run_state::RunState;
use windvane_model::truth::{AccountTrade, OpenOrder, Subject, Truth};
use windvane_model::{
    Amount, Input, Notice, OrderSeq, OrderStatus, Outcome, PositionSide, Reply, Request, Side,
    Surface, VenueOrderId,
};

use super::reconciliation::{qty, trade};
use super::support::{Account, BTC, MM, fill, instrument, report};
use super::world::{no_trades, ready};

/// An order for 10 fills in two parts, and only the second has an event. Trade 1 is not told.
fn skipped(status: OrderStatus) -> (Account, OrderSeq) {
    let mut account = ready();
    let order = account.rest();
    account.update(last_part(&account, order, status));
    assert_eq!(qty(&account), 4);
    (account, order)
}

/// The event of the second part, which took liquidity: the first one may have had another price.
fn last_part(account: &Account, order: OrderSeq, status: OrderStatus) -> OrderUpdate {
    let mut event = fill(account.id(MM, order), Side::Buy, 2, 4, 10, status);
    if let Some(fill) = &mut event.fill {
        fill.maker = false;
    }
    event
}

#[test]
fn parts_of_a_resting_order_are_booked_at_the_price_of_the_last_one() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 2, 4, 10, OrderStatus::Filled));
    account.pass(300);
    assert_eq!(qty(&account), 10);
    assert_eq!(
        super::reconciliation::cost(&account),
        instrument().notional(1_000, 10)
    );
    account.update(fill(id, Side::Buy, 1, 6, 6, OrderStatus::PartiallyFilled));
    assert_eq!(qty(&account), 10, "once");
    assert_eq!(account.engine.doubts(), []);
}

/// The events of three parts come with the last one first, and the first one late.
#[test]
fn an_older_event_does_not_replace_what_a_newer_one_counts() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 3, 3, 10, OrderStatus::Filled));
    account.update(fill(id, Side::Buy, 2, 3, 7, OrderStatus::PartiallyFilled));
    account.pass(300);
    assert_eq!(qty(&account), 10);
    account.update(fill(id, Side::Buy, 1, 4, 4, OrderStatus::PartiallyFilled));
    assert_eq!(qty(&account), 10, "once");
    let paid = account.engine.ledgers().strategies[usize::from(MM.0)]
        .at(BTC, PositionSide::Both)
        .position
        .fees;
    assert_eq!(paid, Amount(3_000_000), "three commissions of 0.01");
    assert_eq!(account.engine.doubts(), []);
}

/// Answers for so many half seconds; account trades after `late` of them.
fn answer(account: &mut Account, order: OrderSeq, trades: Option<u32>, halves: u32) {
    answer_with(account, order, trades, halves, 990);
}

/// The same, where the order's totals have no price.
fn answer_unpriced(account: &mut Account, order: OrderSeq, trades: Option<u32>, halves: u32) {
    answer_with(account, order, trades, halves, 0);
}

fn answer_with(
    account: &mut Account,
    order: OrderSeq,
    trades: Option<u32>,
    halves: u32,
    price: i64,
) {
    let told: Vec<AccountTrade> = vec![trade(1, 1, 6), trade(1, 2, 4)];
    for half in 0..halves {
        while let Some(subject) = account.take_question() {
            let outcome = match (subject, trades) {
                (Subject::Trades { .. }, None) => Outcome::Refused(Refusal {
                    code: 404,
                    msg: String::new(),
                }),
                (Subject::Trades { .. }, Some(late)) if half >= late => {
                    Outcome::Done(Truth::Trades {
                        trades: told.clone(),
                        more: false,
                    })
                }
                (Subject::Trades { .. }, Some(_)) => Outcome::Done(no_trades()),
                (Subject::Account { .. }, _) => {
                    let mut own = account.own_account();
                    own.positions = vec![super::world::position(10)];
                    Outcome::Done(Truth::Account(own))
                }
                _ => Outcome::Done(super::world::nothing(subject)),
            };
            account.answer(subject, outcome);
        }
        let asked = |request: &Request| matches!(request, Request::Query { .. });
        if account.sent.iter().any(asked) {
            account.take_queries();
            let mut filled = report(account.id(MM, order), OrderStatus::Filled, 10);
            filled.order_id = VenueOrderId(1);
            filled.cum_quote = instrument().notional(price, 10);
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: filled.client_order_id,
                outcome: Outcome::Done(filled),
            }));
        }
        account.pass(499);
        account.alive();
        account.clock();
        account.confirm_countdowns();
    }
}

#[test]
fn a_fill_without_an_event_is_booked_within_two_seconds() {
    for status in [OrderStatus::Filled, OrderStatus::PartiallyFilled] {
        let (mut account, order) = skipped(status);
        answer(&mut account, order, Some(0), 4);
        assert_eq!(qty(&account), 10, "{status:?}");
        assert_eq!(account.engine.run_state(), RunState::Ready);
        assert!(account.engine.order(order).is_none(), "it is filled");
    }
}

#[test]
fn without_account_trades_the_orders_total_is_booked() {
    let (mut account, order) = skipped(OrderStatus::Filled);
    answer(&mut account, order, None, 8);
    assert_eq!(qty(&account), 10);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_fill_that_trades_do_not_tell_yet_degrades_the_run() {
    let (mut account, order) = skipped(OrderStatus::Filled);
    answer_unpriced(&mut account, order, Some(8), 5);
    let doubts = account.engine.doubts();
    assert_eq!(doubts, [Doubt::Reconciliation(Surface::Futures)]);
    answer_unpriced(&mut account, order, Some(0), 16);
    assert_eq!(qty(&account), 10);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn an_event_that_overtook_another_asks_for_nothing() {
    let (mut account, order) = skipped(OrderStatus::PartiallyFilled);
    account.pass(200);
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 6, 6, OrderStatus::PartiallyFilled));
    assert_eq!(qty(&account), 10);
    account.pass(2_000);
    let doubts = account.engine.doubts();
    assert_eq!(doubts, []);
}

/// Reads an account whose balance is more and less by turns, until the run is degraded.
fn never_agreeing(account: &mut Account, open: &[OpenOrder]) {
    account.wait(31);
    for reading in 1..=24 {
        // The account is asked for every other second.
        let sign = if reading / 2 % 2 == 0 { 1 } else { -1 };
        answer_once(account, sign * (20_000_000 + reading), open);
        account.wait(1);
    }
    let doubts = account.engine.doubts();
    assert_eq!(doubts, [Doubt::Reconciliation(Surface::Futures)]);
}

/// Answers what is asked now, with a balance that is so much less than ours.
fn answer_once(account: &mut Account, less: i128, open: &[OpenOrder]) {
    let total = 999_990_000_000 - less;
    while let Some(subject) = account.take_question() {
        let outcome = match subject {
            Subject::Account { .. } => {
                let mut own = account.own_account();
                own.balances[0].total = Amount(total);
                Outcome::Done(Truth::Account(own))
            }
            Subject::Income { .. } => Outcome::Refused(Refusal {
                code: 404,
                msg: String::new(),
            }),
            Subject::OpenOrders { .. } => Outcome::Done(Truth::OpenOrders(open.to_vec())),
            _ => Outcome::Done(super::world::nothing(subject)),
        };
        account.answer(subject, outcome);
    }
    account.confirm_countdowns();
}

#[test]
fn readings_that_agree_at_last_settle() {
    let mut account = ready();
    never_agreeing(&mut account, &[]);
    // Where no history is told, the event of a transfer may explain the change for ten seconds.
    for _ in 0..17 {
        account.wait(1);
        answer_once(&mut account, 24, &[]);
    }
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_round_that_waits_for_its_next_reading_asks_for_trades_first() {
    let mut account = ready();
    let order = account.rest();
    let open = account.open_order(order);
    never_agreeing(&mut account, &[open]);
    account.update(last_part(&account, order, OrderStatus::Filled));
    answer_unpriced(&mut account, order, Some(0), 4);
    assert_eq!(qty(&account), 10);
    let made_up = account
        .notices
        .iter()
        .any(|notice| matches!(notice, Notice::Recovered { fill, .. } if fill.trade_id.0 < 0));
    assert!(!made_up);
}
