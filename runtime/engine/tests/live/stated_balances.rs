//! Balances in account events that differ from the ledger, while every account snapshot is stale.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::protocol::AccountUpdate;
use windvane_model::run_state::RunState;
use windvane_model::{Input, PositionSide, Side, Surface, UserEvent};

use super::order_of_events::{Manner, USUAL, World, watches};
use super::reconciliation::qty;
use super::support::{USDT, limit};

const FUTURES: Surface = Surface::Futures;
const STATED: DegradedReason = DegradedReason::StatedBalance(FUTURES);

/// A long position of 10,000 with an open exit. From now on, snapshots show the account as it is
/// now.
fn holding() -> World {
    let manner = Manner {
        routes: false,
        lists_flat: false,
        ..USUAL
    };
    let mut world = World::holding(false, manner, watches);
    world.submit(limit(Side::Sell, 1_010, 10_000));
    world.pass(2_000);
    world.venue.stale = Some(world.venue.account());
    world.venue.hides_fills = true;
    world
}

#[test]
fn a_lost_order_event_of_a_close_degrades_before_any_snapshot() {
    let mut world = holding();
    let place = world.venue.orders.len() - 1;
    let at = world.account.now;
    let step = (place, PositionSide::Both, Side::Sell, 10_000, 1_010);
    let (_, reported) = world.venue.fill(step, at);
    world
        .account
        .handle(Input::User(&UserEvent::Account(reported)));
    world.serve();
    world.pass(2_500);
    assert_eq!(world.account.engine.run_state(), RunState::Ready);
    world.pass(1_500);
    assert_eq!(world.account.engine.degraded_reasons(), [STATED]);
    world.pass(6_000);
    assert_eq!(world.account.engine.degraded_reasons(), [STATED]);
    (world.venue.stale, world.venue.hides_fills) = (None, false);
    world.pass(30_000);
    assert_eq!(world.account.engine.run_state(), RunState::Ready);
    let known = world.account.engine.balance(FUTURES, USDT).total;
    assert_eq!(
        (qty(&world.account), known),
        (0, world.venue.balances[&USDT])
    );
}

#[test]
fn a_late_account_event_with_the_old_balance_explains_nothing() {
    let mut world = holding();
    let place = world.venue.orders.len() - 1;
    let at = world.account.now;
    let mut before = world.venue.stale.clone().unwrap();
    before.positions.clear();
    let step = (place, PositionSide::Both, Side::Sell, 5_000, 1_010);
    let (order, reported) = world.venue.fill(step, at);
    world.account.update(order);
    world
        .account
        .handle(Input::User(&UserEvent::Account(reported)));
    let step = (place, PositionSide::Both, Side::Sell, 5_000, 1_010);
    let (_, reported) = world.venue.fill(step, world.account.now);
    let late = AccountUpdate {
        balances: before.balances,
        positions: Vec::new(),
        transaction_time: world.account.now.plus_ms(1),
        event_time: world.account.now.plus_ms(1),
        ..reported.clone()
    };
    world
        .account
        .handle(Input::User(&UserEvent::Account(reported)));
    world.account.handle(Input::User(&UserEvent::Account(late)));
    world.serve();
    world.pass(4_000);
    assert!(world.account.engine.degraded_reasons().contains(&STATED));
}

/// Order events are two seconds later than account events, and one fill follows the other.
#[test]
fn late_order_events_do_not_contradict_a_balance() {
    let mut world = holding();
    let place = world.venue.orders.len() - 1;
    let mut late = Vec::new();
    for _ in 0..40 {
        let at = world.account.now;
        let step = (place, PositionSide::Both, Side::Sell, 10, 1_010);
        let (order, reported) = world.venue.fill(step, at);
        world
            .account
            .handle(Input::User(&UserEvent::Account(reported)));
        world.serve();
        late.push(order);
        if late.len() > 4 {
            world.account.update(late.remove(0));
        }
        world.pass(500);
        assert!(!world.account.engine.degraded_reasons().contains(&STATED));
    }
}
