//! Promise 4 (docs/promises.md#4-dead-mans-switch) on spot: no order is sent without a watchdog
//! process that received a heartbeat, and no heartbeat is sent while the run is not healthy.

use windvane_model::config::EngineConfig;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::live::{LiveConfig, LiveInput};
use windvane_model::order_state::OrderState;
use windvane_model::run_state::RunState;
use windvane_model::state_report::{AccountSnapshot, StateReport, Subject};
use windvane_model::{Notice, OrderSeq, Outcome, Side, Surface};
use windvane_model::{OrderStatus, Request};

use super::support::{Account, BTC, MM, config, limit, report, update};
use super::world::{live_config, nothing};

const SPOT: Surface = Surface::Spot;

impl Account {
    fn spot_lives(&mut self) {
        self.live(LiveInput::StreamAlive { surface: SPOT });
        self.live(LiveInput::Clock {
            surface: SPOT,
            offset_ns: 0,
            error_ns: 1,
        });
    }

    /// Answers every query as a venue without changes on our account.
    fn spot_answers(&mut self) {
        while let Some(subject) = self.take_question() {
            let state_report = match subject {
                Subject::OpenOrders { .. } => StateReport::OpenOrders(self.resting()),
                Subject::Account { .. } => StateReport::Account(AccountSnapshot {
                    can_trade: Some(true),
                    ..AccountSnapshot::default()
                }),
                _ => nothing(subject),
            };
            self.tell(subject, state_report);
        }
    }

    fn resting(&self) -> Vec<windvane_model::state_report::OpenOrder> {
        let orders: Vec<_> = self.engine.orders().iter().map(|order| order.seq).collect();
        orders
            .into_iter()
            .map(|order| self.open_order(order))
            .collect()
    }

    fn armed(&mut self, armed: bool) {
        self.live(LiveInput::Watchdog { armed });
    }

    /// Acknowledges the last heartbeat.
    fn hear(&mut self) {
        let number = *self.heartbeats.last().unwrap();
        self.live(LiveInput::HeartbeatAcknowledged { number });
    }

    /// Submits an order. Returns `None` if a rule rejects it.
    fn buy(&mut self) -> Option<OrderSeq> {
        let terms = limit(Side::Buy, 990, 10);
        self.call(MM, |callback, engine| callback.submit(engine, terms).ok())
    }

    /// A spot order that is open at the venue, as responses and events report.
    pub(crate) fn rest_on_spot(&mut self) -> OrderSeq {
        let order = self.buy().unwrap();
        let id = self.id(MM, order);
        self.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
        self.update(update(id, Side::Buy, OrderStatus::New, 0));
        order
    }

    /// Lets healthy seconds pass. Heartbeats are acknowledged if `heard`.
    fn healthy_seconds(&mut self, seconds: u32, heard: bool) {
        for _ in 0..seconds {
            self.pass(996);
            self.spot_lives();
            self.spot_answers();
            if heard && let Some(number) = self.heartbeats.pop() {
                self.live(LiveInput::HeartbeatAcknowledged { number });
            }
        }
    }
}

pub(crate) fn spot_config() -> EngineConfig {
    let mut spot = config();
    spot.instruments[0].surface = SPOT;
    spot.live = Some(LiveConfig {
        surfaces: vec![SPOT],
        watchdog: true,
        ..live_config()
    });
    spot
}

/// A run that has begun and is reconciled, without a watchdog.
fn unwatched() -> Account {
    let mut account = Account::new(spot_config());
    account.live(LiveInput::Begin);
    account.spot_lives();
    account.live(LiveInput::StreamUp { surface: SPOT });
    account.spot_answers();
    account
}

pub(crate) fn watched() -> Account {
    let mut account = unwatched();
    account.armed(true);
    account.hear();
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account.sent.clear();
    account.heartbeats.clear();
    account
}

#[test]
fn without_a_watchdog_the_run_is_degraded_and_sends_no_order() {
    let mut account = unwatched();
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::Watchdog]
    );
    assert!(
        account.heartbeats.is_empty(),
        "no watchdog would receive it"
    );
    assert_eq!(account.buy(), None);
    assert_eq!(account.places(), 0);
}

