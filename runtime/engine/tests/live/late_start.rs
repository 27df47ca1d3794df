//! A process that starts shortly after its last fill, on a venue with stale account snapshots. They
//! show the account before that fill, and must not remove the fill from the strategy.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::protocol::Refusal;
use windvane_model::run_state::RunState;
use windvane_model::state_report::{AccountSnapshot, StateReport, Subject};
use windvane_model::{Amount, ClientOrderId, OrderStatus, Outcome, Side, Surface};

use super::reconciliation::{adjustments, qty, trade};
use super::succession::{killed, next_config};
use super::support::{Account, MM, USDT, fill, market};
use super::world::{no_trades, nothing, position, ready};

/// How the venue responds to a request for the list of the account's trades.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trades {
    Told,
    Refused,
    Late,
}

/// One fill long ago, and one just before the process is killed. Returns the account as it was
/// before the second fill.
fn killed_after_fill(since_s: u32) -> (Account, AccountSnapshot) {
    let mut account = ready();
    buy(&mut account, 1);
    account.seconds(60);
    let before = account.own_account();
    buy(&mut account, 2);
    account.seconds(since_s);
    assert_eq!(
        (own(&account), account.engine.run_state()),
        (8, RunState::Ready)
    );
    (killed(account, next_config()), before)
}

fn buy(account: &mut Account, trade_id: i64) {
    trade_at(account, Side::Buy, trade_id);
}

fn trade_at(account: &mut Account, side: Side, trade_id: i64) {
    let order = account.submit(MM, market(side, 4));
    let id = account.id(MM, order);
    let mut reported = fill(id, side, trade_id, 4, 4, OrderStatus::Filled);
    reported.transaction_time = account.now;
    reported.event_time = account.now;
    account.update(reported);
    account
        .sent
        .retain(|request| matches!(request, windvane_model::Request::Read(_)));
}

fn own(account: &Account) -> i64 {
    let ledgers = account.engine.ledgers();
    let side = windvane_model::PositionSide::Both;
    ledgers.strategies[0]
        .at(super::support::BTC, side)
        .position
        .qty
}

/// Answers the queries of a quarter of a second.
fn quarter_second(account: &mut Account, trades: Trades, read: &AccountSnapshot) {
    while let Some(subject) = account.take_question() {
        let outcome = match subject {
            Subject::Trades { .. } => match trades {
                Trades::Refused => Outcome::Refused(Refusal {
                    code: 404,
                    msg: String::new(),
                }),
                Trades::Told => Outcome::Done(StateReport::Trades {
                    trades: vec![trade(1, 1, 4), trade(1, 2, 4)],
                    more: false,
                }),
                Trades::Late => Outcome::Done(no_trades()),
            },
            Subject::Account { .. } => Outcome::Done(StateReport::Account(read.clone())),
            _ => Outcome::Done(nothing(subject)),
        };
        account.answer(subject, outcome);
    }
    account.confirm_countdowns();
    account.pass(250);
    account.alive();
    account.clock();
}

#[test]
fn a_snapshot_older_than_the_last_fill_changes_nothing() {
    for trades in [Trades::Told, Trades::Refused, Trades::Late] {
        // Events did not include commissions of the balances. So no earlier state of the ledger had
        // these balances.
        for fees in [0, 77_000] {
            for lag in [0, 1, 5, 10] {
                let name = format!("{trades:?}, {lag} s, commissions {fees}");
                let (mut account, mut before) = killed_after_fill(1);
                let mut now = account.own_account();
                before.balances[0].total -= Amount(fees);
                now.balances[0].total -= Amount(2 * fees);
                account.begin();
                for quarter in 0..4 * 40 {
                    // The fill is one second old.
                    let is_late = quarter < 4 * lag - 4;
                    quarter_second(&mut account, trades, if is_late { &before } else { &now });
                    assert_eq!((own(&account), qty(&account)), (8, 8), "{name} {quarter}");
                    let state = account.engine.run_state();
                    let may_be_ready = !is_late || state != RunState::Ready;
                    assert!(may_be_ready, "{name} {quarter}: ready on old snapshots");
                }
                assert_eq!(account.engine.run_state(), RunState::Ready, "{name}");
                let total = account.engine.balance(Surface::Futures, USDT).total;
                assert_eq!(total, now.balances[0].total, "{name}");
                assert!(adjustments(&account).len() <= 1, "{name}");
            }
        }
    }
}

