//! An account snapshot lacks a position, its balances do not fit the close, and the venue lists
//! forced orders.

use windvane_model::run_state::{KillSwitch, RunState};
use windvane_model::state_report::{StateReport, Subject};
use windvane_model::{Amount, Outcome, Surface};

use super::forced::{held, holding, listed_order, minute, refused_route, reports};
use super::support::{Account, USDT};
use super::world::nothing;

/// Lets seconds pass. The venue lists no position and this wallet balance, and gives this response
/// about forced orders. Returns how often it was queried for them.
fn pass(
    account: &mut Account,
    wallet: Amount,
    forced: &Outcome<StateReport>,
    seconds: i64,
) -> usize {
    let mut asked = 0;
    for _ in 0..2 * seconds {
        while let Some(subject) = account.take_question() {
            let outcome = match subject {
                Subject::Account { .. } => {
                    let mut read = account.own_account();
                    read.positions.clear();
                    read.balances[0].total = wallet;
                    Outcome::Done(StateReport::Account(read))
                }
                Subject::ForcedOrders { .. } => {
                    asked += 1;
                    forced.clone()
                }
                Subject::Trades { .. } => refused_route(),
                _ => Outcome::Done(nothing(subject)),
            };
            account.answer(subject, outcome);
        }
        account.pass(499);
        account.alive();
        account.clock();
        account.confirm_countdowns();
    }
    asked
}

/// Earlier fills were not reported, so the balance changed by far more than a close of 40 can
/// explain.
fn wallet_that_fits_nothing(account: &Account) -> Amount {
    let wallet = account.engine.balance(Surface::Futures, USDT).total;
    wallet + wallet.part(1, 2)
}

#[test]
fn a_forced_order_proves_a_close_that_the_balance_does_not_fit() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    let wallet = wallet_that_fits_nothing(&account);
    let forced = Outcome::Done(StateReport::ForcedOrders(vec![listed_order(&account, 40)]));
    pass(&mut account, wallet, &forced, 35);
    assert_eq!(held(&account), [0, 0, 0]);
    assert_eq!(account.engine.run_state(), RunState::Halted);
    assert_eq!(reports(&account).len(), 1);
}

#[test]
fn a_snapshot_without_a_forced_order_is_not_adopted_at_once() {
    for forced in [
        refused_route(),
        Outcome::Done(StateReport::ForcedOrders(Vec::new())),
    ] {
        let mut account = holding(30, 10);
        minute(&mut account, &[], None, &refused_route());
        let wallet = wallet_that_fits_nothing(&account);
        let asked = pass(&mut account, wallet, &forced, 50);
        assert_eq!(held(&account), [40, 30, 10]);
        assert_eq!(account.engine.kill_switch(), KillSwitch::Clear);
        assert!((1..=3).contains(&asked), "{asked} queries");
    }
}
