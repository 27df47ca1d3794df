//! Tests of orders of every time in force against the recorded market.

mod common;

use common::*;
use windvane_model::protocol::AccountReason;
use windvane_model::{
    Amount, ExecutionType, NewOrder, OrderStatus, OrderTerms, OrderType, Request, Side, Surface,
    TimeInForce, UserEvent,
};
use windvane_sim::VenueMessage;

fn bench() -> Bench {
    let mut bench = Bench::new(config());
    bench.top(FUTURES, (600_000, 50), (600_010, 40));
    bench.top(SPOT, (600_000, 50), (600_010, 40));
    bench
}

#[test]
fn a_market_order_takes_the_top_and_the_rest_expires() {
    let mut bench = bench();
    let report = bench.place("a", market(FUTURES, Side::Buy, 100)).unwrap();
    assert_eq!(report.status, OrderStatus::Expired);
    assert_eq!(report.executed_qty.0, 40);
    assert_eq!(bench.filled(), [(600_010, 40, false)]);
    // The same displayed quantity fills no second order, until the recording updates it.
    let again = bench.place("b", market(FUTURES, Side::Buy, 10)).unwrap();
    assert_eq!(
        (again.status, again.executed_qty.0),
        (OrderStatus::Expired, 0)
    );
    bench.top(FUTURES, (600_000, 50), (600_010, 41));
    let report = bench.place("c", market(FUTURES, Side::Buy, 41)).unwrap();
    assert_eq!(report.status, OrderStatus::Filled);
}

#[test]
fn a_crossing_order_walks_the_depth_within_its_limit() {
    let mut bench = bench();
    let asks = [level(600_010, 40), level(600_020, 30), level(600_040, 30)];
    bench.depth(FUTURES, 5, true, &[level(600_000, 50)], &asks);
    let terms = limit(FUTURES, Side::Buy, 600_030, 100, TimeInForce::Gtc);
    let report = bench.place("a", terms).unwrap();
    assert_eq!(report.status, OrderStatus::PartiallyFilled);
    assert_eq!(bench.filled(), [(600_010, 40, false), (600_020, 30, false)]);
    assert_eq!(bench.venue.open_orders(FUTURES).count(), 1);
}

#[test]
fn the_reply_comes_first_then_fills_with_account_events() {
    let mut bench = bench();
    bench.place("a", market(FUTURES, Side::Buy, 10)).unwrap();
    let kinds: Vec<_> = bench
        .messages
        .iter()
        .map(|message| match message {
            VenueMessage::Reply(_) => "reply",
            VenueMessage::User(UserEvent::Order(u)) => u.execution.as_str(),
            VenueMessage::User(UserEvent::Account(_)) => "account",
            VenueMessage::User(_) => "other",
        })
        .collect();
    assert_eq!(kinds, ["reply", "NEW", "TRADE", "account"]);
}

#[test]
fn a_crossing_post_only_order_expires_and_others_rest() {
    let mut bench = bench();
    let crossing = limit(FUTURES, Side::Buy, 600_010, 10, TimeInForce::Gtx);
    let report = bench.place("a", crossing).unwrap();
    assert_eq!(
        (report.status, report.executed_qty.0),
        (OrderStatus::Expired, 0)
    );
    assert_eq!(bench.statuses(), [OrderStatus::New, OrderStatus::Expired]);
    // Even if own orders have taken all of the displayed quantity there.
    bench.place("t", market(FUTURES, Side::Buy, 40)).unwrap();
    let report = bench.place("u", crossing).unwrap();
    assert_eq!(report.status, OrderStatus::Expired);
    let resting = limit(FUTURES, Side::Buy, 600_009, 10, TimeInForce::Gtx);
    assert_eq!(bench.place("b", resting).unwrap().status, OrderStatus::New);
}

#[test]
fn immediate_or_cancel_keeps_its_fills() {
    let mut bench = bench();
    let terms = limit(FUTURES, Side::Sell, 600_000, 70, TimeInForce::Ioc);
    let report = bench.place("a", terms).unwrap();
    assert_eq!(
        (report.status, report.executed_qty.0),
        (OrderStatus::Expired, 50)
    );
    assert_eq!(bench.position(), -50);
}