#[test]
fn an_order_is_sent_after_an_acknowledged_heartbeat() {
    let mut account = unwatched();
    account.armed(true);
    assert_eq!(account.heartbeats, [1]);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    account.live(LiveInput::HeartbeatAcknowledged { number: 7 });
    assert_eq!(
        account.engine.covered_until(BTC),
        None,
        "the number is not from our heartbeat"
    );
    account.hear();
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account.buy();
    assert_eq!(account.places(), 1);
}

#[test]
fn heartbeats_are_sent_one_at_a_time_while_all_is_well() {
    let mut account = watched();
    account.healthy_seconds(10, false);
    assert_eq!(account.heartbeats, [2], "the first was not acknowledged");
    account.hear();
    account.healthy_seconds(10, true);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn an_unhealthy_run_sends_no_heartbeat() {
    let mut account = watched();
    account.live(LiveInput::Journal { healthy: false });
    account.healthy_seconds(20, true);
    assert!(account.heartbeats.is_empty());
    account.live(LiveInput::Journal { healthy: true });
    account.healthy_seconds(4, false);
    assert_eq!(account.heartbeats.len(), 1);
}

#[test]
fn without_a_watchdog_open_orders_stay_and_new_ones_are_rejected() {
    let mut account = watched();
    let order = account.rest_on_spot();
    account.armed(false);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    assert_eq!(account.engine.order(order).unwrap().state, OrderState::New);
    account.sent.clear();
    assert_eq!(account.buy(), None);
    account.armed(true);
    account.hear();
    account.buy();
    assert_eq!(account.places(), 1);
}

#[test]
fn orders_are_unknown_after_a_countdown_without_heartbeats() {
    let mut account = watched();
    let order = account.rest_on_spot();
    account.live(LiveInput::Journal { healthy: false });
    account.healthy_seconds(29, false);
    assert_eq!(
        account.engine.order(order).unwrap().state,
        OrderState::Unknown
    );
    assert!(account.queries() >= 1, "it is queried");
    assert!(
        account
            .engine
            .degraded_reasons()
            .contains(&DegradedReason::Watchdog)
    );
}

/// The process was suspended and continues. Each of these inputs may be the first one that it
/// handles.
#[test]
fn orders_are_unknown_after_a_process_stall_for_any_first_input() {
    let first: [LiveInput; 3] = [
        LiveInput::Watchdog { armed: false },
        LiveInput::HeartbeatAcknowledged { number: 1 },
        LiveInput::StreamAlive { surface: SPOT },
    ];
    for input in first {
        let mut account = watched();
        let order = account.rest_on_spot();
        account.now = account.now.plus_ms(60_000);
        account.live(input);
        account
            .sent
            .retain(|request| !matches!(request, Request::Place(_)));
        account.buy();
        assert_eq!(account.places(), 0, "{input:?}");
        account.pass(1_000);
        let state = account.engine.order(order).unwrap().state;
        assert_eq!(state, OrderState::Unknown, "{input:?}");
    }
}

#[test]
fn an_order_that_waits_for_the_watchdog_is_finally_rejected() {
    let mut account = watched();
    // No heartbeat is acknowledged, and the cover ends without another degraded reason.
    account.healthy_seconds(26, false);
    account.now = account.now.plus_ms(5_000);
    let order = account.buy().unwrap();
    assert!(account.engine.order(order).unwrap().held);
    account.healthy_seconds(14, false);
    assert_eq!(account.places(), 0);
    assert!(account.engine.order(order).is_none());
}

#[test]
fn each_change_of_the_watchdog_is_reported_once() {
    let mut account = unwatched();
    account.armed(true);
    account.armed(true);
    account.armed(false);
    let reported = account.notices.iter().filter_map(|notice| match notice {
        Notice::Watchdog { armed, .. } => Some(*armed),
        _ => None,
    });
    assert_eq!(reported.collect::<Vec<_>>(), [true, false]);
}
