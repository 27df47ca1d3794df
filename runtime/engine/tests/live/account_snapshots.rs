//! Account snapshots that are older than the stream, and trades that are reported after the
//! snapshot that contains them.

use windvane_model::live::LiveInput;
use windvane_model::protocol::{OrderUpdate, Refusal};
use windvane_model::run_state::RunState;
use windvane_model::state_report::{AccountSnapshot, OpenOrder, StateReport, Subject};
use windvane_model::{
    Amount, ClientOrderId, OrderSeq, OrderStatus, Outcome, PositionSide, Side, Surface, Time,
};

use super::reconciliation::{adjustments, qty, round, trade};
use super::support::{Account, BTC, MM, fill, report};
use super::world::{position, ready};

const FUTURES: Surface = Surface::Futures;

/// An order with a partial fill of 4, after a round of reconciliation showed the account before it.
fn filled_after_a_round() -> (Account, OrderSeq, AccountSnapshot) {
    let mut account = ready();
    let order = account.rest();
    account.wait(31);
    account.confirm_countdowns();
    let listed = [account.open_order(order)];
    round(&mut account, &listed, &[], |_| {});
    let before = account.own_account();
    account.wait(20);
    account.confirm_countdowns();
    let reported = fill_at(&account, order, 1, 2_000);
    account.update(reported);
    (account, order, before)
}

/// A fill of 4 that the venue executed at `ms`.
fn fill_at(account: &Account, order: OrderSeq, trade_id: i64, ms: i64) -> OrderUpdate {
    let filled = account.engine.order(order).unwrap().executed_qty + 4;
    let id = account.id(MM, order);
    OrderUpdate {
        transaction_time: Time::from_millis(ms),
        ..fill(
            id,
            Side::Buy,
            trade_id,
            4,
            filled,
            OrderStatus::PartiallyFilled,
        )
    }
}

/// Answers the queries of this many seconds with this account.
fn read(account: &mut Account, order: OrderSeq, reported: &AccountSnapshot, seconds: u32) {
    for _ in 0..seconds {
        for _ in 0..4 {
            let listed = [account.open_order(order)];
            round(account, &listed, &[], |own| own.clone_from(reported));
            account.pass(249);
        }
        account.alive();
        account.clock();
        account.confirm_countdowns();
    }
}

fn own_qty(account: &Account) -> i64 {
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    own.position.qty
}

#[test]
fn a_snapshot_equal_to_an_earlier_state_is_not_adopted_at_once() {
    let (mut account, order, before) = filled_after_a_round();
    assert!(!before.lags);
    read(&mut account, order, &before, 25);
    assert_eq!(qty(&account), 4, "it equals the account before the fill");
    assert_eq!(adjustments(&account), []);
    read(&mut account, order, &before, 90);
    assert_eq!(qty(&account), 0, "after a long time it counts as current");
}

#[test]
fn a_snapshot_with_a_time_before_a_fill_is_not_adopted() {
    let (mut account, order, mut before) = filled_after_a_round();
    // A state that the engine never had.
    before.balances[0].total += Amount(3);
    before.updated = Some(Time::from_millis(1_999));
    read(&mut account, order, &before, 25);
    assert_eq!(qty(&account), 4);
    assert_eq!(adjustments(&account), []);
    before.updated = Some(Time::from_millis(2_000));
    read(&mut account, order, &before, 60);
    assert_eq!(
        qty(&account),
        0,
        "by its time the snapshot contains the fill, so the engine adopts its position"
    );
}

#[test]
fn snapshots_whose_time_never_changes_are_finally_adopted() {
    let (mut account, order, mut reported) = filled_after_a_round();
    reported.positions = vec![position(40)];
    reported.updated = Some(Time::from_millis(1_000));
    let somebodys = ClientOrderId::new("by-hand").unwrap();
    for n in 1..30 {
        read(&mut account, order, &reported, 20);
        if qty(&account) == 40 {
            assert!(n > 10, "too soon, after {n}");
            return;
        }
        // The newest fill is always recent.
        let mut fill = fill(somebodys, Side::Buy, 10 + n, 1, 1, OrderStatus::Filled);
        fill.transaction_time = Time::from_millis(3_000 + n);
        account.update(fill);
    }
    panic!("a permanent difference must be adopted");
}

/// The stream lost a fill of 4 at the venue's second 3. A snapshot showed it, and the engine
/// adopted the snapshot.
fn taken_without_its_fill(updated: Option<Time>) -> (Account, OrderSeq) {
    let mut account = ready();
    let order = account.rest();
    let mut reported = account.own_account();
    reported.positions = vec![position(4)];
    reported.balances[0].total -= Amount(1_000_000);
    reported.updated = updated;
    account.wait(31);
    account.confirm_countdowns();
    read(&mut account, order, &reported, 20);
    assert_eq!((qty(&account), own_qty(&account)), (4, 0));
    account.notices.clear();
    (account, order)
}

#[test]
fn a_fill_reported_after_a_snapshot_with_it_counts_once() {
    for updated in [Some(Time::from_millis(5_000)), None] {
        let (mut account, order) = taken_without_its_fill(updated);
        let read = account.own_account();
        let reported = fill_at(&account, order, 7, 3_000);
        account.update(reported);
        assert_eq!(account.own_account(), read, "{updated:?}");
        assert_eq!(own_qty(&account), 4, "it belongs to the strategy");
        let ledgers = account.engine.ledgers();
        let external = ledgers.external.at(BTC, PositionSide::Both);
        assert_eq!(external.position.qty, 0, "and to nobody else");
        let instruments = account.engine.instruments();
        assert_eq!(ledgers.first_difference(instruments), None);
    }
}

