//! Account events that arrive before the event that explains them, arrive late, or concern
//! something else.

use windvane_model::protocol::{AccountReason, AccountUpdate};
use windvane_model::state_report::Subject;
use windvane_model::{
    Amount, Input, Notice, OrderStatus, PositionSide, Side, Surface, Time, UserEvent,
};

use super::reconciliation::{adjustments, qty};
use super::support::{Account, BTC, MM, USDT, fill};
use super::world::{position, ready};

const FUTURES: Surface = Surface::Futures;

/// The account event that the venue sends after a fill of 10 at 100.0 with a fee of 0.01.
fn account_event_after_fill(account: &Account) -> UserEvent {
    let mut reported = account.own_account();
    reported.balances[0].total -= Amount(1_000_000);
    UserEvent::Account(AccountUpdate {
        surface: FUTURES,
        reason: AccountReason::Order,
        balances: reported.balances,
        positions: vec![position(10)],
        transaction_time: Time(0),
        event_time: Time(0),
    })
}

#[test]
fn an_early_account_event_of_another_reason_counts_once() {
    for reason in [AccountReason::Other, AccountReason::FundingFee] {
        let mut account = ready();
        let order = account.rest();
        let id = account.id(MM, order);
        let before = account.engine.balance(FUTURES, USDT).total;
        let UserEvent::Account(mut reported) = account_event_after_fill(&account) else {
            panic!("an account event");
        };
        reported.reason = reason;
        reported.balances[0].total += Amount(500);
        reported.balances[0].change = Amount(500);
        account.handle(Input::User(&UserEvent::Account(reported)));
        assert_eq!(qty(&account), 0, "the fill is still in flight");
        let known = account.engine.balance(FUTURES, USDT).total;
        assert_eq!(
            known,
            before + Amount(500),
            "the event states its own change"
        );
        account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
        assert_eq!(qty(&account), 10);
        let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
        assert_eq!(own.position.qty, 10);
        let known = account.engine.balance(FUTURES, USDT).total;
        assert_eq!(known, before + Amount(500) - Amount(1_000_000));
        assert_eq!(adjustments(&account), []);
    }
}

#[test]
fn an_event_of_another_symbol_does_not_explain_a_position_change() {
    let mut account = ready();
    account.rest();
    let reported = account_event_after_fill(&account);
    account.handle(Input::User(&reported));
    let mut other = account.own_account();
    other.balances[0].total += Amount(5);
    other.balances[0].change = Amount(5);
    account.handle(Input::User(&UserEvent::Account(AccountUpdate {
        surface: FUTURES,
        reason: AccountReason::Other,
        balances: other.balances,
        positions: Vec::new(),
        transaction_time: Time(0),
        event_time: Time(0),
    })));
    account.sent.clear();
    account.wait(3);
    assert!(
        account.take_question().is_some(),
        "no fill explains the position"
    );
}

#[test]
fn changes_in_account_events_out_of_order_count_once() {
    let mut account = ready();
    let start = account.engine.balance(FUTURES, USDT).total;
    let mut tell = |ms: i64, total: i128, change: i128| {
        let mut reported = account.own_account();
        reported.balances[0].total = start + Amount(total);
        reported.balances[0].change = Amount(change);
        account.handle(Input::User(&UserEvent::Account(AccountUpdate {
            surface: FUTURES,
            reason: AccountReason::Other,
            balances: reported.balances,
            positions: reported.positions,
            transaction_time: Time::from_millis(ms),
            event_time: Time::from_millis(ms),
        })));
        account.engine.balance(FUTURES, USDT).total - start
    };
    let explained = tell(2, 30, 10);
    assert_eq!(explained, Amount(10), "20 may come from a fill in flight");
    assert_eq!(
        tell(1, 20, 20),
        Amount(30),
        "the change counts, but the total is old"
    );
    assert_eq!(tell(3, 35, 5), Amount(35));
}

#[test]
fn an_account_event_before_its_fill_counts_the_fill_once() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    let reported = account_event_after_fill(&account);
    account.handle(Input::User(&reported));
    let qty = |account: &Account| {
        let own = account.engine.ledgers().account.at(BTC, PositionSide::Both);
        own.position.qty
    };
    assert_eq!(qty(&account), 0);
    account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
    assert_eq!(qty(&account), 10);
    assert_eq!(
        account
            .engine
            .ledgers()
            .first_difference(account.engine.instruments()),
        None
    );
    assert!(
        !account
            .notices
            .iter()
            .any(|notice| matches!(notice, Notice::Adjusted { .. }))
    );
    account.sent.clear();
    account.wait(3);
    assert_eq!(account.take_question(), None, "every change is explained");
}

#[test]
fn an_account_event_without_its_fill_starts_a_reconciliation() {
    let mut account = ready();
    account.rest();
    let reported = account_event_after_fill(&account);
    account.handle(Input::User(&reported));
    account.sent.clear();
    account.wait(3);
    assert!(matches!(
        account.take_question(),
        Some(Subject::OpenOrders { surface: FUTURES })
    ));
}
