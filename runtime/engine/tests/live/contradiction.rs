//! The venue contradicts itself about an own order. The engine does not trust the new report at
//! once, and does not ignore it.

use windvane_model::effect::{Adjustment, Cause};
use windvane_model::live::LiveInput;
use windvane_model::live::OnStart;
use windvane_model::order_state::OrderState;
use windvane_model::run_state::RunState;
use windvane_model::state_report::OpenOrder;
use windvane_model::{
    Input, Notice, OrderSeq, OrderStatus, Outcome, PositionSide, Reply, Request, Side, Surface,
    Time,
};

use super::reconciliation::round;
use super::succession::{killed, next_config};
use super::support::{Account, BTC, MM, fill, limit, refused, report, update};
use super::world::{live_config, ready};

/// Lets seconds pass in which every query is answered, and every query for an order is denied.
fn denied(account: &mut Account, order: OrderSeq, seconds: u32) {
    for _ in 0..seconds {
        account.pass(990);
        account.alive();
        account.clock();
        account.sync();
        account.confirm_countdowns();
        for _ in 0..account.take_queries() {
            queried(account, order, refused(-2013));
        }
    }
}

fn queried(
    account: &mut Account,
    order: OrderSeq,
    outcome: Outcome<windvane_model::protocol::OrderReport>,
) {
    let client_order_id = account.id(MM, order);
    account.handle(Input::Reply(&Reply::Queried {
        client_order_id,
        outcome,
    }));
}

fn open_buy(account: &Account) -> i64 {
    let holding = account.engine.ledgers().account.at(BTC, PositionSide::Both);
    holding.open_buy
}

fn adjustments(account: &Account) -> Vec<(Adjustment, Cause)> {
    let reported = account.notices.iter().filter_map(|notice| match notice {
        Notice::Adjusted {
            adjustment, cause, ..
        } => Some((*adjustment, *cause)),
        _ => None,
    });
    reported.collect()
}

/// The next round of reconciliation lists these orders.
fn listed(account: &mut Account, open: &[OpenOrder]) {
    account.wait(31);
    account.take_queries();
    round(account, open, &[], |_| {});
}

/// An order that was open and was cancelled by an event with the venue's time 100.
fn canceled() -> (Account, OrderSeq, OpenOrder) {
    let mut account = ready();
    let order = account.rest();
    let open = account.open_order(order);
    let id = account.id(MM, order);
    let mut end = update(id, Side::Buy, OrderStatus::Canceled, 0);
    end.transaction_time = Time(100);
    account.update(end);
    assert!(account.engine.order(order).is_none());
    (account, order, open)
}