#[test]
fn fill_or_kill_fills_completely_or_not_at_all() {
    let mut bench = bench();
    let terms = limit(FUTURES, Side::Sell, 600_000, 51, TimeInForce::Fok);
    let report = bench.place("a", terms).unwrap();
    assert_eq!(
        (report.status, report.executed_qty.0),
        (OrderStatus::Expired, 0)
    );
    let terms = limit(FUTURES, Side::Sell, 600_000, 50, TimeInForce::Fok);
    let report = bench.place("b", terms).unwrap();
    assert_eq!(report.status, OrderStatus::Filled);
}

#[test]
fn a_resting_order_waits_for_the_queue_ahead() {
    let mut bench = bench();
    let terms = limit(FUTURES, Side::Buy, 600_000, 10, TimeInForce::Gtc);
    bench.place("a", terms).unwrap();
    assert_eq!(
        bench.venue.queue_ahead(FUTURES, Side::Buy),
        Some((600_000, Some(50)))
    );
    bench.messages.clear();
    bench.trade(FUTURES, 600_000, 45, true);
    bench.trade(FUTURES, 600_000, 8, false);
    assert_eq!(bench.filled(), []);
    bench.trade(FUTURES, 600_000, 8, true);
    assert_eq!(bench.filled(), [(600_000, 3, true)]);
    bench.trade(FUTURES, 599_990, 100, true);
    assert_eq!(bench.filled(), [(600_000, 3, true), (600_000, 7, true)]);
    assert_eq!(bench.venue.open_orders(FUTURES).count(), 0);
}

#[test]
fn own_orders_share_a_trade_by_price_then_age() {
    let mut bench = bench();
    for (name, price) in [("a", 600_001), ("b", 600_002), ("c", 600_001)] {
        let terms = limit(FUTURES, Side::Buy, price, 10, TimeInForce::Gtc);
        bench.place(name, terms).unwrap();
    }
    bench.messages.clear();
    bench.trade(FUTURES, 600_001, 25, true);
    let shares: Vec<_> = bench
        .updates()
        .iter()
        .map(|u| (u.client_order_id.to_string(), u.fill.unwrap().qty.0))
        .collect();
    let expected = [("b", 10), ("a", 10), ("c", 5)];
    assert_eq!(shares, expected.map(|(name, qty)| (name.to_owned(), qty)));
}

#[test]
fn an_opposite_touch_fills_up_to_what_it_displays() {
    let mut bench = bench();
    let terms = limit(FUTURES, Side::Buy, 599_990, 10, TimeInForce::Gtc);
    bench.place("a", terms).unwrap();
    bench.messages.clear();
    bench.top(FUTURES, (599_960, 5), (599_980, 4));
    assert_eq!(bench.filled(), [(599_990, 4, true)]);
    bench.top(FUTURES, (599_950, 5), (599_980, 4));
    assert_eq!(bench.filled().len(), 1, "the same displayed quantity again");
    bench.top(FUTURES, (599_960, 5), (599_980, 40));
    assert_eq!(bench.filled(), [(599_990, 4, true), (599_990, 6, true)]);
}

#[test]
fn a_hidden_order_is_behind_later_orders() {
    let mut bench = bench();
    let terms = limit(FUTURES, Side::Buy, 600_000, 10, TimeInForce::Hidden);
    bench.place("a", terms).unwrap();
    bench.top(FUTURES, (600_000, 80), (600_010, 40));
    bench.messages.clear();
    bench.trade(FUTURES, 600_000, 60, true);
    assert_eq!(bench.filled(), []);
    bench.trade(FUTURES, 600_000, 25, true);
    assert_eq!(bench.filled(), [(600_000, 5, true)]);
}

#[test]
fn a_newer_top_is_not_undone_by_an_older_difference() {
    let mut bench = bench();
    let bids = [level(600_000, 50), level(599_990, 9)];
    bench.depth(FUTURES, 10, true, &bids, &[level(600_010, 40)]);
    let top = windvane_model::MarketEvent::Top {
        update_id: 20,
        bid: level(599_990, 8),
        ask: level(600_010, 40),
    };
    bench.event(FUTURES, &top);
    bench.depth(
        FUTURES,
        15,
        false,
        &[level(600_000, 70), level(599_980, 3)],
        &[],
    );
    let report = bench.place("a", market(FUTURES, Side::Sell, 20)).unwrap();
    assert_eq!(report.executed_qty.0, 11);
    assert_eq!(bench.filled(), [(599_990, 8, false), (599_980, 3, false)]);
}

