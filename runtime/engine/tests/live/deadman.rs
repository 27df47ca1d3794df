//! Promise 4 (docs/promises.md#4-dead-mans-switch): no order is sent without an armed countdown, and
//! no countdown is renewed while the run is not healthy.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::HeartbeatNotice;
use windvane_model::input::Command;
use windvane_model::live::{LiveInput, OnStop};
use windvane_model::order_state::OrderState;
use windvane_model::protocol::Refusal;
use windvane_model::run_state::RunState;
use windvane_model::{
    Input, NewOrder, Notice, OrderSeq, OrderStatus, OrderTerms, Outcome, Reply, Request, Side,
    Surface,
};

use super::deadman_release::without_orders;
use super::support::{Account, BTC, MM, fill, limit, report, update};
use super::world::{COUNTDOWN_MS, live_config, ready, ready_with};

fn heartbeats(account: &Account) -> Vec<HeartbeatNotice> {
    let notices = account.notices.iter();
    notices
        .filter_map(|notice| match notice {
            Notice::Heartbeat { what, .. } => Some(*what),
            _ => None,
        })
        .collect()
}

#[test]
fn the_first_order_waits_until_the_timer_is_confirmed() {
    let mut account = ready();
    account.submit(MM, limit(Side::Buy, 990, 1));
    account.submit(MM, limit(Side::Buy, 980, 1));
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    assert_eq!((account.places(), account.take_countdown()), (0, None));
    account.countdown_reply(Outcome::Done(COUNTDOWN_MS));
    assert_eq!(account.places(), 2);
    account.submit(MM, limit(Side::Buy, 970, 1));
    assert_eq!(account.places(), 3, "the symbol is covered");
}

#[test]
fn cancelling_a_waiting_order_sends_no_request() {
    let mut account = ready();
    let order = account.submit(MM, limit(Side::Buy, 990, 1));
    account.take_countdown();
    account.cancel(MM, order);
    assert!(account.sent.is_empty());
    assert!(account.engine.order(order).is_none(), "it ended");
    account.countdown_reply(Outcome::Done(COUNTDOWN_MS));
    assert_eq!(account.places(), 0);
}

#[test]
fn waiting_orders_are_rejected_if_the_countdown_cannot_be_armed() {
    let mut account = ready();
    let order = account.submit(MM, limit(Side::Buy, 990, 1));
    for _ in 0..3 {
        assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
        account.countdown_reply(Outcome::Unknown);
        account.pass(500);
    }
    assert!(account.engine.order(order).is_none());
    assert_eq!(account.places(), 0);
    assert_eq!(heartbeats(&account), [HeartbeatNotice::Failed; 3]);
}

#[test]
fn a_waiting_order_is_rejected_when_the_stream_disconnects() {
    for armed in [true, false] {
        let mut account = ready();
        let order = account.submit(MM, limit(Side::Buy, 990, 1));
        account.take_countdown();
        account.live(LiveInput::StreamDown {
            surface: Surface::Futures,
        });
        account.countdown_reply(if armed {
            Outcome::Done(COUNTDOWN_MS)
        } else {
            Outcome::Unknown
        });
        account.pass(500);
        assert_eq!(account.places(), 0);
        assert!(account.engine.order(order).is_none(), "armed: {armed}");
    }
}

#[test]
fn a_rejected_countdown_request_lets_no_order_pass() {
    let mut account = ready();
    account.submit(MM, limit(Side::Buy, 990, 1));
    account.take_countdown();
    account.countdown_reply(Outcome::Refused(Refusal {
        code: -1003,
        msg: String::new(),
    }));
    assert_eq!(account.places(), 0);
}

#[test]
fn a_countdown_is_renewed_while_orders_are_open_and_all_is_well() {
    let mut account = ready();
    account.rest();
    for _ in 0..9 {
        account.pass(999);
        account.alive();
    }
    assert_eq!(account.take_countdown(), None);
    account.pass(999);
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
}

