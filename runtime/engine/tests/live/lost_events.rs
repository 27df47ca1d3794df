//! Events that were lost while the user stream was down, and account snapshots that are older.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::live::LiveInput;
use windvane_model::run_state::RunState;
use windvane_model::{Amount, OrderStatus, PositionSide, Request, Side, Surface};

use super::order_of_events::{Manner, USUAL, World, watches};
use super::reconciliation::qty;
use super::succession::{killed, next_config};
use super::support::{Account, MM, USDT, fill, instrument, limit};
use super::world::ready;

const FUTURES: Surface = Surface::Futures;
const CUT: DegradedReason = DegradedReason::LostEvents(FUTURES);

/// A person closes a position of 10,000 at 98.0 while the stream is down for three seconds. Account
/// snapshots still show the account before the close.
fn cut_with_a_close(routes: bool) -> World {
    let manner = Manner { routes, ..USUAL };
    let mut world = World::holding(false, manner, watches);
    world.submit(limit(Side::Sell, 1_100, 10_000));
    world.pass(2_000);
    world.account.notices.clear();
    world.venue.stale = Some(world.venue.account());
    world
        .account
        .live(LiveInput::StreamDown { surface: FUTURES });
    world.venue.silent = true;
    let quote = instrument().notional(980, 10_000);
    let position = world.venue.positions.get_mut(&PositionSide::Both).unwrap();
    let realized = position.fill(Side::Sell, 10_000, quote);
    *world.venue.balances.get_mut(&USDT).unwrap() += realized;
    world.pass(3_000);
    world.venue.silent = false;
    world.account.live(LiveInput::StreamUp { surface: FUTURES });
    world.serve();
    world
}

#[test]
fn snapshots_soon_after_a_disconnect_do_not_clear_its_reason() {
    for routes in [true, false] {
        let mut world = cut_with_a_close(routes);
        for _ in 0..40 {
            assert_ne!(world.account.engine.run_state(), RunState::Ready);
            world.pass(250);
        }
        assert_eq!(world.account.engine.degraded_reasons(), [CUT]);
        world.venue.stale = None;
        for _ in 0..160 {
            let is_ready = world.account.engine.run_state() == RunState::Ready;
            assert!(!is_ready || qty(&world.account) == 0, "routes {routes}");
            world.pass(250);
        }
        assert_eq!(
            world.account.engine.degraded_reasons(),
            [],
            "routes {routes}"
        );
        assert_eq!(world.account.engine.run_state(), RunState::Ready);
        assert_eq!(qty(&world.account), 0);
        let resting = world.account.engine.orders().iter().count();
        assert_eq!(resting, 0, "an exit that stays open would open a position");
    }
}

#[test]
fn a_snapshot_older_than_the_disconnect_never_clears_its_reason() {
    let mut world = cut_with_a_close(false);
    world.pass(11_000);
    // The engine's ledger had no position ten seconds before the disconnect.
    let mut flat = world.venue.stale.clone().unwrap();
    flat.balances[0].total += Amount(4_000_000);
    flat.positions.clear();
    world.venue.stale = Some(flat);
    world.pass(2_000);
    assert_ne!(world.account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_snapshot_newer_than_the_disconnect_clears_its_reason() {
    let mut account = holding();
    cut(&mut account);
    account.sync();
    assert_eq!(account.engine.degraded_reasons(), [CUT]);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    let texts = account.engine.describe_reasons(&[CUT]);
    assert!(texts[0].contains("was down"), "{texts:?}");
    account.seconds(11);
    assert_eq!(account.engine.degraded_reasons(), [CUT]);
    account.seconds(2);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn countdowns_are_renewed_while_events_may_be_lost() {
    let mut account = holding();
    account.submit(MM, limit(Side::Sell, 1_100, 10));
    account.confirm_countdowns();
    account.sent.clear();
    cut(&mut account);
    account.sync();
    let mut renewed = false;
    for _ in 0..11 {
        assert_eq!(account.engine.degraded_reasons(), [CUT]);
        account.pass(1_000);
        account.alive();
        account.clock();
        renewed |= account.sent.iter().any(is_renewal);
        account.confirm_countdowns();
        account.sync();
    }
    assert!(renewed);
}

fn is_renewal(request: &Request) -> bool {
    matches!(request, Request::Countdown { countdown_ms, .. } if *countdown_ms > 0)
}

#[test]
fn a_disconnect_without_positions_and_orders_has_no_effect() {
    let mut account = ready();
    cut(&mut account);
    account.sync();
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_start_with_a_position_waits_for_a_newer_account_snapshot() {
    let mut account = killed(holding(), next_config());
    account.begin();
    account.sync();
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    assert_eq!(account.engine.degraded_reasons(), [CUT]);
    account.seconds(13);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

/// A run in state ready with a position of 10.
fn holding() -> Account {
    let mut account = ready();
    let order = account.submit(MM, limit(Side::Buy, 1_000, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
    account.sent.clear();
    account
}

fn cut(account: &mut Account) {
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
}
