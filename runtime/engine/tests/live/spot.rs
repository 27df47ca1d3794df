//! The spot account: its events tell of fills a second time, and of nothing else that explains
//! itself but money that comes and goes.

use windvane_engine::protocol::{AccountReason, AccountUpdate, BalanceUpdate};
use windvane_engine::{
    Amount, AssetId, Input, Notice, OrderStatus, Side, Surface, Time, UserEvent,
};

use super::support::{Account, MM, USDT, fill};
use super::watchdog::watched;

const SPOT: Surface = Surface::Spot;
const BASE: AssetId = AssetId(0);

/// What the venue tells of two balances that differ from ours by this much.
fn told(account: &Account, reason: AccountReason, changes: [(AssetId, i128); 2]) -> UserEvent {
    let balances = changes.map(|(asset, change)| BalanceUpdate {
        asset,
        total: account.engine.balance(SPOT, asset).total + Amount(change),
        locked: Amount::ZERO,
        change: Amount::ZERO,
    });
    UserEvent::Account(AccountUpdate {
        surface: SPOT,
        reason,
        balances: balances.to_vec(),
        positions: Vec::new(),
        transaction_time: Time(0),
    })
}

fn adjustments(account: &Account) -> usize {
    let notices = account.notices.iter();
    notices
        .filter(|notice| matches!(notice, Notice::Adjusted { .. }))
        .count()
}

/// A buy of 0.010 at 100.0 with a fee of 0.01.
const BOUGHT: [(AssetId, i128); 2] = [(BASE, 1_000_000), (USDT, -101_000_000)];

#[test]
fn an_account_event_before_its_fill_does_not_count_it_twice() {
    for event_first in [true, false] {
        let mut account = watched();
        let order = account.rest_on_spot();
        let id = account.id(MM, order);
        let told = told(&account, AccountReason::Order, BOUGHT);
        if event_first {
            account.handle(Input::User(&told));
        }
        account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
        if !event_first {
            account.handle(Input::User(&told));
        }
        let base = account.engine.balance(SPOT, BASE).total;
        assert_eq!(base, Amount(1_000_000), "{event_first}");
        assert_eq!(adjustments(&account), 0, "{event_first}");
    }
}

#[test]
fn an_account_event_that_no_fill_explains_is_looked_into() {
    let mut account = watched();
    let told = told(&account, AccountReason::Order, BOUGHT);
    account.handle(Input::User(&told));
    assert_eq!(account.engine.balance(SPOT, BASE).total, Amount::ZERO);
    account.sent.clear();
    for _ in 0..3 {
        account.pass(1_000);
    }
    assert!(account.take_question().is_some());
}

#[test]
fn a_deposit_explains_itself() {
    let mut account = watched();
    let before = account.engine.balance(SPOT, USDT).total;
    let told = told(&account, AccountReason::Other, [(BASE, 5), (USDT, 7)]);
    account.handle(Input::User(&told));
    assert_eq!(account.engine.balance(SPOT, USDT).total, before + Amount(7));
    assert_eq!(adjustments(&account), 0);
}