#[test]
fn a_confirmed_order_does_not_end_because_the_venue_denies_it() {
    let mut account = ready();
    let order = account.rest();
    account.wait(31);
    account.sync();
    denied(&mut account, order, 300);
    assert_eq!(
        account.engine.order(order).unwrap().state,
        OrderState::Unknown
    );
    assert_eq!(open_buy(&account), 10);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    assert_eq!(adjustments(&account), []);
    let reported = |notice: &&Notice| matches!(notice, Notice::Denied { .. });
    assert_eq!(account.notices.iter().filter(reported).count(), 1);
    // The venue finds the order again, and the next round leaves nothing unexplained.
    let id = account.id(MM, order);
    let found = Outcome::Done(report(id, OrderStatus::New, 0));
    queried(&mut account, order, found);
    let open = account.open_order(order);
    account.pass(1);
    round(&mut account, &[open], &[], |_| {});
    assert_eq!(account.engine.order(order).unwrap().state, OrderState::New);
    // The countdown was not renewed meanwhile, which is a degraded reason of its own.
    account.pass(1);
    account.confirm_countdowns();
    account.pass(1_000);
    account.confirm_countdowns();
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_denied_order_is_queried_with_growing_delays() {
    let mut account = ready();
    let order = account.rest();
    account.wait(31);
    account.sync();
    let mut asked = 0;
    for _ in 0..120 {
        account.pass(990);
        account.alive();
        account.clock();
        for _ in 0..account.take_queries() {
            asked += 1;
            queried(&mut account, order, refused(-2013));
        }
    }
    assert!((6..=12).contains(&asked), "{asked} queries in two minutes");
}

#[test]
fn ten_minutes_of_denials_by_query_and_list_end_the_order() {
    let mut account = ready();
    let order = account.rest();
    account.wait(31);
    account.sync();
    denied(&mut account, order, 560);
    assert!(account.engine.order(order).is_some());
    denied(&mut account, order, 120);
    assert!(account.engine.order(order).is_none());
    let absent = Adjustment::Absent { order };
    assert_eq!(adjustments(&account), [(absent, Cause::Denial)]);
    assert_eq!(open_buy(&account), 0);
    account.seconds(1);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_start_waits_a_minute_for_orders_that_a_reset_venue_denies() {
    let mut account = ready();
    let order = account.rest();
    let mut account = killed(account, next_config());
    account.begin();
    account.sync();
    denied(&mut account, order, 50);
    assert!(account.engine.order(order).is_some());
    assert_eq!(account.engine.run_state(), RunState::Syncing);
    denied(&mut account, order, 50);
    assert!(account.engine.order(order).is_none());
    let absent = Adjustment::Absent { order };
    assert_eq!(adjustments(&account), [(absent, Cause::Denial)]);
    account.seconds(1);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn silence_of_the_venue_does_not_count_as_denial() {
    let mut account = ready();
    let order = account.rest();
    account.wait(31);
    account.sync();
    denied(&mut account, order, 5);
    account.wait(3_000);
    account.sync();
    denied(&mut account, order, 5);
    assert!(account.engine.order(order).is_some());
}

#[test]
fn a_denied_order_older_than_the_venue_keeps_orders_ends() {
    let mut account = ready();
    let order = account.rest();
    account.pass(7 * 24 * 60 * 60 * 1_000);
    for _ in 0..4 {
        queried(&mut account, order, refused(-2013));
        account.pass(6_000);
    }
    assert!(account.engine.order(order).is_none());
}

#[test]
fn a_stale_query_does_not_deny_a_new_order() {
    let mut account = ready();
    let order = account.rest();
    denied(&mut account, order, 10);
    assert_eq!(account.engine.order(order).unwrap().state, OrderState::New);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_stale_list_does_not_reopen_an_order() {
    for status in [OrderStatus::New, OrderStatus::Canceled] {
        let mut account = ready();
        let order = account.rest();
        account.wait(28);
        account.confirm_countdowns();
        let mut open = account.open_order(order);
        open.report.status = status;
        let id = account.id(MM, order);
        account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
        account.wait(5);
        round(&mut account, &[open], &[], |_| {});
        assert!(account.engine.order(order).is_none(), "{status:?}");
        assert_eq!(adjustments(&account), []);
    }
}

#[test]
fn an_ended_order_that_is_listed_later_is_reopened() {
    let (mut account, order, open) = canceled();
    listed(&mut account, &[open]);
    let revived = account.engine.order(order).unwrap();
    assert_eq!(revived.state, OrderState::New);
    assert_eq!(revived.strategy, MM);
    assert_eq!(open_buy(&account), 10);
    assert_eq!(account.queries(), 1);
    let alive = Adjustment::Alive { order };
    assert_eq!(adjustments(&account), [(alive, Cause::Reconciliation)]);
    // The list came from a server with old data, as the query shows.
    let id = account.id(MM, order);
    let over = Outcome::Done(report(id, OrderStatus::Canceled, 0));
    queried(&mut account, order, over);
    assert!(account.engine.order(order).is_none());
    assert_eq!(open_buy(&account), 0);
}

#[test]
fn the_venues_clock_also_measures_the_age_of_an_end() {
    // Our clock was set forward by an hour while no process ran.
    let (mut account, order, open) = canceled();
    account.wait(31);
    account.take_queries();
    let venue = Time(100).plus_ms(5_000);
    account.live(LiveInput::Clock {
        surface: Surface::Futures,
        offset_ns: venue.0 - account.now.0,
        error_ns: 1,
    });
    round(&mut account, &[open], &[], |_| {});
    assert!(account.engine.order(order).is_none());
    assert_eq!(adjustments(&account), []);
}

#[test]
fn a_list_in_flight_during_the_end_does_not_reopen_the_order() {
    let mut account = ready();
    let order = account.rest();
    let open = account.open_order(order);
    account.wait(31);
    let id = account.id(MM, order);
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
    round(&mut account, &[open], &[], |_| {});
    assert!(account.engine.order(order).is_none());
    assert_eq!(adjustments(&account), []);
}

#[test]
fn a_filled_order_is_not_reopened() {
    let mut account = ready();
    let order = account.rest();
    let open = account.open_order(order);
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
    listed(&mut account, &[open]);
    assert!(account.engine.order(order).is_none());
}

#[test]
fn only_an_event_newer_than_the_end_reopens_an_order() {
    for (time, revives) in [(99, false), (100, false), (101, true)] {
        let (mut account, order, open) = canceled();
        let mut event = update(open.report.client_order_id, Side::Buy, OrderStatus::New, 0);
        event.transaction_time = Time(time);
        account.update(event);
        assert_eq!(account.engine.order(order).is_some(), revives, "{time}");
        assert_eq!(open_buy(&account), if revives { 10 } else { 0 });
    }
}

#[test]
fn a_rejected_order_with_a_partial_fill_reserves_the_remainder() {
    let mut account = ready();
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, refused(-2010));
    assert!(account.engine.order(order).is_none());
    account.update(fill(id, Side::Buy, 1, 4, 4, OrderStatus::PartiallyFilled));
    assert!(account.engine.order(order).is_some());
    assert_eq!(open_buy(&account), 6);
    account.update(fill(id, Side::Buy, 2, 6, 10, OrderStatus::Filled));
    assert!(account.engine.order(order).is_none());
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    assert_eq!((own.position.qty, own.open_buy), (10, 0));
}

#[test]
fn a_rejection_of_an_order_that_the_stream_showed_is_checked() {
    let mut account = ready();
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.update(update(id, Side::Buy, OrderStatus::New, 0));
    account.placed(id, refused(-4116));
    assert_eq!(account.engine.order(order).unwrap().state, OrderState::New);
    account.take_queries();
    account.pass(1_000);
    assert_eq!(account.queries(), 1);
}

#[test]
fn the_next_process_reopens_an_order_that_the_journal_ended() {
    for on_start in [OnStart::Adopt, OnStart::Cancel] {
        let (account, order, open) = canceled();
        let mut config = next_config();
        let mut live = live_config();
        live.on_start = on_start;
        config.live = Some(live);
        let mut account = killed(account, config);
        account.begin();
        // The first list may be older than the end.
        round(&mut account, &[open], &[], |_| {});
        assert!(account.engine.order(order).is_none(), "{on_start:?}");
        account.seconds(28);
        account.sent.clear();
        account.wait(3);
        round(&mut account, &[open], &[], |_| {});
        assert!(account.engine.order(order).is_some(), "{on_start:?}");
        assert_eq!(open_buy(&account), 10);
        let is_cancel = |request: &&Request| matches!(request, Request::Cancel { .. });
        let cancels = account.sent.iter().filter(is_cancel).count();
        assert!(cancels >= usize::from(on_start == OnStart::Cancel));
    }
}

#[test]
fn an_order_dropped_from_memory_is_adopted_if_it_is_listed() {
    let (mut account, _, open) = canceled();
    for _ in 0..4_200 {
        let order = account.submit(MM, limit(Side::Buy, 990, 10));
        let id = account.id(MM, order);
        let canceled = report(id, OrderStatus::Canceled, 0);
        account.placed(id, Outcome::Done(canceled));
        account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
        account.notices.clear();
        account.sent.clear();
        account.events.clear();
    }
    listed(&mut account, &[open]);
    assert_eq!(open_buy(&account), 10);
    listed(&mut account, &[open]);
    assert_eq!(open_buy(&account), 10, "once");
}
