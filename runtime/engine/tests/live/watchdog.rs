//! Promise 4 on spot: no order without a watchdog process that heard of our health, and no sign of
//! health without health.

use windvane_model::config::EngineConfig;
use windvane_model::doubt::Doubt;
use windvane_model::live::{LiveConfig, LiveInput};
use windvane_model::order_state::OrderState;
use windvane_model::run_state::RunState;
use windvane_model::truth::{AccountTruth, Subject, Truth};
use windvane_model::{Notice, OrderSeq, Outcome, Side, Surface};
use windvane_model::{OrderStatus, Request};

use super::support::{Account, BTC, MM, config, limit, report, update};
use super::world::{live_config, no_trades};

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

    /// Answers every question as a venue on which nothing of ours is.
    fn spot_answers(&mut self) {
        while let Some(subject) = self.take_question() {
            let truth = match subject {
                Subject::OpenOrders { .. } => Truth::OpenOrders(self.resting()),
                Subject::Account { .. } => Truth::Account(AccountTruth {
                    can_trade: Some(true),
                    ..AccountTruth::default()
                }),
                Subject::ForcedOrders { .. }
                | Subject::OutsideOrder { .. }
                | Subject::TradedOrder { .. }
                | Subject::NewestOrders { .. }
                | Subject::Rules { .. }
                | Subject::Income { .. }
                | Subject::AssetPrice { .. } => super::world::nothing(subject),
                Subject::Trades { .. } => no_trades(),
            };
            self.tell(subject, truth);
        }
    }

    fn resting(&self) -> Vec<windvane_model::truth::OpenOrder> {
        let orders: Vec<_> = self.engine.orders().iter().map(|order| order.seq).collect();
        orders
            .into_iter()
            .map(|order| self.open_order(order))
            .collect()
    }

    fn armed(&mut self, armed: bool) {
        self.live(LiveInput::Watchdog { armed });
    }

    /// Answers the last sign of health.
    fn hear(&mut self) {
        let number = *self.beats.last().unwrap();
        self.live(LiveInput::BeatHeard { number });
    }

    /// Submits an order; answers it unless a rule forbids it.
    fn buy(&mut self) -> Option<OrderSeq> {
        let terms = limit(Side::Buy, 990, 10);
        self.call(MM, |callback, engine| callback.submit(engine, terms).ok())
    }

    /// A spot order that rests at the venue and is known to.
    pub(crate) fn rest_on_spot(&mut self) -> OrderSeq {
        let order = self.buy().unwrap();
        let id = self.id(MM, order);
        self.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
        self.update(update(id, Side::Buy, OrderStatus::New, 0));
        order
    }

    /// Lets healthy seconds pass in which every sign of health is answered, or none.
    fn healthy_seconds(&mut self, seconds: u32, heard: bool) {
        for _ in 0..seconds {
            self.pass(996);
            self.spot_lives();
            self.spot_answers();
            if heard && let Some(number) = self.beats.pop() {
                self.live(LiveInput::BeatHeard { number });
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

/// Begun and synced, with nobody who watches.
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
    account.beats.clear();
    account
}

#[test]
fn without_a_watchdog_the_run_is_not_ready_and_no_order_leaves() {
    let mut account = unwatched();
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    assert_eq!(account.engine.doubts(), [Doubt::Watchdog]);
    assert!(account.beats.is_empty(), "nobody would hear it");
    assert_eq!(account.buy(), None);
    assert_eq!(account.places(), 0);
}

#[test]
fn an_order_leaves_once_a_sign_of_health_was_heard() {
    let mut account = unwatched();
    account.armed(true);
    assert_eq!(account.beats, [1]);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    account.live(LiveInput::BeatHeard { number: 7 });
    assert_eq!(
        account.engine.covered_until(BTC),
        None,
        "of no sign of ours"
    );
    account.hear();
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account.buy();
    assert_eq!(account.places(), 1);
}

#[test]
fn signs_are_given_while_all_is_well_and_one_at_a_time() {
    let mut account = watched();
    account.healthy_seconds(10, false);
    assert_eq!(account.beats, [2], "the first was not answered");
    account.hear();
    account.healthy_seconds(10, true);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn no_sign_of_health_without_health() {
    let mut account = watched();
    account.live(LiveInput::Journal { healthy: false });
    account.healthy_seconds(20, true);
    assert!(account.beats.is_empty());
    account.live(LiveInput::Journal { healthy: true });
    account.healthy_seconds(4, false);
    assert_eq!(account.beats.len(), 1);
}

#[test]
fn a_watchdog_that_is_gone_leaves_what_rests_and_lets_nothing_new_out() {
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
fn orders_are_in_doubt_when_signs_were_withheld_for_a_countdown() {
    let mut account = watched();
    let order = account.rest_on_spot();
    account.live(LiveInput::Journal { healthy: false });
    account.healthy_seconds(29, false);
    assert_eq!(
        account.engine.order(order).unwrap().state,
        OrderState::Unknown
    );
    assert!(account.queries() >= 1, "it is asked for");
    assert!(account.engine.doubts().contains(&Doubt::Watchdog));
}

/// The process was stopped and goes on: of all that waits for it, this is heard first.
#[test]
fn orders_are_in_doubt_after_a_stop_whatever_is_heard_first() {
    let first: [LiveInput; 3] = [
        LiveInput::Watchdog { armed: false },
        LiveInput::BeatHeard { number: 1 },
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
fn an_order_that_waits_for_cover_is_refused_after_a_while() {
    let mut account = watched();
    // Nobody answers, and the cover ends with nothing else in doubt.
    account.healthy_seconds(26, false);
    account.now = account.now.plus_ms(5_000);
    let order = account.buy().unwrap();
    assert!(account.engine.order(order).unwrap().held);
    account.healthy_seconds(14, false);
    assert_eq!(account.places(), 0);
    assert!(account.engine.order(order).is_none());
}

#[test]
fn people_are_told_of_each_change_once() {
    let mut account = unwatched();
    account.armed(true);
    account.armed(true);
    account.armed(false);
    let told = account.notices.iter().filter_map(|notice| match notice {
        Notice::Watchdog { armed, .. } => Some(*armed),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [true, false]);
}
