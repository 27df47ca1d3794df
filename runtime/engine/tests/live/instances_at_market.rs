//! Two instances on one account. The other one places only market orders, so none of its orders
//! stays open. The venue's list of the account's trades shows them, and a query for the order of
//! such a trade returns its client order id.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::input::Command;
use windvane_model::live::LiveInput;
use windvane_model::protocol::Refusal;
use windvane_model::run_state::RunState;
use windvane_model::state_report::{AccountTrade, OpenOrder, StateReport, Subject, TradedOrder};
use windvane_model::{
    ClientOrderId, ExecutionType, Input, Notice, OrderStatus, Outcome, Request, Side, Surface,
    Time, VenueOrderId,
};

use super::reconciliation::trade;
use super::succession::{killed, next_config};
use super::support::{Account, fill, update};
use super::world::{booting, live_config, no_trades, nothing, ready};

/// Two reconcile intervals, in seconds.
const WATCH_S: u32 = 60;

/// A test account that sends orders of type MARKET, and the simulated responses to its queries.
#[derive(Default)]
struct Market {
    trades: Vec<AccountTrade>,
    orders: Vec<(VenueOrderId, TradedOrder)>,
    resting: Vec<OpenOrder>,
    /// The number of queries for orders.
    asked: usize,
    /// The error code returned for every query for an order, instead of the order.
    refused: Option<i32>,
    /// The venue has no route that lists the account's trades.
    has_no_trades: bool,
    /// The venue rejects the list of orders.
    has_no_orders: bool,
    /// The number of queries for the list of orders.
    lists: usize,
}

impl Market {
    /// Adds an order that was placed and filled at this time.
    fn execute(&mut self, text: &str, at: Time) {
        self.fill(text, at, at);
    }

    fn fill(&mut self, text: &str, placed: Time, filled: Time) {
        let id = 100 + self.trades.len() as i64;
        let mut listed = trade(id, id, 1);
        listed.time = filled;
        self.trades.push(listed);
        let client_order_id = ClientOrderId::new(text).unwrap();
        let order = TradedOrder {
            client_order_id,
            placed,
        };
        self.orders.push((VenueOrderId(id), order));
    }

    fn answer(&mut self, account: &mut Account) {
        while let Some(subject) = account.take_question() {
            let outcome = self.outcome(account, subject);
            account.answer(subject, outcome);
        }
    }

    fn outcome(&mut self, account: &Account, subject: Subject) -> Outcome<StateReport> {
        let state_report = match subject {
            Subject::OpenOrders { .. } => StateReport::OpenOrders(self.resting.clone()),
            Subject::Account { .. } => StateReport::Account(account.own_account()),
            Subject::Trades { .. } if self.has_no_trades => return refusal(404),
            Subject::NewestOrders { .. } => {
                self.lists += 1;
                if self.has_no_orders {
                    return refusal(404);
                }
                StateReport::NewestOrders(self.orders.iter().map(|(_, order)| *order).collect())
            }
            Subject::Trades { from, .. } => {
                let trades = self.trades.iter();
                let listed = trades.filter(|one| from.is_none_or(|id| one.fill.trade_id >= id));
                StateReport::Trades {
                    trades: listed.copied().collect(),
                    more: false,
                }
            }
            Subject::TradedOrder { order_id, .. } => {
                self.asked += 1;
                if let Some(code) = self.refused {
                    return refusal(code);
                }
                let mut orders = self.orders.iter();
                let (_, order) = orders.find(|(id, _)| *id == order_id).unwrap();
                StateReport::TradedOrder(*order)
            }
            subject => nothing(subject),
        };
        Outcome::Done(state_report)
    }

    fn start(&mut self) -> Account {
        let mut account = booting(live_config());
        account.begin();
        self.answer(&mut account);
        account
    }

    fn pass(&mut self, account: &mut Account, seconds: u32) {
        for _ in 0..seconds {
            account.pass(998);
            account.alive();
            account.clock();
            self.answer(account);
            account.confirm_countdowns();
        }
    }
}

fn refusal(code: i32) -> Outcome<StateReport> {
    let msg = String::new();
    Outcome::Refused(Refusal { code, msg })
}

/// A time before the test begins.
fn ago(ms: i64) -> Time {
    booting(live_config()).now.plus_ms(-ms)
}

fn sent_changes(account: &Account) -> usize {
    let reads = |request: &&Request| matches!(request, Request::Read(_) | Request::Query { .. });
    account.sent.len() - account.sent.iter().filter(reads).count()
}

fn notices_of_another(account: &Account) -> usize {
    let is_it = |notice: &&Notice| matches!(notice, Notice::AnotherInstance { .. });
    account.notices.iter().filter(is_it).count()
}

