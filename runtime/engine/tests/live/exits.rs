//! Exits of strategies: market orders that only reduce. They do not wait for a countdown, a
//! reconciled account or request budget. After repeated rejections by the venue they wait a few
//! seconds.

use windvane_engine::engine::Purpose;
use windvane_model::live::LiveInput;
use windvane_model::protocol::Refusal;
use windvane_model::rules::Rule;
use windvane_model::run_state::RunState;
use windvane_model::{OrderTerms, OrderType, Outcome, Qty, Request, Side, Surface};

use super::forced::holding;
use super::support::{Account, BTC, MM, limit};

fn exit() -> OrderTerms {
    let mut terms = OrderTerms::new(BTC, Side::Sell, OrderType::Market);
    terms.qty = Some(Qty(10));
    terms.reduce_only = true;
    terms
}

fn refused(code: i32) -> Outcome<windvane_model::protocol::OrderReport> {
    let msg = String::new();
    Outcome::Refused(Refusal { code, msg })
}

/// Submits this order every half second, and the venue rejects each one that is sent. Returns how
/// many were sent.
fn try_for(account: &mut Account, seconds: i64, terms: OrderTerms, code: i32) -> usize {
    let mut sent = 0;
    for _ in 0..2 * seconds {
        let tried = account.call(MM, |callback, engine| callback.submit(engine, terms));
        match tried {
            Ok(order) => {
                sent += 1;
                account.confirm_countdowns();
                let id = account.id(MM, order);
                account.placed(id, refused(code));
            }
            Err(rejection) => assert_eq!(rejection.rule, Rule::RefusalPause),
        }
        account.pass(499);
        account.alive();
        account.clock();
    }
    sent
}

#[test]
fn rejected_exits_wait_at_most_five_seconds() {
    for code in [-2015, -4061, -1020] {
        let mut account = holding(30, 0);
        let sent = try_for(&mut account, 60, exit(), code);
        assert!((12..=20).contains(&sent), "{sent} exits in a minute");
        let paused = account.engine.refusals();
        let until: Vec<_> = paused.map(|(.., series)| series.pause_until).collect();
        assert_eq!(until.len(), 1);
        assert!(
            until[0] <= account.now.plus_ms(5_000),
            "the reported pause applies"
        );
    }
}

#[test]
fn rejected_openings_do_not_delay_an_exit() {
    let mut account = holding(30, 0);
    try_for(&mut account, 30, limit(Side::Sell, 1_100, 40), -4164);
    let sent = account.call(MM, |callback, engine| callback.submit(engine, exit()));
    assert!(sent.is_ok(), "{sent:?}");
}

#[test]
fn an_accepted_exit_ends_the_series_of_rejections() {
    let mut account = holding(30, 0);
    try_for(&mut account, 20, exit(), -4061);
    account.pass(5_000);
    account.alive();
    account.clock();
    let order = account.submit(MM, exit());
    account.confirm_countdowns();
    let id = account.id(MM, order);
    let report = super::support::report(id, windvane_model::OrderStatus::New, 0);
    account.placed(id, Outcome::Done(report));
    assert_eq!(account.engine.refusals().count(), 0);
}

#[test]
fn an_exit_is_sent_at_once_with_the_request_weight_of_closes() {
    for in_doubt in [false, true] {
        let mut account = holding(30, 0);
        if in_doubt {
            account.live(LiveInput::StreamDown {
                surface: Surface::Futures,
            });
            assert_eq!(account.engine.run_state(), RunState::Degraded);
        }
        account.sent.clear();
        account.submit(MM, exit());
        let placed = account
            .sent
            .iter()
            .find(|request| matches!(request, Request::Place(_)));
        let placed = placed.expect("it waits for no countdown");
        assert_eq!(
            account.engine.purpose(placed),
            Purpose::Close,
            "in doubt: {in_doubt}"
        );
    }
    let mut account = holding(30, 0);
    account.submit(MM, limit(Side::Buy, 900, 10));
    account.confirm_countdowns();
    let placed = account
        .sent
        .iter()
        .find(|request| matches!(request, Request::Place(_)));
    assert_eq!(
        account.engine.purpose(placed.expect("it is covered")),
        Purpose::Ordinary
    );
}
