//! Closing positions while the account is uncertain: the user stream is down, account snapshots are
//! old or never agree, or the venue does not arm countdowns. A close that only reduces needs none
//! of these.

use windvane_engine::engine::CloseReason;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::input::Command;
use windvane_model::live::{LiveInput, OnStop};
use windvane_model::{
    Amount, Input, OrderTerms, OrderType, PositionSide, Qty, Request, Side, Surface,
};

use super::order_of_events::{Manner, USUAL, World};
use super::reconciliation::qty;
use super::support::{BTC, MM, OTHER, USDT, limit};

const FUTURES: Surface = Surface::Futures;

/// A long position of 10,000 at 100.0 with an open exit order. Market orders fill at 99.9.
fn holding(manner: Manner) -> World {
    let on_stop = |config: &mut windvane_model::config::EngineConfig| {
        config.live.as_mut().unwrap().on_stop = OnStop::Flatten;
    };
    let mut world = World::holding(false, manner, on_stop);
    world.submit(limit(Side::Sell, 1_100, 10_000));
    world.pass(2_000);
    world.account.notices.clear();
    world.venue.market_price = Some(999);
    world
}

fn drop_stream(world: &mut World) {
    world
        .account
        .live(LiveInput::StreamDown { surface: FUTURES });
    world.venue.silent = true;
}

fn flatten(world: &mut World) {
    world.account.handle(Input::Command(Command::Flatten));
    world.serve();
}

/// The venue's market orders: the quantity, and whether the order is reduce-only.
fn closes(world: &World) -> Vec<(i64, bool)> {
    let orders = world.venue.orders.iter();
    let closes = orders.filter(|(_, terms, ..)| terms.order_type == OrderType::Market);
    closes
        .map(|(_, terms, ..)| (terms.qty.unwrap().0, terms.reduce_only))
        .collect()
}

fn at_venue(world: &World) -> i64 {
    world.venue.positions[&PositionSide::Both].qty
}

fn own(world: &World) -> i64 {
    let own = &world.account.engine.ledgers().strategies[usize::from(MM.0)];
    own.at(BTC, PositionSide::Both).position.qty
}

fn both_kinds() -> [Manner; 2] {
    [true, false].map(|routes| Manner { routes, ..USUAL })
}

#[test]
fn flatten_works_over_rest_while_the_user_stream_is_down() {
    for manner in both_kinds() {
        for age_ms in [0, 20_000] {
            let mut world = holding(manner);
            drop_stream(&mut world);
            world.pass(age_ms);
            flatten(&mut world);
            world.pass(3_000);
            assert_eq!(at_venue(&world), 0, "{manner:?} {age_ms}");
            assert_eq!(closes(&world), [(10_000, true)], "once");
            world.pass(20_000);
            assert_eq!((qty(&world.account), own(&world)), (0, 0), "{manner:?}");
            assert!(!world.account.engine.is_flattening(MM));
            assert!(world.account.engine.orders().is_empty());
            assert_eq!(closes(&world).len(), 1);
        }
    }
}

#[test]
fn a_stop_closes_over_rest_while_the_user_stream_is_down() {
    for manner in both_kinds() {
        let mut world = holding(manner);
        drop_stream(&mut world);
        world.account.live(LiveInput::Stop);
        world.serve();
        world.pass(9_000);
        assert_eq!(at_venue(&world), 0);
        assert!(world.account.engine.has_stopped(), "{manner:?}");
    }
}

/// `settlements_of_two_instruments_leave_one_close_each` checks the order in which closes are sent.
#[test]
fn a_stop_closes_the_rest_of_settled_positions_once() {
    for manner in both_kinds() {
        let mut world = holding(manner);
        let mut sale = OrderTerms::new(BTC, Side::Sell, OrderType::Market);
        sale.qty = Some(Qty(4_000));
        world.account.submit(OTHER, sale);
        world.serve();
        world.pass(2_000);
        let before = closes(&world).len();
        drop_stream(&mut world);
        world.pass(20_000);
        world.account.live(LiveInput::Stop);
        world.serve();
        world.pass(9_000);
        assert_eq!(closes(&world)[before..], [(6_000, true)], "{manner:?}");
        assert_eq!(at_venue(&world), 0);
    }
}

