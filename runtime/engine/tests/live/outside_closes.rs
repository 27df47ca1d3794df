//! Positions that outside orders close, and lists of positions that lack one.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::input::Command;
use windvane_model::live::LiveInput;
use windvane_model::order_state::OrderState;
use windvane_model::protocol::{OrderReport, OrderUpdate};
use windvane_model::run_state::RunState;
use windvane_model::state_report::OpenOrder;
use windvane_model::{
    Amount, Input, Notice, OrderSeq, OrderStatus, OrderTerms, Outcome, PositionSide, Reply, Side,
    StrategyId, Surface, Time, UserEvent, VenueOrderId,
};

use super::order_of_events::{Manner, USUAL, World, watches};
use super::reconciliation::{adjustments, qty, round};
use super::support::{
    Account, BTC, MM, OTHER, USDT, fill, instrument, limit, market, report, update,
};
use super::world::{position, ready};

const FUTURES: Surface = Surface::Futures;

/// A long position of 10,000 at 100.0 with an open exit at 110.0. The venue does not list the
/// account's trades.
fn holding() -> (World, OrderSeq) {
    holding_at(Manner {
        routes: false,
        ..USUAL
    })
}

fn holding_at(manner: Manner) -> (World, OrderSeq) {
    let mut world = World::holding(false, manner, watches);
    let exit = world.submit(limit(Side::Sell, 1_100, 10_000));
    world.pass(2_000);
    world.account.notices.clear();
    (world, exit)
}

/// An outside order closes this quantity at a price, with a fee, and no event reports it.
fn close_outside(world: &mut World, qty: i64, price: i64, fee: i128) {
    let quote = instrument().notional(price, qty);
    let position = world.venue.positions.get_mut(&PositionSide::Both).unwrap();
    let realized = position.fill(Side::Sell, qty, quote);
    *world.venue.balances.get_mut(&USDT).unwrap() += realized - Amount(fee);
}

fn cut_stream(world: &mut World) {
    world
        .account
        .live(LiveInput::StreamDown { surface: FUTURES });
    world.pass(3_000);
    world.account.live(LiveInput::StreamUp { surface: FUTURES });
    world.serve();
}

fn own_qty(world: &World) -> i64 {
    let own = &world.account.engine.ledgers().strategies[usize::from(MM.0)];
    own.at(BTC, PositionSide::Both).position.qty
}

fn external_qty(world: &World) -> i64 {
    let external = &world.account.engine.ledgers().external;
    external.at(BTC, PositionSide::Both).position.qty
}

fn is_unlisted(world: &World) -> bool {
    world
        .account
        .engine
        .degraded_reasons()
        .contains(&DegradedReason::Unlisted(BTC))
}

/// A person sells three times the position. The position is closed, and the rest is external.
#[test]
fn a_position_reversed_while_the_stream_was_down_is_settled() {
    let (mut world, _) = holding();
    close_outside(&mut world, 30_000, 980, 0);
    cut_stream(&mut world);
    world.pass(40_000);
    assert_eq!((own_qty(&world), external_qty(&world)), (0, -20_000));
    let own = &world.account.engine.ledgers().strategies[usize::from(MM.0)];
    let realized = own.at(BTC, PositionSide::Both).position.realized_pnl;
    assert_eq!(realized, -instrument().notional(20, 10_000));
}

/// Outside orders close the position at one price, and open the other side at another price.
#[test]
fn an_outside_position_on_the_other_side_is_not_part_of_the_close() {
    let (mut world, _) = holding();
    close_outside(&mut world, 10_000, 980, 0);
    close_outside(&mut world, 20_000, 1_050, 0);
    cut_stream(&mut world);
    world.pass(40_000);
    let own = &world.account.engine.ledgers().strategies[usize::from(MM.0)];
    let realized = own.at(BTC, PositionSide::Both).position.realized_pnl;
    assert_eq!(realized, -instrument().notional(20, 10_000));
    assert_eq!(external_qty(&world), -20_000);
}

/// Outside orders close the position and open the other side while the stream is connected: two
/// events report it.
#[test]
fn events_of_an_outside_position_are_not_part_of_the_close() {
    let (mut world, _) = holding();
    let terms = world.venue.orders.last().unwrap().1;
    for (number, (qty, price)) in [(10_000, 980), (20_000, 1_050)].into_iter().enumerate() {
        let place = world.venue.orders.len();
        let others = windvane_model::ClientOrderId::from_venue(&format!("web_{number}"));
        world.venue.orders.push((others, terms, 0, Amount::ZERO));
        let at = world.account.now;
        let fill = (place, PositionSide::Both, Side::Sell, qty, price);
        let event = world.venue.fill(fill, at).0;
        let event = UserEvent::Order(event);
        world.account.handle(windvane_model::Input::User(&event));
    }
    world.pass(40_000);
    assert_eq!((own_qty(&world), external_qty(&world)), (0, -20_000));
    let own = &world.account.engine.ledgers().strategies[usize::from(MM.0)];
    let realized = own.at(BTC, PositionSide::Both).position.realized_pnl;
    assert_eq!(realized, -instrument().notional(20, 10_000));
}