#[test]
fn a_countdown_of_zero_does_not_cover_orders() {
    let mut account = ready();
    account.submit(MM, limit(Side::Buy, 990, 1));
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    account.countdown_reply(Outcome::Done(0));
    assert_eq!(account.places(), 0);
    account.pass(500);
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    account.countdown_reply(Outcome::Done(5_000));
    assert_eq!(account.places(), 1);
    let until = account.engine.covered_until(BTC).unwrap();
    assert!(
        until < account.now.plus_ms(5_000),
        "the venue's shorter countdown applies"
    );
}

#[test]
fn open_orders_without_a_countdown_are_a_degraded_reason() {
    let mut account = ready();
    let order = account.rest();
    let mut account = super::succession::killed(account, super::succession::next_config());
    let open = account.open_order(order);
    account.begin();
    account.sync_with(&[open]);
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    account.countdown_reply(Outcome::Unknown);
    assert!((account.engine.degraded_reasons()).contains(&DegradedReason::Countdown(BTC)));
    account.pass(500);
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    account.countdown_reply(Outcome::Done(COUNTDOWN_MS));
    assert!(!(account.engine.degraded_reasons()).contains(&DegradedReason::Countdown(BTC)));
}

#[test]
fn a_disarm_waits_until_its_record_is_durable() {
    let mut account = ready();
    account.submit(MM, limit(Side::Buy, 990, 1));
    assert_eq!(account.waits_for, 0, "a countdown is armed at once");
    let mut account = without_orders(ready(), 20);
    assert_eq!(account.take_countdown(), Some(0));
    assert!(account.waits_for > 0);
}

#[test]
fn a_journal_stall_stops_renewals_until_orders_are_unknown() {
    let mut account = ready();
    let order = account.rest();
    account.live(LiveInput::Journal { healthy: false });
    for _ in 0..27 {
        account.pass(999);
        account.alive();
        account.clock();
        account.sync();
    }
    assert_eq!(account.take_countdown(), None);
    assert!(heartbeats(&account).contains(&HeartbeatNotice::Withheld));
    assert_eq!(account.engine.order(order).unwrap().state, OrderState::New);
    account.sent.clear();
    account.pass(2_000);
    assert!(heartbeats(&account).contains(&HeartbeatNotice::Lapsed));
    assert_eq!(
        account.engine.order(order).unwrap().state,
        OrderState::Unknown
    );
    assert_eq!(account.queries(), 1, "it is queried");
}

#[test]
fn after_a_process_stall_old_evidence_renews_no_countdown() {
    let mut account = ready();
    account.rest();
    for _ in 0..10 {
        account.pass(999);
        account.alive();
    }
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    // The venue refuses the renewal. The retry is due in half a second, before the engine checks the
    // age of the last sign of the user stream.
    account.countdown_reply(Outcome::Refused(Refusal {
        code: -1021,
        msg: String::new(),
    }));
    account.pass(60_000);
    assert_eq!(account.take_countdown(), None);
}

/// An account with an open order whose countdown is due for renewal.
fn due() -> (Account, OrderSeq) {
    let mut account = ready();
    let order = account.rest();
    for _ in 0..10 {
        account.pass(999);
        account.alive();
    }
    (account, order)
}

/// `times` consecutive renewals have an unknown outcome.
fn fail_to_renew(account: &mut Account, times: usize) {
    for _ in 0..times {
        assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
        account.countdown_reply(Outcome::Unknown);
        account.pass(500);
    }
}

