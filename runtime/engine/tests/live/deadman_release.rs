//! Promise 4 (docs/promises.md#4-dead-mans-switch) after the last order of a symbol ended: its
//! countdown is disarmed, and new orders wait until the next countdown can be armed.

use windvane_model::input::Command;
use windvane_model::live::{LiveInput, OnStop};
use windvane_model::run_state::RunState;
use windvane_model::{Input, Notice, OrderStatus, Outcome, Request, Side, UserEvent};

use super::deadman::{holding, reducing};
use super::support::{Account, BTC, MM, limit, market, update};
use super::world::{COUNTDOWN_MS, live_config, ready, ready_with};

/// A symbol without orders, some seconds after its only order was cancelled.
pub(super) fn without_orders(mut account: Account, seconds: usize) -> Account {
    let order = account.rest();
    let id = account.id(MM, order);
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
    for _ in 0..seconds {
        account.pass(999);
        account.alive();
    }
    account
}

#[test]
fn a_symbol_without_orders_is_disarmed_and_armed_again() {
    let mut account = without_orders(ready(), 20);
    assert_eq!(account.take_countdown(), Some(0));
    account.submit(MM, limit(Side::Buy, 990, 1));
    assert_eq!(
        account.take_countdown(),
        None,
        "not before the reply to the disarm"
    );
    account.countdown_reply(Outcome::Done(0));
    account.wait(4);
    account.submit(MM, limit(Side::Buy, 990, 1));
    account.submit(MM, market(Side::Buy, 1));
    assert_eq!(
        account.take_countdown(),
        None,
        "a duplicate of the disarm may still arrive"
    );
    account.wait(3);
    assert_eq!(account.engine.orders().iter().count(), 3, "all orders wait");
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    assert_eq!(account.places(), 0);
    account.countdown_reply(Outcome::Done(COUNTDOWN_MS));
    assert_eq!(account.places(), 3);
}

#[test]
fn countdown_waits_show_the_waiting_orders_and_the_end() {
    let mut account = without_orders(ready(), 20);
    assert_eq!(account.take_countdown(), Some(0));
    account.countdown_reply(Outcome::Done(0));
    let released = account.now;
    assert_eq!(account.engine.countdown_waits(), []);
    account.wait(1);
    account.submit(MM, limit(Side::Buy, 990, 1));
    let submitted = account.now;
    account.wait(1);
    account.submit(MM, limit(Side::Buy, 980, 1));
    assert_eq!(account.engine.run_state(), RunState::Ready);
    let [wait] = account.engine.countdown_waits()[..] else {
        panic!("orders wait");
    };
    assert_eq!((wait.instrument, wait.orders), (BTC, 2));
    assert_eq!(wait.since, submitted);
    assert!(wait.barred_until.is_some_and(|until| until > released));
    account.wait(5);
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    account.countdown_reply(Outcome::Done(COUNTDOWN_MS));
    assert_eq!(account.engine.countdown_waits(), []);
}

#[test]
fn an_order_that_waits_for_a_countdown_is_sent_only_in_time() {
    let mut account = without_orders(ready(), 20);
    assert_eq!(account.take_countdown(), Some(0));
    account.countdown_reply(Outcome::Done(0));
    let unwanted = account.submit(MM, limit(Side::Buy, 990, 1));
    account.submit(MM, limit(Side::Buy, 980, 1));
    account.wait(1);
    account.cancel(MM, unwanted);
    assert!(account.engine.order(unwanted).is_none(), "nothing was sent");
    account.wait(6);
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    // The countdown itself is late. The order that waited was meant for an earlier market.
    account.wait(3);
    account.countdown_reply(Outcome::Done(COUNTDOWN_MS));
    assert_eq!(account.places(), 0);
    assert!(reasons(&account)[0].contains("too late"));
}