#[test]
fn a_fill_newer_than_the_adopted_snapshot_counts() {
    let (mut account, order) = taken_without_its_fill(Some(Time::from_millis(5_000)));
    let reported = fill_at(&account, order, 7, 5_001);
    account.update(reported);
    assert_eq!((qty(&account), own_qty(&account)), (8, 4));
}

/// A snapshot of the venue's second 5 reduced the balance by `less` and changed no position.
fn taken_with_a_smaller_balance(less: Amount, updated: Option<Time>) -> (Account, OrderSeq) {
    let mut account = ready();
    let order = account.rest();
    let mut reported = account.own_account();
    reported.balances[0].total -= less;
    reported.updated = updated;
    account.wait(31);
    account.confirm_countdowns();
    read(&mut account, order, &reported, 20);
    assert_eq!(
        account.own_account().balances,
        reported.balances,
        "it is adopted"
    );
    account.notices.clear();
    (account, order)
}

#[test]
fn a_snapshot_that_changed_no_position_contains_no_fill() {
    // A rounded commission, and an outside loss on another symbol.
    for less in [Amount(3), Amount(100_000_000_000)] {
        for updated in [Some(Time::from_millis(5_000)), None] {
            let (mut account, order) = taken_with_a_smaller_balance(less, updated);
            let reported = fill_at(&account, order, 7, 3_000);
            account.update(reported);
            assert_eq!((qty(&account), own_qty(&account)), (4, 4), "{updated:?}");
            assert_eq!(adjustments(&account), []);
        }
    }
}

#[test]
fn an_order_placed_after_the_snapshot_request_is_not_in_it() {
    // The venue's clock was ahead when the account was read.
    let (mut account, _) = taken_without_its_fill(Some(Time::from_millis(5_000)));
    let order = account.rest();
    let reported = fill_at(&account, order, 7, 4_000);
    account.update(reported);
    assert_eq!((qty(&account), own_qty(&account)), (8, 4));
}

#[test]
fn a_snapshot_that_changes_only_the_balance_contains_no_new_order() {
    let (mut account, first) = taken_without_its_fill(None);
    let order = account.rest();
    let mut reported = account.own_account();
    reported.balances[0].total -= Amount(3_000_000);
    // A whole reconciliation interval; the account is read in its last seconds.
    for _ in 0..4 * 26 {
        let listed = [first, order].map(|order| account.open_order(order));
        round(&mut account, &listed, &[], |own| own.clone_from(&reported));
        account.pass(249);
        account.alive();
        account.clock();
        account.confirm_countdowns();
    }
    assert_eq!(
        account.own_account().balances,
        reported.balances,
        "it is adopted"
    );
    let event = fill_at(&account, order, 7, 3_000);
    account.update(event);
    assert_eq!((qty(&account), own_qty(&account)), (8, 4));
}

#[test]
fn account_trades_reported_after_a_snapshot_count_once() {
    let (mut account, order) = taken_without_its_fill(Some(Time::from_millis(5_000)));
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
    let mut late = trade(1, 7, 4);
    late.time = Time::from_millis(3_000);
    let listed = [OpenOrder {
        report: report(account.id(MM, order), OrderStatus::PartiallyFilled, 4),
        ..account.open_order(order)
    }];
    round(&mut account, &listed, &[late], |_| {});
    assert_eq!((qty(&account), own_qty(&account)), (4, 4));
}

#[test]
fn after_a_reconnect_a_venue_that_refused_trades_is_asked_again() {
    let mut account = ready();
    for _ in 0..2 {
        account.live(LiveInput::StreamDown { surface: FUTURES });
        account.live(LiveInput::StreamUp { surface: FUTURES });
        let orders = account.take_question().unwrap();
        account.tell(orders, StateReport::OpenOrders(Vec::new()));
        let trades = account.take_question().unwrap();
        assert!(matches!(trades, Subject::Trades { .. }), "{trades:?}");
        account.answer(
            trades,
            Outcome::Refused(Refusal {
                code: -1130,
                msg: String::new(),
            }),
        );
        account.sync();
    }
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
    round(&mut account, &[], &[trade(77, 9, 3)], |_| {});
    assert_eq!(qty(&account), 3, "the venue now reports an outside trade");
}

#[test]
fn an_empty_list_without_a_balance_change_clears_no_position() {
    let (mut account, order, before) = filled_after_a_round();
    account.wait(40);
    account.confirm_countdowns();
    let mut empty = account.own_account();
    assert_ne!(empty.positions, before.positions);
    empty.positions = vec![position(0)];
    read(&mut account, order, &empty, 60);
    assert_eq!(qty(&account), 4);
    assert_eq!(adjustments(&account), []);
    // A real close changes the balance.
    empty.balances[0].total -= Amount(1);
    read(&mut account, order, &empty, 40);
    assert_eq!(qty(&account), 0);
}

#[test]
fn a_stale_snapshot_does_not_complete_a_reconciliation() {
    let (mut account, order, before) = filled_after_a_round();
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
    read(&mut account, order, &before, 10);
    assert_eq!(qty(&account), 4);
    assert_ne!(account.engine.run_state(), RunState::Ready);
    let now = account.own_account();
    read(&mut account, order, &now, 10);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}
