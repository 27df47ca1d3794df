//! Promise 1 (docs/promises.md#1-order-ids): own orders that another process sent are adopted or
//! cancelled. Outside orders are never changed.

use windvane_model::event::EventKind;
use windvane_model::live::OnStart;
use windvane_model::order_state::OrderState;
use windvane_model::run_state::RunState;
use windvane_model::state_report::{AccountTrade, OpenOrder};
use windvane_model::{
    ClientOrderId, Input, OrderStatus, OrderTerms, OrderType, Outcome, PositionSide, Price, Reply,
    Request, Side, VenueOrderId,
};

use super::reconciliation::{qty, round, trade};
use super::support::{Account, BTC, MM, config, fill, limit, report, update};
use super::world::{booting, live_config, position, ready};

#[test]
fn own_orders_of_an_earlier_process_are_adopted() {
    let mut account = booting(live_config());
    let id = ClientOrderId::new("mm.5.1").unwrap();
    let open = OpenOrder {
        report: report(id, OrderStatus::PartiallyFilled, 4),
        terms: limit(Side::Buy, 990, 10),
    };
    account.begin();
    round(&mut account, &[open], &[], |_| {});
    let holding = account.engine.ledgers().account.at(BTC, PositionSide::Both);
    assert_eq!(holding.open_buy, 6);
    account.update(fill(id, Side::Buy, 8, 2, 6, OrderStatus::PartiallyFilled));
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    assert_eq!((own.position.qty, own.open_buy), (2, 4));
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 6));
    assert!(account.engine.orders().is_empty());
}

#[test]
fn an_adopted_order_that_closes_all_is_cancelled_if_another_strategy_has_the_instrument() {
    for is_shared in [true, false] {
        let mut config = config();
        config.live = Some(live_config());
        if !is_shared {
            config.strategies[1].subscriptions.clear();
        }
        let mut account = Account::new(config);
        account.engine.continue_folder(5);
        let id = ClientOrderId::new("mm.5.1").unwrap();
        let mut terms = OrderTerms::new(BTC, Side::Sell, OrderType::StopMarket);
        (terms.stop_price, terms.close_position) = (Some(Price(950)), true);
        let report = report(id, OrderStatus::New, 0);
        account.begin();
        round(&mut account, &[OpenOrder { report, terms }], &[], |_| {});
        let canceled = |request: &Request| matches!(request, Request::Cancel { .. });
        assert_eq!(account.sent.iter().any(canceled), is_shared);
    }
}

/// An account that already holds 9 at the start: 4 from an order that is still open, 2 more of that
/// order since the list, and 3 of an outside order. No event has reported the last five yet.
fn found() -> (Account, ClientOrderId) {
    let mut account = booting(live_config());
    let id = ClientOrderId::new("mm.5.1").unwrap();
    let open = [OpenOrder {
        report: report(id, OrderStatus::PartiallyFilled, 4),
        terms: limit(Side::Buy, 990, 10),
    }];
    account.begin();
    for _ in 0..60 {
        let trades = [trade(1, 7, 4), trade(1, 8, 2), trade(3, 9, 3)];
        round(&mut account, &open, &trades, |own| {
            own.positions = vec![position(9)];
        });
        account.pass(1_000);
        account.alive();
        account.clock();
    }
    assert_eq!(qty(&account), 9);
    (account, id)
}

#[test]
fn fills_of_an_adopted_order_during_the_start_count_once() {
    let (mut account, id) = found();
    let own = |account: &Account| {
        let ledger = &account.engine.ledgers().strategies[0];
        ledger.at(BTC, PositionSide::Both).position.qty
    };
    assert_eq!(own(&account), 2, "earlier fills are unowned");
    account.update(fill(id, Side::Buy, 7, 4, 4, OrderStatus::PartiallyFilled));
    account.update(fill(id, Side::Buy, 8, 2, 6, OrderStatus::PartiallyFilled));
    assert_eq!((own(&account), qty(&account)), (2, 9));
    account.update(fill(id, Side::Buy, 10, 4, 10, OrderStatus::Filled));
    assert_eq!((own(&account), qty(&account)), (6, 13));
}