#[test]
fn cancels_and_queries_know_finished_from_unknown() {
    let mut bench = bench();
    let terms = limit(FUTURES, Side::Buy, 599_000, 10, TimeInForce::Gtc);
    bench.place("a", terms).unwrap();
    assert_eq!(bench.place("a", terms), Err(-4116));
    let report = bench.cancel(FUTURES, "a").unwrap();
    assert_eq!(report.status, OrderStatus::Canceled);
    assert_eq!(bench.updates()[0].execution, ExecutionType::Canceled);
    assert_eq!(bench.cancel(FUTURES, "a"), Err(-2011));
    assert_eq!(bench.cancel(SPOT, "a"), Err(-2011));
    assert_eq!(
        bench.query(FUTURES, "a").unwrap().status,
        OrderStatus::Canceled
    );
    assert_eq!(bench.query(FUTURES, "b"), Err(-2013));
    // Futures ids are unique among open orders only.
    assert!(bench.place("a", terms).is_ok());
}

#[test]
fn spot_ids_are_free_again_only_after_a_fill() {
    let mut bench = bench();
    let terms = limit(SPOT, Side::Sell, 700_000, 10, TimeInForce::Gtc);
    bench.place("a", terms).unwrap();
    bench.cancel(SPOT, "a").unwrap();
    assert_eq!(bench.place("a", terms), Err(-2010));
    bench.place("b", market(SPOT, Side::Sell, 10)).unwrap();
    assert!(bench.place("b", terms).is_ok());
}

#[test]
fn a_futures_round_trip_leaves_profit_less_fees() {
    let mut bench = bench();
    bench.place("a", market(FUTURES, Side::Buy, 10)).unwrap();
    let buy = bench.fills()[0];
    // 0.01 * 60,001.0 * 0.0004
    assert_eq!(buy.fee, amount("0.240004"));
    bench.top(FUTURES, (600_110, 50), (600_120, 40));
    bench.place("b", market(FUTURES, Side::Sell, 10)).unwrap();
    let sell = bench.fills()[0];
    assert_eq!(sell.realized_pnl, Some(amount("0.1")));
    assert_eq!(
        bench.wallet(),
        whole(10_000) + amount("0.1") - buy.fee - sell.fee
    );
    let update = &bench.account_updates(AccountReason::Order)[0];
    assert_eq!(update.positions[0].qty.0, 0);
    assert_eq!(update.balances[0].total, bench.wallet());
}

#[test]
fn spot_locks_the_maximum_cost_and_releases_the_rest() {
    let mut bench = bench();
    let terms = limit(SPOT, Side::Buy, 600_020, 100, TimeInForce::Gtc);
    bench.place("a", terms).unwrap();
    // 40 filled as taker at 60,001.0; 60 rest at 60,002.0, with the fee at the taker rate.
    let cost = amount("2400.04") + amount("0.960016");
    let rest = amount("3600.12") + amount("1.440048");
    assert_eq!(
        bench.balance(Surface::Spot, USDT),
        (whole(10_000) - cost, rest)
    );
    assert_eq!(bench.balance(Surface::Spot, BTC).0, amount("1.04"));
    bench.cancel(SPOT, "a").unwrap();
    assert_eq!(bench.balance(Surface::Spot, USDT).1, Amount::ZERO);
    assert_eq!(
        bench.place("b", limit(SPOT, Side::Buy, 600_000, 200, TimeInForce::Gtc)),
        Err(-2018)
    );
    assert_eq!(
        bench.place("c", market(SPOT, Side::Sell, 1_041)),
        Err(-2018)
    );
}

#[test]
fn a_spot_market_buy_spends_its_quote_amount() {
    let mut bench = bench();
    let asks = [level(600_010, 10), level(600_020, 30)];
    bench.depth(SPOT, 1, true, &[level(600_000, 50)], &asks);
    let mut terms = OrderTerms::new(SPOT, Side::Buy, OrderType::Market);
    terms.quote_qty = Some(whole(1_000));
    let report = bench.place("a", terms).unwrap();
    assert_eq!(report.status, OrderStatus::Filled);
    assert_eq!(bench.filled(), [(600_010, 10, false), (600_020, 6, false)]);
    assert!(report.cum_quote <= whole(1_000));
}

