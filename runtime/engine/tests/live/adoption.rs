//! Promise 1: own orders that another process sent are adopted or cancelled, those of others never
//! touched.

use windvane_engine::live::OnStart;
use windvane_engine::truth::OpenOrder;
use windvane_engine::{ClientOrderId, OrderStatus, PositionSide, Request, Side};

use super::reconciliation::round;
use super::support::{Account, BTC, fill, limit, report, update};
use super::world::{booting, live_config};

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
