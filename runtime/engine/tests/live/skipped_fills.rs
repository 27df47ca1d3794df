//! One order event for several fills. The accumulated quantity exceeds the known fills, so the
//! engine looks for the missing ones at once.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::protocol::{OrderUpdate, Refusal};
use windvane_model::run_state::RunState;
use windvane_model::state_report::{AccountTrade, OpenOrder, StateReport, Subject};
use windvane_model::{
    Amount, Input, Notice, OrderSeq, OrderStatus, Outcome, PositionSide, Reply, Request, Side,
    Surface, VenueOrderId,
};

use super::reconciliation::{qty, trade};
use super::support::{Account, BTC, MM, fill, instrument, report};
use super::world::{no_trades, ready};

/// An order for 10 fills in two parts, and only the second has an event. Trade 1 is not reported.
fn skipped(status: OrderStatus) -> (Account, OrderSeq) {
    let mut account = ready();
    let order = account.rest();
    account.update(last_part(&account, order, status));
    assert_eq!(qty(&account), 4);
    (account, order)
}

/// The event of the second part, a taker fill. The first part may have had another price.
fn last_part(account: &Account, order: OrderSeq, status: OrderStatus) -> OrderUpdate {
    let mut event = fill(account.id(MM, order), Side::Buy, 2, 4, 10, status);
    if let Some(fill) = &mut event.fill {
        fill.maker = false;
    }
    event
}

#[test]
fn missing_maker_fills_are_booked_at_the_price_of_the_last_fill() {
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
    assert_eq!(qty(&account), 10, "counted once");
    assert_eq!(account.engine.degraded_reasons(), []);
}

/// The events of three parts arrive with the last one first and the first one late.
#[test]
fn an_older_event_does_not_replace_the_count_of_a_newer_one() {
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
    assert_eq!(account.engine.degraded_reasons(), []);
}

/// Answers queries for this many half seconds. The venue lists the account's trades after `trades`
/// of them, or never for `None`.
fn answer(account: &mut Account, order: OrderSeq, trades: Option<u32>, halves: u32) {
    answer_with(account, order, trades, halves, 990);
}

/// Like [`answer`], but the order's totals have no price.
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
    let reported: Vec<AccountTrade> = vec![trade(1, 1, 6), trade(1, 2, 4)];
    for half in 0..halves {
        while let Some(subject) = account.take_question() {
            let outcome = match (subject, trades) {
                (Subject::Trades { .. }, None) => Outcome::Refused(Refusal {
                    code: 404,
                    msg: String::new(),
                }),
                (Subject::Trades { .. }, Some(late)) if half >= late => {
                    Outcome::Done(StateReport::Trades {
                        trades: reported.clone(),
                        more: false,
                    })
                }
                (Subject::Trades { .. }, Some(_)) => Outcome::Done(no_trades()),
                (Subject::Account { .. }, _) => {
                    let mut own = account.own_account();
                    own.positions = vec![super::world::position(10)];
                    Outcome::Done(StateReport::Account(own))
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
        assert!(account.engine.order(order).is_none(), "the order is filled");
    }
}

#[test]
fn without_account_trades_the_order_total_is_booked() {
    let (mut account, order) = skipped(OrderStatus::Filled);
    answer(&mut account, order, None, 8);
    assert_eq!(qty(&account), 10);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_fill_that_trades_do_not_list_yet_degrades_the_run() {
    let (mut account, order) = skipped(OrderStatus::Filled);
    answer_unpriced(&mut account, order, Some(8), 5);
    let reasons = account.engine.degraded_reasons();
    assert_eq!(reasons, [DegradedReason::Reconciliation(Surface::Futures)]);
    answer_unpriced(&mut account, order, Some(0), 16);
    assert_eq!(qty(&account), 10);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn events_out_of_order_do_not_start_a_query() {
    let (mut account, order) = skipped(OrderStatus::PartiallyFilled);
    account.pass(200);
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 6, 6, OrderStatus::PartiallyFilled));
    assert_eq!(qty(&account), 10);
    account.pass(2_000);
    let reasons = account.engine.degraded_reasons();
    assert_eq!(reasons, []);
}

/// Reads an account whose balance is alternately higher and lower, until the run is degraded.
fn never_agreeing(account: &mut Account, open: &[OpenOrder]) {
    account.wait(31);
    for reading in 1..=24 {
        // The account is read every second second.
        let sign = if reading / 2 % 2 == 0 { 1 } else { -1 };
        answer_once(account, sign * (20_000_000 + reading), open);
        account.wait(1);
    }
    let reasons = account.engine.degraded_reasons();
    assert_eq!(reasons, [DegradedReason::Reconciliation(Surface::Futures)]);
}

/// Answers the current queries with a balance that is `less` below the engine's.
fn answer_once(account: &mut Account, less: i128, open: &[OpenOrder]) {
    let total = 999_990_000_000 - less;
    while let Some(subject) = account.take_question() {
        let outcome = match subject {
            Subject::Account { .. } => {
                let mut own = account.own_account();
                own.balances[0].total = Amount(total);
                Outcome::Done(StateReport::Account(own))
            }
            Subject::Income { .. } => Outcome::Refused(Refusal {
                code: 404,
                msg: String::new(),
            }),
            Subject::OpenOrders { .. } => Outcome::Done(StateReport::OpenOrders(open.to_vec())),
            _ => Outcome::Done(super::world::nothing(subject)),
        };
        account.answer(subject, outcome);
    }
    account.confirm_countdowns();
}

#[test]
fn snapshots_that_finally_agree_settle_the_account() {
    let mut account = ready();
    never_agreeing(&mut account, &[]);
    // Without an income history, the event of a transfer may explain the change for ten seconds.
    for _ in 0..17 {
        account.wait(1);
        answer_once(&mut account, 24, &[]);
    }
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_round_that_waits_for_a_snapshot_reads_missing_trades_first() {
    let mut account = ready();
    let order = account.rest();
    let open = account.open_order(order);
    never_agreeing(&mut account, &[open]);
    account.update(last_part(&account, order, OrderStatus::Filled));
    answer_unpriced(&mut account, order, Some(0), 4);
    assert_eq!(qty(&account), 10);
    let derived = account
        .notices
        .iter()
        .any(|notice| matches!(notice, Notice::Recovered { fill, .. } if fill.trade_id.0 < 0));
    assert!(!derived);
}
