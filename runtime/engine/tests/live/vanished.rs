//! Positions and balances that only account events remove: liquidation and auto-deleveraging
//! without order events, at a venue that omits flat positions and empty balances.

use windvane_model::protocol::{AccountReason, AccountUpdate, PositionUpdate};
use windvane_model::run_state::RunState;
use windvane_model::state_report::{AccountSnapshot, StateReport, Subject};
use windvane_model::{Amount, Input, OrderStatus, PositionSide, Qty, Side, Surface, UserEvent};

use super::support::{Account, BTC, MM, fill, limit};
use super::world::{live_config, no_trades, nothing};

/// An account that bought 10 at 100.
fn holding() -> Account {
    let mut config = super::support::config();
    config.live = Some(live_config());
    let mut account = Account::new(config);
    account.begin();
    account.sync();
    account.top(999, 1001);
    let order = account.submit(MM, limit(Side::Buy, 1000, 10_000));
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 10_000, 10_000, OrderStatus::Filled));
    account.seconds(2);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account
}

fn held(account: &Account) -> (i64, i64) {
    let ledgers = account.engine.ledgers();
    let both = PositionSide::Both;
    let own = ledgers.strategies[0].at(BTC, both).position.qty;
    (ledgers.account.at(BTC, both).position.qty, own)
}

/// The venue removes the position, and the balance too if `empty`. Only an account event reports
/// it.
fn take(account: &mut Account, reason: AccountReason, empty: bool, lists_flat: bool) {
    let mut reported = account.own_account();
    if empty {
        reported.balances[0].total = Amount::ZERO;
    }
    let flat = PositionUpdate {
        instrument: BTC,
        position_side: PositionSide::Both,
        qty: Qty(0),
        cost: Amount::ZERO,
    };
    account.handle(Input::User(&UserEvent::Account(AccountUpdate {
        surface: Surface::Futures,
        reason,
        balances: reported.balances,
        positions: if lists_flat { vec![flat] } else { Vec::new() },
        transaction_time: account.now,
        event_time: account.now,
    })));
}

/// Answers queries for this many seconds as a venue that omits flat positions and empty balances.
fn answer(account: &mut Account, state_report: &AccountSnapshot, seconds: u32) {
    for _ in 0..seconds {
        for _ in 0..4 {
            while let Some(subject) = account.take_question() {
                let reported = match subject {
                    Subject::Account { .. } => StateReport::Account(state_report.clone()),
                    Subject::Trades { .. } => no_trades(),
                    _ => nothing(subject),
                };
                account.tell(subject, reported);
            }
            account.pass(249);
        }
        account.alive();
        account.clock();
        account.confirm_countdowns();
    }
}

fn reading(account: &Account, empty: bool) -> AccountSnapshot {
    let mut state_report = account.own_account();
    state_report.positions.clear();
    if empty {
        state_report.balances.clear();
    }
    state_report
}

#[test]
fn an_account_event_and_snapshots_settle_a_removed_position() {
    for reason in [
        AccountReason::InsuranceClear,
        AccountReason::Order,
        AccountReason::Charge,
    ] {
        for empty in [false, true] {
            let mut account = holding();
            let state_report = reading(&account, empty);
            take(&mut account, reason, empty, true);
            answer(&mut account, &state_report, 25);
            assert_eq!(held(&account), (0, 0), "{reason:?} {empty}");
            assert_eq!(account.engine.degraded_reasons(), [], "{reason:?} {empty}");
            let balance = account.own_account().balances[0].total;
            assert_eq!(balance == Amount::ZERO, empty, "{reason:?}");
        }
    }
}

#[test]
fn stale_snapshots_do_not_refute_an_account_event() {
    for (empty, lag_s) in [(false, 1), (false, 10), (true, 1), (true, 10)] {
        let mut account = holding();
        let state_report = reading(&account, empty);
        let before = account.own_account();
        take(&mut account, AccountReason::InsuranceClear, empty, true);
        answer(&mut account, &before, lag_s);
        answer(&mut account, &state_report, 30);
        assert_eq!(held(&account), (0, 0), "{empty} {lag_s}");
        assert_eq!(account.engine.degraded_reasons(), [], "{empty} {lag_s}");
    }
}

#[test]
fn an_account_event_that_snapshots_refute_for_long_is_ignored() {
    let mut account = holding();
    let full = account.own_account();
    take(&mut account, AccountReason::Order, false, true);
    answer(&mut account, &full, 25);
    account.sent.clear();
    let short = reading(&account, true);
    answer(&mut account, &short, 20);
    answer(&mut account, &full, 40);
    assert_eq!(held(&account), (10_000, 10_000));
    assert_eq!(account.engine.degraded_reasons(), []);
}

#[test]
fn snapshots_alone_settle_a_removed_position_after_a_minute() {
    let mut account = holding();
    let state_report = reading(&account, false);
    account.wait(30);
    answer(&mut account, &state_report, 20);
    assert_eq!(held(&account), (10_000, 10_000));
    assert_ne!(account.engine.run_state(), RunState::Ready);
    answer(&mut account, &state_report, 60);
    assert_eq!(held(&account), (0, 0));
}

#[test]
fn empty_snapshots_degrade_the_run() {
    let mut account = holding();
    let state_report = reading(&account, true);
    account.wait(30);
    answer(&mut account, &state_report, 100);
    assert_eq!(held(&account), (10_000, 10_000));
    assert_ne!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn one_empty_snapshot_removes_nothing() {
    let mut account = holding();
    let state_report = reading(&account, true);
    let full = account.own_account();
    account.wait(30);
    answer(&mut account, &state_report, 2);
    answer(&mut account, &full, 40);
    assert_eq!(held(&account), (10_000, 10_000));
    assert_eq!(
        account.own_account().balances[0].total,
        full.balances[0].total
    );
    assert_eq!(account.engine.degraded_reasons(), []);
}