#[test]
fn an_order_that_filled_at_once_starts_the_watch() {
    let mut market = Market::default();
    market.execute("mm.6.3", ago(20_000));
    let mut account = market.start();
    let watch = account.engine.instance_watch().unwrap();
    assert_eq!(watch.id.as_str(), "mm.6.3");
    market.pass(&mut account, WATCH_S - 2);
    assert_eq!(account.engine.run_state(), RunState::Syncing);
    assert_eq!(sent_changes(&account), 0, "{:?}", account.sent);
}

#[test]
fn an_order_shown_only_by_trades_proves_another_instance() {
    let mut market = Market::default();
    market.execute("mm.6.3", ago(20_000));
    let mut account = market.start();
    market.pass(&mut account, 30);
    market.execute("mm.6.4", account.now);
    market.pass(&mut account, WATCH_S - 30 + 3);
    let order = account.engine.other_instance().unwrap();
    assert_eq!(order.as_str(), "mm.6.4");
    market.pass(&mut account, WATCH_S);
    assert_eq!(account.engine.run_state(), RunState::Syncing);
    assert_eq!(sent_changes(&account), 0, "{:?}", account.sent);
}

/// An event of a market order of the other instance, at the current time.
fn report(account: &mut Account, text: &str, execution: ExecutionType) {
    let id = ClientOrderId::new(text).unwrap();
    let mut event = match execution {
        ExecutionType::New => update(id, Side::Buy, OrderStatus::New, 0),
        _ => fill(id, Side::Buy, 101, 1, 1, OrderStatus::Filled),
    };
    event.execution = execution;
    event.order_id = VenueOrderId(101);
    event.transaction_time = account.now;
    account.update(event);
}

#[test]
fn an_event_of_a_market_order_proves_another_instance() {
    // The venue may send the fill first.
    for is_shuffled in [false, true] {
        let mut market = Market::default();
        market.execute("mm.6.3", ago(20_000));
        let mut account = market.start();
        market.pass(&mut account, 5);
        if is_shuffled {
            report(&mut account, "mm.6.4", ExecutionType::Trade);
            assert_eq!(account.engine.other_instance(), None);
        }
        report(&mut account, "mm.6.4", ExecutionType::New);
        assert!(account.engine.other_instance().is_some());
    }
}

#[test]
fn a_fill_event_alone_is_checked_by_its_order_after_the_watch() {
    for (placed_ms, is_alive) in [(0, true), (-60_000, false)] {
        let mut market = Market::default();
        market.execute("mm.6.3", ago(20_000));
        let mut account = market.start();
        market.pass(&mut account, 30);
        report(&mut account, "mm.6.4", ExecutionType::Trade);
        market.fill("mm.6.4", account.now.plus_ms(placed_ms), account.now);
        market.pass(&mut account, WATCH_S - 30 + 3);
        assert_eq!(account.engine.other_instance().is_some(), is_alive);
    }
}

#[test]
fn a_late_fill_of_an_older_order_proves_no_other_instance() {
    let mut market = Market::default();
    market.execute("mm.6.3", ago(20_000));
    let mut account = market.start();
    market.pass(&mut account, 30);
    market.fill("mm.6.9", ago(40_000), account.now);
    market.pass(&mut account, WATCH_S);
    assert_eq!(account.engine.other_instance(), None);
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::Ownership],
        "the fill is unowned"
    );
}

#[test]
fn after_a_wiped_folder_the_run_is_ready_after_the_watch() {
    let mut market = Market::default();
    market.execute("mm.6.3", ago(20_000));
    let mut account = market.start();
    market.pass(&mut account, WATCH_S + 3);
    assert_eq!(account.engine.instance_watch(), None);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    let reported = |notice: &&Notice| matches!(notice, Notice::InstanceWatch { .. });
    assert_eq!(account.notices.iter().filter(reported).count(), 2);
    // The next process of this data folder knows the order.
    let mut config = next_config();
    config.epoch = 20;
    let mut account = killed(account, config);
    account.begin();
    market.answer(&mut account);
    assert_eq!(account.engine.instance_watch(), None);
}

#[test]
fn with_an_old_copy_of_a_folder_a_person_must_assign_positions() {
    let mut config = next_config();
    config.epoch = 20;
    let mut account = killed(ready(), config);
    let mut market = Market::default();
    market.execute("mm.9.1", account.now.plus_ms(-1_000));
    account.begin();
    market.answer(&mut account);
    assert!(account.engine.instance_watch().is_some());
    market.pass(&mut account, WATCH_S + 3);
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::Ownership]
    );
}

#[test]
fn take_over_starts_without_a_watch() {
    let mut market = Market::default();
    market.execute("mm.6.3", ago(20_000));
    let mut account = booting(live_config());
    account.engine.take_over();
    account.begin();
    market.answer(&mut account);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    assert_eq!(notices_of_another(&account), 0);
    market.execute("mm.6.4", account.now);
    account.live(LiveInput::StreamUp {
        surface: Surface::Futures,
    });
    market.answer(&mut account);
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::AnotherInstance]
    );
    assert_eq!(notices_of_another(&account), 1);
}

