//! The account's modes, where the first readings of a run come without them.

use windvane_model::Side;
use windvane_model::doubt::Doubt;
use windvane_model::live::LiveInput;
use windvane_model::run_state::RunState;
use windvane_model::truth::{Subject, Truth};

use super::succession::{killed, next_config};
use super::support::{Account, MM, limit};
use super::world::{booting, live_config, nothing, ready};

/// Answers every question; the account comes without its modes. They are pending, or the venue refuses to tell them.
fn sync_without_modes(account: &mut Account, are_pending: bool) {
    while let Some(subject) = account.take_question() {
        let truth = if matches!(subject, Subject::Account { .. }) {
            let mut own = account.own_account();
            (own.hedge_mode, own.multi_assets) = (None, None);
            if are_pending {
                account.live(LiveInput::ModesPending);
            }
            Truth::Account(own)
        } else {
            nothing(subject)
        };
        account.tell(subject, truth);
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
    assert_eq!(account.engine.doubts(), [Doubt::Modes]);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    assert!(!may_open(&mut account));
    account.seconds(31);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    assert!(may_open(&mut account));
}

#[test]
fn modes_that_stay_pending_are_waited_for_however_long_it_takes() {
    let mut account = started_without_modes();
    for _ in 0..200 {
        account.wait(1);
        sync_without_modes(&mut account, true);
    }
    assert_eq!(account.engine.doubts(), [Doubt::Modes]);
    assert!(!may_open(&mut account));
}

#[test]
fn a_venue_that_refuses_to_tell_the_modes_is_not_waited_for() {
    let mut account = booting(live_config());
    account.begin();
    sync_without_modes(&mut account, false);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_restart_goes_on_with_the_modes_that_the_process_before_read() {
    for (before, doubts) in [
        (ready(), vec![]),
        (started_without_modes(), vec![Doubt::Modes]),
    ] {
        let mut account = killed(before, next_config());
        account.begin();
        sync_without_modes(&mut account, true);
        assert_eq!(account.engine.doubts(), doubts);
    }
}
