//! A strategy exits a position that an outside order has already closed: a manual order, or the new
//! order that an own stop became when it triggered. Whatever the runtime knows at that time, it
//! must not open a position on the other side.

use windvane_model::order_state::OrderState;
use windvane_model::{
    Amount, ClientOrderId, Input, OrderStatus, OrderTerms, OrderType, PositionSide, Price, Side,
    UserEvent,
};

use super::order_of_events::{Fate, Manner, USUAL, World};
use super::support::{BTC, MM, limit, market, update};

/// The own order that is open while the position is closed.
#[derive(Clone, Copy, Debug)]
enum Rests {
    Nothing,
    Entry,
    Exit,
    /// A reduce-only stop. When it triggers, it becomes a new order.
    Stop,
}

fn own(world: &World) -> i64 {
    let own = &world.account.engine.ledgers().strategies[usize::from(MM.0)];
    own.at(BTC, PositionSide::Both).position.qty
}

fn external(world: &World) -> i64 {
    let external = &world.account.engine.ledgers().external;
    external.at(BTC, PositionSide::Both).position.qty
}

fn at_venue(world: &World) -> i64 {
    world.venue.positions[&PositionSide::Both].qty
}

fn stop() -> OrderTerms {
    OrderTerms {
        order_type: OrderType::StopMarket,
        stop_price: Some(Price(900)),
        reduce_only: true,
        ..market(Side::Sell, 10_000)
    }
}

/// A long position of 10,000 with an own open order.
fn holding(manner: Manner, rests: Rests) -> World {
    let mut world = World::holding(false, manner, |_| {});
    let order = match rests {
        Rests::Nothing => None,
        Rests::Entry => Some(limit(Side::Buy, 900, 10_000)),
        Rests::Exit => Some(limit(Side::Sell, 1_100, 10_000)),
        Rests::Stop => Some(stop()),
    };
    if let Some(terms) = order {
        world.submit(terms);
    }
    world.pass(2_000);
    world.venue.market_price = Some(999);
    world
}

/// An outside order closes the position. Its events arrive in the venue's manner.
fn close_outside(world: &mut World, rests: Rests) {
    let manner = world.venue.manner();
    if matches!(rests, Rests::Stop) {
        let place = world.venue.orders.len() - 1;
        let id = world.venue.orders[place].0;
        world.venue.cancel_silently(id);
        let mut expired = update(id, Side::Sell, OrderStatus::Expired, 0);
        expired.orig_qty = windvane_model::Qty(10_000);
        expired.order_id = world.venue.report(place).order_id;
        world.account.update(expired);
    }
    let place = world.venue.orders.len();
    let theirs = ClientOrderId::from_venue("web_1");
    let terms = market(Side::Sell, 10_000);
    world.venue.orders.push((theirs, terms, 0, Amount::ZERO));
    let at = world.account.now;
    let step = (place, PositionSide::Both, Side::Sell, 10_000, 995);
    let (order, account) = world.venue.fill(step, at);
    let order = UserEvent::Order(order);
    let account = UserEvent::Account(account);
    let events = if manner.account_first {
        [(manner.account, account), (manner.order, order)]
    } else {
        [(manner.order, order), (manner.account, account)]
    };
    for (fate, event) in events {
        if fate == Fate::OnTime {
            world.account.handle(Input::User(&event));
            world.serve();
        }
    }
}

/// The strategy exits the position that it knows of.
fn exit(world: &mut World, terms: impl Fn(i64) -> OrderTerms) {
    let held = own(world);
    if held > 0 {
        let terms = terms(held);
        let _ = world
            .account
            .call(MM, |callback, engine| callback.submit(engine, terms));
        world.serve();
    }
}

fn manners() -> Vec<Manner> {
    let mut all = Vec::new();
    for bits in 0..8_u32 {
        let bit = |place: u32| bits & (1 << place) != 0;
        for (order, account) in [
            (Fate::OnTime, Fate::OnTime),
            (Fate::Lost, Fate::OnTime),
            (Fate::OnTime, Fate::Lost),
            (Fate::Lost, Fate::Lost),
        ] {
            all.push(Manner {
                account_first: bit(0),
                lists_flat: bit(1),
                routes: bit(2),
                order,
                account,
                ..USUAL
            });
        }
    }
    all
}

#[test]
fn an_exit_after_an_outside_close_opens_nothing() {
    for manner in manners() {
        for rests in [Rests::Nothing, Rests::Entry, Rests::Exit, Rests::Stop] {
            for wait_ms in [0, 500, 2_000, 20_000] {
                let about = format!("{manner:?} {rests:?} {wait_ms}");
                let mut world = holding(manner, rests);
                close_outside(&mut world, rests);
                world.pass(wait_ms);
                exit(&mut world, |held| market(Side::Sell, held));
                world.pass(5_000);
                assert_eq!(at_venue(&world), 0, "{about}");
                world.pass(100_000);
                let found = (at_venue(&world), own(&world), external(&world));
                assert_eq!(found, (0, 0, 0), "{about}");
            }
        }
    }
}

#[test]
fn a_market_exit_is_sent_reduce_only() {
    let mut world = holding(USUAL, Rests::Nothing);
    world.submit(market(Side::Sell, 4_000));
    world.submit(market(Side::Sell, 6_000));
    world.submit(market(Side::Sell, 1_000));
    let flags: Vec<_> = world.venue.orders[1..]
        .iter()
        .map(|(_, terms, ..)| terms.reduce_only)
        .collect();
    assert_eq!(flags, [true, true, false], "the last one opens a position");
    assert_eq!(own(&world), -1_000);
}

#[test]
fn a_market_exit_with_an_open_reduce_only_order_has_no_flag() {
    let mut world = holding(USUAL, Rests::Stop);
    world.submit(market(Side::Sell, 10_000));
    let (_, terms, ..) = world.venue.orders.last().unwrap();
    assert!(!terms.reduce_only, "the venue might reject it");
    world.pass(1_000);
    assert_eq!((at_venue(&world), own(&world)), (0, 0));
}

#[test]
fn an_exit_after_an_outside_close_is_rejected_before_settlement() {
    let mut world = holding(USUAL, Rests::Exit);
    // A fill of the open exit may be missing. It may explain the smaller position, so the strategy
    // cannot give up a quantity yet.
    let id = world.venue.orders[1].0;
    world.account.placed(id, windvane_model::Outcome::Unknown);
    close_outside(&mut world, Rests::Nothing);
    let orders = world.venue.orders.len();
    for terms in [market(Side::Sell, 10_000), limit(Side::Sell, 1_050, 10_000)] {
        let refused = world
            .account
            .call(MM, |callback, engine| callback.submit(engine, terms));
        if own(&world) > 0 {
            let rule = refused.unwrap_err().rule;
            assert_eq!(rule, windvane_model::rules::Rule::ReduceOnlyPosition);
        }
    }
    assert_eq!(world.venue.orders.len(), orders);
    assert!(
        world
            .account
            .engine
            .orders()
            .iter()
            .all(|order| order.state != OrderState::Rejected)
    );
}
