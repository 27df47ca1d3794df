//! Another program trades on a symbol that is not configured and loses all the time, so that the wallet is
//! another at each look. The account's loss limit has to halt all the same.

use windvane_engine::engine::RunState;
use windvane_engine::live::LiveInput;
use windvane_engine::protocol::{AccountReason, AccountUpdate, Refusal};
use windvane_engine::truth::{Subject, Truth};
use windvane_engine::{Amount, Input, Outcome, Surface, UserEvent};

use super::support::Account;
use super::untold::{holding, usdt};
use super::world::{no_trades, nothing};

/// What is lost in half a second; the limit is 500.
const STEP: i128 = 5;
/// So much more than the limit may be lost before the halt.
const SLACK: i128 = 40;

/// How the run can learn of it.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// Each loss has its account event at once.
    Events,
    /// The user stream is down, and readings are current.
    Readings,
}

/// The loss at the halt, at most 900.
fn lost_at_halt(source: Source) -> i128 {
    let mut account = holding();
    let start = account.own_account().balances[0].total;
    if matches!(source, Source::Readings) {
        account.live(LiveInput::StreamDown {
            surface: Surface::Futures,
        });
    }
    let mut lost = 0;
    while lost < 900 && account.engine.run_state() != RunState::Halted {
        lost += STEP;
        let total = start - usdt(lost);
        if matches!(source, Source::Events) {
            let event = account_event(&account, total);
            account.handle(Input::User(&event));
        }
        answer(&mut account, total);
        account.pass(500);
        account.alive();
        account.clock();
        account.confirm_countdowns();
        account.top(999, 1001);
    }
    lost
}

fn account_event(account: &Account, total: Amount) -> UserEvent {
    let mut balances = account.own_account().balances;
    balances[0].total = total;
    UserEvent::Account(AccountUpdate {
        surface: Surface::Futures,
        reason: AccountReason::Order,
        balances,
        positions: Vec::new(),
        transaction_time: account.now,
        event_time: account.now,
    })
}

/// Answers what is asked now. The venue tells no income history.
fn answer(account: &mut Account, total: Amount) {
    for _ in 0..8 {
        let Some(subject) = account.take_question() else {
            return;
        };
        let outcome = match subject {
            Subject::Account { .. } => {
                let mut own = account.own_account();
                own.balances[0].total = total;
                Outcome::Done(Truth::Account(own))
            }
            Subject::Trades { .. } => Outcome::Done(no_trades()),
            Subject::Income { .. } => Outcome::Refused(Refusal {
                code: 404,
                msg: String::new(),
            }),
            _ => Outcome::Done(nothing(subject)),
        };
        account.answer(subject, outcome);
    }
}

#[test]
fn a_loss_halts_although_each_event_states_another_wallet() {
    let lost = lost_at_halt(Source::Events);
    assert!(lost <= 500 + SLACK, "halted at a loss of {lost}");
}

#[test]
fn a_loss_halts_although_each_reading_shows_another_wallet() {
    let lost = lost_at_halt(Source::Readings);
    assert!(lost <= 500 + SLACK, "halted at a loss of {lost}");
}
