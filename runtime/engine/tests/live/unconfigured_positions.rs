//! Positions of the account on symbols that are not configured: the account's loss limits count them.

use windvane_model::config::EngineConfig;
use windvane_model::protocol::{AccountReason, AccountUpdate};
use windvane_model::run_state::RunState;
use windvane_model::state_report::{Income, IncomeKind, StateReport, StatedPosition, Subject};
use windvane_model::{Amount, Input, PositionSide, Reply, Surface, UserEvent};

use super::forced::refused_route;
use super::succession::{killed, next_config};
use super::support::{Account, USDT};
use super::world::{live_config, no_trades, nothing};

const fn usdt(whole: i128) -> Amount {
    Amount(whole * 100_000_000)
}

fn limited(mut config: EngineConfig) -> EngineConfig {
    config.live = Some(live_config());
    config.limits.max_daily_loss = Some(usdt(500));
    config
}

/// An outside position on a symbol that is not configured, with this unrealized profit.
fn held(unrealized: i128) -> StatedPosition {
    StatedPosition {
        symbol: "ETHUSDT".to_owned(),
        instrument: None,
        position_side: PositionSide::Both,
        qty: usdt(10),
        entry_price: usdt(3_000),
        unrealized: usdt(unrealized),
    }
}

/// Lets seconds pass. The venue's account snapshots have these positions and a balance that is
/// `moved` above the engine's. The income history explains the difference as profit or loss.
fn answer(account: &mut Account, positions: &[StatedPosition], moved: Amount, seconds: u32) {
    answer_with(account, positions, moved, seconds, true);
}

/// Like [`answer`], but the venue may reject the query for its income history.
fn answer_with(
    account: &mut Account,
    positions: &[StatedPosition],
    moved: Amount,
    seconds: u32,
    tells_income: bool,
) {
    let total = account.own_account().balances[0].total + moved;
    let began = account.now;
    for _ in 0..seconds {
        for _ in 0..4 {
            while let Some(subject) = account.take_question() {
                if matches!(subject, Subject::Income { .. }) && !tells_income {
                    account.answer(subject, refused_route());
                    continue;
                }
                let state_report = match subject {
                    Subject::Account { .. } => {
                        let stated = Reply::Stated(positions.to_vec());
                        account.handle(Input::Reply(&stated));
                        let mut own = account.own_account();
                        own.balances[0].total = total;
                        StateReport::Account(own)
                    }
                    Subject::Trades { .. } => no_trades(),
                    Subject::Income { .. } => StateReport::Income {
                        entries: vec![Income {
                            kind: IncomeKind::Other,
                            instrument: None,
                            asset: USDT,
                            amount: moved,
                            time: began,
                        }],
                        more: false,
                    },
                    _ => nothing(subject),
                };
                account.tell(subject, state_report);
            }
            account.pass(250);
        }
        account.alive();
        account.clock();
        account.top(999, 1001);
    }
}

fn ready(positions: &[StatedPosition]) -> Account {
    let mut account = Account::new(limited(super::support::config()));
    account.begin();
    answer(&mut account, positions, Amount::ZERO, 3);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account
}

/// An account event of the other symbol.
fn event(account: &mut Account, positions: &[StatedPosition], moved: Amount) {
    if !positions.is_empty() {
        let stated = UserEvent::Stated(positions.to_vec());
        account.handle(Input::User(&stated));
    }
    let mut reported = account.own_account();
    reported.balances[0].total += moved;
    account.handle(Input::User(&UserEvent::Account(AccountUpdate {
        surface: Surface::Futures,
        reason: AccountReason::Order,
        balances: reported.balances,
        positions: Vec::new(),
        transaction_time: account.now,
        event_time: account.now,
    })));
}

fn unrealized(account: &Account) -> Vec<Amount> {
    let others = account.engine.unconfigured_positions();
    others.map(|position| position.unrealized).collect()
}

