//! A position was closed, no event said by what, and the first question for forced orders gets no answer.

use windvane_model::run_state::Latch;
use windvane_model::truth::{Subject, Truth};
use windvane_model::{Amount, Notice, Outcome, Surface};

use super::forced::{held, holding, listed_order, minute, refused_route, reports};
use super::support::{Account, USDT};
use super::world::{no_trades, nothing, position};

/// What the venue does with one question for forced orders: it answers so, or never.
type Answer = Option<Outcome<Truth>>;

/// Lets a minute pass. The account was closed and has so much left; questions for forced orders get these answers,
/// the last one again and again. Answers how many seconds after the first question the strategies had given
/// their positions up.
fn pass(account: &mut Account, wallet: Amount, answers: &[Answer]) -> Option<i64> {
    let (mut asked, mut first, mut settled) = (0, None, None);
    for _ in 0..200 {
        while let Some(subject) = account.take_question() {
            let outcome = match subject {
                Subject::Account { .. } => {
                    let mut read = account.own_account();
                    read.positions = vec![position(0)];
                    read.balances[0].total = wallet;
                    Outcome::Done(Truth::Account(read))
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

fn begin() -> (Account, Amount, Outcome<Truth>) {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    let wallet = account.engine.balance(Surface::Futures, USDT).total - Amount(440_000_000);
    let forced = Outcome::Done(Truth::ForcedOrders(vec![listed_order(&account, 40)]));
    (account, wallet, forced)
}

#[test]
fn a_second_question_is_waited_for_before_a_close_counts_as_one_by_others() {
    let limited = Outcome::Refused(windvane_model::protocol::Refusal {
        code: -1003,
        msg: String::new(),
    });
    for first in [None, Some(Outcome::Unknown), Some(limited)] {
        let (mut account, wallet, forced) = begin();
        let settled = pass(&mut account, wallet, &[first.clone(), Some(forced)]);
        assert_eq!(closed_by_others(&account), 0, "{first:?}");
        assert_eq!(reports(&account).len(), 1, "{first:?}");
        assert_eq!(account.engine.latch(), Latch::Halted, "{first:?}");
        assert!(
            settled.is_some_and(|after| after <= 6),
            "{settled:?} {first:?}"
        );
    }
}

#[test]
fn without_any_answer_a_close_counts_as_one_by_others_in_the_end() {
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
