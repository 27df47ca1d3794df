//! Requests that wait after a rate limit of the venue, and the order in which they are sent.

use windvane_engine::engine::{CloseReason, Purpose};
use windvane_model::input::Command;
use windvane_model::live::{LiveConfig, LiveInput, OnStop, WaitKind};
use windvane_model::protocol::Refusal;
use windvane_model::rules::Rule;
use windvane_model::run_state::RunState;
use windvane_model::{Input, OrderSeq, OrderStatus, Outcome, Request, Side, Surface};

use super::succession::{killed, next_config};
use super::support::{Account, MM, OTHER, fill, limit, report, update};
use super::world::{live_config, ready, ready_with};

const TOO_MANY: i32 = -1003;
const TOO_MANY_ORDERS: i32 = -1015;

impl Account {
    fn wait_of_venue(&mut self, kind: WaitKind, wait_ms: i64) {
        self.live(LiveInput::VenueWait {
            surface: Surface::Futures,
            kind,
            wait_ms,
        });
    }

    /// An open buy order with this price and quantity.
    fn rests_at(&mut self, price: i64, qty: i64) -> OrderSeq {
        let order = self.submit(MM, limit(Side::Buy, price, qty));
        self.confirm_countdowns();
        let id = self.id(MM, order);
        self.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
        self.update(update(id, Side::Buy, OrderStatus::New, 0));
        self.sent.clear();
        order
    }

    fn position_of(&mut self, strategy: windvane_model::StrategyId, trade: i64) {
        let order = self.submit(strategy, limit(Side::Buy, 1000, 10));
        self.confirm_countdowns();
        let id = self.id(strategy, order);
        self.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
        self.update(fill(id, Side::Buy, trade, 10, 10, OrderStatus::Filled));
        self.sent.clear();
    }

    fn closes(&self) -> usize {
        let places = self.sent.iter();
        places
            .filter(|request| matches!(request, Request::Place(order) if order.terms.reduce_only))
            .count()
    }

    /// Rejects the last closing order because of a rate limit.
    fn refuse_close(&mut self, code: i32) {
        let id = self.sent.iter().rev().find_map(|request| match request {
            Request::Place(order) => Some(order.client_order_id),
            _ => None,
        });
        self.sent.clear();
        let refusal = Refusal {
            code,
            msg: String::new(),
        };
        self.placed(id.unwrap(), Outcome::Refused(refusal));
    }

    /// Client order ids of cancels, in the order in which they were sent.
    fn cancelled(&self) -> Vec<OrderSeq> {
        let ids = self.sent.iter().filter_map(|request| match request {
            Request::Cancel {
                client_order_id, ..
            } => client_order_id.parse_own().map(|(.., seq)| seq),
            _ => None,
        });
        ids.collect()
    }
}

#[test]
fn nothing_is_sent_during_a_wait_for_all_requests() {
    let mut account = ready();
    let order = account.rests_at(990, 10);
    account.wait_of_venue(WaitKind::All, 20_000);
    account.handle(Input::Command(Command::Halt));
    account.wait(19);
    assert_eq!(account.sent, [], "{:?}", account.sent);
    let (positions, orders) = account.engine.left_open(Surface::Futures);
    assert_eq!((positions.len(), orders.len()), (0, 1));
    account.wait(2);
    assert_eq!(account.cancelled(), [order]);
}

#[test]
fn a_longer_wait_replaces_a_shorter_one() {
    let mut account = ready();
    account.rests_at(990, 10);
    account.wait_of_venue(WaitKind::All, 20_000);
    account.wait_of_venue(WaitKind::All, 5_000);
    account.handle(Input::Command(Command::Halt));
    account.wait(10);
    assert_eq!(account.sent, []);
    account.wait_of_venue(WaitKind::All, 20_000);
    account.wait(15);
    assert_eq!(account.sent, []);
    account.wait(6);
    assert_eq!(account.cancelled().len(), 1);
}

#[test]
fn cancels_are_sent_first_with_the_largest_order_first() {
    let mut account = ready();
    let small = account.rests_at(980, 1);
    let large = account.rests_at(970, 50);
    let middle = account.rests_at(990, 10);
    account.wait_of_venue(WaitKind::All, 12_000);
    account.handle(Input::Command(Command::Halt));
    account.wait(13);
    assert_eq!(account.cancelled(), [large, middle, small]);
    let first_other = account
        .sent
        .iter()
        .position(|request| !matches!(request, Request::Cancel { .. }));
    assert!(
        first_other.is_none_or(|place| place >= 3),
        "{:?}",
        account.sent
    );
}

#[test]
fn a_rate_limited_cancel_is_sent_after_the_wait() {
    let mut account = ready();
    let order = account.rests_at(990, 10);
    account.handle(Input::Command(Command::Halt));
    assert_eq!(account.cancelled(), [order]);
    account.sent.clear();
    account.wait_of_venue(WaitKind::All, 8_000);
    let refusal = Refusal {
        code: TOO_MANY,
        msg: String::new(),
    };
    let id = account.id(MM, order);
    account.canceled(id, Outcome::Refused(refusal));
    account.wait(7);
    assert_eq!(account.sent, []);
    account.wait(2);
    assert_eq!(account.cancelled(), [order]);
}

#[test]
fn a_close_is_sent_when_the_wait_is_over() {
    let mut account = ready();
    account.position_of(MM, 1);
    account.wait_of_venue(WaitKind::All, 15_000);
    account.handle(Input::Command(Command::Flatten));
    account.wait(14);
    assert_eq!(account.places(), 0);
    let (positions, _) = account.engine.left_open(Surface::Futures);
    assert_eq!(positions.len(), 1);
    account.seconds(2);
    assert_eq!(account.closes(), 1);
}