#[test]
fn a_stream_that_reconnects_after_the_close_counts_its_fill_once() {
    for manner in both_kinds() {
        let mut world = holding(manner);
        drop_stream(&mut world);
        flatten(&mut world);
        world.pass(3_000);
        world.venue.silent = false;
        world.account.live(LiveInput::StreamUp { surface: FUTURES });
        world.pass(40_000);
        assert_eq!(
            (at_venue(&world), qty(&world.account), own(&world)),
            (0, 0, 0)
        );
        let balance = world.account.engine.balance(FUTURES, USDT).total;
        assert_eq!(balance, world.venue.balances[&USDT], "{manner:?}");
    }
}

#[test]
fn a_close_is_not_larger_than_the_account_snapshot_shows() {
    let mut world = holding(USUAL);
    drop_stream(&mut world);
    // An outside order closed a part, and no event reports it.
    let quote = super::support::instrument().notional(1_000, 4_000);
    let position = world.venue.positions.get_mut(&PositionSide::Both).unwrap();
    position.fill(Side::Sell, 4_000, quote);
    flatten(&mut world);
    world.pass(3_000);
    assert_eq!(closes(&world), [(6_000, true)]);
    assert_eq!(at_venue(&world), 0);
    world.pass(80_000);
    assert_eq!((own(&world), closes(&world).len()), (0, 1));
    assert!(!world.account.engine.is_flattening(MM));
}

#[test]
fn a_snapshot_older_than_the_position_allows_no_close() {
    let mut world = holding(USUAL);
    let mut before = world.venue.account();
    for position in &mut before.positions {
        position.qty = Qty(0);
    }
    world.venue.stale = Some(before);
    drop_stream(&mut world);
    flatten(&mut world);
    world.pass(5_000);
    assert_eq!(closes(&world), []);
    let waits = world.account.engine.close_waits();
    assert_eq!(waits.len(), 1, "{waits:?}");
    assert_eq!(waits[0].positions, [(BTC, 10_000)]);
    assert_eq!(waits[0].reasons, [CloseReason::Stream(FUTURES)]);
    assert!(world.account.now >= waits[0].since.plus_ms(5_000));
    world.venue.stale = None;
    world.pass(3_000);
    assert_eq!(closes(&world), [(10_000, true)]);
}

#[test]
fn flatten_does_not_wait_for_agreeing_snapshots() {
    let mut world = holding(USUAL);
    // Each snapshot contradicts the previous one, because another program trades on the account all
    // the time.
    world.venue.swing.set(Amount(100_000_000));
    world.pass(60_000);
    let reasons = world.account.engine.degraded_reasons();
    assert!(
        reasons.contains(&DegradedReason::Reconciliation(FUTURES)),
        "{reasons:?}"
    );
    flatten(&mut world);
    world.pass(3_000);
    assert_eq!(closes(&world), [(10_000, true)]);
    assert_eq!(at_venue(&world), 0);
}

#[test]
fn flatten_does_not_need_a_countdown() {
    for refuses in [true, false] {
        let mut world = holding(USUAL);
        world.venue.refuses_countdowns = refuses;
        flatten(&mut world);
        world.pass(3_000);
        assert_eq!(closes(&world), [(10_000, true)], "{refuses}");
    }
    let mut world = World::holding(false, USUAL, |_| {});
    world.venue.market_price = Some(999);
    world.venue.refuses_countdowns = true;
    world.pass(60_000);
    flatten(&mut world);
    world.pass(3_000);
    assert_eq!(closes(&world), [(10_000, true)], "no countdown is armed");
}

#[test]
fn cancel_all_of_a_strategy_keeps_its_closing_order() {
    let mut account = super::changes_without_event::holding();
    account.sent.clear();
    account.handle(Input::Command(Command::Flatten));
    account.call(MM, |callback, engine| callback.cancel_all(engine, None));
    let is_close =
        |request: &Request| matches!(request, Request::Place(order) if order.terms.reduce_only);
    assert!(account.sent.iter().any(is_close));
    let is_cancel = |request: &Request| matches!(request, Request::Cancel { .. });
    assert!(!account.sent.iter().any(is_cancel));
}
