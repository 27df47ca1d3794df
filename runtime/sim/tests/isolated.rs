//! Tests of isolated margin, leverage brackets and the assets mode.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use common::*;
use proptest::prelude::*;
use windvane_model::protocol::{Outcome, Refusal};
use windvane_model::{
    Amount, Decimal, Instrument, InstrumentId, OrderStatus, PositionSide, Reply, Request, Side,
    Surface, TimeInForce,
};
use windvane_sim::{Bracket, PositionView, VenueMessage};

/// A second futures instrument with the same margin asset.
const OTHER: InstrumentId = InstrumentId(1);

fn bench() -> Bench {
    let second = Instrument {
        symbol: "ETHUSDT".into(),
        ..instrument(Surface::Futures)
    };
    let mut bench = Bench::with(config(), vec![instrument(Surface::Futures), second]);
    for id in [FUTURES, OTHER] {
        bench.top(id, (600_000, 90_000), (600_010, 90_000));
    }
    bench
}

fn code<T: std::fmt::Debug>(result: Result<T, Refusal>) -> i32 {
    result.unwrap_err().code
}

fn isolate(bench: &mut Bench, on: bool) -> Result<(), Refusal> {
    let now = bench.now;
    let result = bench.venue.set_margin_type(now, FUTURES, on);
    bench.pass_ms(1);
    result
}

fn margin(bench: &mut Bench, amount: Amount, add: bool) -> Result<(), Refusal> {
    let now = bench.now;
    let venue = &mut bench.venue;
    let result = venue.change_position_margin(now, FUTURES, PositionSide::Both, amount, add);
    bench.pass_ms(1);
    result
}

fn leverage(bench: &mut Bench, leverage: u32) -> Result<u32, i32> {
    bench.messages.clear();
    bench.request(&Request::SetLeverage {
        instrument: FUTURES,
        leverage,
    });
    match &bench.messages[0] {
        VenueMessage::Reply(Reply::Leverage { outcome, .. }) => match outcome {
            Outcome::Done(leverage) => Ok(*leverage),
            Outcome::Refused(refusal) => Err(refusal.code),
            Outcome::Unknown => panic!("the simulated venue always knows the outcome"),
        },
        other => panic!("unexpected reply: {other:?}"),
    }
}

fn held(bench: &Bench) -> PositionView {
    bench
        .venue
        .position_view(FUTURES, PositionSide::Both)
        .unwrap()
}

#[test]
fn the_margin_type_changes_only_on_an_empty_symbol() {
    let mut bench = bench();
    assert_eq!(code(isolate(&mut bench, false)), -4046);
    let terms = limit(FUTURES, Side::Buy, 500_000, 1, TimeInForce::Gtc);
    bench.place("a", terms).unwrap();
    assert_eq!(code(isolate(&mut bench, true)), -4047);
    bench.cancel(FUTURES, "a").unwrap();
    bench.place("b", market(FUTURES, Side::Buy, 1)).unwrap();
    assert_eq!(code(isolate(&mut bench, true)), -4048);
    bench.place("c", market(FUTURES, Side::Sell, 1)).unwrap();
    assert_eq!(isolate(&mut bench, true), Ok(()));
    assert!(held(&bench).isolated);
}

#[test]
fn a_fill_moves_its_margin_into_the_isolated_wallet_and_back() {
    let mut bench = bench();
    isolate(&mut bench, true).unwrap();
    bench.place("a", market(FUTURES, Side::Buy, 1_000)).unwrap();
    assert_eq!(held(&bench).isolated_wallet, amount("3000.05"));
    let balance = bench.venue.futures_balance(USDT);
    assert_eq!(balance.cross_wallet, balance.wallet - amount("3000.05"));
    assert_eq!(balance.available, balance.cross_wallet);
    bench.place("b", market(FUTURES, Side::Sell, 500)).unwrap();
    assert_eq!(held(&bench).isolated_wallet, amount("1500.025"));
    // Reversed: all margin of the old position is released, and the new part takes its own.
    bench
        .place("c", market(FUTURES, Side::Sell, 1_500))
        .unwrap();
    assert_eq!(held(&bench).qty.0, -1_000);
    assert_eq!(held(&bench).isolated_wallet, whole(3_000));
    bench.place("d", market(FUTURES, Side::Buy, 1_000)).unwrap();
    assert_eq!(held(&bench).isolated_wallet, Amount::ZERO);
    let balance = bench.venue.futures_balance(USDT);
    assert_eq!(balance.cross_wallet, balance.wallet);
}

