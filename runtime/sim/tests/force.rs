//! Tests of events that a test triggers, with the venue's complete user events.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use common::*;
use windvane_model::{
    Amount, ClientOrderId, ExecutionType, NewOrder, OrderStatus, OrderTerms, OrderType,
    PositionSide, Price, Qty, Reply, Request, Side, Surface, Time, TimeInForce, VenueOrderId,
};
use windvane_sim::{Cause, OrderEvent, StreamEvent, Venue, VenueConfigError, VenueMessage};

/// A venue with complete user events.
struct Full {
    venue: Venue,
    now: Time,
    events: Vec<StreamEvent>,
}

impl Full {
    fn new() -> Self {
        let mut bench = Bench::new(config());
        bench.top(FUTURES, (600_000, 90_000), (600_010, 90_000));
        bench.top(SPOT, (600_000, 90_000), (600_010, 90_000));
        Self {
            now: bench.now,
            venue: bench.venue.with_stream(),
            events: Vec::new(),
        }
    }

    fn drain(&mut self) {
        self.events.clear();
        while let Some(event) = self.venue.poll_stream() {
            self.events.push(event);
        }
    }

    /// Places an order and returns its id.
    fn place(&mut self, name: &str, terms: OrderTerms) -> VenueOrderId {
        self.now = self.now.plus_ms(1);
        let order = NewOrder {
            client_order_id: id(name),
            terms,
        };
        self.venue.request(self.now, &Request::Place(order));
        self.drain();
        let Some(VenueMessage::Reply(Reply::Placed { outcome, .. })) = self.venue.poll() else {
            panic!("a reply is expected")
        };
        assert_eq!(self.venue.poll(), None, "only replies are polled");
        let windvane_model::protocol::Outcome::Done(report) = outcome else {
            panic!("{outcome:?}")
        };
        report.order_id
    }

    fn orders(&self) -> Vec<OrderEvent> {
        let orders = self.events.iter().filter_map(|event| match event {
            StreamEvent::Order(order) => Some(**order),
            _ => None,
        });
        orders.collect()
    }

    fn causes(&self) -> Vec<Cause> {
        let causes = self.events.iter().filter_map(|event| match event {
            StreamEvent::Spot { cause, .. } | StreamEvent::Futures { cause, .. } => Some(*cause),
            _ => None,
        });
        causes.collect()
    }
}

#[test]
fn each_event_contains_the_order_after_it() {
    let mut full = Full::new();
    let order = full.place(
        "a",
        limit(FUTURES, Side::Buy, 599_000, 100, TimeInForce::Gtc),
    );
    assert_eq!(full.orders()[0].update.execution, ExecutionType::New);
    full.venue.fill_order(full.now, order, Qty(30)).unwrap();
    full.venue.fill_order(full.now, order, Qty(500)).unwrap();
    full.drain();
    let orders = full.orders();
    assert_eq!(orders[0].order.executed, Qty(30));
    assert_eq!(orders[0].order.status, OrderStatus::PartiallyFilled);
    assert_eq!(orders[0].order.cum_quote, whole(1_797));
    assert_eq!(orders[0].open_notional[0], whole(4_193));
    assert_eq!(orders[1].order.status, OrderStatus::Filled);
    assert_eq!(orders[1].order.average_price, 59_900 * 10_i64.pow(8));
    assert_eq!(orders[1].open_notional[0], Amount::ZERO);
    let StreamEvent::Futures { positions, .. } = &full.events[1] else {
        panic!(
            "the account event follows the order event: {:?}",
            full.events[1]
        )
    };
    assert_eq!(positions[0].qty, Qty(30));
    assert_eq!(positions[0].entry_price, 59_900 * 10_i64.pow(8));
    // It can also be found when it is finished.
    let found = full.venue.order(order).unwrap();
    assert_eq!(found, orders[1].order);
    assert_eq!(found.created, full.now);
    let by_client = full.venue.order_by_client(FUTURES, &id("a"));
    assert_eq!(by_client, Some(found));
    let refused = full.venue.fill_order(full.now, order, Qty(1));
    assert_eq!(refused.unwrap_err().code, -2013);
}

