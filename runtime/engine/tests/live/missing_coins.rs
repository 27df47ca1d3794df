//! Coins of strategies that a person or another program sold or withdrew on spot.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::ids::ClientOrderId;
use windvane_model::input::Command;
use windvane_model::live::LiveInput;
use windvane_model::protocol::{AccountReason, AccountUpdate, BalanceUpdate};
use windvane_model::run_state::RunState;
use windvane_model::state_report::{AccountSnapshot, StateReport, Subject};
use windvane_model::{
    Amount, AssetId, Input, Notice, OrderStatus, PositionSide, Request, Side, Surface, Time,
    UserEvent, VenueOrderId,
};

use super::support::{Account, BTC, MM, USDT, fill, limit};
use super::watchdog::watched;
use super::world::nothing;

const SPOT: Surface = Surface::Spot;
const BASE: AssetId = AssetId(0);
/// The amount that the strategy bought.
const BOUGHT: Amount = Amount(1_000_000);

/// Lets seconds pass in which account snapshots show these balances of coins and money.
fn read(account: &mut Account, seconds: u32, (coins, money): (Amount, Amount)) {
    let listed = [(BASE, coins), (USDT, money)];
    read_listed(account, seconds, &listed);
}

fn read_listed(account: &mut Account, seconds: u32, listed: &[(AssetId, Amount)]) {
    for _ in 0..seconds {
        account.pass(996);
        account.live(LiveInput::StreamAlive { surface: SPOT });
        account.live(LiveInput::Clock {
            surface: SPOT,
            offset_ns: 0,
            error_ns: 1,
        });
        while let Some(number) = account.heartbeats.pop() {
            account.live(LiveInput::HeartbeatAcknowledged { number });
        }
        while let Some(subject) = account.take_question() {
            let balance = |(asset, total): &(AssetId, Amount)| BalanceUpdate {
                asset: *asset,
                total: *total,
                locked: Amount::ZERO,
                change: Amount::ZERO,
            };
            let state_report = match subject {
                Subject::Account { .. } => StateReport::Account(AccountSnapshot {
                    can_trade: Some(true),
                    balances: listed.iter().map(balance).collect(),
                    ..AccountSnapshot::default()
                }),
                _ => nothing(subject),
            };
            account.tell(subject, state_report);
        }
    }
}

fn money(account: &Account) -> Amount {
    account.engine.balance(SPOT, USDT).total
}

/// A strategy bought ten lots. `before` is the amount of coins that the account had before.
fn holding(before: Amount) -> Account {
    let mut account = watched();
    if before != Amount::ZERO {
        let total = account.engine.balance(SPOT, BASE).total + before;
        account.handle(Input::User(&UserEvent::Account(AccountUpdate {
            surface: SPOT,
            reason: AccountReason::Other,
            balances: vec![BalanceUpdate {
                asset: BASE,
                total,
                locked: Amount::ZERO,
                change: Amount::ZERO,
            }],
            positions: Vec::new(),
            transaction_time: Time(0),
            event_time: Time(0),
        })));
    }
    let order = account.rest_on_spot();
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
    account.top(989, 991);
    account.notices.clear();
    account
}

/// A person sells this many lots, and the order event reports it.
fn sell_by_hand(account: &mut Account, qty: i64) {
    let hand = ClientOrderId::new("web_1").unwrap();
    let mut sale = fill(hand, Side::Sell, 2, qty, qty, OrderStatus::Filled);
    sale.order_id = VenueOrderId(9);
    account.update(sale);
}

/// The positions of the strategy, the external ledger and the account.
fn positions(account: &Account) -> [i64; 3] {
    let ledgers = account.engine.ledgers();
    let all = [&ledgers.strategies[0], &ledgers.external, &ledgers.account];
    all.map(|ledger| ledger.at(BTC, PositionSide::Both).position.qty)
}

fn is_degraded(account: &Account) -> bool {
    account
        .engine
        .degraded_reasons()
        .contains(&DegradedReason::MissingCoins(BTC))
}