#[test]
fn a_start_long_after_the_last_fill_does_not_wait() {
    let (mut account, _) = killed_after_fill(20);
    let mut now = account.own_account();
    now.balances[0].total -= Amount(5);
    account.begin();
    for _ in 0..14 {
        quarter_second(&mut account, Trades::Told, &now);
    }
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    let lost = DegradedReason::LostEvents(Surface::Futures);
    assert_eq!(account.engine.degraded_reasons(), [lost]);
    let total = account.engine.balance(Surface::Futures, USDT).total;
    assert_eq!(total, now.balances[0].total);
}

#[test]
fn a_balance_older_than_the_last_fills_is_not_adopted() {
    for lag in [0, 1, 5, 10] {
        let mut account = ready();
        buy(&mut account, 1);
        account.seconds(60);
        // The position is the same as before, but the balance is not.
        let before = account.own_account();
        trade_at(&mut account, Side::Sell, 2);
        trade_at(&mut account, Side::Buy, 3);
        account.seconds(1);
        let now = account.own_account();
        assert_ne!(before.balances, now.balances);
        let mut account = killed(account, next_config());
        account.begin();
        for quarter in 0..4 * 20 {
            let is_late = quarter < 4 * lag - 4;
            let read = if is_late { &before } else { &now };
            quarter_second(&mut account, Trades::Late, read);
            let total = account.engine.balance(Surface::Futures, USDT).total;
            assert_eq!(total, now.balances[0].total, "{lag} s, {quarter}");
            let is_ready = account.engine.run_state() == RunState::Ready;
            assert!(!is_late || !is_ready, "{lag} s, {quarter}");
            let reason = DegradedReason::Reconciliation(Surface::Futures);
            let is_told = account.engine.degraded_reasons().contains(&reason);
            assert!(!is_late || quarter < 12 || is_told, "{lag} s, {quarter}");
        }
        assert_eq!(account.engine.run_state(), RunState::Ready, "{lag} s");
        assert_eq!(adjustments(&account), [], "{lag} s");
    }
}

#[test]
fn two_snapshots_within_one_second_count_as_one() {
    let (mut account, _) = killed_after_fill(20);
    let mut now = account.own_account();
    now.balances[0].total -= Amount(5);
    account.begin();
    for _ in 0..3 {
        quarter_second(&mut account, Trades::Told, &now);
    }
    assert_eq!(adjustments(&account), []);
}

/// A fill of 4 after a start without a journal, on an account that held a position before.
#[test]
fn after_a_lost_journal_a_stale_snapshot_is_not_adopted() {
    let mut config = next_config();
    config.balances.clear();
    let mut account = Account::new(config);
    account.engine.degrade_for_lost_state();
    account.begin();
    let mut read = account.own_account();
    read.balances[0].total = Amount(1_000_000_000);
    for quarter in 0..4 * 40 {
        if quarter == 4 * 8 {
            sell_by_hand(&mut account);
        }
        // Two sales of the same size. Snapshots show each one ten seconds after it was made.
        read.positions = vec![position(match quarter / 4 {
            0..8 => 8,
            8..18 => 4,
            _ => 0,
        })];
        quarter_second(&mut account, Trades::Late, &read);
        let is_found = account.engine.run_state() != RunState::Syncing;
        assert!(
            !is_found || qty(&account) == 0,
            "quarter {quarter}: {}",
            qty(&account)
        );
    }
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

/// The event of a sale of 4 that is made now.
fn sell_by_hand(account: &mut Account) {
    let somebodys = ClientOrderId::new("by-hand").unwrap();
    let mut reported = fill(somebodys, Side::Sell, 9, 4, 4, OrderStatus::Filled);
    (reported.transaction_time, reported.event_time) = (account.now, account.now);
    account.update(reported);
}
