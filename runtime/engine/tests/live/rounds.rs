//! Rounds of reconciliation: queries that fail, that are old, and that the key has no permission
//! for.

use windvane_model::live::LiveInput;
use windvane_model::protocol::Refusal;
use windvane_model::run_state::RunState;
use windvane_model::state_report::{StateReport, Subject};
use windvane_model::{Input, OrderStatus, Outcome, Reply, Surface};

use super::support::{MM, report};
use super::world::{booting, live_config, no_trades, position, ready};

const FUTURES: Surface = Surface::Futures;

#[test]
fn a_failed_query_is_sent_again() {
    let mut account = booting(live_config());
    account.begin();
    let subject = account.take_question().unwrap();
    account.answer(subject, Outcome::Unknown);
    assert_eq!(account.take_question(), None);
    account.pass(500);
    assert_eq!(account.take_question(), Some(subject));
}

#[test]
fn a_response_to_an_older_query_is_ignored() {
    let mut account = ready();
    account.wait(31);
    let subject = account.take_question().unwrap();
    account.tell(
        Subject::Account { surface: FUTURES },
        StateReport::Account(windvane_model::state_report::AccountSnapshot {
            positions: vec![position(9)],
            ..account.own_account()
        }),
    );
    assert_eq!(
        account.take_question(),
        None,
        "the round still waits for its own response"
    );
    account.tell(subject, StateReport::OpenOrders(Vec::new()));
    assert!(account.take_question().is_some());
}

#[test]
fn a_response_to_a_query_before_the_reconnect_is_no_evidence() {
    let mut account = ready();
    account.wait(31);
    let before = account.take_question().unwrap();
    assert_eq!(before, Subject::OpenOrders { surface: FUTURES });
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
    assert_eq!(
        account.take_question(),
        None,
        "the response could belong to either query"
    );
    account.tell(before, StateReport::OpenOrders(Vec::new()));
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    let anew = account.take_question().unwrap();
    assert_eq!(anew, before, "sent after the reconnect");
    account.tell(anew, StateReport::OpenOrders(Vec::new()));
    account.sync();
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn an_old_query_without_a_response_does_not_block_rounds() {
    let mut account = ready();
    account.wait(31);
    account.take_question().unwrap();
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
    account.wait(32);
    account.sync();
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_round_is_as_old_as_its_query_for_open_orders() {
    let mut account = ready();
    account.wait(30);
    let open_orders = account.take_question().unwrap();
    account.tell(open_orders, StateReport::OpenOrders(Vec::new()));
    let about_account = account.take_question().unwrap();
    for _ in 0..3 {
        account.wait(26);
        account.answer(about_account, Outcome::Unknown);
        account.wait(3);
        assert_eq!(account.take_question(), Some(about_account));
    }
    let own = account.own_account();
    account.tell(about_account, StateReport::Account(own));
    assert_eq!(account.engine.degraded_reasons(), []);
    account.wait(5);
    let reason = windvane_model::degraded_reason::DegradedReason::Reconciliation(FUTURES);
    assert_eq!(account.engine.degraded_reasons(), [reason]);
    account.sync();
    assert_eq!(
        account.engine.degraded_reasons(),
        [],
        "the next round began at once"
    );
}

#[test]
fn a_round_for_missing_trades_does_not_refresh_open_orders() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.wait(25);
    account.confirm_countdowns();
    // The order's totals exceed its fills, so the list of the account's trades is read after three
    // seconds.
    let filled = report(id, OrderStatus::PartiallyFilled, 4);
    for _ in 0..4 {
        account.handle(Input::Reply(&Reply::Queried {
            client_order_id: id,
            outcome: Outcome::Done(filled),
        }));
        account.wait(1);
    }
    let trades = account.take_question().unwrap();
    assert!(matches!(trades, Subject::Trades { .. }));
    account.tell(trades, no_trades());
    let about_account = account.take_question().unwrap();
    assert_eq!(about_account, Subject::Account { surface: FUTURES });
    let own = account.own_account();
    account.tell(about_account, StateReport::Account(own));
    account.sent.clear();
    account.wait(2);
    let next = account.take_question();
    assert_eq!(next, Some(Subject::OpenOrders { surface: FUTURES }));
}

#[test]
fn a_run_is_ready_although_its_key_cannot_read_account_trades() {
    for code in [-1002, -2015] {
        let mut account = booting(live_config());
        account.begin();
        let mut refused = 0;
        for _ in 0..60 {
            while let Some(subject) = account.take_question() {
                let outcome = match subject {
                    Subject::Trades { .. } => {
                        refused += 1;
                        Outcome::Refused(Refusal {
                            code,
                            msg: String::new(),
                        })
                    }
                    Subject::Account { .. } => {
                        Outcome::Done(StateReport::Account(account.own_account()))
                    }
                    Subject::OpenOrders { .. } => {
                        Outcome::Done(StateReport::OpenOrders(Vec::new()))
                    }
                    _ => Outcome::Done(super::world::nothing(subject)),
                };
                account.answer(subject, outcome);
            }
            account.pass(500);
            account.alive();
            account.clock();
        }
        assert!(refused > 2, "one rejection may be temporary: {refused}");
        assert_eq!(account.engine.run_state(), RunState::Ready, "{code}");
    }
}
