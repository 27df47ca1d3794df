//! Tests of margin, liquidation, funding, the countdown and modes.

mod common;

use common::*;
use windvane_model::decimal::AMOUNT_ONE;
use windvane_model::protocol::{AccountReason, Outcome};
use windvane_model::{
    Amount, Decimal, ExecutionType, OrderStatus, OrderType, PositionSide, Reply, Request, Side,
    Surface, Time, TimeInForce, UserEvent,
};
use windvane_sim::{QueueModel, Venue, VenueConfigError, VenueMessage};

fn bench() -> Bench {
    let mut bench = Bench::new(config());
    bench.top(FUTURES, (600_000, 90_000), (600_010, 90_000));
    bench
}

#[test]
fn initial_margin_bounds_position_and_open_orders_together() {
    let mut bench = bench();
    // 10,000 at leverage 20 carry a notional of 200,000, which is 3.333 at 60,000.
    let terms = limit(FUTURES, Side::Buy, 600_000, 3_334, TimeInForce::Gtc);
    assert_eq!(bench.place("a", terms), Err(-2019));
    bench
        .place(
            "a",
            limit(FUTURES, Side::Buy, 600_000, 2_000, TimeInForce::Gtc),
        )
        .unwrap();
    let terms = limit(FUTURES, Side::Buy, 600_000, 1_334, TimeInForce::Gtc);
    assert_eq!(bench.place("b", terms), Err(-2019));
    // The other side does not add to the margin.
    bench
        .place(
            "c",
            limit(FUTURES, Side::Sell, 600_010, 2_000, TimeInForce::Gtc),
        )
        .unwrap();
    let terms = limit(FUTURES, Side::Sell, 600_010, 1_334, TimeInForce::Gtc);
    assert_eq!(bench.place("d", terms), Err(-2019));
}

#[test]
fn an_order_that_only_reduces_passes_without_margin() {
    let mut bench = bench();
    bench.place("a", market(FUTURES, Side::Buy, 3_300)).unwrap();
    bench.top(FUTURES, (595_000, 90_000), (595_010, 90_000));
    assert_eq!(bench.place("b", market(FUTURES, Side::Buy, 1)), Err(-2019));
    let report = bench
        .place("c", market(FUTURES, Side::Sell, 3_300))
        .unwrap();
    assert_eq!(report.status, OrderStatus::Filled);
}

#[test]
fn reduce_only_needs_a_position_and_never_reverses_it() {
    let mut bench = bench();
    let mut terms = market(FUTURES, Side::Sell, 50);
    terms.reduce_only = true;
    assert_eq!(bench.place("a", terms), Err(-2022));
    bench.place("b", market(FUTURES, Side::Buy, 30)).unwrap();
    let mut resting = limit(FUTURES, Side::Sell, 600_100, 30, TimeInForce::Gtc);
    resting.reduce_only = true;
    bench.place("c", resting).unwrap();
    let report = bench.place("d", terms).unwrap();
    assert_eq!(
        (report.status, report.executed_qty.0),
        (OrderStatus::Expired, 30)
    );
    assert_eq!(bench.position(), 0);
    // Nothing is left for the other closing order.
    assert_eq!(
        bench.query(FUTURES, "c").unwrap().status,
        OrderStatus::Expired
    );
}

#[test]
fn a_margin_call_comes_once_before_liquidation() {
    let mut bench = bench();
    bench.place("a", market(FUTURES, Side::Buy, 3_300)).unwrap();
    bench
        .place(
            "far",
            limit(FUTURES, Side::Sell, 700_000, 1, TimeInForce::Gtc),
        )
        .unwrap();
    bench.messages.clear();
    // The wallet is 9,920.8; the maintenance margin is 0.5 percent of the notional, about 950 at
    // the end.
    for bid in (572_000..600_000).rev().step_by(100) {
        bench.top(FUTURES, (bid, 90_000), (bid + 10, 90_000));
        if !bench.messages.is_empty() {
            break;
        }
    }
    assert_eq!(bench.messages, [VenueMessage::User(UserEvent::MarginCall)]);
    let mid = i128::from(bench.venue.mark_price(FUTURES).unwrap());
    let equity = bench.wallet() + Amount(mid * 3_300 / 1_000) - amount("198003.3");
    let maintenance = Amount(mid * 3_300 / 1_000 / 200);
    assert!(equity.0 < maintenance.0 * 5 / 4 && equity >= maintenance);

    bench.top(FUTURES, (560_000, 1_000), (560_010, 90_000));
    let updates = bench.updates();
    assert_eq!(updates[0].client_order_id, id("far"));
    assert_eq!(updates[0].status, OrderStatus::Expired);
    let closing = &updates[1..];
    assert!(
        closing[0]
            .client_order_id
            .as_str()
            .starts_with("autoclose-")
    );
    assert!(
        closing
            .iter()
            .all(|u| u.order_type == OrderType::Liquidation)
    );
    // The book takes 1.0, the insurance fund the rest at the mark price.
    assert_eq!(closing[0].status, OrderStatus::NewInsurance);
    assert_eq!(closing[1].execution, ExecutionType::Calculated);
    assert_eq!(closing[2].status, OrderStatus::Filled);
    assert_eq!(bench.filled()[0], (560_000, 1_000, false));
    assert_eq!(bench.filled()[1], (560_005, 2_300, false));
    assert_eq!(bench.position(), 0);
    assert_eq!(bench.venue.open_orders(FUTURES).count(), 0);
    let calls = bench
        .messages
        .iter()
        .filter(|m| **m == VenueMessage::User(UserEvent::MarginCall));
    assert_eq!(calls.count(), 1);
}

