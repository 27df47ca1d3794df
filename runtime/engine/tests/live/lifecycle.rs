//! The states of a live run and their transitions.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::event::EventKind;
use windvane_model::input::Command;
use windvane_model::live::LiveInput;
use windvane_model::rules::Rule;
use windvane_model::run_state::RunState;
use windvane_model::state_report::{StateReport, Subject};
use windvane_model::{Input, Notice, OrderStatus, Outcome, Request, Side, Surface, UserEvent};

use super::succession::{killed, next_config};
use super::support::{Account, MM, limit, update};
use super::world::{booting, live_config, nothing, position, ready};

const FUTURES: Surface = Surface::Futures;

#[test]
fn a_run_boots_then_syncs_then_is_ready() {
    let mut account = booting(live_config());
    assert_eq!(account.engine.run_state(), RunState::Booting);
    account.live(LiveInput::Begin);
    assert_eq!(account.engine.run_state(), RunState::Syncing);
    account.sync();
    assert!(
        account.sent.is_empty(),
        "no query before the stream is connected"
    );
    account.live(LiveInput::StreamUp { surface: FUTURES });
    account.sync();
    assert_eq!(
        account.engine.run_state(),
        RunState::Syncing,
        "the clock is unknown"
    );
    account.clock();
    assert_eq!(account.engine.run_state(), RunState::Ready);
    let moves: Vec<_> = account
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::State { from, to, .. } => Some((*from, *to)),
            _ => None,
        })
        .collect();
    assert_eq!(
        moves,
        [
            (RunState::Booting, RunState::Syncing),
            (RunState::Syncing, RunState::Ready)
        ]
    );
}

#[test]
fn no_order_is_sent_before_a_run_is_ready() {
    let mut account = booting(live_config());
    account.begin();
    let rule = account.call(MM, |callback, engine| {
        callback
            .submit(engine, limit(Side::Buy, 990, 1))
            .unwrap_err()
            .rule
    });
    assert_eq!(rule, Rule::Degraded);
    assert_eq!(account.places(), 0);
}

#[test]
fn a_lost_stream_degrades_until_the_account_was_compared_again() {
    let mut account = ready();
    account.live(LiveInput::StreamDown { surface: FUTURES });
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::Stream(FUTURES)]
    );
    account.live(LiveInput::StreamUp { surface: FUTURES });
    assert_eq!(
        account.engine.run_state(),
        RunState::Degraded,
        "not reconciled yet"
    );
    account.sync();
    assert_eq!(account.engine.run_state(), RunState::Ready);
    let reported: Vec<_> = account
        .events
        .iter()
        .filter(|(strategy, kind, _)| *strategy == MM && *kind == EventKind::RuntimeState)
        .map(|(_, _, fields)| fields[0])
        .collect();
    assert_eq!(reported, [1, 0], "strategies receive degraded, then ready");
}

#[test]
fn a_degraded_run_allows_cancels_but_no_new_exposure() {
    let mut account = ready();
    let order = account.rest();
    account.live(LiveInput::Journal { healthy: false });
    let rule = account.call(MM, |callback, engine| {
        callback
            .submit(engine, limit(Side::Buy, 980, 1))
            .unwrap_err()
            .rule
    });
    assert_eq!(rule, Rule::Degraded);
    account.cancel(MM, order);
    assert!(matches!(account.sent.last(), Some(Request::Cancel { .. })));
    account.live(LiveInput::Journal { healthy: true });
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_silent_stream_is_reconnected() {
    let mut account = ready();
    for _ in 0..14 {
        account.pass(999);
    }
    assert!(account.reconnected.is_empty());
    for _ in 0..3 {
        account.pass(999);
    }
    assert_eq!(account.reconnected, [FUTURES]);
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::Stream(FUTURES)]
    );
}

#[test]
fn a_stream_without_an_order_that_rest_confirmed_is_reconnected() {
    use super::support::report;
    use windvane_model::OrderStatus;
    let mut account = ready();
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    for _ in 0..2 {
        account.alive();
        account.pass(999);
    }
    assert!(account.reconnected.is_empty());
    for _ in 0..2 {
        account.alive();
        account.pass(999);
    }
    assert_eq!(
        account.reconnected,
        [FUTURES],
        "pongs do not prove that events arrive"
    );
}

#[test]
fn a_new_stream_need_not_report_orders_confirmed_before_it() {
    use super::support::report;
    use windvane_model::OrderStatus;
    let mut account = ready();
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    let open = account.open_order(order);
    account.wait(4);
    assert_eq!(account.reconnected, [FUTURES]);
    // The event was lost with the first connection. The second sends only new events.
    account.live(LiveInput::StreamUp { surface: FUTURES });
    for _ in 0..14 {
        account.wait(1);
        account.sync_with(std::slice::from_ref(&open));
        account.confirm_countdowns();
    }
    assert_eq!(account.reconnected, [FUTURES]);
    assert_eq!(account.engine.degraded_reasons(), []);
}