#[test]
fn a_position_closed_while_the_stream_was_down_is_settled() {
    let (mut world, exit) = holding();
    close_outside(&mut world, 10_000, 980, 3_920_000);
    let base = world.account.engine.losses().clone();
    cut_stream(&mut world);
    assert!(is_unlisted(&world), "at once");
    assert_ne!(world.account.engine.run_state(), RunState::Ready);
    let reasons = world.account.engine.degraded_reasons();
    let reported = world.account.engine.describe_reasons(&reasons);
    assert!(
        reported.iter().any(|text| text.contains("BTCUSDT")),
        "{reported:?}"
    );
    world.pass(20_000);
    assert_eq!(
        (qty(&world.account), own_qty(&world), external_qty(&world)),
        (0, 0, 0)
    );
    assert_eq!(world.account.engine.run_state(), RunState::Ready);
    assert!(
        world.account.engine.order(exit).is_none(),
        "it would open a short position"
    );
    let balance = world.account.engine.balance(FUTURES, USDT).total;
    assert_eq!(balance, world.venue.balances[&USDT]);
    let own = &world.account.engine.ledgers().strategies[usize::from(MM.0)];
    let realized = own.at(BTC, PositionSide::Both).position.realized_pnl;
    assert_eq!(
        realized,
        Amount(-2_000_000_000 - 3_920_000),
        "the loss of the balance"
    );
    let mut expected = base;
    expected.observe(
        world.account.now,
        balance,
        Amount::ZERO,
        &windvane_model::risk::RiskLimits::default(),
    );
    assert_eq!(
        *world.account.engine.losses(),
        expected,
        "a loss is not a transfer"
    );
    let reported = world.account.notices.iter();
    let closed = reported.filter(|notice| matches!(notice, Notice::ClosedOutside { .. }));
    assert_eq!(closed.count(), 1);
}

#[test]
fn a_briefly_incomplete_list_of_positions_changes_nothing() {
    for routes in [true, false] {
        let (mut world, exit) = holding_at(Manner { routes, ..USUAL });
        world.venue.hides_positions = true;
        world.pass(31_000);
        assert!(is_unlisted(&world));
        assert_eq!(world.account.engine.run_state(), RunState::Degraded);
        assert_eq!(own_qty(&world), 10_000);
        world.venue.hides_positions = false;
        world.pass(10_000);
        assert!(!is_unlisted(&world));
        assert_eq!(world.account.engine.run_state(), RunState::Ready);
        assert_eq!((qty(&world.account), own_qty(&world)), (10_000, 10_000));
        assert!(world.account.engine.order(exit).is_some());
        assert_eq!(adjustments(&world.account), []);
    }
}

