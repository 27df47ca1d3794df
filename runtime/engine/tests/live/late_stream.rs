//! A user stream that is seconds late, while responses report every order:
//! `docs/promises.md#4-dead-mans-switch`.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::live::LiveInput;
use windvane_model::run_state::RunState;
use windvane_model::{OrderSeq, OrderStatus, Outcome, Side, Surface, Time};

use super::support::{Account, MM, fill, instrument, limit, market, report, update};
use super::world::ready;

const FUTURES: Surface = Surface::Futures;

/// A run that has been ready for half a minute.
fn settled() -> Account {
    let mut account = ready();
    account.seconds(35);
    account.sent.clear();
    account
}

fn is_stream_degraded(account: &Account) -> bool {
    account
        .engine
        .degraded_reasons()
        .contains(&DegradedReason::Stream(FUTURES))
}

/// An order that the response reports as filled at once.
fn answered_as_filled(account: &mut Account) -> OrderSeq {
    let order = account.submit(MM, market(Side::Buy, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    let mut filled = report(id, OrderStatus::Filled, 10);
    filled.cum_quote = instrument().notional(990, 10);
    filled.update_time = account.now;
    account.placed(id, Outcome::Done(filled));
    order
}

/// An order whose two responses report its start and its cancel within a second.
fn answered_as_cancelled(account: &mut Account) -> OrderSeq {
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    account.pass(500);
    account.cancel(MM, order);
    let mut over = report(id, OrderStatus::Canceled, 0);
    over.update_time = account.now;
    account.canceled(id, Outcome::Done(over));
    assert!(account.engine.order(order).is_none());
    order
}

#[test]
fn orders_that_responses_end_show_a_late_stream() {
    for place in [answered_as_filled, answered_as_cancelled] {
        let mut account = settled();
        place(&mut account);
        account.seconds(1);
        assert_eq!(account.engine.run_state(), RunState::Ready);
        account.seconds(4);
        assert!(is_stream_degraded(&account), "the event is 3 s late");
        assert_eq!(account.engine.run_state(), RunState::Degraded);
        assert_eq!(account.reconnected, [FUTURES]);
        // A new connection does not send earlier events.
        account.live(LiveInput::StreamUp { surface: FUTURES });
        account.seconds(40);
        assert_eq!(account.engine.run_state(), RunState::Ready);
        assert_eq!(account.reconnected, [FUTURES]);
    }
}

#[test]
fn a_stream_that_reports_such_orders_is_trusted() {
    for place in [answered_as_filled, answered_as_cancelled] {
        let mut account = settled();
        let order = place(&mut account);
        account.pass(1_000);
        let id = account.id(MM, order);
        account.update(update(id, Side::Buy, OrderStatus::New, 0));
        account.seconds(10);
        assert!(!is_stream_degraded(&account));
        assert_eq!(account.reconnected, []);
    }
}

/// An open order whose first event arrived at once.
fn resting(account: &mut Account) -> OrderSeq {
    let order = account.rest();
    account.seconds(5);
    order
}

#[test]
fn a_fill_event_with_an_old_event_time_shows_a_late_stream() {
    for (late_ms, is_late) in [(10_000, true), (4_000, true), (1_000, false)] {
        let mut account = settled();
        let order = resting(&mut account);
        account.seconds(10);
        let id = account.id(MM, order);
        let mut event = fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled);
        event.event_time = account.now.plus_ms(-late_ms);
        event.transaction_time = event.event_time;
        account.update(event);
        assert_eq!(is_stream_degraded(&account), is_late, "{late_ms}");
        assert_eq!(account.reconnected.len(), usize::from(is_late), "{late_ms}");
        let held = account.engine.ledgers().account.holds(super::support::BTC);
        assert!(held, "the fill is still booked");
    }
}

#[test]
fn events_older_than_the_connection_are_not_late() {
    let mut account = settled();
    let order = resting(&mut account);
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.seconds(5);
    account.live(LiveInput::StreamUp { surface: FUTURES });
    account.seconds(1);
    let id = account.id(MM, order);
    let mut event = fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled);
    event.event_time = account.now.plus_ms(-5_000);
    account.update(event);
    account.seconds(30);
    assert_eq!(account.reconnected, []);
}

#[test]
fn a_repeated_event_is_not_late() {
    let mut account = settled();
    let order = resting(&mut account);
    let id = account.id(MM, order);
    let mut event = fill(id, Side::Buy, 1, 4, 4, OrderStatus::PartiallyFilled);
    event.event_time = account.now;
    account.update(event);
    account.seconds(10);
    account.update(event);
    assert_eq!(account.reconnected, []);
}

#[test]
fn lateness_is_measured_by_the_venues_clock() {
    let mut account = settled();
    let order = resting(&mut account);
    let id = account.id(MM, order);
    let mut event = fill(id, Side::Buy, 1, 4, 4, OrderStatus::PartiallyFilled);
    event.event_time = Time::default();
    account.update(event);
    assert_eq!(account.reconnected, []);
    // The venue's clock is ten seconds behind, and the engine knows that.
    account.live(LiveInput::Clock {
        surface: FUTURES,
        offset_ns: -10_000_000_000,
        error_ns: 1,
    });
    let mut event = fill(id, Side::Buy, 2, 4, 8, OrderStatus::PartiallyFilled);
    event.event_time = account.now.plus_ms(-10_500);
    account.update(event);
    assert_eq!(account.reconnected, []);
}