fn closed(account: &Account) -> Vec<i64> {
    let reported = account.notices.iter();
    let closed = reported.filter_map(|notice| match notice {
        Notice::ClosedOutside { qty, .. } => Some(*qty),
        _ => None,
    });
    closed.collect()
}

fn sold(account: &Account) -> Vec<i64> {
    let placed = account.sent.iter().filter_map(|request| match request {
        Request::Place(order) if order.terms.side == Side::Sell => order.terms.qty,
        _ => None,
    });
    placed.map(|qty| qty.0).collect()
}

/// Either an event or only account snapshots report the sale.
#[test]
fn missing_coins_degrade_the_run_until_resume_removes_them() {
    for by_event in [true, false] {
        let mut account = holding(Amount::ZERO);
        let reported = money(&account);
        if by_event {
            sell_by_hand(&mut account, 10);
        }
        let left = if by_event { money(&account) } else { reported };
        read(&mut account, 40, (Amount::ZERO, left));
        assert!(is_degraded(&account), "{by_event}");
        assert_eq!(account.engine.run_state(), RunState::Degraded);
        let words = account
            .engine
            .describe_reasons(&account.engine.degraded_reasons());
        assert!(
            words.iter().any(|text| text.contains("BTCUSDT")),
            "{words:?}"
        );
        assert_eq!(positions(&account)[0], 10, "the price is unknown");
        account.handle(Input::Command(Command::Resume));
        assert_eq!(positions(&account), [0, 0, 0], "{by_event}");
        assert_eq!(closed(&account), [10]);
        assert!(!is_degraded(&account));
        read(&mut account, 40, (Amount::ZERO, left));
        assert_eq!(account.engine.degraded_reasons(), []);
        assert_eq!(account.engine.run_state(), RunState::Ready);
        assert_eq!(account.engine.balance(SPOT, BASE).total, Amount::ZERO);
    }
}

#[test]
fn returned_coins_clear_the_degraded_reason() {
    let mut account = holding(Amount::ZERO);
    let left = money(&account);
    read(&mut account, 40, (Amount::ZERO, left));
    assert!(is_degraded(&account));
    read(&mut account, 40, (BOUGHT, left));
    assert!(!is_degraded(&account));
    assert_eq!(positions(&account)[0], 10);
    assert_eq!(closed(&account), []);
}

#[test]
fn missing_coins_are_removed_in_whole_steps() {
    let mut account = holding(Amount::ZERO);
    let left = money(&account);
    read(&mut account, 40, (Amount(350_000), left));
    account.handle(Input::Command(Command::Resume));
    assert_eq!(positions(&account)[0], 3);
    assert_eq!(closed(&account), [7]);
    read(&mut account, 40, (Amount(350_000), left));
    assert!(!is_degraded(&account));
}

#[test]
fn a_person_may_sell_coins_that_no_strategy_holds() {
    let mut account = holding(Amount(5_000_000));
    sell_by_hand(&mut account, 50);
    let left = money(&account);
    read(&mut account, 80, (BOUGHT, left));
    assert!(!is_degraded(&account));
    assert_eq!(positions(&account)[0], 10);
    account.sent.clear();
    account.handle(Input::Command(Command::Flatten));
    assert_eq!(sold(&account), [10], "the strategy's coins are still there");
}

#[test]
fn flatten_sells_available_coins_and_removes_missing_ones() {
    let mut account = holding(Amount::ZERO);
    let left = money(&account);
    read(&mut account, 40, (Amount(400_000), left));
    account.sent.clear();
    account.handle(Input::Command(Command::Flatten));
    assert_eq!(sold(&account), [4]);
    let order = account
        .engine
        .orders()
        .iter()
        .next()
        .unwrap()
        .client_order_id;
    account.update(fill(order, Side::Sell, 3, 4, 4, OrderStatus::Filled));
    let left = money(&account);
    read(&mut account, 40, (Amount::ZERO, left));
    assert_eq!(positions(&account), [0, 0, 0]);
    assert_eq!(closed(&account), [6]);
    assert!(!is_degraded(&account));
}

