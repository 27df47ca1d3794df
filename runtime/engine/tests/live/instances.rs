//! Two instances on one account: a start watches for the other instance, and a running instance
//! becomes degraded.

use windvane_engine::engine::FolderIds;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::input::Command;
use windvane_model::live::LiveInput;
use windvane_model::run_state::RunState;
use windvane_model::state_report::OpenOrder;
use windvane_model::{
    ClientOrderId, ExecutionType, Input, Notice, OrderStatus, Qty, Request, Side, Surface, Time,
    VenueOrderId,
};

use super::reconciliation::round;
use super::succession::{killed, next_config};
use super::support::{Account, MM, fill, limit, report, update};
use super::world::{booting, live_config, ready};

const FUTURES: Surface = Surface::Futures;
/// Two reconcile intervals, in seconds.
const WATCH_S: u32 = 60;

/// An open order from before the test.
fn old(text: &str) -> OpenOrder {
    let id = ClientOrderId::new(text).unwrap();
    let mut open = OpenOrder {
        report: report(id, OrderStatus::New, 0),
        terms: limit(Side::Buy, 990, 10),
    };
    let number = id.parse_own().map_or(99, |(.., number)| number.0);
    open.report.order_id = VenueOrderId(number as i64);
    open.report.update_time = Time::from_millis(1_000);
    open
}

/// An open order that was placed now.
fn young(text: &str, account: &Account) -> OpenOrder {
    let mut open = old(text);
    open.report.update_time = account.now;
    open
}

/// A start with these open orders.
fn start(open: &[OpenOrder]) -> Account {
    let mut account = booting(live_config());
    account.begin();
    round(&mut account, open, &[], |_| {});
    account
}

/// Lets time pass with these open orders.
fn pass(account: &mut Account, seconds: u32, open: &[OpenOrder]) {
    for _ in 0..seconds {
        account.pass(998);
        account.alive();
        account.clock();
        round(account, open, &[], |_| {});
        account.confirm_countdowns();
    }
}

fn accepted(account: &mut Account, text: &str) {
    let id = ClientOrderId::new(text).unwrap();
    let mut event = update(id, Side::Buy, OrderStatus::New, 0);
    event.execution = ExecutionType::New;
    event.transaction_time = account.now;
    account.update(event);
}

/// The number of cancels of orders. A probe of the trading permission names an order that cannot
/// exist, and does not count.
fn cancels(account: &Account) -> usize {
    let is_probe = |id: &ClientOrderId| id.parse_own().is_some_and(|(.., seq)| seq.0 == u64::MAX);
    let is_cancel = |request: &&Request| matches!(request, Request::Cancel { client_order_id, .. } if !is_probe(client_order_id));
    account.sent.iter().filter(is_cancel).count()
}

fn changes(account: &Account) -> usize {
    let reads = |request: &&Request| matches!(request, Request::Read(_) | Request::Query { .. });
    account.sent.len() - account.sent.iter().filter(reads).count()
}

#[test]
fn unknown_own_orders_start_a_watch_before_anything_is_sent() {
    let open = [old("mm.6.3"), old("gone.6.4")];
    let mut account = start(&open);
    let watch = account.engine.instance_watch().unwrap();
    assert_eq!(watch.id, open[0].report.client_order_id);
    assert_eq!(account.engine.run_state(), RunState::Syncing);
    pass(&mut account, WATCH_S - 2, &open);
    assert_eq!(account.engine.run_state(), RunState::Syncing);
    assert_eq!(changes(&account), 0, "{:?}", account.sent);
    assert!(account.engine.orders().is_empty());
    assert_eq!(
        account.engine.external_orders().count(),
        2,
        "they are visible to people"
    );
}

#[test]
fn after_a_wiped_folder_the_watch_ends_with_adoption_or_cancel() {
    let open = [old("mm.6.3"), old("gone.6.4"), old("web-1")];
    let mut account = start(&open);
    pass(&mut account, WATCH_S + 3, &open);
    assert_eq!(account.engine.instance_watch(), None);
    assert_eq!(account.engine.other_instance(), None);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    assert_eq!(account.engine.orders().iter().count(), 1);
    assert!(cancels(&account) >= 1);
    let others = account.engine.external_orders();
    let others: Vec<_> = others
        .map(|order| order.report.client_order_id.to_string())
        .collect();
    assert_eq!(others, ["web-1"]);
    let reported = |notice: &&Notice| matches!(notice, Notice::InstanceWatch { .. });
    assert_eq!(account.notices.iter().filter(reported).count(), 2);
}