#[test]
fn a_late_event_of_a_trade_in_the_first_snapshot_is_ignored() {
    let (mut account, _) = found();
    let event = |id: &str, trade_id, status| {
        let id = ClientOrderId::new(id).unwrap();
        let mut event = fill(id, Side::Buy, trade_id, 3, 3, status);
        event.order_id = VenueOrderId(3);
        event
    };
    account.update(event("web-1", 9, OrderStatus::Filled));
    account.update(event("mm.5.2", 9, OrderStatus::PartiallyFilled));
    assert_eq!(qty(&account), 9);
    // An older event that arrives late: its order is adopted after its trade was found.
    let mut new = update(
        ClientOrderId::new("mm.5.2").unwrap(),
        Side::Buy,
        OrderStatus::New,
        0,
    );
    new.order_id = VenueOrderId(3);
    account.update(new);
    account.update(event("mm.5.2", 9, OrderStatus::PartiallyFilled));
    assert_eq!(qty(&account), 9);
    account.update(event("web-1", 10, OrderStatus::Filled));
    assert_eq!(qty(&account), 12, "a newer trade counts");
}

/// The first strategy's position and open buy quantity.
fn own(account: &Account) -> (i64, i64) {
    let ledger = &account.engine.ledgers().strategies[0];
    let own = ledger.at(BTC, PositionSide::Both);
    (own.position.qty, own.open_buy)
}

/// The venue sends its last events again, out of order, to a process that knows none of its orders:
/// first the last fill of an order of 10, then the event that it was placed.
fn filled_before_it_was_new(last_fill: i64) -> (Account, ClientOrderId) {
    let mut account = booting(live_config());
    let id = ClientOrderId::new("mm.5.1").unwrap();
    account.begin();
    account.update(fill(id, Side::Buy, 8, last_fill, 10, OrderStatus::Filled));
    assert_eq!(qty(&account), last_fill);
    account.update(update(id, Side::Buy, OrderStatus::New, 0));
    assert_eq!(qty(&account), last_fill);
    (account, id)
}

/// While the order is live, the venue replies to each query that it is filled.
fn asked_for(account: &mut Account, id: ClientOrderId, trades: &[AccountTrade]) {
    for _ in 0..60 {
        account.wait(1);
        if account.take_queries() > 0 {
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: id,
                outcome: Outcome::Done(report(id, OrderStatus::Filled, 10)),
            }));
        }
        round(account, &[], trades, |_| {});
    }
    assert!(account.engine.orders().is_empty());
}

#[test]
fn a_fill_before_the_adoption_of_its_order_counts_once() {
    let (mut account, id) = filled_before_it_was_new(10);
    account.update(fill(id, Side::Buy, 8, 10, 10, OrderStatus::Filled));
    assert_eq!((qty(&account), own(&account)), (10, (0, 0)), "unowned");
    assert!(account.engine.orders().is_empty());
}

#[test]
fn a_trade_booked_before_the_adoption_of_its_order_counts_once() {
    for trades in [&[trade(1, 8, 10)][..], &[]] {
        let (mut account, id) = filled_before_it_was_new(10);
        round(&mut account, &[], trades, |_| {});
        assert_eq!(qty(&account), 10);
        asked_for(&mut account, id, trades);
        assert_eq!((qty(&account), own(&account)), (10, (0, 0)));
    }
}

#[test]
fn partial_fills_of_an_order_adopted_after_the_last_count_once() {
    let part = |id, trade, qty, executed, status| fill(id, Side::Buy, trade, qty, executed, status);
    // The earlier fills are reported by the list of the account's trades, by events in any order,
    // or not at all.
    let (mut account, id) = filled_before_it_was_new(6);
    round(&mut account, &[], &[trade(1, 7, 4), trade(1, 8, 6)], |_| {});
    assert_eq!((qty(&account), own(&account)), (10, (4, 0)));
    account.update(part(id, 7, 4, 4, OrderStatus::PartiallyFilled));
    account.update(part(id, 8, 6, 10, OrderStatus::Filled));
    assert_eq!((qty(&account), own(&account)), (10, (4, 0)));
    for last_first in [false, true] {
        let (mut account, id) = filled_before_it_was_new(6);
        if last_first {
            account.update(part(id, 8, 6, 10, OrderStatus::Filled));
        }
        account.update(part(id, 7, 4, 4, OrderStatus::PartiallyFilled));
        account.update(part(id, 8, 6, 10, OrderStatus::Filled));
        assert_eq!((qty(&account), own(&account)), (10, (4, 0)), "{last_first}");
        assert!(account.engine.orders().is_empty());
    }
    let (mut account, id) = filled_before_it_was_new(6);
    asked_for(&mut account, id, &[]);
    assert_eq!(
        (qty(&account), own(&account)),
        (10, (4, 0)),
        "derived from totals"
    );
}