#[test]
fn a_margin_call_degrades_the_run_until_resume() {
    let mut account = ready();
    account.handle(Input::User(&UserEvent::MarginCall));
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::MarginCall]
    );
    account.seconds(40);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    account.handle(Input::Command(Command::Resume));
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

/// A start without any saved state, on an account with this position.
fn after_a_lost_journal(held: i64) -> Account {
    let mut account = booting(live_config());
    account.engine.degrade_for_lost_state();
    account.begin();
    // A difference waits for trades that may be listed late.
    let rounds = if held == 0 { 5 } else { 20 };
    for _ in 0..rounds {
        while let Some(subject) = account.take_question() {
            let state_report = match subject {
                Subject::Account { .. } => {
                    let mut own = account.own_account();
                    own.positions = vec![position(held)];
                    StateReport::Account(own)
                }
                _ => nothing(subject),
            };
            account.tell(subject, state_report);
        }
        account.pass(999);
        account.alive();
        account.clock();
    }
    account
}

#[test]
fn after_a_lost_journal_a_person_must_assign_positions() {
    let account = after_a_lost_journal(5);
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::Ownership]
    );
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    let mut account = killed(account, next_config());
    account.begin();
    account.sync();
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::Ownership],
        "the next process too"
    );
    account.handle(Input::Command(Command::Resume));
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn after_a_lost_journal_no_countdown_is_disarmed_too_early() {
    for (mut account, expected) in [(ready(), 1), (after_a_lost_journal(0), 0)] {
        let order = account.rest();
        let id = account.id(MM, order);
        account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
        let mut stops = 0;
        for _ in 0..24 {
            account.pass(999);
            account.alive();
            account.clock();
            account.sync();
            while let Some(ms) = account.take_countdown() {
                stops += u32::from(ms == 0);
                account.countdown_reply(Outcome::Done(ms));
            }
        }
        assert_eq!(stops, expected);
    }
}

#[test]
fn after_a_lost_journal_a_flat_account_is_ready() {
    let account = after_a_lost_journal(0);
    assert_eq!(account.engine.degraded_reasons(), []);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn unexpected_modes_and_missing_permissions_degrade_the_run() {
    let mut account = ready();
    account.handle(Input::User(&UserEvent::PositionMode { hedge: true }));
    account.handle(Input::User(&UserEvent::AssetMode { multi_assets: true }));
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::PositionMode, DegradedReason::AssetMode]
    );
    account.handle(Input::User(&UserEvent::PositionMode { hedge: false }));
    account.handle(Input::User(&UserEvent::AssetMode {
        multi_assets: false,
    }));
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account.wait(31);
    while let Some(subject) = account.take_question() {
        let state_report = if matches!(subject, Subject::OpenOrders { .. }) {
            StateReport::OpenOrders(Vec::new())
        } else {
            let mut own = account.own_account();
            own.can_trade = Some(false);
            StateReport::Account(own)
        };
        account.tell(subject, state_report);
    }
    assert!(
        account
            .engine
            .degraded_reasons()
            .contains(&DegradedReason::CanTrade(FUTURES))
    );
}

#[test]
fn a_halt_outlasts_degraded_reasons() {
    let mut account = ready();
    account.handle(Input::Command(Command::Halt));
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
    account.sync();
    assert_eq!(account.engine.run_state(), RunState::Halted);
    account.handle(Input::Command(Command::Resume));
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_clock_that_was_not_read_for_long_degrades_the_run() {
    let mut account = ready();
    for _ in 0..605 {
        account.pass(999);
        account.alive();
        account.sync();
    }
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::Clock(FUTURES)]
    );
    account.clock();
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_stop_cancels_open_orders_and_reports_its_end() {
    use super::support::{report, update};
    use windvane_model::OrderStatus;
    let mut account = ready();
    let order = account.rest();
    account.live(LiveInput::Stop);
    assert!(!account.engine.has_stopped());
    assert!(matches!(account.sent.last(), Some(Request::Cancel { .. })));
    let id = account.id(MM, order);
    account.canceled(id, Outcome::Done(report(id, OrderStatus::Canceled, 0)));
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
    assert!(account.engine.has_stopped());
    assert_eq!(account.engine.run_state(), RunState::Halted);
}

#[test]
fn a_timestamp_rejection_degrades_until_the_clock_is_read() {
    let mut account = ready();
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, super::support::refused(-1021));
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::Clock(Surface::Futures)]
    );
    account.clock();
    assert_eq!(account.engine.run_state(), RunState::Ready);
}
