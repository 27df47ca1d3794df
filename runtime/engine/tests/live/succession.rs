//! A process that continues after another one was killed:
//! `docs/promises.md#8-a-kill-loses-nothing`, without the disk.

use windvane_engine::Engine;
use windvane_engine::engine::SuccessionError;
use windvane_model::config::EngineConfig;
use windvane_model::input::Command;
use windvane_model::live::LiveInput;
use windvane_model::order_state::OrderState;
use windvane_model::run_state::{KillSwitch, RunState};
use windvane_model::{Input, OrderSeq, OrderStatus, PositionSide, Reply, Side, Surface};

use super::support::{self, Account, BTC, MM, fill, limit, refused, update};
use super::world::{live_config, ready};

pub(crate) fn next_config() -> EngineConfig {
    let mut config = support::config();
    config.live = Some(live_config());
    config.epoch = 8;
    config
}

/// The account in a new process that restores the snapshot of the old one.
pub(crate) fn killed(mut account: Account, config: EngineConfig) -> Account {
    let bytes = account.engine.snapshot();
    let old = Engine::restore(&bytes).unwrap();
    let chain = old.chain();
    account.engine = old.succeed(config, chain).unwrap();
    account.sent.clear();
    account.notices.clear();
    account
}

#[test]
fn after_a_restart_a_live_order_is_unknown_until_it_is_queried() {
    let mut account = ready();
    let order = account.rest();
    let mut account = killed(account, next_config());
    assert_eq!(account.engine.run_state(), RunState::Booting);
    assert_eq!(
        account.engine.order(order).unwrap().state,
        OrderState::Unknown
    );
    let open = account.open_order(order);
    account.begin();
    account.sync_with(&[open]);
    assert_eq!(account.engine.order(order).unwrap().state, OrderState::New);
    // The list may be older.
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    let id = open.report.client_order_id;
    account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    assert_eq!((own.position.qty, own.open_buy), (10, 0));
}

/// For this many seconds, the venue replies to each query that it does not know the order.
fn deny(account: &mut Account, order: OrderSeq, seconds: u32) {
    let id = account.engine.order(order).unwrap().client_order_id;
    for _ in 0..seconds {
        for _ in 0..account.take_queries() {
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: id,
                outcome: refused(-2013),
            }));
        }
        account.wait(1);
    }
}

#[test]
fn after_a_clock_change_an_order_may_still_arrive() {
    let mut account = ready();
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    let mut account = killed(account, next_config());
    account.now = account.now.plus_ms(3_600_000);
    account.live(LiveInput::Begin);
    account.live(LiveInput::Clock {
        surface: Surface::Futures,
        offset_ns: -3_600_000 * 1_000_000,
        error_ns: 1,
    });
    account.live(LiveInput::StreamUp {
        surface: Surface::Futures,
    });
    account.sync();
    deny(&mut account, order, 5);
    assert!(account.engine.order(order).is_some(), "it may still arrive");
}

#[test]
fn until_the_clock_is_known_an_order_may_still_arrive() {
    let mut account = ready();
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    let mut account = killed(account, next_config());
    account.now = account.now.plus_ms(3_600_000);
    account.live(LiveInput::Begin);
    account.live(LiveInput::StreamUp {
        surface: Surface::Futures,
    });
    account.sync();
    // The venue's clock has not been read yet.
    assert_eq!(account.take_queries(), 1);
    let id = account.engine.order(order).unwrap().client_order_id;
    account.handle(Input::Reply(&Reply::Queried {
        client_order_id: id,
        outcome: refused(-2013),
    }));
    assert!(account.engine.order(order).is_some(), "it may still arrive");
    account.live(LiveInput::Clock {
        surface: Surface::Futures,
        offset_ns: -3_600_000 * 1_000_000,
        error_ns: 1,
    });
    deny(&mut account, order, 5);
    assert!(account.engine.order(order).is_some(), "it may still arrive");
    deny(&mut account, order, 10);
    assert!(
        account.engine.order(order).is_some(),
        "queries may be stale"
    );
    deny(&mut account, order, 5);
    assert!(account.engine.order(order).is_none());
}

#[test]
fn a_held_order_may_have_been_sent_before_a_kill() {
    let mut account = ready();
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    let mut account = killed(account, next_config());
    account.begin();
    account.sync();
    assert_eq!(account.queries(), 1);
    assert_eq!(account.engine.run_state(), RunState::Syncing);
    deny(&mut account, order, 20);
    assert!(account.engine.order(order).is_none());
    assert_eq!(account.engine.run_state(), RunState::Degraded);
}

#[test]
fn order_numbers_and_ids_are_never_reused() {
    let mut account = ready();
    let order = account.rest();
    let mut account = killed(account, next_config());
    let id = account.engine.order(order).unwrap().client_order_id;
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
    account.begin();
    account.sync();
    let next = account.submit(MM, limit(Side::Buy, 990, 10));
    assert_eq!(next, OrderSeq(2));
    assert_eq!(
        account.engine.order(next).unwrap().client_order_id.as_str(),
        "mm.8.2"
    );
}

#[test]
fn positions_halts_and_balances_survive_a_restart() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 4, 4, OrderStatus::PartiallyFilled));
    account.handle(Input::Command(Command::Halt));
    let before = account.engine.balance(Surface::Futures, support::USDT);
    let mut account = killed(account, next_config());
    assert_eq!(account.engine.kill_switch(), KillSwitch::Halted);
    account.live(LiveInput::Begin);
    assert_eq!(account.engine.run_state(), RunState::Halted);
    assert_eq!(
        account.engine.balance(Surface::Futures, support::USDT),
        before
    );
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    assert_eq!((own.position.qty, own.open_buy), (4, 6));
    assert_eq!(
        account
            .engine
            .ledgers()
            .first_difference(account.engine.instruments()),
        None
    );
}

#[test]
fn the_position_of_a_removed_strategy_is_unowned() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 4, 4, OrderStatus::PartiallyFilled));
    let mut config = next_config();
    config.strategies.remove(0);
    let account = killed(account, config);
    let external = account
        .engine
        .ledgers()
        .external
        .at(BTC, PositionSide::Both);
    assert_eq!(external.position.qty, 4);
    assert!(
        account.engine.orders().is_empty(),
        "a list finds its order as a stray"
    );
    assert_eq!(
        account
            .engine
            .ledgers()
            .first_difference(account.engine.instruments()),
        None
    );
}

#[test]
fn a_position_that_the_new_scale_cannot_express_is_refused() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 4, 4, OrderStatus::PartiallyFilled));
    let bytes = account.engine.snapshot();
    let mut config = next_config();
    config.instruments[0].qty_scale = 2;
    let old = Engine::restore(&bytes).unwrap();
    let chain = old.chain();
    let refused = old.succeed(config, chain).unwrap_err();
    assert!(
        matches!(refused, SuccessionError::Scale { .. }),
        "{refused}"
    );
    let mut config = next_config();
    config.instruments[0].qty_scale = 5;
    let old = Engine::restore(&bytes).unwrap();
    let heir = old.succeed(config, chain).unwrap();
    let own = heir.ledgers().strategies[0].at(BTC, PositionSide::Both);
    assert_eq!(own.position.qty, 400);
}

#[test]
fn after_a_restart_a_late_fill_of_an_ended_order_counts_once() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
    let mut account = killed(account, next_config());
    account.update(fill(id, Side::Buy, 1, 4, 4, OrderStatus::Canceled));
    account.update(fill(id, Side::Buy, 1, 4, 4, OrderStatus::Canceled));
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    assert_eq!(own.position.qty, 4);
}