#[test]
fn orders_are_ended_by_the_venues_id() {
    let mut full = Full::new();
    let terms = limit(SPOT, Side::Buy, 599_000, 10, TimeInForce::Gtc);
    let (one, two) = (full.place("a", terms), full.place("b", terms));
    assert_eq!(full.venue.open(None).len(), 2);
    full.venue.cancel_order(full.now, one).unwrap();
    full.venue.expire_order(full.now, two).unwrap();
    full.drain();
    let statuses: Vec<_> = full.orders().iter().map(|o| o.order.status).collect();
    assert_eq!(statuses, [OrderStatus::Canceled, OrderStatus::Expired]);
    let refused = full.venue.cancel_order(full.now, two);
    assert_eq!(refused.unwrap_err().code, -2011);
    assert!(full.venue.open(Some(SPOT)).is_empty());
    assert_eq!(full.venue.orders().len(), 2);
    assert_eq!(full.venue.spot_balance(USDT).locked, Amount::ZERO);
}

#[test]
fn accounts_can_share_one_sequence_of_order_ids() {
    let mut full = Full::new();
    full.venue.order_ids_after(VenueOrderId(1_000));
    let terms = limit(SPOT, Side::Buy, 599_000, 1, TimeInForce::Gtc);
    assert_eq!(full.place("a", terms), VenueOrderId(1_001));
    full.venue.order_ids_after(VenueOrderId(5));
    assert_eq!(full.place("b", terms), VenueOrderId(1_002));
    assert_eq!(full.venue.newest_order_id(), VenueOrderId(1_002));
}

#[test]
fn the_number_of_finished_orders_is_limited() {
    let mut full = Full::new();
    full.venue.remember_finished(2, 2);
    let ids: Vec<_> = ["a", "b", "c"]
        .map(|name| full.place(name, market(FUTURES, Side::Buy, 1)))
        .into();
    assert_eq!(full.venue.order(ids[0]), None);
    assert!(full.venue.order(ids[1]).is_some() && full.venue.order(ids[2]).is_some());
    assert_eq!(full.venue.orders().len(), 2);
}

#[test]
fn filled_orders_are_displaced_only_by_their_own_kind() {
    let mut full = Full::new();
    full.venue.remember_finished(2, 2);
    let filled = full.place("a", market(SPOT, Side::Buy, 1));
    full.place("other", market(FUTURES, Side::Buy, 1));
    for n in 0..5 {
        let terms = limit(SPOT, Side::Buy, 599_000, 1, TimeInForce::Ioc);
        full.place(&format!("ioc{n}"), terms);
    }
    assert!(full.venue.order(filled).is_some());
    assert_eq!(
        full.venue.orders().len(),
        4,
        "two filled orders, two without a fill"
    );
    let wanted = full.venue.orders_where(|order| order.executed == Qty(0));
    assert_eq!(wanted.len(), 2);
}

#[test]
fn a_triggered_stop_shows_its_new_type() {
    let mut full = Full::new();
    let order = full.place("a", stop(OrderType::StopMarket, Side::Sell, 590_000, 10));
    assert_eq!(
        full.venue.order(order).unwrap().order_type,
        OrderType::StopMarket
    );
    let refused = full.venue.fill_order(full.now, order, Qty(1));
    assert_eq!(refused.unwrap_err().code, -4000, "it is not in the book");
    let event = windvane_model::MarketEvent::Trade {
        price: 590_000,
        qty: 1,
        trade_id: 1,
        buyer_is_maker: true,
    };
    full.venue.market(full.now, FUTURES, &event);
    let view = full.venue.order(order).unwrap();
    assert_eq!(view.order_type, OrderType::Market);
    assert_eq!(view.terms.order_type, OrderType::StopMarket);
    assert_eq!(view.status, OrderStatus::Filled);
}

