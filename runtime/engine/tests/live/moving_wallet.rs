//! Another program trades all the time on a symbol that is not configured, so that every account
//! snapshot shows another wallet balance. Still, the account's loss limit must halt, a start must
//! end, and a close must be sent.

use windvane_engine::engine::CloseReason;
use windvane_model::input::Command;
use windvane_model::live::LiveInput;
use windvane_model::protocol::{AccountReason, AccountUpdate, Refusal};
use windvane_model::run_state::RunState;
use windvane_model::state_report::{StateReport, Subject};
use windvane_model::{
    Amount, ClientOrderId, Input, Notice, OrderStatus, Outcome, Side, Surface, UserEvent,
    VenueOrderId,
};

use super::changes_without_event::{holding, limited, usdt};
use super::succession::{killed, next_config};
use super::support::{Account, MM, fill, limit};
use super::world::{no_trades, nothing};

/// The profit of the other program in each half second.
#[derive(Clone, Copy, Debug)]
enum Moves {
    /// It loses each time.
    Down,
    /// It wins and loses in turn.
    UpAndDown,
}

impl Moves {
    fn after(self, steps: i128) -> Amount {
        match self {
            Self::Down => -usdt(steps),
            Self::UpAndDown if steps % 2 == 0 => usdt(3),
            Self::UpAndDown => -usdt(2),
        }
    }
}

/// A process with a position was killed, and the next one begins.
fn started_again() -> Account {
    let mut account = killed(holding(), limited(next_config()));
    account.begin();
    account
}

/// Lets half a second pass in which the wallet changes. Each query is answered after an event that
/// arrives while the query is in flight.
fn half_a_second(account: &mut Account, total: Amount) {
    let event = account_event(account, total);
    account.handle(Input::User(&event));
    answer(account, total);
    account.pass(500);
    account.alive();
    account.clock();
    account.confirm_countdowns();
}

/// The loss in half a second. The limit is 500.
const STEP: i128 = 5;
/// The loss beyond the limit that is allowed before the halt.
const SLACK: i128 = 40;

/// How the run can learn of the loss.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// Each loss has an account event at once.
    Events,
    /// The user stream is disconnected, and account snapshots are current.
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

