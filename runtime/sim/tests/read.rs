//! Tests of queries about the account: every list is correct and complete.

mod common;

use common::*;
use windvane_model::protocol::Outcome;
use windvane_model::state_report::{AccountSnapshot, OpenOrder, StateReport, Subject};
use windvane_model::{
    Amount, InstrumentId, OrderType, PositionSide, Price, Qty, Reply, Request, Side, Surface,
    TimeInForce, TradeId, UserEvent,
};
use windvane_sim::VenueMessage;

fn bench() -> Bench {
    let mut bench = Bench::new(config());
    bench.top(FUTURES, (600_000, 90_000), (600_010, 90_000));
    bench.top(SPOT, (600_000, 90_000), (600_010, 90_000));
    bench
}

fn read(bench: &mut Bench, subject: Subject) -> Outcome<StateReport> {
    bench.messages.clear();
    bench.request(&Request::Read(subject));
    match bench.messages.as_slice() {
        [
            VenueMessage::Reply(Reply::Read {
                subject: about,
                outcome,
            }),
        ] => {
            assert_eq!(*about, subject);
            outcome.clone()
        }
        other => panic!("exactly one reply is expected, not {other:?}"),
    }
}

fn open(bench: &mut Bench, surface: Surface) -> Vec<OpenOrder> {
    match read(bench, Subject::OpenOrders { surface }) {
        Outcome::Done(StateReport::OpenOrders(open)) => open,
        other => panic!("{other:?}"),
    }
}

fn account(bench: &mut Bench, surface: Surface) -> AccountSnapshot {
    match read(bench, Subject::Account { surface }) {
        Outcome::Done(StateReport::Account(account)) => account,
        other => panic!("{other:?}"),
    }
}

fn trades(bench: &mut Bench, from: Option<i64>) -> (Vec<i64>, bool) {
    let subject = Subject::Trades {
        instrument: FUTURES,
        from: from.map(TradeId),
    };
    match read(bench, subject) {
        Outcome::Done(StateReport::Trades { trades, more }) => {
            let ids = trades.iter().map(|trade| trade.fill.trade_id.0);
            (ids.collect(), more)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn open_orders_list_a_surface_oldest_first_with_terms() {
    let mut bench = bench();
    let low = limit(FUTURES, Side::Buy, 590_000, 20, TimeInForce::Gtx);
    let high = limit(FUTURES, Side::Buy, 595_000, 10, TimeInForce::Gtc);
    let waiting = stop(OrderType::StopMarket, Side::Sell, 580_000, 5);
    let spot = limit(SPOT, Side::Sell, 610_000, 7, TimeInForce::Gtc);
    for (name, terms) in [("a", low), ("b", high), ("c", waiting), ("d", spot)] {
        bench.place(name, terms).unwrap();
    }
    bench
        .place("e", market(FUTURES, Side::Buy, 1))
        .expect("it fills and is no longer open");
    let futures = open(&mut bench, Surface::Futures);
    let names: Vec<_> = futures
        .iter()
        .map(|order| order.report.client_order_id.to_string())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(futures[0].terms, low);
    assert_eq!(futures[2].terms.stop_price, Some(Price(580_000)));
    assert_eq!(futures[0].report.orig_qty, Qty(20));
    let spot_orders = open(&mut bench, Surface::Spot);
    assert_eq!(spot_orders.len(), 1);
    assert_eq!(spot_orders[0].terms, spot);
}

#[test]
fn an_account_lists_every_asset_and_position_with_zeros() {
    let mut bench = bench();
    let futures = account(&mut bench, Surface::Futures);
    assert_eq!(
        (futures.can_trade, futures.hedge_mode, futures.multi_assets),
        (Some(true), Some(false), Some(false))
    );
    let of = |account: &AccountSnapshot, asset| {
        let mut balances = account.balances.iter();
        balances.find(|balance| balance.asset == asset).copied()
    };
    assert_eq!(of(&futures, BTC).unwrap().total, Amount::ZERO);
    assert_eq!(futures.positions.len(), 1, "one futures symbol, one-way");
    assert_eq!(futures.positions[0].qty, Qty(0));

    bench.place("a", market(FUTURES, Side::Sell, 100)).unwrap();
    let terms = limit(SPOT, Side::Sell, 610_000, 500, TimeInForce::Gtc);
    bench.place("b", terms).unwrap();
    let position = account(&mut bench, Surface::Futures).positions[0];
    assert_eq!(
        (position.position_side, position.qty, position.cost),
        (PositionSide::Both, Qty(-100), -amount("6000"))
    );
    let futures = account(&mut bench, Surface::Futures);
    let held = futures
        .balances
        .iter()
        .find(|held| held.locked > Amount::ZERO);
    assert!(held.is_some(), "a position's margin is not available");
    let spot = account(&mut bench, Surface::Spot);
    assert_eq!((spot.hedge_mode, spot.positions.len()), (None, 0));
    let coins = of(&spot, BTC).unwrap();
    assert_eq!((coins.total, coins.locked), (whole(1), amount("0.5")));
}

#[test]
fn trades_start_at_the_requested_id_and_come_in_pages() {
    let mut bench = bench();
    assert_eq!(trades(&mut bench, None), (Vec::new(), false));
    for n in 0..1_001 {
        let side = [Side::Buy, Side::Sell][n % 2];
        bench
            .place(&format!("t{n}"), market(FUTURES, side, 1))
            .unwrap();
    }
    assert_eq!(trades(&mut bench, Some(1_000)), (vec![1_000, 1_001], false));
    let (first, more) = trades(&mut bench, Some(1));
    assert_eq!((first.len(), first[0], more), (1_000, 1, true));
    let (latest, _) = trades(&mut bench, None);
    assert_eq!((latest[0], latest[999]), (2, 1_001));
    let unknown = Subject::Trades {
        instrument: InstrumentId(9),
        from: None,
    };
    let Outcome::Refused(refusal) = read(&mut bench, unknown) else {
        panic!("the symbol is unknown")
    };
    assert_eq!(refusal.code, -1121);
}

#[test]
fn the_assets_mode_is_reported() {
    let mut bench = bench();
    bench.venue.set_multi_assets(bench.now, true).unwrap();
    let events = std::iter::from_fn(|| bench.venue.poll());
    let events: Vec<_> = events.collect();
    assert_eq!(
        events,
        [VenueMessage::User(UserEvent::AssetMode {
            multi_assets: true
        })]
    );
}