#[test]
fn a_batch_answers_every_order_before_the_first_event() {
    let mut bench = bench();
    let order = |name: &str, terms| NewOrder {
        client_order_id: id(name),
        terms,
    };
    let good = limit(FUTURES, Side::Buy, 599_000, 10, TimeInForce::Gtc);
    let mut bad = good;
    bad.price = None;
    bench.messages.clear();
    bench.request(&Request::PlaceBatch(vec![
        order("a", good),
        order("b", bad),
        order("c", good),
    ]));
    let replies = bench
        .messages
        .iter()
        .take_while(|m| matches!(m, VenueMessage::Reply(_)));
    assert_eq!(replies.count(), 3);
    assert_eq!(bench.venue.open_orders(FUTURES).count(), 2);
    let six = (0..6).map(|n| order(&n.to_string(), good)).collect();
    bench.request(&Request::PlaceBatch(six));
    assert_eq!(bench.venue.open_orders(FUTURES).count(), 2);
    bench.request(&Request::CancelAll {
        instrument: FUTURES,
    });
    assert_eq!(bench.venue.open_orders(FUTURES).count(), 0);
}

#[test]
fn differences_move_the_queue_and_cross_resting_orders() {
    let mut bench = bench();
    let bids = [level(600_000, 50), level(599_990, 30)];
    bench.depth(FUTURES, 1, true, &bids, &[level(600_010, 40)]);
    let terms = limit(FUTURES, Side::Buy, 599_990, 10, TimeInForce::Gtc);
    bench.place("a", terms).unwrap();
    let ahead = |bench: &Bench| bench.venue.queue_ahead(FUTURES, Side::Buy);
    assert_eq!(ahead(&bench), Some((599_990, Some(30))));
    let shown = |qty| [level(599_990, qty)];
    bench.depth(FUTURES, 2, false, &shown(12), &[]);
    bench.depth(FUTURES, 3, false, &shown(90), &[]);
    assert_eq!(ahead(&bench), Some((599_990, Some(12))));
    bench.messages.clear();
    let removed = [level(600_000, 0), level(599_990, 0)];
    bench.depth(FUTURES, 4, false, &removed, &[level(599_985, 4)]);
    assert_eq!(bench.filled(), [(599_990, 4, true)]);
}

#[test]
fn behind_the_top_the_queue_position_is_known_when_it_comes() {
    let mut bench = bench();
    let terms = limit(FUTURES, Side::Sell, 600_020, 10, TimeInForce::Gtc);
    bench.place("a", terms).unwrap();
    let ahead = |bench: &Bench| bench.venue.queue_ahead(FUTURES, Side::Sell);
    assert_eq!(ahead(&bench), Some((600_020, None)));
    bench.messages.clear();
    bench.trade(FUTURES, 600_020, 1_000, false);
    assert_eq!(bench.filled(), []);
    bench.top(FUTURES, (600_000, 50), (600_020, 70));
    assert_eq!(ahead(&bench), Some((600_020, Some(70))));
    bench.top(FUTURES, (600_000, 50), (600_030, 70));
    assert_eq!(ahead(&bench), Some((600_020, Some(0))));
}

#[test]
fn a_trade_through_the_price_clears_the_queue_ahead() {
    let mut bench = bench();
    let terms = limit(FUTURES, Side::Buy, 600_000, 10, TimeInForce::Gtc);
    bench.place("a", terms).unwrap();
    bench.messages.clear();
    bench.trade(FUTURES, 599_999, 4, true);
    bench.trade(FUTURES, 600_000, 6, true);
    assert_eq!(bench.filled(), [(600_000, 4, true), (600_000, 6, true)]);
}

#[test]
fn a_quote_amount_buys_whole_steps() {
    let mut rules = instrument(Surface::Spot);
    rules.filters.lot_size = Some(windvane_model::instrument::LotSize {
        min_qty: 5,
        max_qty: 1_000,
        step_size: 5,
    });
    let mut bench = Bench::with(config(), vec![rules]);
    bench.top(FUTURES, (600_000, 500), (600_010, 500));
    let mut terms = OrderTerms::new(FUTURES, Side::Buy, OrderType::Market);
    // 0.01999966 at 60,001.0.
    terms.quote_qty = Some(whole(1_200));
    assert_eq!(bench.place("a", terms).unwrap().executed_qty.0, 15);
    terms.quote_qty = Some(whole(100));
    let report = bench.place("b", terms).unwrap();
    assert_eq!(
        (report.status, report.executed_qty.0),
        (OrderStatus::Expired, 0)
    );
}