#[test]
fn isolated_margin_is_added_and_taken_back_within_limits() {
    let mut bench = bench();
    assert_eq!(code(margin(&mut bench, whole(1), true)), -1020);
    isolate(&mut bench, true).unwrap();
    assert_eq!(code(margin(&mut bench, whole(1), true)), -2024);
    bench.place("a", market(FUTURES, Side::Buy, 1_000)).unwrap();
    assert_eq!(code(margin(&mut bench, Amount::ZERO, true)), -4055);
    let all = bench.venue.futures_balance(USDT).available;
    assert_eq!(code(margin(&mut bench, all + Amount(1), true)), -2019);
    margin(&mut bench, whole(1_000), true).unwrap();
    assert_eq!(held(&bench).isolated_wallet, amount("4000.05"));
    // The spread has already cost 0.5 of it; the margin at the mark price is 3,000.025.
    let spare = amount("4000.05") - amount("3000.025") - amount("0.5");
    assert_eq!(code(margin(&mut bench, spare + Amount(1), false)), -2019);
    assert_eq!(margin(&mut bench, spare, false), Ok(()));
    assert_eq!(leverage(&mut bench, 10), Err(-4161));
    assert_eq!(leverage(&mut bench, 25), Ok(25));
}

#[test]
fn an_isolated_position_loses_no_more_than_its_wallet() {
    let mut bench = bench();
    isolate(&mut bench, true).unwrap();
    bench.place("a", market(FUTURES, Side::Buy, 1_000)).unwrap();
    bench.place("x", market(OTHER, Side::Buy, 100)).unwrap();
    let terms = limit(FUTURES, Side::Buy, 300_000, 10, TimeInForce::Gtc);
    bench.place("b", terms).unwrap();
    let price = held(&bench).liquidation_price;
    let before = bench.venue.futures_balance(USDT).cross_wallet;
    // Above the estimated price it stays open, with one margin call.
    let tick = price / 10_i64.pow(7) + 20;
    bench.messages.clear();
    bench.top(FUTURES, (tick, 90_000), (tick + 10, 90_000));
    assert_eq!(bench.position(), 1_100);
    assert_eq!(bench.messages.len(), 1, "{:?}", bench.messages);
    // Far below it is liquidated. The loss beyond the isolated wallet does not reach the account.
    bench.messages.clear();
    bench.top(FUTURES, (400_000, 90_000), (400_010, 90_000));
    assert_eq!(held(&bench).qty.0, 0);
    assert_eq!(bench.position(), 100, "the crossed position stays open");
    assert_eq!(bench.venue.open_orders(FUTURES).count(), 0);
    assert_eq!(bench.updates()[0].status, OrderStatus::Expired);
    assert_eq!(bench.venue.futures_balance(USDT).cross_wallet, before);
}

#[test]
fn the_liquidation_price_is_where_liquidation_happens() {
    for (side, isolated) in [
        (Side::Buy, false),
        (Side::Sell, false),
        (Side::Buy, true),
        (Side::Sell, true),
    ] {
        let mut bench = bench();
        if isolated {
            isolate(&mut bench, true).unwrap();
        }
        bench.place("a", market(FUTURES, side, 3_000)).unwrap();
        let unit = 10_i64.pow(7);
        let price = held(&bench).liquidation_price;
        let safe = price / unit + side.sign() * 2;
        let fatal = price / unit - side.sign() * 2;
        bench.top(FUTURES, (safe - 1, 90_000), (safe + 1, 90_000));
        assert_ne!(
            bench.position(),
            0,
            "{side} {isolated}: stays open at {safe}"
        );
        bench.top(FUTURES, (fatal - 1, 90_000), (fatal + 1, 90_000));
        assert_eq!(
            bench.position(),
            0,
            "{side} {isolated}: is liquidated at {fatal}"
        );
    }
}

#[test]
fn brackets_bound_leverage_and_notional() {
    let mut bench = bench();
    let bracket = |initial_leverage, floor, cap, rate| Bracket {
        initial_leverage,
        notional_floor: whole(floor),
        notional_cap: whole(cap),
        maintenance_rate: Decimal::new(rate, 3),
        cum: Amount::ZERO,
    };
    let table = [bracket(50, 0, 30_000, 5), bracket(20, 30_000, 120_000, 10)];
    bench.venue.set_brackets(FUTURES, &table).unwrap();
    assert_eq!(leverage(&mut bench, 51), Err(-4028));
    let terms = limit(FUTURES, Side::Buy, 600_000, 2_001, TimeInForce::Gtc);
    assert_eq!(bench.place("a", terms), Err(-2027));
    bench.place("b", market(FUTURES, Side::Buy, 1_000)).unwrap();
    assert_eq!(leverage(&mut bench, 21), Err(-2027));
    // 60,000.5 at 1 percent, minus 150.
    assert_eq!(held(&bench).maintenance_margin, amount("450.005"));
    assert_eq!(held(&bench).notional_max, whole(120_000));
}