#[test]
fn failed_renewals_are_a_degraded_reason_until_one_is_confirmed() {
    let (mut account, _) = due();
    fail_to_renew(&mut account, 2);
    assert_eq!(
        account.engine.degraded_reasons(),
        [],
        "it can still be tried in time"
    );
    fail_to_renew(&mut account, 1);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    let reasons = account.engine.degraded_reasons();
    let blocked = DegradedReason::TradingBlocked(Surface::Futures);
    assert_eq!(reasons, [DegradedReason::Countdown(BTC), blocked]);
    let reported = account.engine.describe_reasons(&reasons);
    assert!(reported[0].contains("futures:BTCUSDT"), "{reported:?}");
    account.confirm_countdowns();
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn an_expired_countdown_degrades_the_run_while_orders_are_open() {
    let (mut account, order) = due();
    account.take_countdown();
    account.sent.clear();
    for _ in 0..19 {
        account.pass(999);
        account.alive();
        account.clock();
        account.sync();
    }
    assert!(heartbeats(&account).contains(&HeartbeatNotice::Lapsed));
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::Countdown(BTC)]
    );
    let id = account.id(MM, order);
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
    account.pass(2_000);
    assert_eq!(account.engine.degraded_reasons(), []);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_countdown_that_cannot_be_armed_blocks_trading() {
    let mut account = ready();
    account.submit(MM, limit(Side::Buy, 990, 1));
    fail_to_renew(&mut account, 2);
    assert_eq!(account.engine.degraded_reasons(), []);
    fail_to_renew(&mut account, 1);
    let blocked = DegradedReason::TradingBlocked(Surface::Futures);
    assert_eq!(
        account.engine.degraded_reasons(),
        [blocked],
        "no order is open"
    );
}

#[test]
fn renewal_stops_while_the_stream_is_down() {
    let mut account = ready();
    account.rest();
    account.live(LiveInput::StreamDown {
        surface: Surface::Futures,
    });
    for _ in 0..15 {
        account.pass(999);
    }
    assert_eq!(account.take_countdown(), None);
}

#[test]
fn renewal_stops_when_reconciliation_is_old() {
    let mut account = ready();
    account.rest();
    for _ in 0..125 {
        account.pass(999);
        account.alive();
        account.clock();
        account.confirm_countdowns();
        // No query gets a response.
    }
    account.sent.clear();
    for _ in 0..15 {
        account.pass(999);
        account.alive();
    }
    assert_eq!(account.take_countdown(), None);
}

#[test]
fn on_stop_keep_disarms_the_countdowns() {
    let mut live = live_config();
    live.on_stop = OnStop::Keep;
    let mut account = ready_with(live);
    let order = account.rest();
    account.live(LiveInput::Stop);
    // A strategy that receives the stop cancels its quotes, as it does when the run is degraded.
    account.call(MM, |callback, engine| callback.cancel_all(engine, None));
    assert!(!account.engine.has_stopped());
    assert_eq!(account.take_countdown(), Some(0));
    account.countdown_reply(Outcome::Done(0));
    assert!(account.engine.has_stopped());
    assert!(account.engine.order(order).is_some());
    assert!(
        !account
            .sent
            .iter()
            .any(|request| matches!(request, Request::Cancel { .. }))
    );
}

/// The strategy cancelled the order before the stop, so the order must not stay open.
#[test]
fn on_stop_keep_repeats_a_lost_cancel_from_before_the_stop() {
    let mut live = live_config();
    live.on_stop = OnStop::Keep;
    let mut account = ready_with(live);
    let order = account.rest();
    let id = account.id(MM, order);
    account.cancel(MM, order);
    account.canceled(id, Outcome::Unknown);
    account.live(LiveInput::Stop);
    account.pass(1_100);
    account.sent.clear();
    account.handle(Input::Reply(&Reply::Queried {
        client_order_id: id,
        outcome: Outcome::Done(report(id, OrderStatus::New, 0)),
    }));
    let is_cancel = |request: &&Request| matches!(request, Request::Cancel { client_order_id, .. } if *client_order_id == id);
    assert_eq!(account.sent.iter().filter(is_cancel).count(), 1);
}

#[test]
fn on_stop_keep_repeats_a_lost_disarm() {
    let mut live = live_config();
    live.on_stop = OnStop::Keep;
    let mut account = ready_with(live);
    account.rest();
    account.live(LiveInput::Stop);
    let refusal = Refusal {
        code: -1003,
        msg: String::new(),
    };
    for outcome in [Outcome::Unknown, Outcome::Refused(refusal)] {
        assert_eq!(account.take_countdown(), Some(0));
        account.countdown_reply(outcome);
        assert!(
            !account.engine.has_stopped(),
            "the countdown may still run at the venue"
        );
        account.pass(999);
    }
    assert_eq!(account.take_countdown(), Some(0));
    account.countdown_reply(Outcome::Done(0));
    assert!(account.engine.has_stopped());
}