#[test]
fn partial_fills_before_an_adoption_between_fills_count_once() {
    let mut account = booting(live_config());
    let id = ClientOrderId::new("mm.5.1").unwrap();
    account.begin();
    account.update(fill(id, Side::Buy, 9, 4, 10, OrderStatus::Filled));
    account.update(fill(id, Side::Buy, 8, 3, 6, OrderStatus::PartiallyFilled));
    // The first three belong to the account as it was at the start.
    assert_eq!((qty(&account), own(&account)), (7, (3, 0)));
    asked_for(&mut account, id, &[]);
    account.update(fill(id, Side::Buy, 7, 3, 3, OrderStatus::PartiallyFilled));
    assert_eq!((qty(&account), own(&account)), (7, (3, 0)));
}

#[test]
fn an_order_fills_against_an_outside_order_of_the_same_account() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    let web = ClientOrderId::new("web-1").unwrap();
    let mut others = fill(web, Side::Sell, 8, 10, 10, OrderStatus::Filled);
    others.order_id = VenueOrderId(2);
    account.update(others);
    account.update(fill(id, Side::Buy, 8, 10, 10, OrderStatus::Filled));
    assert_eq!((qty(&account), own(&account)), (0, (10, 0)));
}

#[test]
fn on_start_cancel_cancels_own_orders_at_the_start() {
    let mut live = live_config();
    live.on_start = OnStart::Cancel;
    let mut account = booting(live);
    let id = ClientOrderId::new("mm.5.1").unwrap();
    let open = OpenOrder {
        report: report(id, OrderStatus::New, 0),
        terms: limit(Side::Buy, 990, 10),
    };
    account.begin();
    round(&mut account, &[open], &[], |_| {});
    let cancelled = account.sent.iter().any(|request| {
        matches!(request, Request::Cancel { client_order_id, .. } if *client_order_id == id)
    });
    assert!(cancelled);
}

#[test]
fn only_orders_of_removed_strategies_are_cancelled() {
    let mut account = booting(live_config());
    let open = |text: &str| OpenOrder {
        report: report(ClientOrderId::new(text).unwrap(), OrderStatus::New, 0),
        terms: limit(Side::Buy, 990, 10),
    };
    account.begin();
    round(
        &mut account,
        &[open("gone.5.1"), open("web-1"), open("mm.zzzzzz.1")],
        &[],
        |_| {},
    );
    let cancelled: Vec<_> = account
        .sent
        .iter()
        .filter_map(|request| match request {
            Request::Cancel {
                client_order_id, ..
            } => Some(client_order_id.as_str().to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(cancelled, ["gone.5.1"]);
    assert!(account.engine.orders().is_empty());
}

#[test]
fn an_id_with_an_impossible_epoch_is_an_outside_order() {
    let mut config = super::support::config();
    config.live = Some(live_config());
    config.epoch = 1_795_000_000;
    let mut account = Account::new(config);
    let open = |text: &str| OpenOrder {
        report: report(ClientOrderId::new(text).unwrap(), OrderStatus::New, 0),
        terms: limit(Side::Buy, 990, 10),
    };
    account.begin();
    round(&mut account, &[open("bot-1.2024.17")], &[], |_| {});
    let mut sent = account.sent.iter();
    assert!(!sent.any(|request| matches!(request, Request::Cancel { .. })));
}

#[test]
fn books_are_delivered_after_the_orders_of_the_previous_process() {
    let mut account = booting(live_config());
    account.events.clear();
    account.begin();
    account.top(998, 1_002);
    let open = OpenOrder {
        report: report(ClientOrderId::new("mm.5.1").unwrap(), OrderStatus::New, 0),
        terms: limit(Side::Buy, 990, 10),
    };
    round(&mut account, &[open], &[], |_| {});
    let reported = account
        .events
        .iter()
        .filter(|(strategy, ..)| *strategy == MM);
    let reported: Vec<_> = reported
        .map(|(_, kind, fields)| (*kind, fields[0]))
        .collect();
    let place = |what: (EventKind, i64)| reported.iter().position(|one| *one == what).unwrap();
    let degraded = place((EventKind::RuntimeState, RunState::Degraded as i64));
    let order = place((EventKind::OrderUpdate, OrderState::New as i64));
    let ready = place((EventKind::RuntimeState, RunState::Ready as i64));
    let book = place((EventKind::BookTop, 998));
    assert!(
        degraded < order && order < ready && ready < book,
        "{reported:?}"
    );
    let books = reported
        .iter()
        .filter(|(kind, _)| *kind == EventKind::BookTop);
    assert_eq!(books.count(), 1, "only the current book");
    account.top(997, 1_003);
    let (_, kind, fields) = account.events.last().unwrap();
    assert_eq!((*kind, fields[0]), (EventKind::BookTop, 997));
}
