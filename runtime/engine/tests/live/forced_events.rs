//! The events of a forced close that strategies receive: each strategy gets its own share with its
//! figures, before its new position.

use windvane_model::event::{Event, EventKind};
use windvane_model::forced::OnLiquidation;
use windvane_model::{ClientOrderId, OrderStatus, StrategyId};

use super::forced::{holding, marked, react, sold};
use super::support::{Account, BTC, MM, OTHER};

/// The events of forced closes.
pub(super) fn delivered_closes(account: &Account) -> Vec<(StrategyId, Event)> {
    let is_it = |(_, event): &&(StrategyId, Event)| event.kind == EventKind::ForcedClose;
    account.delivered.iter().filter(is_it).copied().collect()
}

#[test]
fn each_strategy_receives_its_share_with_price_fee_and_profit() {
    let mut account = holding(30, 10);
    account.update(marked(sold(9, 20, 20, 20)));
    let reported = delivered_closes(&account);
    let [(first, mm), (second, other)] = reported.as_slice() else {
        panic!("{reported:?}");
    };
    assert_eq!((*first, *second), (MM, OTHER));
    // Three quarters of 0.020, bought at 100.0 and sold at 90.0, and of a fee of 4.
    let price = 9_000_000_000;
    assert_eq!(mm.fields, [price, 15, 300_000_000, -15_000_000, 1, 15]);
    assert_eq!(other.fields, [price, 5, 100_000_000, -5_000_000, 1, 5]);
    // The flags show the venue's order, which sold a position of one-way mode.
    assert_eq!((mm.instrument, mm.id, mm.flags), (BTC, 500, 4));
}

#[test]
fn the_close_comes_before_the_position_and_the_reaction() {
    let mut account = holding(30, 0);
    react(&mut account, OnLiquidation::Halt);
    account.events.clear();
    account.update(marked(sold(9, 30, 30, 30)));
    let of_mm = account.events.iter().filter(|(to, ..)| *to == MM);
    let kinds: Vec<_> = of_mm.map(|(_, kind, _)| *kind).collect();
    let place = |kind: EventKind| kinds.iter().position(|one| *one == kind);
    let order = [
        EventKind::ForcedClose,
        EventKind::Position,
        EventKind::RuntimeState,
    ]
    .map(place);
    assert!(order[0].is_some() && order.is_sorted(), "{kinds:?}");
    // A strategy without a position receives nothing.
    assert!(delivered_closes(&account).iter().all(|(to, _)| *to == MM));
}

#[test]
fn an_adl_event_has_the_kind_of_adl() {
    let mut account = holding(30, 0);
    let mut event = sold(9, 30, 30, 30);
    event.client_order_id = ClientOrderId::new("adl_autoclose").unwrap();
    account.update(event);
    assert_eq!(delivered_closes(&account)[0].1.fields[4], 2);
}

#[test]
fn untraded_forced_orders_and_closes_by_hand_send_no_close_event() {
    let mut account = holding(30, 10);
    account.update(sold(9, 10, 10, 20));
    let mut placed = marked(sold(10, 10, 0, 10));
    (placed.fill, placed.status) = (None, OrderStatus::New);
    account.update(placed);
    assert_eq!(delivered_closes(&account), []);
}