#[test]
fn a_safe_account_is_never_liquidated_by_price_moves() {
    let mut bench = bench();
    bench.place("a", market(FUTURES, Side::Sell, 100)).unwrap();
    bench.messages.clear();
    for bid in [900_000, 300_000, 1_200_000, 1, 700_000] {
        bench.top(FUTURES, (bid, 90_000), (bid + 10, 90_000));
    }
    assert_eq!(bench.messages, []);
}

#[test]
fn funding_pays_position_times_mark_times_rate() {
    let mut bench = bench();
    bench.place("a", market(FUTURES, Side::Sell, 100)).unwrap();
    let due = bench.now.plus_ms(1_000);
    bench.mark(600_000, 10_000, due);
    assert_eq!(bench.venue.next_timeout(), due);
    let wallet = bench.wallet();
    bench.messages.clear();
    bench.pass_ms(2_000);
    // A short of 0.1 at 60,000 receives 0.01 percent.
    let updates = bench.account_updates(AccountReason::FundingFee);
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0].positions, []);
    assert_eq!(updates[0].balances[0].change, amount("0.6"));
    assert_eq!(updates[0].event_time, due);
    assert_eq!(bench.wallet(), wallet + amount("0.6"));
    bench.pass_ms(100_000);
    assert_eq!(bench.account_updates(AccountReason::FundingFee).len(), 1);
}

#[test]
fn the_countdown_cancels_the_symbol_on_its_grid_unless_renewed() {
    let mut bench = bench();
    let countdown = |countdown_ms| Request::Countdown {
        instrument: FUTURES,
        countdown_ms,
    };
    bench
        .place("a", limit(FUTURES, Side::Buy, 590_000, 1, TimeInForce::Gtc))
        .unwrap();
    bench
        .place("s", limit(SPOT, Side::Buy, 590_000, 1, TimeInForce::Gtc))
        .unwrap();
    bench.request(&countdown(1_000));
    bench.pass_ms(900);
    bench.request(&countdown(1_000));
    bench.pass_ms(900);
    assert_eq!(bench.venue.open_orders(FUTURES).count(), 1);
    let due = bench.venue.next_timeout();
    assert_eq!(due.0 % 10_000_000, 0);
    assert!(due > bench.now && due <= bench.now.plus_ms(111));
    bench.messages.clear();
    bench.pass_ms(111);
    assert_eq!(bench.statuses(), [OrderStatus::Canceled]);
    assert_eq!(bench.updates()[0].transaction_time, due);
    assert_eq!(bench.venue.open_orders(SPOT).count(), 1);

    bench.request(&countdown(1_000));
    bench.request(&countdown(0));
    assert_eq!(bench.venue.next_timeout(), Time::NEVER);
    bench.messages.clear();
    bench.request(&Request::Countdown {
        instrument: SPOT,
        countdown_ms: 1,
    });
    assert!(matches!(
        &bench.messages[0],
        VenueMessage::Reply(Reply::Countdown { outcome: Outcome::Refused(r), .. }) if r.code == -1020
    ));
}

fn mode(bench: &mut Bench, hedge: bool) -> Result<(), i32> {
    bench.messages.clear();
    bench.request(&Request::SetPositionMode { hedge });
    match &bench.messages[0] {
        VenueMessage::Reply(Reply::PositionMode { outcome }) => match outcome {
            Outcome::Done(()) => Ok(()),
            Outcome::Refused(refusal) => Err(refusal.code),
            Outcome::Unknown => panic!("the simulated venue always knows the outcome"),
        },
        other => panic!("unexpected reply: {other:?}"),
    }
}