#[test]
fn a_rate_limited_close_does_not_count_as_a_try() {
    let mut account = ready();
    account.position_of(MM, 1);
    account.handle(Input::Command(Command::Flatten));
    for _ in 0..25 {
        assert_eq!(account.closes(), 1);
        account.wait_of_venue(WaitKind::All, 5_000);
        account.refuse_close(TOO_MANY);
        account.seconds(6);
    }
}

#[test]
fn an_order_during_a_wait_is_rejected_at_once() {
    let mut account = ready();
    account.wait_of_venue(WaitKind::All, 10_000);
    account.submit(MM, limit(Side::Buy, 990, 10));
    assert_eq!(account.sent, []);
    assert!(account.engine.orders().is_empty());
}

#[test]
fn renewals_are_sent_after_the_wait() {
    let mut account = ready();
    account.rests_at(990, 10);
    account.wait_of_venue(WaitKind::All, 15_000);
    account.wait(14);
    assert_eq!(account.sent, []);
    account.wait(2);
    assert_eq!(account.take_countdown(), Some(30_000));
}

#[test]
fn the_order_limit_allows_cancels_and_queries() {
    let mut account = ready();
    let order = account.rests_at(990, 10);
    account.wait_of_venue(WaitKind::Orders, 60_000);
    account.handle(Input::Command(Command::Halt));
    assert_eq!(account.cancelled(), [order]);
    account.sent.clear();
    account.seconds(35);
    assert!(account.engine.order_wait(Surface::Futures).is_some());
}

#[test]
fn after_the_order_limit_closes_wait_for_the_interval() {
    for kind in [WaitKind::Orders, WaitKind::OrdersUntil] {
        let mut account = ready();
        account.position_of(MM, 1);
        let earlier = account.submit(OTHER, limit(Side::Buy, 990, 10));
        account.confirm_countdowns();
        let earlier = account.id(OTHER, earlier);
        account.sent.clear();
        account.handle(Input::Command(Command::Flatten));
        assert_eq!(account.closes(), 1);
        account.wait_of_venue(kind, 57_000);
        account.refuse_close(TOO_MANY_ORDERS);
        // It was sent before the rejection, so its acceptance does not end the wait.
        account.placed(earlier, Outcome::Done(report(earlier, OrderStatus::New, 0)));
        account.seconds(56);
        assert_eq!(account.closes(), 0, "{kind:?} {:?}", account.sent);
        let waits = account.engine.close_waits();
        let named = |reason: &CloseReason| matches!(reason, CloseReason::OrderLimit(..));
        assert!(waits[0].reasons.iter().any(named), "{waits:?}");
        account.seconds(2);
        assert_eq!(account.closes(), 1, "{kind:?}");
    }
}

#[test]
fn the_order_limit_survives_a_restart() {
    let mut account = ready();
    account.wait_of_venue(WaitKind::Orders, 50_000);
    let mut account = killed(account, next_config());
    account.begin();
    account.sync();
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account.sent.clear();
    let rejected = account.call(MM, |callback, engine| {
        callback.submit(engine, limit(Side::Buy, 990, 10)).err()
    });
    let rejected = rejected.unwrap();
    assert_eq!(rejected.rule, Rule::OrderLimit);
    let words = rejected.to_string();
    assert!(words.contains("order limit"), "{words}");
    assert!(
        words.contains("in 48 seconds")
            || words.contains("in 49 seconds")
            || words.contains("in 50 seconds"),
        "{words}"
    );
    account.seconds(51);
    account.submit(MM, limit(Side::Buy, 990, 10));
    account.confirm_countdowns();
    assert_eq!(account.places(), 1);
}

#[test]
fn after_the_order_limit_the_largest_close_is_sent_first() {
    let mut account = ready();
    account.position_of(MM, 1);
    for trade in [2, 3] {
        account.position_of(OTHER, trade);
    }
    account.wait_of_venue(WaitKind::Orders, 30_000);
    account.handle(Input::Command(Command::Flatten));
    account.seconds(29);
    assert_eq!(account.closes(), 0);
    account.sent.clear();
    account.wait(2);
    let first = account.sent.iter().take(2).map(|request| match request {
        Request::Place(order) => order.terms.qty.map(|qty| qty.0),
        _ => None,
    });
    assert_eq!(first.collect::<Vec<_>>(), [Some(20), Some(10)]);
}

#[test]
fn the_order_limit_does_not_delay_renewals() {
    let mut account = ready();
    account.rests_at(990, 10);
    account.wait_of_venue(WaitKind::Orders, 60_000);
    account.wait(15);
    assert_eq!(account.take_countdown(), Some(30_000));
}

#[test]
fn an_order_limit_does_not_delay_cancels() {
    let mut account = ready();
    let order = account.rests_at(990, 10);
    account.wait_of_venue(WaitKind::Orders, 57_000);
    account.handle(Input::Command(Command::Halt));
    assert_eq!(account.cancelled(), [order]);
}

#[test]
fn purposes_mark_requests_that_reduce_risk() {
    let mut account = ready_with(LiveConfig {
        on_stop: OnStop::Flatten,
        ..live_config()
    });
    account.position_of(MM, 1);
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    let place = account.sent.pop().unwrap();
    assert_eq!(account.engine.purpose(&place), Purpose::Ordinary);
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    account.update(update(id, Side::Buy, OrderStatus::New, 0));
    account.live(LiveInput::Stop);
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
    let close = account
        .sent
        .iter()
        .find(|request| matches!(request, Request::Place(_)));
    assert_eq!(account.engine.purpose(close.unwrap()), Purpose::Close);
}