#[test]
fn a_trade_whose_event_was_lost_degrades_a_running_instance() {
    let mut account = ready();
    let mut market = Market::default();
    market.execute("web_7", account.now);
    market.execute("mm.8.1", account.now);
    account.live(LiveInput::StreamUp {
        surface: Surface::Futures,
    });
    market.answer(&mut account);
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::AnotherInstance]
    );
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    assert_eq!(notices_of_another(&account), 1);
    account.handle(Input::Command(Command::Resume));
    market.pass(&mut account, 1);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_running_instance_reports_another_one_once() {
    let mut account = ready();
    for number in 1..4 {
        let id = ClientOrderId::new(&format!("mm.8.{number}")).unwrap();
        account.update(fill(id, Side::Buy, number, 1, 1, OrderStatus::Filled));
    }
    assert!(
        account
            .engine
            .degraded_reasons()
            .contains(&DegradedReason::AnotherInstance)
    );
    assert_eq!(notices_of_another(&account), 1);
}

#[test]
fn trades_of_people_and_of_this_folder_do_not_delay_a_start() {
    let mut market = Market::default();
    market.execute("web_7", ago(9_000));
    // The previous process had epoch 5.
    market.execute("mm.5.9", ago(8_000));
    let account = market.start();
    assert_eq!(market.asked, 2);
    assert_eq!(account.engine.instance_watch(), None);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_start_queries_few_orders_and_none_older_than_a_day() {
    let mut market = Market::default();
    market.execute("mm.6.1", ago(25 * 60 * 60 * 1_000));
    assert_eq!(market.start().engine.run_state(), RunState::Ready);
    assert_eq!(market.asked, 0);
    for number in 2..60 {
        market.execute(&format!("web_{number}"), ago(9_000));
    }
    assert_eq!(market.start().engine.run_state(), RunState::Ready);
    assert_eq!(market.asked, 3);
}

#[test]
fn queries_for_orders_are_sent_after_the_account_was_read() {
    let mut market = Market::default();
    market.execute("mm.6.3", ago(20_000));
    let mut account = booting(live_config());
    account.begin();
    let mut order = Vec::new();
    while let Some(subject) = account.take_question() {
        order.push(subject);
        let outcome = market.outcome(&account, subject);
        account.answer(subject, outcome);
    }
    let place = |is_it: fn(&Subject) -> bool| order.iter().position(is_it).unwrap();
    let read = place(|subject| matches!(subject, Subject::Account { .. }));
    let asked = place(|subject| matches!(subject, Subject::TradedOrder { .. }));
    assert!(read < asked, "{order:?}");
}

#[test]
fn a_start_ends_although_the_route_for_orders_fails() {
    // The codes mean: not found, as for a stale query; a timeout; and a route that does not exist.
    for (code, seconds) in [(-2013, 20), (-1007, 70), (-1020, 20)] {
        let mut market = Market::default();
        market.execute("mm.6.3", ago(2_000));
        market.has_no_orders = true;
        market.refused = Some(code);
        let mut account = market.start();
        assert_eq!(account.engine.run_state(), RunState::Syncing, "{code}");
        market.pass(&mut account, seconds);
        assert_eq!(account.engine.run_state(), RunState::Ready, "{code}");
    }
}

#[test]
fn an_order_that_the_query_finds_late_starts_the_watch() {
    let mut market = Market::default();
    market.execute("mm.6.3", ago(2_000));
    market.has_no_orders = true;
    market.refused = Some(-2013);
    let mut account = market.start();
    market.pass(&mut account, 6);
    market.refused = None;
    market.pass(&mut account, 6);
    assert!(account.engine.instance_watch().is_some());
}

#[test]
fn a_venue_without_account_trades_starts_no_watch() {
    let mut account = booting(live_config());
    account.begin();
    while let Some(subject) = account.take_question() {
        let state_report = match subject {
            Subject::Trades { .. } => no_trades(),
            Subject::Account { .. } => StateReport::Account(account.own_account()),
            subject => nothing(subject),
        };
        account.tell(subject, state_report);
    }
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_stale_list_of_trades_does_not_hide_another_instance() {
    let mut market = Market::default();
    market.execute("mm.6.3", ago(2_000));
    let late = std::mem::take(&mut market.trades);
    let mut account = market.start();
    let watch = account.engine.instance_watch().unwrap();
    assert_eq!(watch.id.as_str(), "mm.6.3");
    market.trades = late;
    market.pass(&mut account, WATCH_S - 2);
    assert_eq!(sent_changes(&account), 0, "{:?}", account.sent);
}

/// A venue that does not list the account's trades.
fn untraded() -> Market {
    Market {
        has_no_trades: true,
        ..Market::default()
    }
}

fn notices_of_unseen_instances(account: &Account) -> usize {
    let is_it = |notice: &&Notice| matches!(notice, Notice::InstancesUnseen { .. });
    account.notices.iter().filter(is_it).count()
}

fn reconnect(account: &mut Account) {
    account.live(LiveInput::StreamUp {
        surface: Surface::Futures,
    });
}

#[test]
fn without_trades_the_list_of_orders_shows_another_instance() {
    let mut market = untraded();
    market.execute("mm.6.3", ago(20_000));
    let mut account = market.start();
    let watch = account.engine.instance_watch().unwrap();
    assert_eq!(watch.id.as_str(), "mm.6.3");
    market.pass(&mut account, 30);
    market.execute("mm.6.4", account.now);
    market.pass(&mut account, WATCH_S - 30 + 3);
    let order = account.engine.other_instance().unwrap();
    assert_eq!(order.as_str(), "mm.6.4");
    assert_eq!(sent_changes(&account), 0, "{:?}", account.sent);
    assert_eq!((market.lists, market.asked), (2, 0));
}

#[test]
fn without_trades_a_wiped_folder_is_ready_after_the_watch() {
    let mut market = untraded();
    market.execute("mm.6.3", ago(20_000));
    let mut account = market.start();
    market.pass(&mut account, WATCH_S + 3);
    assert_eq!(account.engine.instance_watch(), None);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn orders_of_people_and_old_orders_do_not_delay_a_start() {
    let mut market = untraded();
    market.execute("mm.6.1", ago(25 * 60 * 60 * 1_000));
    market.execute("web_7", ago(9_000));
    market.execute("mm.5.9", ago(8_000));
    let account = market.start();
    assert_eq!(account.engine.run_state(), RunState::Ready);
    assert_eq!(
        (market.lists, notices_of_unseen_instances(&account)),
        (1, 0)
    );
}

#[test]
fn the_list_of_orders_after_a_reconnect_shows_another_instance() {
    let mut account = ready();
    let mut market = untraded();
    market.execute("mm.8.1", account.now);
    reconnect(&mut account);
    market.answer(&mut account);
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::AnotherInstance]
    );
    assert_eq!(notices_of_another(&account), 1);
}

#[test]
fn missing_lists_of_trades_and_orders_are_reported_once() {
    let mut market = untraded();
    market.has_no_orders = true;
    market.execute("mm.6.3", ago(20_000));
    let mut account = market.start();
    assert_eq!(account.engine.run_state(), RunState::Ready);
    assert_eq!(
        (market.lists, notices_of_unseen_instances(&account)),
        (1, 1)
    );
    market.pass(&mut account, WATCH_S);
    assert_eq!(market.lists, 1);
    reconnect(&mut account);
    market.pass(&mut account, 5);
    assert_eq!(
        (market.lists, notices_of_unseen_instances(&account)),
        (2, 1)
    );
}

#[test]
fn a_start_ends_although_the_list_of_orders_is_unknown() {
    let mut market = untraded();
    let mut account = booting(live_config());
    account.begin();
    for _ in 0..70 {
        while let Some(subject) = account.take_question() {
            let outcome = match subject {
                Subject::NewestOrders { .. } => Outcome::Unknown,
                subject => market.outcome(&account, subject),
            };
            account.answer(subject, outcome);
        }
        account.pass(998);
        account.alive();
        account.clock();
        account.confirm_countdowns();
    }
    assert_eq!(account.engine.run_state(), RunState::Ready);
    assert_eq!(notices_of_unseen_instances(&account), 1);
}

/// The run starts with `take_over`, and one of the other instance's orders fills later. An order
/// that was placed just before the start may be missing in the first list of open orders, which may
/// be ten seconds old. So its fill is no sign of another live instance. The fill of an order that
/// was placed after the start is.
#[test]
fn fills_of_orders_from_before_a_take_over_show_no_instance() {
    for (placed_ms, is_alive) in [(-5_000, false), (60_000, true)] {
        let mut market = Market::default();
        let mut account = booting(live_config());
        account.engine.take_over();
        account.begin();
        market.answer(&mut account);
        assert_eq!(account.engine.run_state(), RunState::Ready);
        let began = account.now;
        market.pass(&mut account, 61);
        report(&mut account, "mm.6.4", ExecutionType::Trade);
        market.fill("mm.6.4", began.plus_ms(placed_ms), account.now);
        market.orders[0].0 = VenueOrderId(101);
        market.pass(&mut account, 5);
        let is_seen = account
            .engine
            .degraded_reasons()
            .contains(&DegradedReason::AnotherInstance);
        assert_eq!(is_seen, is_alive);
        assert_eq!(notices_of_another(&account), usize::from(is_alive));
    }
}
