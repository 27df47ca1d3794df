//! The account's modes, where the first readings of a run come without them.

use windvane_engine::Side;
use windvane_engine::engine::{Doubt, RunState};
use windvane_engine::truth::{Subject, Truth};

use super::succession::{killed, next_config};
use super::support::{Account, MM, limit};
use super::world::{booting, live_config, nothing, ready};

/// Answers every question; little weight is left, so the account comes without its modes.
fn sync_without_modes(account: &mut Account) {
    while let Some(subject) = account.take_question() {
        let truth = if matches!(subject, Subject::Account { .. }) {
            let mut own = account.own_account();
            (own.hedge_mode, own.multi_assets) = (None, None);
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
    sync_without_modes(&mut account);
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
fn a_venue_that_tells_no_modes_is_waited_for_over_a_minute() {
    let mut account = started_without_modes();
    let mut waited = 0;
    while account.engine.doubts() == [Doubt::Modes] {
        account.wait(1);
        sync_without_modes(&mut account);
        waited += 1;
    }
    assert!((60..90).contains(&waited), "{waited}");
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
        sync_without_modes(&mut account);
        assert_eq!(account.engine.doubts(), doubts);
    }
}