#[test]
fn multi_assets_mode_and_isolated_symbols_exclude_each_other() {
    let mut bench = bench();
    let now = bench.now;
    assert_eq!(code(bench.venue.set_multi_assets(now, false)), -4059);
    isolate(&mut bench, true).unwrap();
    assert_eq!(code(bench.venue.set_multi_assets(now, true)), -1020);
    isolate(&mut bench, false).unwrap();
    assert_eq!(bench.venue.set_multi_assets(now, true), Ok(()));
    assert_eq!(code(isolate(&mut bench, true)), -1020);
    bench.place("a", market(FUTURES, Side::Buy, 1)).unwrap();
    assert_eq!(code(bench.venue.set_multi_assets(now, false)), -4048);
    let report = bench.place("b", market(FUTURES, Side::Sell, 1)).unwrap();
    assert_eq!(report.status, OrderStatus::Filled);
    assert!(bench.venue.multi_assets_mode());
}

/// A step of the random walk: prices, orders, margin, funding.
#[derive(Clone, Debug)]
enum Step {
    Price(i64),
    Order(Side, i64, bool),
    Margin(i128, bool),
    Funding(i64),
    Deleverage(i64),
    Leverage(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let side = || prop_oneof![Just(Side::Buy), Just(Side::Sell)];
    let step = prop_oneof![
        (550_000_i64..650_000).prop_map(Step::Price),
        (side(), 1_i64..2_000, any::<bool>()).prop_map(|(s, q, r)| Step::Order(s, q, r)),
        (1_i128..2_000, any::<bool>()).prop_map(|(units, add)| Step::Margin(units, add)),
        (-1_000_000_i64..1_000_000).prop_map(Step::Funding),
        (1_i64..500).prop_map(Step::Deleverage),
        (1_u32..50).prop_map(Step::Leverage),
    ];
    proptest::collection::vec(step, 0..80)
}

proptest! {
    /// The wallet equals the sum of the events. An isolated wallet never exists without a position,
    /// and never takes from other wallets.
    #[test]
    fn isolated_margin_accounts_for_every_amount(steps in steps(), hedge: bool) {
        let mut bench = bench();
        if hedge {
            bench.request(&Request::SetPositionMode { hedge });
        }
        isolate(&mut bench, true).unwrap();
        bench.messages.clear();
        let mut wallet = bench.wallet();
        for (n, step) in steps.iter().enumerate() {
            let now = bench.now;
            let side = if hedge { PositionSide::Long } else { PositionSide::Both };
            match *step {
                Step::Price(bid) => bench.top(FUTURES, (bid, 90_000), (bid + 10, 90_000)),
                Step::Order(order_side, qty, reduces) => {
                    let mut terms = market(FUTURES, order_side, qty);
                    terms.position_side = side;
                    terms.reduce_only = reduces && !hedge;
                    bench.request(&Request::Place(windvane_model::NewOrder {
                        client_order_id: id(&format!("o{n}")),
                        terms,
                    }));
                }
                Step::Margin(units, add) => {
                    let venue = &mut bench.venue;
                    let _ = venue.change_position_margin(now, FUTURES, side, whole(units), add);
                }
                Step::Funding(rate) => bench.venue.fund_now(now, FUTURES, rate).unwrap(),
                Step::Deleverage(qty) => {
                    let _ = bench.venue.deleverage(now, FUTURES, side, windvane_model::Qty(qty));
                }
                Step::Leverage(leverage) => bench.request(&Request::SetLeverage {
                    instrument: FUTURES,
                    leverage,
                }),
            }
            bench.pass_ms(1);
            for update in bench.updates() {
                if let Some(fill) = update.fill {
                    wallet += fill.realized_pnl.unwrap() - fill.fee;
                }
            }
            for update in bench.messages.iter().filter_map(|message| match message {
                VenueMessage::User(windvane_model::UserEvent::Account(update)) => Some(update),
                _ => None,
            }) {
                wallet += update.balances.iter().map(|b| b.change).sum();
            }
            bench.messages.clear();
            prop_assert_eq!(wallet, bench.wallet());
            let views: Vec<_> = bench.venue.position_views().collect();
            let isolated: Amount = views.iter().map(|view| view.isolated_wallet).sum();
            let balance = bench.venue.futures_balance(USDT);
            prop_assert_eq!(balance.cross_wallet + isolated, balance.wallet);
            for view in views.iter().filter(|view| view.qty.0 == 0) {
                prop_assert_eq!(view.isolated_wallet, Amount::ZERO);
            }
            for view in views.iter().filter(|view| view.qty.0 != 0) {
                // Below the maintenance margin it would have been liquidated.
                prop_assert!(view.isolated_wallet + view.unrealized >= view.maintenance_margin);
            }
        }
    }
}
