//! Loss limits while the two events of a fill are in flight.

use windvane_model::config::EngineConfig;
use windvane_model::run_state::RunState;
use windvane_model::{Amount, Input, OrderTerms, PositionSide, Side, UserEvent};

use super::order_of_events::{Fate, Manner, Step, USUAL, World, watches};
use super::support::limit;

use PositionSide::Both;
use Side::{Buy, Sell};

const CLOSE_WITH_GAIN: Step = (0, Both, Sell, 10_000, 1_099);

/// The account event reports a gain of 99 first, and does not list the closed position.
fn account_first(fate: Fate) -> Manner {
    Manner {
        account_first: true,
        lists_flat: false,
        order: fate,
        ..USUAL
    }
}

#[test]
fn the_daily_loss_is_exact_if_the_account_event_is_first() {
    let limit = |config: &mut EngineConfig| {
        config.limits.max_daily_loss = Some(Amount(50 * 100_000_000));
    };
    for routes in [true, false] {
        let manner = Manner {
            routes,
            ..account_first(Fate::OnTime)
        };
        let mut world = World::holding(false, manner, limit);
        world.run(&[CLOSE_WITH_GAIN]);
        // Fees are 0.8396. Then there is a loss on another long position.
        world.submit(limit_buy());
        let at = world.account.now;
        let (order, account) = world.venue.fill((2, Both, Buy, 10_000, 1_100), at);
        world
            .account
            .handle(Input::User(&UserEvent::Account(account)));
        world.account.update(order);
        // The day began with 10,000. A loss of 50 is 149 below the gain.
        world.account.top(952, 954);
        assert_eq!(
            world.account.engine.run_state(),
            RunState::Ready,
            "47.7 below the start"
        );
        world.account.top(946, 948);
        assert_eq!(
            world.account.engine.run_state(),
            RunState::Halted,
            "53 below the start"
        );
    }
}

fn limit_buy() -> OrderTerms {
    limit(Buy, 1_100, 10_000)
}

#[test]
fn a_stale_position_does_not_halt_while_its_fill_is_late() {
    let mut world = World::holding(false, account_first(Fate::OnTime), watches);
    world.place(&[CLOSE_WITH_GAIN]);
    let at = world.account.now;
    let (order, account) = world.venue.fill((1, Both, Sell, 10_000, 1_099), at);
    world
        .account
        .handle(Input::User(&UserEvent::Account(account)));
    // The ledger still has the position, and 200 would be lost with it.
    world.account.top(799, 801);
    assert_eq!(world.account.engine.run_state(), RunState::Ready);
    world.account.update(order);
    world.account.top(799, 801);
    assert_eq!(world.account.engine.run_state(), RunState::Ready);
    assert_eq!(world.account.engine.losses().clone(), {
        let mut usual = World::holding(false, USUAL, watches);
        usual.run(&[CLOSE_WITH_GAIN]);
        usual.account.engine.losses().clone()
    });
}

#[test]
fn a_loss_halts_when_its_second_event_arrives() {
    for listed in [true, false] {
        let manner = Manner {
            lists_flat: listed,
            ..account_first(Fate::OnTime)
        };
        let mut world = World::holding(false, manner, watches);
        world.place(&[(0, Both, Sell, 10_000, 840)]);
        let at = world.account.now;
        let (order, account) = world.venue.fill((1, Both, Sell, 10_000, 840), at);
        world
            .account
            .handle(Input::User(&UserEvent::Account(account)));
        assert_eq!(world.account.engine.run_state(), RunState::Ready);
        world.account.update(order);
        assert_eq!(
            world.account.engine.run_state(),
            RunState::Halted,
            "{listed}"
        );
    }
}

#[test]
fn a_loss_only_in_an_account_event_halts_within_two_seconds() {
    let mut world = World::holding(false, account_first(Fate::Lost), watches);
    world.place(&[(0, Both, Sell, 10_000, 840)]);
    let at = world.account.now;
    let (_, account) = world.venue.fill((1, Both, Sell, 10_000, 840), at);
    // The routes are stale. Only the event shows the loss.
    world.venue.stale = Some(world.account.own_account());
    world.venue.hides_fills = true;
    world
        .account
        .handle(Input::User(&UserEvent::Account(account)));
    assert_eq!(world.account.engine.run_state(), RunState::Ready);
    world.pass(2_000);
    world.account.top(999, 1_001);
    assert_eq!(world.account.engine.run_state(), RunState::Halted);
}