#[test]
fn an_unrealized_loss_on_another_symbol_halts() {
    for lost in [-499, -600] {
        let mut account = ready(&[]);
        answer(&mut account, &[held(lost)], Amount::ZERO, 31);
        assert_eq!(unrealized(&account), [usdt(lost)]);
        let halted = account.engine.run_state() == RunState::Halted;
        assert_eq!(halted, lost == -600, "by a reading: {lost}");
        let mut account = ready(&[]);
        event(&mut account, &[held(0)], Amount::ZERO);
        event(&mut account, &[held(lost)], Amount::ZERO);
        let halted = account.engine.run_state() == RunState::Halted;
        assert_eq!(halted, lost == -600, "by an event: {lost}");
    }
}

#[test]
fn an_earlier_loss_of_an_outside_position_does_not_count() {
    let mut account = ready(&[held(-2_000)]);
    answer(&mut account, &[held(-2_400)], Amount::ZERO, 31);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    answer(&mut account, &[held(-2_600)], Amount::ZERO, 31);
    assert_eq!(account.engine.run_state(), RunState::Halted);
}

#[test]
fn a_realized_loss_on_another_symbol_counts_once() {
    let flat = StatedPosition {
        qty: Amount::ZERO,
        ..held(0)
    };
    for (lost, state) in [(-400, RunState::Ready), (-600, RunState::Halted)] {
        // Reported by an event that lists the flat position, by an event that does not, and only by
        // snapshots.
        for reported in [Some(vec![flat.clone()]), Some(Vec::new()), None] {
            let mut account = ready(&[]);
            answer(&mut account, &[held(lost / 2)], Amount::ZERO, 31);
            assert_eq!(account.engine.run_state(), RunState::Ready);
            if let Some(positions) = &reported {
                event(&mut account, positions, usdt(lost));
            }
            answer(&mut account, &[], usdt(lost), 40);
            assert_eq!(account.engine.run_state(), state, "{lost} {reported:?}");
            assert_eq!(unrealized(&account), []);
        }
    }
}

#[test]
fn realizing_a_profit_on_another_symbol_is_never_a_loss() {
    let flat = StatedPosition {
        qty: Amount::ZERO,
        ..held(0)
    };
    for reported in [Some(vec![flat]), Some(Vec::new()), None] {
        let mut account = ready(&[held(0)]);
        answer(&mut account, &[held(600)], Amount::ZERO, 31);
        if let Some(positions) = &reported {
            event(&mut account, positions, usdt(600));
        }
        answer(&mut account, &[], usdt(600), 40);
        assert_eq!(account.engine.run_state(), RunState::Ready, "{reported:?}");
        assert_eq!(unrealized(&account), []);
    }
}

#[test]
fn without_a_history_a_profit_of_another_symbol_is_no_deposit() {
    let part = StatedPosition {
        qty: usdt(2),
        ..held(100)
    };
    let sold = [held(0)].map(|flat| StatedPosition {
        qty: Amount::ZERO,
        ..flat
    });
    // The venue's snapshots and events after the close of the whole position, and of a part of it.
    for (left, realized) in [(&[][..], 700), (&[part][..], 600)] {
        for reported in [None, Some(left)] {
            let mut account = ready(&[held(0)]);
            answer(&mut account, &[held(700)], Amount::ZERO, 31);
            if let Some(left) = reported {
                let left = if left.is_empty() { &sold[..] } else { left };
                event(&mut account, left, usdt(i128::from(realized)));
            }
            answer_with(&mut account, left, usdt(i128::from(realized)), 40, false);
            let state = account.engine.run_state();
            assert_eq!(state, RunState::Ready, "{realized} {reported:?}");
            for (lost, state) in [(490, RunState::Ready), (510, RunState::Halted)] {
                let position = held(-i128::from(realized + lost));
                answer_with(&mut account, &[position], Amount::ZERO, 31, false);
                let (is, reported) = (account.engine.run_state(), reported.is_some());
                assert_eq!(
                    is, state,
                    "{realized}, lost {lost}, by an event: {reported}"
                );
            }
        }
    }
}

#[test]
fn a_restart_keeps_losses_of_other_symbols() {
    let mut account = ready(&[]);
    answer(&mut account, &[held(-300)], Amount::ZERO, 31);
    let mut account = killed(account, limited(next_config()));
    assert_eq!(unrealized(&account), [usdt(-300)]);
    account.begin();
    answer(&mut account, &[held(-600)], Amount::ZERO, 3);
    assert_eq!(account.engine.run_state(), RunState::Halted);
}