#[test]
fn an_order_is_not_sent_if_its_countdown_is_confirmed_too_late() {
    let mut account = ready();
    account.submit(MM, limit(Side::Buy, 990, 10));
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    account.pass(2_900);
    account.alive();
    account.pass(200);
    account.countdown_reply(Outcome::Done(COUNTDOWN_MS));
    assert_eq!(account.places(), 0);
    assert_eq!(account.engine.orders().len(), 0);
}

#[test]
fn an_adopted_order_gets_a_countdown_as_soon_as_the_run_is_ready() {
    use super::world::booting;
    use windvane_model::state_report::{OpenOrder, StateReport, Subject};
    let mut account = booting(live_config());
    let id = windvane_model::ClientOrderId::new("mm.5.1").unwrap();
    account.begin();
    while let Some(subject) = account.take_question() {
        let state_report = match subject {
            Subject::OpenOrders { .. } => StateReport::OpenOrders(vec![OpenOrder {
                report: report(id, OrderStatus::New, 0),
                terms: limit(Side::Buy, 990, 10),
            }]),
            Subject::Account { .. } => StateReport::Account(account.own_account()),
            _ => super::world::nothing(subject),
        };
        account.tell(subject, state_report);
    }
    assert_eq!(account.engine.covered_until(BTC), None);
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
}

/// An account with a position, without orders and without a countdown.
pub(super) fn holding() -> Account {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
    for _ in 0..30 {
        account.pass(999);
        account.alive();
        account.confirm_countdowns();
    }
    assert!(account.engine.covered_until(BTC).is_none());
    account.sent.clear();
    account
}

pub(super) fn reducing() -> OrderTerms {
    let mut terms = limit(Side::Sell, 1010, 1);
    terms.reduce_only = true;
    terms
}

#[test]
fn a_reducing_order_arms_no_countdown_while_the_run_is_unhealthy() {
    let mut account = holding();
    account.live(LiveInput::Journal { healthy: false });
    let order = account.submit(MM, reducing());
    assert!(account.engine.order(order).is_some(), "it waits");
    account.pass(999);
    assert_eq!((account.take_countdown(), account.places()), (None, 0));
    assert!(account.engine.order(order).is_none(), "it is rejected");
}

#[test]
fn a_reducing_order_waits_a_moment_for_a_healthy_run() {
    let mut account = holding();
    account.live(LiveInput::Journal { healthy: false });
    account.submit(MM, reducing());
    assert_eq!(account.take_countdown(), None);
    account.live(LiveInput::Journal { healthy: true });
    account.pass(999);
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    account.countdown_reply(Outcome::Done(COUNTDOWN_MS));
    assert_eq!(account.places(), 1);
}