#[test]
fn a_waiting_order_is_not_sent_after_the_run_is_degraded() {
    let mut account = without_orders(ready(), 20);
    assert_eq!(account.take_countdown(), Some(0));
    account.countdown_reply(Outcome::Done(0));
    account.submit(MM, limit(Side::Buy, 990, 1));
    account.handle(Input::User(&UserEvent::MarginCall));
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    account.wait(7);
    account.confirm_countdowns();
    assert_eq!(account.places(), 0);
    let reported = reasons(&account);
    assert!(reported[0].contains("the run is degraded"), "{reported:?}");
}

#[test]
fn a_waiting_order_is_rejected_with_the_correct_reason() {
    let mut live = live_config();
    live.copy_ms = 20_000;
    let mut account = without_orders(ready_with(live), 20);
    assert_eq!(account.take_countdown(), Some(0));
    account.countdown_reply(Outcome::Done(0));
    account.submit(MM, limit(Side::Buy, 990, 1));
    assert_eq!(account.engine.orders().iter().count(), 0, "rejected");
    let reported = reasons(&account);
    assert!(reported[0].contains("was stopped"), "{reported:?}");

    let mut account = ready();
    account.submit(MM, limit(Side::Buy, 990, 1));
    for _ in 0..3 {
        account.take_countdown();
        account.countdown_reply(Outcome::Unknown);
        account.pass(500);
    }
    let reported = reasons(&account);
    assert!(reported[0].contains("did not arm"), "{reported:?}");

    let mut account = holding();
    account.live(LiveInput::Journal { healthy: false });
    account.submit(MM, reducing());
    account.pass(999);
    let reported = reasons(&account);
    assert!(reported[0].contains("the run is degraded"), "{reported:?}");
}

#[test]
fn a_market_order_that_only_reduces_needs_no_countdown() {
    let mut account = holding();
    let mut terms = market(Side::Sell, 1);
    terms.reduce_only = true;
    account.submit(MM, terms);
    assert_eq!((account.places(), account.take_countdown()), (1, None));
    let order = match account.sent.pop() {
        Some(Request::Place(order)) => order,
        other => panic!("{other:?}"),
    };
    assert!(account.engine.may_send_now(&order, account.now));
}

/// The reasons why orders were not placed, as text for people.
fn reasons(account: &Account) -> Vec<String> {
    let reason = |notice: &Notice| match notice {
        Notice::NotPlaced { words, .. } => Some(words.reason.clone()),
        _ => None,
    };
    account.notices.iter().filter_map(reason).collect()
}

#[test]
fn with_nonces_no_duplicate_disarm_delays_the_next_countdown() {
    let mut live = live_config();
    live.copy_ms = 0;
    let mut account = without_orders(ready_with(live), 20);
    assert_eq!(account.take_countdown(), Some(0));
    account.countdown_reply(Outcome::Done(0));
    account.submit(MM, limit(Side::Buy, 990, 1));
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
}

#[test]
fn a_symbol_is_not_disarmed_while_its_orders_are_replaced() {
    let mut account = without_orders(ready(), 12);
    assert_eq!(account.take_countdown(), None, "a new order may follow");
    account.submit(MM, limit(Side::Buy, 990, 1));
    assert_eq!(account.places(), 1, "the symbol is covered");
    account.pass(0);
    assert_eq!(
        account.take_countdown(),
        Some(COUNTDOWN_MS),
        "the renewal is due"
    );
    account.countdown_reply(Outcome::Done(COUNTDOWN_MS));
    account.wait(9);
    assert_eq!(account.take_countdown(), None);
}

#[test]
fn the_next_process_arms_only_when_an_old_disarm_cannot_arrive() {
    use super::succession::{killed, next_config};
    for answered in [true, false] {
        let mut account = without_orders(ready(), 20);
        assert_eq!(account.take_countdown(), Some(0));
        if answered {
            account.countdown_reply(Outcome::Done(0));
        }
        let mut account = killed(account, next_config());
        account.begin();
        account.sync();
        assert_eq!(account.engine.run_state(), RunState::Ready);
        account.submit(MM, limit(Side::Buy, 990, 1));
        account.wait(5);
        assert_eq!(account.take_countdown(), None, "answered: {answered}");
        account.wait(2);
        account.submit(MM, limit(Side::Buy, 990, 1));
        assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    }
}

