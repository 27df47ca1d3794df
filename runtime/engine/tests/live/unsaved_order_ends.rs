//! A strategy receives the end of an order once, with all fills. An instance whose saved state does
//! not include the end receives it again.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::event::EventKind;
use windvane_model::input::FaultKind;
use windvane_model::order_state::OrderState;
use windvane_model::run_state::RunState;
use windvane_model::state_report::OpenOrder;
use windvane_model::{ClientOrderId, Input, OrderStatus, Outcome, Reply, Side};

use super::succession::{killed, next_config};
use super::support::{Account, MM, fill, limit, report, update};
use super::world::ready;

/// State and executed quantity of each order update that `MM` received.
fn delivered_ends(account: &Account) -> Vec<(i64, i64)> {
    let events = account.events.iter();
    let own =
        events.filter(|(strategy, kind, _)| (*strategy, *kind) == (MM, EventKind::OrderUpdate));
    own.map(|(.., fields)| (fields[0], fields[1])).collect()
}

fn saved(account: &mut Account, handled: i64) {
    account.handle(Input::Saved {
        strategy: MM,
        handled,
        state: None,
    });
}

const FILLED: i64 = OrderState::Filled as i64;
const CANCELED: i64 = OrderState::Canceled as i64;

#[test]
fn an_end_is_delivered_after_all_fills_are_booked() {
    for (status, told_as, executed) in [
        (OrderStatus::Filled, FILLED, 10),
        (OrderStatus::Canceled, CANCELED, 9),
    ] {
        let mut account = ready();
        let order = account.rest();
        let id = account.id(MM, order);
        account.events.clear();
        account.update(fill(id, Side::Buy, 1, 3, 3, OrderStatus::PartiallyFilled));
        // The event of the next fill arrives last. The venue's replies report the end before it.
        let part = if executed == 10 { 4 } else { 6 };
        if executed == 10 {
            account.update(fill(id, Side::Buy, 3, 3, 10, status));
        } else {
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: id,
                outcome: Outcome::Done(report(id, status, 9)),
            }));
        }
        assert!(
            delivered_ends(&account)
                .iter()
                .all(|(state, _)| *state != told_as)
        );
        account.update(fill(
            id,
            Side::Buy,
            2,
            part,
            3 + part,
            OrderStatus::PartiallyFilled,
        ));
        let ends = delivered_ends(&account)
            .into_iter()
            .filter(|(state, _)| *state == told_as);
        assert_eq!(ends.collect::<Vec<_>>(), [(told_as, executed)]);
        assert!(account.engine.order(order).is_none());
    }
}

/// A filled order. The strategy's saved state does not include the fill.
fn filled() -> Account {
    let mut account = ready();
    let order = account.rest();
    saved(&mut account, i64::MAX);
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
    account
}

#[test]
fn an_end_missing_in_the_saved_state_is_delivered_after_a_restart() {
    let mut account = killed(filled(), next_config());
    account.events.clear();
    account.begin();
    assert_eq!(delivered_ends(&account), [(FILLED, 10)]);
    // The process after it receives it too, because its saved state lacks it too.
    let mut account = killed(account, next_config());
    account.events.clear();
    account.begin();
    assert_eq!(delivered_ends(&account), [(FILLED, 10)]);
}

#[test]
fn an_end_included_in_the_saved_state_is_not_delivered_again() {
    let mut account = filled();
    saved(&mut account, i64::MAX);
    let mut account = killed(account, next_config());
    account.events.clear();
    account.begin();
    assert_eq!(delivered_ends(&account), []);
}

#[test]
fn a_state_saved_before_the_end_was_handled_does_not_include_it() {
    let mut account = filled();
    saved(&mut account, 0);
    let mut account = killed(account, next_config());
    account.events.clear();
    account.begin();
    assert_eq!(delivered_ends(&account), [(FILLED, 10)]);
}

#[test]
fn an_end_during_quarantine_is_delivered_to_the_next_instance() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    saved(&mut account, i64::MAX);
    account.handle(Input::Fault {
        strategy: MM,
        kind: FaultKind::Trap,
    });
    account.update(fill(id, Side::Buy, 1, 4, 4, OrderStatus::PartiallyFilled));
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 4));
    account.events.clear();
    account.handle(Input::Renew { strategy: MM });
    assert_eq!(delivered_ends(&account), [(CANCELED, 4)]);
    let kinds: Vec<_> = account.events.iter().map(|(_, kind, _)| *kind).collect();
    assert_eq!(kinds.last(), Some(&EventKind::RuntimeState));
}

#[test]
fn an_unknown_own_order_shows_that_the_journal_is_an_old_copy() {
    let ready = (RunState::Ready, Vec::new());
    let degraded = (RunState::Degraded, vec![DegradedReason::Ownership]);
    for (id, expected) in [
        ("mm.7.2", ready),
        ("mm.7.3", degraded.clone()),
        ("mm.8.1", degraded),
    ] {
        // The account has a position, and the journal has used two order numbers.
        let mut account = filled();
        account.submit(MM, limit(Side::Buy, 980, 10));
        let known = account
            .engine
            .orders()
            .iter()
            .next()
            .unwrap()
            .client_order_id;
        let mut config = next_config();
        config.epoch = 9;
        let mut account = killed(account, config);
        account.begin();
        let open = [known, ClientOrderId::new(id).unwrap()].map(|id| OpenOrder {
            report: report(id, OrderStatus::New, 0),
            terms: limit(Side::Buy, 980, 10),
        });
        // The copy may have an older epoch file too. The start then watches for another instance.
        account.sync_with(&open);
        for _ in 0..65 {
            account.wait(1);
            account.sync_with(&open);
            account.confirm_countdowns();
        }
        let engine = &account.engine;
        assert_eq!(
            (engine.run_state(), engine.degraded_reasons()),
            expected,
            "{id}"
        );
    }
}
