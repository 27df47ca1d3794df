//! The entry cost of a position that an account snapshot confirmed. Later snapshots may round it in
//! another way, and only a fill changes it.

use windvane_engine::Engine;
use windvane_model::live::LiveInput;
use windvane_model::protocol::Refusal;
use windvane_model::state_report::{StateReport, Subject};
use windvane_model::{Amount, OrderStatus, Outcome, Side, Surface};

use super::reconciliation::{adjustments, bought_at_another_entry, cost, round};
use super::rules_refresh::{refuse, rules, tell, tick};
use super::support::{Account, MM, USDT, fill, instrument};
use super::world::nothing;

const FUTURES: Surface = Surface::Futures;

/// An account snapshot with this cost of the position.
fn read(account: &mut Account, reported: Amount) {
    account.wait(31);
    round(account, &[], &[], |own| own.positions[0].cost = reported);
}

#[test]
fn a_confirmed_entry_keeps_its_cost_when_the_venue_rounds_it() {
    let (mut account, rounded) = bought_at_another_entry();
    let known = cost(&account);
    read(&mut account, known);
    read(&mut account, rounded);
    assert_eq!(cost(&account), known);
    // A replay that begins here makes the same decision.
    let bytes = account.engine.snapshot();
    account.engine = Engine::restore(&bytes).unwrap();
    read(&mut account, rounded);
    assert_eq!(cost(&account), known);
    assert_eq!(adjustments(&account), []);
}

/// A new order fills completely, in a trade with this id.
fn buy(account: &mut Account, trade_id: i64) {
    let order = account.rest();
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, trade_id, 10, 10, OrderStatus::Filled));
}

#[test]
fn a_fill_in_order_keeps_a_confirmed_entry() {
    let (mut account, _) = bought_at_another_entry();
    let known = cost(&account);
    read(&mut account, known);
    buy(&mut account, 2);
    let known = cost(&account);
    read(&mut account, known + instrument().notional(3, 20));
    assert_eq!(cost(&account), known);
}

#[test]
fn after_a_fill_out_of_order_the_venues_entry_is_adopted() {
    let (mut account, _) = bought_at_another_entry();
    let known = cost(&account);
    read(&mut account, known);
    // The first trade of the account had the id 1.
    buy(&mut account, 0);
    let venues = cost(&account) + instrument().notional(3, 20);
    read(&mut account, venues);
    assert_eq!(cost(&account), venues);
}

#[test]
fn after_a_finer_tick_the_venues_entry_is_adopted() {
    let (mut account, venues) = bought_at_another_entry();
    let known = cost(&account);
    tell_tick(&mut account, 10);
    read(&mut account, venues);
    assert_eq!(cost(&account), known, "the venue may have rounded it");
    tell_tick(&mut account, 1);
    read(&mut account, venues);
    assert_eq!(cost(&account), venues);
}

/// The engine reads the rules after a rejection, and they have this tick.
fn tell_tick(account: &mut Account, step: i64) {
    refuse(account, -4014);
    tell(account, rules(tick(step)));
    let known = account.engine.instruments()[0].filters.price;
    assert_eq!(known.map(|filter| filter.tick_size), Some(step));
}

#[test]
fn a_balance_difference_changes_an_entry_only_without_trades() {
    for serves_account_trades in [true, false] {
        let (mut account, rounded) = bought_at_another_entry();
        let known = cost(&account);
        read(&mut account, known);
        let reported = account.engine.balance(Surface::Futures, USDT).total + Amount(7);
        account.wait(31);
        // Two snapshots agree, with a query for trades between them.
        for _ in 0..60 {
            while let Some(subject) = account.take_question() {
                let mut own = account.own_account();
                own.positions[0].cost = rounded;
                own.balances[0].total = reported;
                let outcome = match subject {
                    Subject::Trades { .. } if !serves_account_trades => Outcome::Refused(Refusal {
                        code: 404,
                        msg: String::new(),
                    }),
                    Subject::Account { .. } => Outcome::Done(StateReport::Account(own)),
                    _ => Outcome::Done(nothing(subject)),
                };
                account.answer(subject, outcome);
            }
            account.pass(250);
            account.alive();
            account.clock();
        }
        assert_eq!(adjustments(&account).len(), 1);
        let expected = if serves_account_trades {
            known
        } else {
            rounded
        };
        assert_eq!(cost(&account), expected, "{serves_account_trades}");
    }
}

#[test]
fn a_lagging_snapshot_sets_the_entry_of_an_unchanged_position() {
    let (mut account, venues) = bought_at_another_entry();
    let known = cost(&account);
    let read = |account: &mut Account| {
        round(account, &[], &[], |own| {
            own.positions[0].cost = venues;
            own.lags = true;
        });
    };
    account.wait(1);
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
    read(&mut account);
    assert_eq!(cost(&account), known, "it may be older than the fill");
    account.wait(31);
    read(&mut account);
    assert_eq!(cost(&account), venues);
    assert_eq!(adjustments(&account), []);
}