#[test]
fn snapshots_that_agree_for_long_settle_a_close_at_cost() {
    let (mut world, exit) = holding();
    close_outside(&mut world, 10_000, 1_000, 0);
    cut_stream(&mut world);
    world.pass(40_000);
    assert!(is_unlisted(&world));
    assert_eq!(own_qty(&world), 10_000);
    world.pass(40_000);
    assert_eq!((qty(&world.account), own_qty(&world)), (0, 0));
    assert!(world.account.engine.order(exit).is_none());
    assert_eq!(world.account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_rejected_close_and_a_second_snapshot_settle_a_close() {
    for by_status in [false, true] {
        let (mut world, _) = holding();
        close_outside(&mut world, 10_000, 1_000, 0);
        world.pass(35_000);
        assert!(is_unlisted(&world));
        assert_eq!(own_qty(&world), 10_000);
        world.venue.refuses_closes = true;
        world.venue.refuses_by_status = by_status;
        world
            .account
            .handle(windvane_model::Input::Command(Command::Flatten));
        world.pass(20_000);
        assert_eq!((qty(&world.account), own_qty(&world)), (0, 0));
        assert!(
            !world.account.engine.is_flattening(MM),
            "nothing is left to close"
        );
    }
}

/// In hedge mode no order has a reduce-only flag. The venue replies that the position is
/// insufficient.
#[test]
fn in_hedge_mode_a_rejected_close_settles_a_close() {
    let manner = Manner {
        routes: false,
        ..USUAL
    };
    let mut world = World::holding(true, manner, watches);
    let quote = instrument().notional(1_000, 10_000);
    let position = world.venue.positions.get_mut(&PositionSide::Long).unwrap();
    position.fill(Side::Sell, 10_000, quote);
    world.pass(35_000);
    let held = |world: &World| {
        let ledgers = world.account.engine.ledgers();
        let own = &ledgers.strategies[usize::from(MM.0)];
        let of = |ledger: &windvane_model::holding::Ledger| {
            ledger.at(BTC, PositionSide::Long).position.qty
        };
        (of(&ledgers.account), of(own))
    };
    assert!(is_unlisted(&world));
    assert_eq!(held(&world), (10_000, 10_000));
    world.venue.refuses_closes = true;
    world.account.handle(Input::Command(Command::Flatten));
    world.pass(20_000);
    assert_eq!(held(&world), (0, 0));
    assert!(!world.account.engine.is_flattening(MM));
}

#[test]
fn one_close_with_status_rejected_proves_nothing() {
    let (mut world, exit) = holding();
    world.account.cancel(MM, exit);
    world.pass(2_000);
    world.venue.refuses_closes = true;
    world.venue.refuses_by_status = true;
    let rejected = |world: &mut World, terms: OrderTerms| {
        let order = world.submit(terms);
        world.pass(500);
        let known = world.account.engine.known_order(order).unwrap();
        assert_eq!(known.state, OrderState::Rejected);
        assert!(known.venue_order_id.is_some(), "it was sent");
    };
    // Opening orders are rejected for other reasons.
    rejected(&mut world, limit(Side::Sell, 1_100, 1));
    rejected(&mut world, limit(Side::Sell, 1_101, 1));
    world.venue.hides_positions = true;
    cut_stream(&mut world);
    let close = OrderTerms {
        reduce_only: true,
        ..market(Side::Sell, 10_000)
    };
    rejected(&mut world, close);
    world.pass(20_000);
    assert_eq!(own_qty(&world), 10_000);
    assert!(is_unlisted(&world));
}

#[test]
fn a_rejected_close_proves_nothing_during_an_own_close() {
    let (mut world, _) = holding();
    world.venue.hides_positions = true;
    cut_stream(&mut world);
    world.pass(5_000);
    world.venue.refuses_closes = true;
    let terms = OrderTerms {
        reduce_only: true,
        ..market(Side::Sell, 10_000)
    };
    let refused = world
        .account
        .call(MM, |callback, engine| callback.submit(engine, terms));
    world.pass(20_000);
    assert_eq!(own_qty(&world), 10_000, "{refused:?}");
    assert!(is_unlisted(&world));
}

#[test]
fn no_order_is_sent_to_test_the_position() {
    let (mut world, _) = holding();
    let orders = world.venue.orders.len();
    close_outside(&mut world, 10_000, 1_000, 0);
    cut_stream(&mut world);
    world.pass(100_000);
    assert_eq!(world.venue.orders.len(), orders);
    assert_eq!(own_qty(&world), 0);
}

#[test]
fn a_part_closed_by_outside_orders_is_removed_from_the_strategy() {
    let (mut world, exit) = holding();
    close_outside(&mut world, 4_000, 1_010, 1_000_000);
    cut_stream(&mut world);
    world.pass(20_000);
    assert_eq!((qty(&world.account), own_qty(&world)), (6_000, 6_000));
    assert!(
        world.account.engine.order(exit).is_none(),
        "it closes more than is left"
    );
}

#[test]
fn outside_account_trades_settle_a_close() {
    let (mut world, exit) = holding_at(USUAL);
    let (id, terms) = {
        let order = world.venue.orders.last().unwrap();
        (order.0, order.1)
    };
    // The order of another program.
    let place = world.venue.orders.len();
    let others = windvane_model::ClientOrderId::from_venue("web_1");
    world.venue.orders.push((others, terms, 0, Amount::ZERO));
    let at = world.account.now;
    let _ = world
        .venue
        .fill((place, PositionSide::Both, Side::Sell, 10_000, 990), at);
    assert_ne!(id, others);
    cut_stream(&mut world);
    world.pass(10_000);
    assert_eq!(
        (qty(&world.account), own_qty(&world), external_qty(&world)),
        (0, 0, 0)
    );
    assert!(world.account.engine.order(exit).is_none());
    assert_eq!(adjustments(&world.account), [], "the trade explains it");
    world.pass(4_000);
    assert_eq!(world.account.engine.run_state(), RunState::Ready);
}

#[test]
fn an_own_fill_reported_after_the_settlement_counts_once() {
    for routes in [true, false] {
        let (mut world, exit) = holding_at(Manner { routes, ..USUAL });
        let place = world.venue.orders.len() - 1;
        let at = world.account.now;
        let event = world
            .venue
            .fill((place, PositionSide::Both, Side::Sell, 10_000, 1_100), at)
            .0;
        // All routes for orders and trades are stale.
        world.venue.hides_fills = true;
        let trades = std::mem::take(&mut world.venue.trades);
        cut_stream(&mut world);
        world.account.top(1_099, 1_101);
        world.pass(20_000);
        assert_eq!((qty(&world.account), own_qty(&world)), (0, 0), "{routes}");
        world.venue.trades = trades;
        world.venue.hides_fills = false;
        world
            .account
            .handle(windvane_model::Input::User(&UserEvent::Order(event)));
        world.pass(40_000);
        let found = (qty(&world.account), own_qty(&world), external_qty(&world));
        assert_eq!(found, (0, 0, 0), "{routes}");
        let balance = world.account.engine.balance(FUTURES, USDT).total;
        assert_eq!(balance, world.venue.balances[&USDT]);
        assert!(world.account.engine.order(exit).is_none());
        assert_eq!(world.account.engine.run_state(), RunState::Ready);
    }
}

fn qty_of(account: &Account, strategy: StrategyId) -> i64 {
    let own = &account.engine.ledgers().strategies[usize::from(strategy.0)];
    own.at(BTC, PositionSide::Both).position.qty
}

/// Two strategies hold 10 each. The exit of one fills, and every report of it is late. The account
/// snapshots then look like an outside close, and the engine removes 5 from each strategy.
fn settled_for_a_late_own_fill() -> (Account, OrderUpdate) {
    let mut account = ready();
    for (strategy, number) in [(MM, 1), (OTHER, 2)] {
        let order = account.submit(strategy, limit(Side::Buy, 990, 10));
        account.confirm_countdowns();
        let id = account.id(strategy, order);
        let mut bought = fill(id, Side::Buy, number, 10, 10, OrderStatus::Filled);
        bought.order_id = VenueOrderId(number);
        account.update(bought);
    }
    let exit = account.submit(MM, limit(Side::Sell, 1_010, 10));
    account.confirm_countdowns();
    let id = account.id(MM, exit);
    let mut sold = fill(id, Side::Sell, 3, 10, 10, OrderStatus::Filled);
    sold.order_id = VenueOrderId(3);
    sold.transaction_time = Time::from_millis(1_000);
    let accepted = report(id, OrderStatus::New, 0);
    let accepted = OrderReport {
        order_id: VenueOrderId(3),
        ..accepted
    };
    account.placed(id, Outcome::Done(accepted));
    let mut rests = update(id, Side::Sell, OrderStatus::New, 0);
    rests.order_id = VenueOrderId(3);
    account.update(rests);
    account.wait(31);
    account.confirm_countdowns();
    let total = account.own_account().balances[0].total + Amount(2_000_000);
    for _ in 0..80 {
        let listed = [OpenOrder {
            report: accepted,
            terms: limit(Side::Sell, 1_010, 10),
        }];
        round(&mut account, &listed, &[], |own| {
            own.positions = vec![position(10)];
            own.balances[0].total = total;
        });
        account.pass(250);
        account.alive();
        account.clock();
        account.confirm_countdowns();
        for _ in 0..account.take_queries() {
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: id,
                outcome: Outcome::Done(accepted),
            }));
        }
    }
    assert_eq!((qty_of(&account, MM), qty_of(&account, OTHER)), (5, 5));
    (account, sold)
}

#[test]
fn a_late_own_fill_restores_the_positions_of_other_strategies() {
    let (mut account, sold) = settled_for_a_late_own_fill();
    account.update(sold);
    assert_eq!((qty_of(&account, MM), qty_of(&account, OTHER)), (0, 10));
    assert_eq!(qty(&account), 10);
    let external = account
        .engine
        .ledgers()
        .external
        .at(BTC, PositionSide::Both);
    assert_eq!(external.position.qty, 0);
    let returned = account.notices.iter().filter_map(|notice| match notice {
        Notice::NotClosedOutside { strategy, qty, .. } => Some((*strategy, *qty)),
        _ => None,
    });
    assert_eq!(returned.collect::<Vec<_>>(), [(MM, 5), (OTHER, 5)]);
}