/// Answers the current queries. The venue does not provide its income history.
fn answer(account: &mut Account, total: Amount) {
    for _ in 0..8 {
        let Some(subject) = account.take_question() else {
            return;
        };
        let outcome = match subject {
            Subject::Account { .. } => {
                let mut own = account.own_account();
                own.balances[0].total = total;
                Outcome::Done(StateReport::Account(own))
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
fn a_loss_halts_although_each_event_has_another_balance() {
    let lost = lost_at_halt(Source::Events);
    assert!(lost <= 500 + SLACK, "halted at a loss of {lost}");
}

#[test]
fn a_loss_halts_although_each_snapshot_has_another_balance() {
    let lost = lost_at_halt(Source::Readings);
    assert!(lost <= 500 + SLACK, "halted at a loss of {lost}");
}

/// Each second a person closes a part of our position at a loss of 50. The user stream is
/// disconnected, and the venue does not list the account's trades.
#[test]
fn a_loss_halts_while_a_person_closes_the_position_in_parts() {
    let mut account = holding();
    account.seconds(30);
    account.live(LiveInput::StreamDown {
        surface: Surface::Futures,
    });
    let mut state_report = account.own_account();
    let mut lost = 0;
    while account.engine.run_state() != RunState::Halted {
        assert!(lost <= 1_500, "no halt at a loss of {lost}");
        lost += 50;
        state_report.positions[0].qty.0 -= 250;
        state_report.balances[0].total += -usdt(50);
        while let Some(subject) = account.take_question() {
            let outcome = match subject {
                Subject::Account { .. } => {
                    Outcome::Done(StateReport::Account(state_report.clone()))
                }
                Subject::Trades { .. } | Subject::Income { .. } => Outcome::Refused(Refusal {
                    code: 404,
                    msg: String::new(),
                }),
                _ => Outcome::Done(nothing(subject)),
            };
            account.answer(subject, outcome);
        }
        account.pass(1_000);
        account.clock();
        account.top(999, 1001);
    }
    assert!(lost <= 500 + 400, "halted at a loss of {lost}");
}

#[test]
fn a_start_ends_although_each_event_has_another_balance() {
    for moves in [Moves::Down, Moves::UpAndDown] {
        let mut account = started_again();
        let start = account.own_account().balances[0].total;
        let mut steps = 0;
        while account.engine.run_state() == RunState::Syncing {
            steps += 1;
            assert!(steps <= 60, "{moves:?}: the start does not end");
            half_a_second(&mut account, start + moves.after(steps));
        }
    }
}

/// Another program trades on the same symbol all the time, and the wallet changed while no process
/// ran. Ledger and snapshots change by the same fills and always differ by the same amount.
#[test]
fn a_start_ends_although_others_trade_on_the_same_symbol() {
    let mut account = started_again();
    let others = ClientOrderId::new("web_1").unwrap();
    for trade_id in 100..160 {
        if account.engine.run_state() != RunState::Syncing {
            return;
        }
        let side = if trade_id % 3 == 0 {
            Side::Sell
        } else {
            Side::Buy
        };
        let mut event = fill(others, side, trade_id, 10, 10, OrderStatus::Filled);
        event.order_id = VenueOrderId(trade_id);
        event.transaction_time = account.now;
        account.update(event);
        let total = account.own_account().balances[0].total - usdt(7);
        half_a_second(&mut account, total);
    }
    panic!("the start did not end within half a minute");
}

#[test]
fn flatten_closes_with_one_snapshot_during_an_endless_start() {
    let mut account = started_again();
    account.handle(Input::Command(Command::Flatten));
    let start = account.own_account().balances[0].total;
    for steps in 1..40 {
        let waits = account.engine.close_waits();
        assert_eq!(
            waits[0].reasons,
            [CloseReason::Syncing],
            "the stream is connected"
        );
        let reasons = account
            .engine
            .describe_reasons(&account.engine.degraded_reasons());
        assert!(reasons[0].contains("stream is up"), "{reasons:?}");
        // The venue never answers a request for the account's trades, so that the start cannot end.
        let event = account_event(&account, start);
        account.handle(Input::User(&event));
        while let Some(subject) = account.take_question() {
            let outcome = match subject {
                Subject::Trades { .. } => Outcome::Unknown,
                Subject::Account { .. } => {
                    let mut own = account.own_account();
                    own.balances[0].total = start + Moves::Down.after(steps);
                    Outcome::Done(StateReport::Account(own))
                }
                _ => Outcome::Done(nothing(subject)),
            };
            account.answer(subject, outcome);
        }
        account.pass(500);
        account.alive();
        account.clock();
        account.confirm_countdowns();
        if account.places() > 0 {
            return;
        }
    }
    panic!("no close after twenty seconds");
}

/// An own exit order fills in parts, so that each snapshot may be stale, while outside trades
/// change the wallet.
#[test]
fn possibly_stale_snapshots_between_events_do_not_agree() {
    let mut account = holding();
    account.notices.clear();
    let order = account.submit(MM, limit(Side::Sell, 1001, 10_000));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    let known = account.own_account().balances[0].total;
    for part in 1..=120 {
        let status = OrderStatus::PartiallyFilled;
        let mut event = fill(id, Side::Sell, 1 + part, 10, 10 * part, status);
        event.transaction_time = account.now;
        account.update(event);
        half_a_second(&mut account, known + Moves::Down.after(part.into()));
    }
    let is_adjusted = |notice: &Notice| matches!(notice, Notice::Adjusted { .. });
    let adjusted: Vec<_> = account
        .notices
        .iter()
        .filter(|it| is_adjusted(it))
        .collect();
    assert!(adjusted.is_empty(), "{:?} {adjusted:?}", account.now);
}