#[test]
fn liquidation_and_deleveraging_come_on_request() {
    let mut full = Full::new();
    let refused = full.venue.liquidate_now(full.now, FUTURES);
    assert_eq!(refused.unwrap_err().code, -2024);
    full.place("a", market(FUTURES, Side::Buy, 100));
    let venue = &mut full.venue;
    let result = venue.deleverage(full.now, FUTURES, PositionSide::Both, Qty(40));
    assert_eq!(result, Ok(Qty(40)));
    full.drain();
    let orders = full.orders();
    assert_eq!(
        orders[0].update.client_order_id,
        ClientOrderId::new("adl_autoclose").unwrap()
    );
    assert_eq!(orders[0].order.status, OrderStatus::NewAdl);
    assert_eq!(orders[1].update.execution, ExecutionType::Calculated);
    // At the mark price, regardless of the book.
    assert_eq!(orders[1].update.fill.unwrap().price, Price(600_005));
    full.venue.liquidate_now(full.now, FUTURES).unwrap();
    full.drain();
    let orders = full.orders();
    assert!(
        orders[0]
            .update
            .client_order_id
            .as_str()
            .starts_with("autoclose-")
    );
    assert_eq!(full.venue.positions().count(), 0);
    assert_eq!(
        full.venue.liquidate_now(full.now, SPOT).unwrap_err().code,
        -1020
    );
}

#[test]
fn funding_comes_on_request_and_lists_the_balance_only() {
    let mut full = Full::new();
    full.place("a", market(FUTURES, Side::Sell, 1_000));
    full.venue.fund_now(full.now, FUTURES, 10_000).unwrap();
    full.drain();
    assert_eq!(full.causes(), [Cause::FundingFee]);
    let StreamEvent::Futures {
        balances,
        positions,
        ..
    } = &full.events[0]
    else {
        panic!("{:?}", full.events)
    };
    assert_eq!(balances[0].1, amount("6.00005"));
    assert!(positions.is_empty());
}

#[test]
fn changed_settings_are_reported_completely() {
    let mut full = Full::new();
    full.venue
        .request(full.now, &Request::SetPositionMode { hedge: true });
    full.venue.set_multi_assets(full.now, true).unwrap();
    full.venue
        .credit(full.now, Surface::Spot, BTC, whole(1), Cause::AdminDeposit)
        .unwrap();
    full.drain();
    let config = |multi_assets| StreamEvent::Config {
        multi_assets,
        hedge: true,
        time: full.now,
    };
    assert_eq!(full.events[..2], [config(false), config(true)]);
    assert_eq!(full.causes(), [Cause::AdminDeposit]);
}

#[test]
fn rules_change_while_the_venue_runs_but_not_the_scales() {
    let mut full = Full::new();
    let mut rules = full.venue.instrument(FUTURES).unwrap().clone();
    rules.filters.min_notional = Some(whole(100));
    full.venue.set_rules(FUTURES, rules.clone()).unwrap();
    let order = NewOrder {
        client_order_id: id("a"),
        terms: limit(FUTURES, Side::Buy, 599_000, 1, TimeInForce::Gtc),
    };
    full.venue.request(full.now, &Request::Place(order));
    let Some(VenueMessage::Reply(Reply::Placed { outcome, .. })) = full.venue.poll() else {
        panic!("a reply is expected")
    };
    assert!(
        matches!(&outcome, windvane_model::protocol::Outcome::Refused(r) if r.code == -4164),
        "{outcome:?}"
    );
    rules.price_scale = 2;
    let error = full.venue.set_rules(FUTURES, rules).unwrap_err();
    assert!(
        matches!(
            error,
            VenueConfigError::Fixed {
                field: "price_scale",
                ..
            }
        ),
        "{error}"
    );
}
