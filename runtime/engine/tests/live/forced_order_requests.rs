//! A position was closed, no event reported by what, and the first query for forced orders gets no
//! response.

use windvane_model::run_state::KillSwitch;
use windvane_model::state_report::{StateReport, Subject};
use windvane_model::{Amount, Notice, Outcome, Surface};

use super::forced::{held, holding, listed_order, minute, refused_route, reports};
use super::support::{Account, USDT};
use super::world::{no_trades, nothing, position};

/// The venue's response to one query for forced orders; `None` if it never responds.
type Answer = Option<Outcome<StateReport>>;

/// Lets time pass. The position is closed and the wallet has this balance. Queries for forced
/// orders get these responses; the last one repeats. Returns the seconds from the first query until
/// the strategies' positions are closed.
fn pass(account: &mut Account, wallet: Amount, answers: &[Answer]) -> Option<i64> {
    let (mut asked, mut first, mut settled) = (0, None, None);
    for _ in 0..200 {
        while let Some(subject) = account.take_question() {
            let outcome = match subject {
                Subject::Account { .. } => {
                    let mut read = account.own_account();
                    read.positions = vec![position(0)];
                    read.balances[0].total = wallet;
                    Outcome::Done(StateReport::Account(read))
                }
                Subject::ForcedOrders { .. } => {
                    first = first.or(Some(account.now));
                    let answer = answers.get(asked).or(answers.last());
                    asked += 1;
                    match answer {
                        Some(Some(outcome)) => outcome.clone(),
                        _ => continue,
                    }
                }
                Subject::Trades { .. } => Outcome::Done(no_trades()),
                _ => Outcome::Done(nothing(subject)),
            };
            account.answer(subject, outcome);
        }
        account.pass(499);
        account.alive();
        account.clock();
        account.confirm_countdowns();
        if settled.is_none() && held(account) == [0, 0, 0] {
            settled = first.map(|at| (account.now.millis() - at.millis()) / 1_000);
        }
    }
    settled
}

fn closed_by_others(account: &Account) -> usize {
    let is_it = |notice: &&Notice| matches!(notice, Notice::ClosedOutside { .. });
    account.notices.iter().filter(is_it).count()
}

fn begin() -> (Account, Amount, Outcome<StateReport>) {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    let wallet = account.engine.balance(Surface::Futures, USDT).total - Amount(440_000_000);
    let forced = Outcome::Done(StateReport::ForcedOrders(vec![listed_order(&account, 40)]));
    (account, wallet, forced)
}

#[test]
fn a_close_counts_as_outside_only_after_a_second_query() {
    let limited = Outcome::Refused(windvane_model::protocol::Refusal {
        code: -1003,
        msg: String::new(),
    });
    for first in [None, Some(Outcome::Unknown), Some(limited)] {
        let (mut account, wallet, forced) = begin();
        let settled = pass(&mut account, wallet, &[first.clone(), Some(forced)]);
        assert_eq!(closed_by_others(&account), 0, "{first:?}");
        assert_eq!(reports(&account).len(), 1, "{first:?}");
        assert_eq!(
            account.engine.kill_switch(),
            KillSwitch::Halted,
            "{first:?}"
        );
        assert!(
            settled.is_some_and(|after| after <= 6),
            "{settled:?} {first:?}"
        );
    }
}

#[test]
fn without_any_response_a_close_finally_counts_as_outside() {
    for never in [None, Some(Outcome::Unknown)] {
        let (mut account, wallet, _) = begin();
        let settled = pass(&mut account, wallet, std::slice::from_ref(&never));
        assert_eq!(closed_by_others(&account), 2, "{never:?}");
        assert!(
            settled.is_some_and(|after| after <= 20),
            "{settled:?} {never:?}"
        );
    }
}
