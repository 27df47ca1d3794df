//! The user stream cannot reconnect, but REST works. Reconciliation rounds then show the changes.

use windvane_model::live::LiveInput;
use windvane_model::run_state::RunState;
use windvane_model::state_report::{StateReport, Subject};
use windvane_model::{Amount, Input, OrderStatus, Outcome, Reply, Side, Surface};

use super::reconciliation::round;
use super::support::{Account, MM, instrument, limit, report};
use super::world::{ready, ready_with_limit};

fn stream_ends(account: &mut Account) {
    account.live(LiveInput::StreamDown {
        surface: Surface::Futures,
    });
}

#[test]
fn rounds_continue_while_the_user_stream_is_down() {
    let mut account = ready();
    stream_ends(&mut account);
    let mut rounds = 0;
    for _ in 0..60 {
        account.wait(1);
        // Each reconnect fails like the first one.
        stream_ends(&mut account);
        while let Some(subject) = account.take_question() {
            rounds += usize::from(matches!(subject, Subject::OpenOrders { .. }));
            let state_report = match subject {
                Subject::Account { .. } => StateReport::Account(account.own_account()),
                _ => super::world::nothing(subject),
            };
            account.tell(subject, state_report);
        }
    }
    assert!((8..=20).contains(&rounds), "{rounds} rounds in a minute");
    assert_eq!(account.engine.run_state(), RunState::Degraded);
}

#[test]
fn a_loss_halts_while_the_user_stream_is_down() {
    let mut account = ready_with_limit(Amount(5 * 100_000_000));
    let order = account.submit(MM, limit(Side::Buy, 980, 10_000));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    assert_eq!(account.engine.run_state(), RunState::Ready);
    stream_ends(&mut account);
    // The order fills, and the price falls.
    account.top(969, 971);
    for second in 0..8 {
        account.wait(1);
        round(&mut account, &[], &[], |_| {});
        if account.take_queries() > 0 {
            let mut filled = report(id, OrderStatus::Filled, 10_000);
            filled.cum_quote = instrument().notional(980, 10_000);
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: id,
                outcome: Outcome::Done(filled),
            }));
        }
        if account.engine.run_state() == RunState::Halted {
            return;
        }
        assert!(
            second < 7,
            "no halt: {:?}",
            account.engine.degraded_reasons()
        );
    }
}