/// The data folder was wiped while a strategy held a position, so its owner is unknown.
#[test]
fn after_a_wiped_folder_a_position_prevents_new_exposure() {
    for held in [10_000, 0] {
        let mut account = booting(live_config());
        account.begin();
        let open = [old("mm.6.3")];
        for _ in 0..WATCH_S + 3 {
            round(&mut account, &open, &[], |state_report| {
                state_report.positions[0].qty = Qty(held);
            });
            account.pass(998);
            account.alive();
            account.clock();
            account.confirm_countdowns();
        }
        assert_eq!(account.engine.instance_watch(), None);
        let reasons = account.engine.degraded_reasons();
        assert_eq!(
            reasons.contains(&DegradedReason::Ownership),
            held != 0,
            "{held}: {reasons:?}"
        );
        let resumed = Input::Command(Command::Resume);
        account.handle(resumed);
        assert!(
            !account
                .engine
                .degraded_reasons()
                .contains(&DegradedReason::Ownership)
        );
    }
}

/// The number of orders that a watch adopted at its end, from the notices.
fn adopted_counts(account: &Account) -> Vec<usize> {
    let reported = account.notices.iter().filter_map(|notice| match notice {
        Notice::InstanceWatch {
            until: None,
            adopted,
            ..
        } => Some(*adopted),
        _ => None,
    });
    reported.collect()
}

#[test]
fn the_end_of_a_watch_reports_the_number_of_adopted_orders() {
    let open = [old("mm.6.3"), old("mm.6.4"), old("gone.6.5"), old("web-1")];
    let mut account = start(&open);
    pass(&mut account, WATCH_S + 3, &open);
    assert_eq!(
        adopted_counts(&account),
        [2],
        "one belonged to a removed strategy"
    );
    // The countdown of the other process cancels the orders during the watch.
    let mut account = start(&open);
    pass(&mut account, 20, &open);
    pass(&mut account, WATCH_S, &[]);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    assert_eq!(adopted_counts(&account), [0]);
}

#[test]
fn an_order_accepted_during_the_watch_shows_another_instance() {
    let open = [old("mm.6.3")];
    let mut account = start(&open);
    pass(&mut account, 5, &open);
    assert_eq!(account.engine.other_instance(), None);
    accepted(&mut account, "mm.6.4");
    let order = account.engine.other_instance().unwrap();
    assert_eq!(order.as_str(), "mm.6.4");
    pass(&mut account, WATCH_S + 5, &open);
    assert_eq!(account.engine.run_state(), RunState::Syncing);
    assert_eq!(changes(&account), 0, "{:?}", account.sent);
}

#[test]
fn an_order_that_only_a_list_shows_is_classified_by_its_time() {
    let first = old("mm.6.3");
    for (status, alive) in [
        (OrderStatus::New, true),
        (OrderStatus::PartiallyFilled, false),
    ] {
        let mut account = start(&[first]);
        pass(&mut account, 2, &[first]);
        let mut next = young("mm.6.4", &account);
        next.report.status = status;
        // The next snapshot is 30 s later, and the list may be older.
        account.live(LiveInput::StreamUp { surface: FUTURES });
        round(&mut account, &[first, next], &[], |_| {});
        assert_eq!(
            account.engine.other_instance().is_some(),
            alive,
            "{status:?}"
        );
        let mut account = start(&[first]);
        pass(&mut account, 35, &[first, old("mm.6.4")]);
        assert_eq!(account.engine.other_instance(), None, "the list was stale");
    }
}

#[test]
fn fills_expiries_and_cancels_do_not_show_another_instance() {
    let open = [old("mm.6.3")];
    let mut account = start(&open);
    let id = |text| ClientOrderId::new(text).unwrap();
    account.update(fill(
        id("mm.6.7"),
        Side::Buy,
        4,
        1,
        1,
        OrderStatus::PartiallyFilled,
    ));
    account.update(fill(id("mm.6.8"), Side::Buy, 5, 1, 1, OrderStatus::Filled));
    for (text, status, execution) in [
        ("mm.6.9", OrderStatus::Canceled, ExecutionType::Canceled),
        ("mm.6.10", OrderStatus::Expired, ExecutionType::Expired),
    ] {
        let mut event = update(id(text), Side::Buy, status, 0);
        event.execution = execution;
        event.transaction_time = account.now;
        account.update(event);
    }
    pass(&mut account, WATCH_S + 3, &[]);
    assert_eq!(account.engine.other_instance(), None);
    // The fills are unowned, so a person must assign them.
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::Ownership]
    );
}

#[test]
fn take_over_adopts_orders_without_a_watch() {
    let mut account = booting(live_config());
    account.engine.take_over();
    account.begin();
    round(&mut account, &[old("mm.6.3"), old("gone.6.4")], &[], |_| {});
    account.confirm_countdowns();
    assert_eq!(account.engine.run_state(), RunState::Ready);
    assert_eq!(account.engine.orders().iter().count(), 1);
    assert_eq!(cancels(&account), 1);
    accepted(&mut account, "mm.6.5");
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::AnotherInstance],
        "the other instance is running"
    );
}

