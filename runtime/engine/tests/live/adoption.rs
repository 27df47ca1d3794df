//! Promise 1: own orders that another process sent are adopted or cancelled, those of others never
//! touched.

use windvane_model::event::EventKind;
use windvane_model::live::OnStart;
use windvane_model::order_state::OrderState;
use windvane_model::run_state::RunState;
use windvane_model::truth::{AccountTrade, OpenOrder};
use windvane_model::{
    ClientOrderId, Input, OrderStatus, Outcome, PositionSide, Reply, Request, Side, VenueOrderId,
};

use super::reconciliation::{qty, round, trade};
use super::support::{Account, BTC, MM, fill, limit, report, update};
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

/// An account that is found with 9: 4 of an order that rests, 2 more of it since, 3 of somebody
/// else's, and no event told of the last five yet.
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
fn what_an_adopted_order_filled_while_the_account_was_found_counts_once() {
    let (mut account, id) = found();
    let own = |account: &Account| {
        let ledger = &account.engine.ledgers().strategies[0];
        ledger.at(BTC, PositionSide::Both).position.qty
    };
    assert_eq!(own(&account), 2, "what it filled before is nobody's");
    account.update(fill(id, Side::Buy, 7, 4, 4, OrderStatus::PartiallyFilled));
    account.update(fill(id, Side::Buy, 8, 2, 6, OrderStatus::PartiallyFilled));
    assert_eq!((own(&account), qty(&account)), (2, 9));
    account.update(fill(id, Side::Buy, 10, 4, 10, OrderStatus::Filled));
    assert_eq!((own(&account), qty(&account)), (6, 13));
}

#[test]
fn the_late_event_of_a_trade_that_the_account_was_found_with_counts_nothing() {
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
    // Older, and late: its order is adopted after its trade was found.
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
    assert_eq!(qty(&account), 12, "one that came since does");
}

/// What is held of the first strategy's own, and its open buy orders.
fn own(account: &Account) -> (i64, i64) {
    let ledger = &account.engine.ledgers().strategies[0];
    let own = ledger.at(BTC, PositionSide::Both);
    (own.position.qty, own.open_buy)
}

/// The venue tells its last events again, in any order, to a process that knows none of its orders: the
/// last fill of one (of 10 in all), and then that it was placed.
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

/// The venue is asked for the order as long as it is here, and says that it was filled.
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
fn a_fill_that_was_told_before_its_order_was_adopted_counts_once() {
    let (mut account, id) = filled_before_it_was_new(10);
    account.update(fill(id, Side::Buy, 8, 10, 10, OrderStatus::Filled));
    assert_eq!((qty(&account), own(&account)), (10, (0, 0)), "nobody's");
    assert!(account.engine.orders().is_empty());
}

#[test]
fn a_trade_that_was_booked_before_its_order_was_adopted_counts_once() {
    for trades in [&[trade(1, 8, 10)][..], &[]] {
        let (mut account, id) = filled_before_it_was_new(10);
        round(&mut account, &[], trades, |_| {});
        assert_eq!(qty(&account), 10);
        asked_for(&mut account, id, trades);
        assert_eq!((qty(&account), own(&account)), (10, (0, 0)));
    }
}

#[test]
fn part_fills_of_an_order_that_was_adopted_after_its_last_one_count_once() {
    let part = |id, trade, qty, executed, status| fill(id, Side::Buy, trade, qty, executed, status);
    // By account trades, by events in any order, and not at all.
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
    assert_eq!((qty(&account), own(&account)), (10, (4, 0)), "made up");
}

#[test]
fn part_fills_from_before_an_order_was_adopted_by_the_second_last_count_once() {
    let mut account = booting(live_config());
    let id = ClientOrderId::new("mm.5.1").unwrap();
    account.begin();
    account.update(fill(id, Side::Buy, 9, 4, 10, OrderStatus::Filled));
    account.update(fill(id, Side::Buy, 8, 3, 6, OrderStatus::PartiallyFilled));
    // The first three are of the account as it is found.
    assert_eq!((qty(&account), own(&account)), (7, (3, 0)));
    asked_for(&mut account, id, &[]);
    account.update(fill(id, Side::Buy, 7, 3, 3, OrderStatus::PartiallyFilled));
    assert_eq!((qty(&account), own(&account)), (7, (3, 0)));
}

#[test]
fn an_order_fills_against_one_of_somebody_else_on_the_same_account() {
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
fn own_orders_are_cancelled_at_the_start_where_so_configured() {
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
fn orders_of_strategies_that_are_gone_are_cancelled_and_those_of_others_are_not() {
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
fn an_id_like_ours_of_a_time_that_no_run_had_is_somebody_elses() {
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
fn prices_are_told_once_the_orders_of_the_process_before_were() {
    let mut account = booting(live_config());
    account.events.clear();
    account.begin();
    account.top(998, 1_002);
    let open = OpenOrder {
        report: report(ClientOrderId::new("mm.5.1").unwrap(), OrderStatus::New, 0),
        terms: limit(Side::Buy, 990, 10),
    };
    round(&mut account, &[open], &[], |_| {});
    let told = account
        .events
        .iter()
        .filter(|(strategy, ..)| *strategy == MM);
    let told: Vec<_> = told.map(|(_, kind, fields)| (*kind, fields[0])).collect();
    let place = |what: (EventKind, i64)| told.iter().position(|one| *one == what).unwrap();
    let degraded = place((EventKind::RuntimeState, RunState::Degraded as i64));
    let order = place((EventKind::OrderUpdate, OrderState::New as i64));
    let ready = place((EventKind::RuntimeState, RunState::Ready as i64));
    let book = place((EventKind::BookTop, 998));
    assert!(
        degraded < order && order < ready && ready < book,
        "{told:?}"
    );
    let books = told.iter().filter(|(kind, _)| *kind == EventKind::BookTop);
    assert_eq!(books.count(), 1, "as it stands, once");
    account.top(997, 1_003);
    let (_, kind, fields) = account.events.last().unwrap();
    assert_eq!((*kind, fields[0]), (EventKind::BookTop, 997));
}
