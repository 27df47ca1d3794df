//! Fills that are booked with an estimated commission, because the venue does not provide account
//! trades. The next account snapshot shows the true commissions.

use windvane_model::protocol::Refusal;
use windvane_model::state_report::{StateReport, Subject};
use windvane_model::{Amount, Notice, OrderStatus, Outcome, PositionSide, Side};

use super::changes_without_event::usdt;
use super::support::{Account, BTC, MM, fill, limit};
use super::world::{nothing, ready};

/// Buys and sells 10 at 100.0 in turn. Only the last unit of each order has an event. The rest is
/// booked from the order's totals with an estimated commission of 0.4.
fn trade(account: &mut Account) {
    for number in 1..=20 {
        let side = if number % 2 == 0 {
            Side::Sell
        } else {
            Side::Buy
        };
        let order = account.submit(MM, limit(side, 1000, 10_000));
        account.confirm_countdowns();
        let id = account.id(MM, order);
        account.update(fill(id, side, number, 1, 10_000, OrderStatus::Filled));
        account.pass(300);
    }
}

fn fees(account: &Account) -> Amount {
    let own = &account.engine.ledgers().strategies[usize::from(MM.0)];
    own.at(BTC, PositionSide::Both).position.fees
}

/// Lets time pass in which the venue provides only account snapshots with this balance. It lists
/// neither the account's trades nor its income.
fn read(account: &mut Account, seconds: u32, total: Amount) {
    for _ in 0..seconds {
        account.wait(1);
        account.confirm_countdowns();
        while let Some(subject) = account.take_question() {
            let outcome = match subject {
                Subject::Account { .. } => {
                    let mut own = account.own_account();
                    own.balances[0].total = total;
                    Outcome::Done(StateReport::Account(own))
                }
                Subject::Trades { .. } | Subject::Income { .. } => Outcome::Refused(Refusal {
                    code: 404,
                    msg: String::new(),
                }),
                _ => Outcome::Done(nothing(subject)),
            };
            account.answer(subject, outcome);
        }
    }
}

#[test]
fn a_snapshot_corrects_estimated_commissions_without_a_deposit() {
    let mut account = ready();
    trade(&mut account);
    let estimated = fees(&account);
    assert!(estimated > usdt(7), "{estimated:?}");
    let total = account.own_account().balances[0].total + usdt(4);
    read(&mut account, 70, total);
    assert_eq!(account.own_account().balances[0].total, total);
    assert_eq!(fees(&account), estimated - usdt(4));
    let is_unexplained = |notice: &&Notice| matches!(notice, Notice::Unexplained { .. });
    let unexplained = account.notices.iter().find(is_unexplained);
    assert!(unexplained.is_none(), "{unexplained:?}");
}

#[test]
fn an_increase_beyond_the_estimates_is_a_deposit() {
    let mut account = ready();
    trade(&mut account);
    let estimated = fees(&account);
    let total = account.own_account().balances[0].total + usdt(100);
    read(&mut account, 70, total);
    let deposits = account.notices.iter().filter_map(|notice| match notice {
        Notice::Unexplained { amount, .. } => Some(*amount),
        _ => None,
    });
    let deposits: Vec<_> = deposits.collect();
    assert_eq!(deposits.len(), 1);
    assert!(deposits[0] >= usdt(100) - estimated, "{deposits:?}");
}

#[test]
fn estimates_that_a_snapshot_confirmed_explain_no_later_deposit() {
    let mut account = ready();
    trade(&mut account);
    let estimated = fees(&account);
    let total = account.own_account().balances[0].total;
    read(&mut account, 70, total);
    read(&mut account, 70, total + usdt(4));
    assert_eq!(fees(&account), estimated);
    let is_deposit = |notice: &Notice| matches!(notice, Notice::Unexplained { amount, .. } if *amount == usdt(4));
    assert!(
        account.notices.iter().any(is_deposit),
        "{:?}",
        account.notices
    );
}