#[test]
fn a_running_instance_degrades_when_it_sees_another() {
    for listed in [false, true] {
        let mut account = ready();
        if listed {
            account.wait(31);
            round(&mut account, &[old("mm.8.1"), old("gone.8.2")], &[], |_| {});
        } else {
            accepted(&mut account, "mm.8.1");
        }
        assert_eq!(account.engine.run_state(), RunState::Degraded);
        let reasons = account.engine.degraded_reasons();
        assert_eq!(reasons, [DegradedReason::AnotherInstance]);
        let reported = account.engine.describe_reasons(&reasons).join(" ");
        assert!(reported.contains(".8."), "{reported}");
        assert_eq!(
            (cancels(&account), account.engine.orders().iter().count()),
            (0, 0)
        );
        account.seconds(120);
        assert_eq!(
            account.engine.run_state(),
            RunState::Degraded,
            "until the operator resumes"
        );
        account.handle(Input::Command(Command::Resume));
        account.seconds(1);
        assert_eq!(account.engine.run_state(), RunState::Ready);
        accepted(&mut account, "mm.8.3");
        assert_eq!(account.engine.run_state(), RunState::Degraded);
    }
}

#[test]
fn the_next_process_knows_orders_from_journal_and_adoption() {
    let mut account = ready();
    let order = account.rest();
    let resting = account.open_order(order);
    let mut config = next_config();
    config.epoch = 20;
    let mut account = killed(account, config);
    account.begin();
    // One order of the process with epoch 5 was found late. The other order belongs to a process
    // that never used this data folder.
    round(&mut account, &[resting, old("mm.5.9")], &[], |_| {});
    assert_eq!(account.engine.instance_watch(), None);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    let mut config = next_config();
    config.epoch = 21;
    let mut account = killed(account, config);
    account.begin();
    round(&mut account, &[resting, old("mm.9.1")], &[], |_| {});
    assert!(account.engine.instance_watch().is_some());
    assert_eq!(
        account.engine.orders().iter().count(),
        2,
        "our own orders are still reconciled"
    );
}

#[test]
fn folder_ids_recognize_orders_of_another_instance() {
    let account = ready();
    let id = |text| ClientOrderId::new(text).unwrap();
    let of_another = |ids: &FolderIds, text| ids.is_of_another(FUTURES, &id(text));
    let now = account.now;
    let wiped = FolderIds::new(None, None, now);
    assert!(of_another(&wiped, "mm.ry6kcg.1") && !of_another(&wiped, "web-1"));
    let ids = FolderIds::new(Some(&account.engine), Some(7), now);
    assert!(
        !of_another(&ids, "mm.7.99"),
        "the folder reserved its epoch"
    );
}

#[test]
fn sequence_numbers_of_adopted_orders_are_not_reused() {
    let open = [old("mm.7.30"), old("gone.7.31")];
    let mut account = start(&open);
    assert!(account.engine.instance_watch().is_some());
    pass(&mut account, WATCH_S + 3, &open);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    assert_eq!(account.engine.orders().iter().count(), 1);
    assert!(cancels(&account) >= 1);
    account.sent.clear();
    let next = account.submit(MM, limit(Side::Buy, 980, 5));
    assert!(next.0 > 31, "{next:?}");
}

/// The data folder was wiped, and the list of open orders is ten seconds old.
#[test]
fn an_order_listed_late_after_a_take_over_is_adopted() {
    for is_accepted in [false, true] {
        let mut account = booting(live_config());
        let placed = account.now.plus_ms(-2_000);
        account.engine.take_over();
        account.begin();
        round(&mut account, &[], &[], |_| {});
        account.confirm_countdowns();
        assert_eq!(account.engine.run_state(), RunState::Ready);
        pass(&mut account, 10, &[]);
        let mut open = [old("mm.6.3"), old("gone.6.4")];
        for order in &mut open {
            order.report.update_time = placed;
        }
        if is_accepted {
            let mut event = update(
                open[0].report.client_order_id,
                Side::Buy,
                OrderStatus::New,
                0,
            );
            event.execution = ExecutionType::New;
            event.transaction_time = placed;
            account.update(event);
        }
        pass(&mut account, 31, &open);
        let reasons = account.engine.degraded_reasons();
        assert!(
            !reasons.contains(&DegradedReason::AnotherInstance),
            "{is_accepted}"
        );
        assert_eq!(account.engine.orders().iter().count(), 1);
        assert!(cancels(&account) >= 1, "its strategy is not configured");
        let now = [open[0], young("mm.6.5", &account)];
        pass(&mut account, 31, &now);
        let reasons = account.engine.degraded_reasons();
        assert!(
            reasons.contains(&DegradedReason::AnotherInstance),
            "{is_accepted}"
        );
    }
}