#[test]
fn hedge_mode_keeps_two_positions_and_requires_the_side() {
    let mut bench = bench();
    assert_eq!(mode(&mut bench, false), Err(-4059));
    assert_eq!(mode(&mut bench, true), Ok(()));
    assert_eq!(bench.place("a", market(FUTURES, Side::Buy, 10)), Err(-4061));
    let with = |side, position_side, qty| {
        let mut terms = market(FUTURES, side, qty);
        terms.position_side = position_side;
        terms
    };
    bench
        .place("b", with(Side::Buy, PositionSide::Long, 10))
        .unwrap();
    bench
        .place("c", with(Side::Sell, PositionSide::Short, 4))
        .unwrap();
    let positions: Vec<_> = bench.venue.positions().collect();
    assert_eq!((positions[0].qty.0, positions[1].qty.0), (10, -4));
    let report = bench
        .place("d", with(Side::Buy, PositionSide::Short, 9))
        .unwrap();
    assert_eq!(
        (report.status, report.executed_qty.0),
        (OrderStatus::Expired, 4)
    );
    assert_eq!(
        bench.place("e", with(Side::Buy, PositionSide::Short, 9)),
        Err(-2024)
    );
    assert_eq!(mode(&mut bench, false), Err(-4048));
    bench
        .place("f", with(Side::Sell, PositionSide::Long, 10))
        .unwrap();
    let mut open = limit(FUTURES, Side::Buy, 590_000, 1, TimeInForce::Gtc);
    open.position_side = PositionSide::Long;
    bench.place("g", open).unwrap();
    assert_eq!(mode(&mut bench, false), Err(-4047));
}

#[test]
fn leverage_is_bounded_and_carried_by_the_margin() {
    let mut bench = bench();
    bench.place("a", market(FUTURES, Side::Buy, 3_000)).unwrap();
    let mut change = |instrument, leverage| {
        bench.messages.clear();
        bench.request(&Request::SetLeverage {
            instrument,
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
    };
    assert_eq!(change(FUTURES, 126), Err(-4028));
    assert_eq!(change(FUTURES, 10), Err(-2028));
    assert_eq!(change(FUTURES, 19), Ok(19));
    assert_eq!(change(SPOT, 2), Err(-1020));
}

#[test]
fn a_rebate_is_paid_to_the_maker() {
    let mut terms = config();
    terms.maker_fee = Decimal::new(-1, 4);
    terms.queue = QueueModel::None;
    let mut bench = Bench::new(terms);
    bench.top(FUTURES, (600_000, 50), (600_010, 50));
    bench
        .place(
            "a",
            limit(FUTURES, Side::Buy, 600_000, 10, TimeInForce::Gtx),
        )
        .unwrap();
    bench.trade(FUTURES, 600_000, 10, true);
    assert_eq!(bench.wallet(), whole(10_000) + amount("0.06"));
}

#[test]
fn a_bad_configuration_names_its_field() {
    let refused = |change: fn(&mut windvane_sim::VenueConfig)| {
        let mut config = config();
        change(&mut config);
        Venue::new(config, vec![instrument(Surface::Spot)]).unwrap_err()
    };
    assert_eq!(refused(|c| c.leverage = 0), VenueConfigError::Leverage(0));
    let error = refused(|c| c.taker_fee = Decimal::new(123_456_789, 10));
    assert!(error.to_string().starts_with("fees.taker"), "{error}");
    let error = refused(|c| c.start_balance[0].2 = Amount(-AMOUNT_ONE));
    assert!(error.to_string().contains("-1"), "{error}");
}

#[test]
fn orders_that_only_close_take_no_margin() {
    let mut bench = bench();
    bench.place("a", market(FUTURES, Side::Buy, 3_000)).unwrap();
    let mut closing = limit(FUTURES, Side::Sell, 600_100, 3_000, TimeInForce::Gtc);
    closing.reduce_only = true;
    for name in ["b", "c", "d"] {
        bench.place(name, closing).unwrap();
    }
    let more = limit(FUTURES, Side::Buy, 600_000, 1, TimeInForce::Gtc);
    assert!(bench.place("e", more).is_ok());
}

#[test]
fn a_funding_time_that_has_passed_is_not_paid_again() {
    let mut bench = bench();
    bench.place("a", market(FUTURES, Side::Sell, 100)).unwrap();
    let now = bench.now;
    bench.messages.clear();
    bench.mark(600_000, 10_000, now);
    assert_eq!(bench.venue.next_timeout(), Time::NEVER);
    bench.pass_ms(1);
    assert_eq!(bench.messages, []);
}