/// Venues may omit empty balances.
#[test]
fn a_coin_that_is_not_listed_any_more_is_missing() {
    let mut account = holding(Amount::ZERO);
    let left = money(&account);
    let listed = [(USDT, left)];
    read_listed(&mut account, 40, &listed);
    assert!(is_degraded(&account), "at once");
    read_listed(&mut account, 90, &listed);
    assert_eq!(account.engine.balance(SPOT, BASE).total, Amount::ZERO);
    assert!(is_degraded(&account));
}

#[test]
fn flatten_removes_at_once_coins_that_an_event_showed_as_sold() {
    let mut account = holding(Amount::ZERO);
    let left = money(&account);
    read(&mut account, 40, (BOUGHT, left));
    sell_by_hand(&mut account, 10);
    assert!(is_degraded(&account), "without a reconciliation");
    account.sent.clear();
    account.handle(Input::Command(Command::Flatten));
    assert_eq!(sold(&account), []);
    assert_eq!(positions(&account), [0, 0, 0]);
    assert_eq!(closed(&account), [10]);
}

#[test]
fn a_strategy_may_sell_remaining_coins_while_others_are_missing() {
    let mut account = holding(Amount::ZERO);
    sell_by_hand(&mut account, 4);
    let left = money(&account);
    read(&mut account, 40, (Amount(600_000), left));
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::MissingCoins(BTC)]
    );
    let may = |account: &mut Account, side, qty| {
        let mut terms = limit(side, 990, qty);
        terms.reduce_only = side == Side::Sell;
        account.call(MM, |callback, engine| {
            callback.submit(engine, terms).is_ok()
        })
    };
    assert!(!may(&mut account, Side::Buy, 5));
    assert!(may(&mut account, Side::Sell, 6));
}

/// A step is 0.001, so less than that cannot be sold.
#[test]
fn missing_dust_is_ignored() {
    let mut account = holding(Amount::ZERO);
    let left = money(&account);
    read(&mut account, 40, (Amount(900_001), left));
    assert!(!is_degraded(&account));
    read(&mut account, 40, (Amount(900_000), left));
    assert!(is_degraded(&account));
}

/// A snapshot contains a sale that no event has reported yet, and omits empty balances.
#[test]
fn an_own_sale_with_a_late_event_is_not_a_missing_coin() {
    let mut account = holding(Amount::ZERO);
    let left = money(&account);
    read(&mut account, 40, (BOUGHT, left));
    let mut exit = limit(Side::Sell, 990, 10);
    exit.reduce_only = true;
    let order = account.submit(MM, exit);
    let id = account.id(MM, order);
    let listed = [(USDT, left + Amount(990_000_000))];
    read_listed(&mut account, 35, &listed);
    assert!(!is_degraded(&account));
    account.update(fill(id, Side::Sell, 3, 10, 10, OrderStatus::Filled));
    assert!(!is_degraded(&account));
    assert_eq!(positions(&account)[0], 0);
}

#[test]
fn flatten_waits_for_the_stream_before_it_removes_coins() {
    let mut account = holding(Amount::ZERO);
    let left = money(&account);
    read(&mut account, 40, (BOUGHT, left));
    sell_by_hand(&mut account, 10);
    account.live(LiveInput::StreamDown { surface: SPOT });
    account.handle(Input::Command(Command::Flatten));
    assert_eq!(positions(&account)[0], 10);
    assert!(account.engine.is_flattening(MM));
    account.live(LiveInput::StreamUp { surface: SPOT });
    let left = money(&account);
    read(&mut account, 40, (Amount::ZERO, left));
    assert_eq!(positions(&account), [0, 0, 0]);
    assert!(!account.engine.is_flattening(MM));
}
