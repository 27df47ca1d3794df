//! The account's modes, if the first account snapshots of a run lack them.

use windvane_model::Side;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::live::LiveInput;
use windvane_model::run_state::RunState;
use windvane_model::state_report::{StateReport, Subject};

use super::succession::{killed, next_config};
use super::support::{Account, MM, limit};
use super::world::{booting, live_config, nothing, ready};

/// Answers every query. The account snapshot lacks its modes: they are pending, or the venue does
/// not provide them.
fn sync_without_modes(account: &mut Account, are_pending: bool) {
    while let Some(subject) = account.take_question() {
        let state_report = if matches!(subject, Subject::Account { .. }) {
            let mut own = account.own_account();
            (own.hedge_mode, own.multi_assets) = (None, None);
            if are_pending {
                account.live(LiveInput::ModesPending);
            }
            StateReport::Account(own)
        } else {
            nothing(subject)
        };
        account.tell(subject, state_report);
    }
}

fn started_without_modes() -> Account {
    let mut account = booting(live_config());
    account.begin();
    sync_without_modes(&mut account, true);
    account.top(989, 991);
    account
}

fn may_open(account: &mut Account) -> bool {
    let terms = limit(Side::Buy, 980, 10);
    account.call(MM, |callback, engine| {
        callback.submit(engine, terms).is_ok()
    })
}

#[test]
fn nothing_opens_before_the_modes_are_read() {
    let mut account = started_without_modes();
    assert_eq!(account.engine.degraded_reasons(), [DegradedReason::Modes]);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    assert!(!may_open(&mut account));
    account.seconds(31);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    assert!(may_open(&mut account));
}

#[test]
fn the_run_waits_for_pending_modes_without_a_limit() {
    let mut account = started_without_modes();
    for _ in 0..200 {
        account.wait(1);
        sync_without_modes(&mut account, true);
    }
    assert_eq!(account.engine.degraded_reasons(), [DegradedReason::Modes]);
    assert!(!may_open(&mut account));
}

#[test]
fn the_run_does_not_wait_for_modes_that_the_venue_refuses() {
    let mut account = booting(live_config());
    account.begin();
    sync_without_modes(&mut account, false);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_restart_keeps_the_modes_that_the_previous_process_read() {
    for (before, reasons) in [
        (ready(), vec![]),
        (started_without_modes(), vec![DegradedReason::Modes]),
    ] {
        let mut account = killed(before, next_config());
        account.begin();
        sync_without_modes(&mut account, true);
        assert_eq!(account.engine.degraded_reasons(), reasons);
    }
}