/// An order that waits in the outbox.
fn waiting(account: &mut Account) -> NewOrder {
    account.rest();
    account.submit(MM, limit(Side::Buy, 980, 1));
    match account.sent.pop() {
        Some(Request::Place(order)) => order,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_order_is_withheld_after_its_countdown_expired() {
    let mut account = ready();
    let order = waiting(&mut account);
    assert!(account.engine.may_send_now(&order, account.now));
    for _ in 0..30 {
        account.pass(999);
    }
    assert!(
        !account.engine.may_send_now(&order, account.now),
        "nothing renewed it"
    );
}

#[test]
fn after_a_process_stall_an_old_order_is_withheld() {
    let mut account = ready();
    let order = waiting(&mut account);
    let until = account.engine.covered_until(BTC).unwrap();
    let later = |ms| account.now.plus_ms(ms);
    assert!(account.engine.may_send_now(&order, later(2_000)));
    assert!(
        !account.engine.may_send_now(&order, later(3_000)),
        "it is old"
    );
    assert!(!account.engine.may_send_now(&order, until));
}

#[test]
fn an_order_is_withheld_after_its_time_limit() {
    let mut account = ready();
    let order = waiting(&mut account);
    account.wait(2);
    assert!(account.engine.may_send_now(&order, account.now));
    account.wait(1);
    assert!(!account.engine.may_send_now(&order, account.now));
}

#[test]
fn a_cancelled_or_halted_order_is_withheld() {
    let halt = |account: &mut Account| account.handle(Input::Command(Command::Halt));
    let cancel = |account: &mut Account| {
        account.call(MM, |callback, engine| callback.cancel_all(engine, None));
    };
    let unwant: [&dyn Fn(&mut Account); 2] = [&halt, &cancel];
    for unwant in unwant {
        let mut account = ready();
        let order = waiting(&mut account);
        assert!(account.engine.may_send_now(&order, account.now));
        unwant(&mut account);
        assert!(!account.engine.may_send_now(&order, account.now));
    }
}

#[test]
fn an_order_of_an_expired_countdown_is_withheld_under_the_next() {
    let mut account = ready();
    let order = waiting(&mut account);
    account.live(LiveInput::Journal { healthy: false });
    account.wait(30);
    account.live(LiveInput::Journal { healthy: true });
    account.sync();
    account.wait(2);
    account.confirm_countdowns();
    assert!(account.engine.covered_until(BTC).is_some());
    assert!(
        !account.engine.may_send_now(&order, account.now),
        "it counts as lost"
    );
}

#[test]
fn an_order_found_open_after_its_countdown_expired_is_covered() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.live(LiveInput::Journal { healthy: false });
    account.wait(30);
    account.handle(Input::Reply(&Reply::Queried {
        client_order_id: id,
        outcome: Outcome::Done(report(id, OrderStatus::New, 0)),
    }));
    assert_eq!(account.engine.order(order).unwrap().state, OrderState::New);
    assert_eq!(account.take_countdown(), None);
    account.live(LiveInput::Journal { healthy: true });
    account.sync();
    account.wait(2);
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
}

#[test]
fn no_countdown_is_armed_while_the_journal_is_unhealthy() {
    use super::world::booting;
    use windvane_model::state_report::{OpenOrder, StateReport, Subject};
    let mut account = booting(live_config());
    let id = windvane_model::ClientOrderId::new("mm.5.1").unwrap();
    account.begin();
    account.live(LiveInput::Journal { healthy: false });
    while let Some(subject) = account.take_question() {
        let state_report = match subject {
            Subject::OpenOrders { .. } => StateReport::OpenOrders(vec![OpenOrder {
                report: report(id, OrderStatus::New, 0),
                terms: limit(Side::Buy, 990, 10),
            }]),
            Subject::Account { .. } => StateReport::Account(account.own_account()),
            _ => super::world::nothing(subject),
        };
        account.tell(subject, state_report);
    }
    account.wait(3);
    assert_eq!(account.take_countdown(), None);
    account.live(LiveInput::Journal { healthy: true });
    account.wait(2);
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
}

#[test]
fn on_stop_keep_disarms_in_spite_of_a_renewal_in_flight() {
    let mut live = live_config();
    live.on_stop = OnStop::Keep;
    let mut account = ready_with(live);
    let order = account.rest();
    let id = account.id(MM, order);
    for _ in 0..10 {
        account.pass(999);
        account.alive();
    }
    assert_eq!(account.take_countdown(), Some(COUNTDOWN_MS));
    account.live(LiveInput::Stop);
    account.countdown_reply(Outcome::Done(COUNTDOWN_MS));
    account.pass(1);
    assert_eq!(account.take_countdown(), Some(0));
    account.countdown_reply(Outcome::Done(0));
    assert!(account.engine.has_stopped());
    account.handle(Input::Reply(&Reply::Queried {
        client_order_id: id,
        outcome: Outcome::Done(report(id, OrderStatus::New, 0)),
    }));
    let cancel = |request: &Request| matches!(request, Request::Cancel { .. });
    assert!(!account.sent.iter().any(cancel), "the order must stay open");
}

#[test]
fn after_a_process_stall_an_order_arms_nothing_on_old_evidence() {
    let mut account = ready();
    // The age of the evidence was not checked since. The strategy's answer to an earlier event
    // arrives first.
    account.now = account.now.plus_ms(60_000);
    account.submit(MM, limit(Side::Buy, 990, 1));
    assert_eq!((account.take_countdown(), account.places()), (None, 0));
}