#[test]
fn a_disarm_of_unknown_outcome_is_repeated_before_the_next_arm() {
    let mut account = without_orders(ready(), 20);
    assert_eq!(account.take_countdown(), Some(0));
    account.countdown_reply(Outcome::Unknown);
    account.pass(4_900);
    assert_eq!(
        account.take_countdown(),
        None,
        "the disarm may still arrive"
    );
    account.pass(100);
    assert_eq!(
        account.take_countdown(),
        Some(0),
        "the disarm is sent again"
    );
    account.countdown_reply(Outcome::Done(0));
    account.wait(7);
    account.submit(MM, limit(Side::Buy, 990, 1));
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
}

#[test]
fn after_a_lost_disarm_an_order_waits_for_a_reliable_countdown() {
    let mut account = without_orders(ready(), 20);
    assert_eq!(account.take_countdown(), Some(0));
    account.submit(MM, limit(Side::Buy, 990, 1));
    account.countdown_reply(Outcome::Unknown);
    account.wait(5);
    assert_eq!(
        account.take_countdown(),
        None,
        "the disarm may still arrive"
    );
    account.wait(2);
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    account.countdown_reply(Outcome::Done(COUNTDOWN_MS));
    assert_eq!(account.places(), 1);
}

/// An order that was rejected had requested the symbol's countdown, and the reply was lost.
fn asked_in_vain() -> Account {
    let mut account = ready();
    account.submit(MM, limit(Side::Buy, 990, 1));
    for _ in 0..3 {
        assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
        account.countdown_reply(Outcome::Unknown);
        account.pass(500);
    }
    assert_eq!(account.places(), 0);
    account
}

#[test]
fn a_countdown_that_no_order_needs_is_disarmed() {
    let mut account = asked_in_vain();
    // The operator resumes, so it is tried once more, and then it is armed.
    account.handle(Input::Command(Command::Resume));
    account.wait(1);
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    account.countdown_reply(Outcome::Done(COUNTDOWN_MS));
    let mut released = 0;
    for _ in 0..40 {
        account.wait(1);
        if let Some(ms) = account.take_countdown() {
            released += usize::from(ms == 0);
            account.countdown_reply(Outcome::Done(ms));
        }
    }
    assert!(released > 0, "no order needs it");
    // By now, each lost request has arrived or can no longer arrive.
    account.wait(40);
    while account.take_countdown().is_some() {
        account.countdown_reply(Outcome::Done(0));
    }
    account.wait(40);
    assert_eq!(account.take_countdown(), None);
}

#[test]
fn on_stop_keep_waits_until_no_lost_renewal_can_arrive() {
    let mut live = live_config();
    live.on_stop = OnStop::Keep;
    let mut account = ready_with(live);
    account.rest();
    account.wait(10);
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    account.countdown_reply(Outcome::Unknown);
    account.live(LiveInput::Stop);
    assert_eq!(account.take_countdown(), Some(0));
    account.countdown_reply(Outcome::Done(0));
    assert!(
        !account.engine.has_stopped(),
        "the lost renewal may still arrive"
    );
    account.wait(7);
    assert_eq!(account.take_countdown(), Some(0));
    account.countdown_reply(Outcome::Done(0));
    assert!(account.engine.has_stopped());
}

#[test]
fn on_stop_keep_disarms_a_countdown_of_the_previous_process() {
    let mut account = ready();
    account.rest();
    let mut config = super::succession::next_config();
    if let Some(live) = &mut config.live {
        live.on_stop = OnStop::Keep;
    }
    let mut account = super::succession::killed(account, config);
    account.begin();
    account.live(LiveInput::Stop);
    assert_eq!(account.take_countdown(), Some(0));
    account.countdown_reply(Outcome::Done(0));
    assert!(account.engine.has_stopped());
}
