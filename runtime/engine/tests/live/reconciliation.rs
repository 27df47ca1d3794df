//! Promise 3 (docs/promises.md#3-the-venue-is-the-authority): the venue is the authority, and an
//! empty list never clears anything.

use windvane_engine::engine::Purpose;
use windvane_model::effect::Adjustment;
use windvane_model::live::LiveInput;
use windvane_model::order_state::OrderState;
use windvane_model::protocol::{AccountReason, AccountUpdate, Fill};
use windvane_model::run_state::RunState;
use windvane_model::state_report::{
    AccountSnapshot, AccountTrade, OpenOrder, StateReport, Subject,
};
use windvane_model::{
    Amount, Input, Notice, OrderStatus, Outcome, PositionSide, Price, Qty, Reply, Request, Side,
    Surface, Time, TradeId, UserEvent, VenueOrderId,
};

use super::support::{Account, BTC, MM, USDT, config, fill, instrument, limit, report};
use super::world::{booting, live_config, no_trades, position, ready};

const FUTURES: Surface = Surface::Futures;

/// Answers the current round with these open orders, these trades, and the engine's account after
/// `change`.
pub(super) fn round(
    account: &mut Account,
    open: &[OpenOrder],
    trades: &[AccountTrade],
    change: impl Fn(&mut windvane_model::state_report::AccountSnapshot),
) {
    let mut reported = false;
    while let Some(subject) = account.take_question() {
        let state_report = match subject {
            Subject::OpenOrders { .. } => StateReport::OpenOrders(open.to_vec()),
            Subject::Trades { .. } if reported => no_trades(),
            Subject::Trades { .. } => {
                reported = true;
                StateReport::Trades {
                    trades: trades.to_vec(),
                    more: false,
                }
            }
            Subject::Account { .. } => {
                let mut own = account.own_account();
                change(&mut own);
                StateReport::Account(own)
            }
            _ => super::world::nothing(subject),
        };
        account.tell(subject, state_report);
    }
}

pub(super) fn trade(order_id: i64, id: i64, qty: i64) -> AccountTrade {
    AccountTrade {
        order_id: VenueOrderId(order_id),
        side: Side::Buy,
        position_side: PositionSide::Both,
        fill: Fill {
            trade_id: TradeId(id),
            price: Price(990),
            qty: Qty(qty),
            quote_qty: instrument().notional(990, qty),
            fee: Amount(1_000_000),
            fee_asset: USDT,
            maker: true,
            realized_pnl: None,
        },
        time: Time(0),
    }
}

pub(super) fn adjustments(account: &Account) -> Vec<Adjustment> {
    let notices = account.notices.iter();
    notices
        .filter_map(|notice| match notice {
            Notice::Adjusted { adjustment, .. } => Some(*adjustment),
            _ => None,
        })
        .collect()
}

pub(super) fn qty(account: &Account) -> i64 {
    account
        .engine
        .ledgers()
        .account
        .at(BTC, PositionSide::Both)
        .position
        .qty
}

#[test]
fn a_difference_is_adopted_after_two_agreeing_snapshots() {
    let mut account = ready();
    account.wait(31);
    round(&mut account, &[], &[], |own| {
        own.positions = vec![position(5)];
    });
    assert_eq!(qty(&account), 0, "one snapshot proves nothing");
    account.pass(250);
    round(&mut account, &[], &[], |own| {
        own.positions = vec![position(5)];
    });
    assert_eq!(qty(&account), 0, "trades may explain it");
    differs_for(&mut account, 16, 5, &[]);
    assert_eq!(qty(&account), 5);
    assert_eq!(
        adjustments(&account),
        [Adjustment::Position {
            instrument: BTC,
            side: PositionSide::Both,
            from: 0,
            to: 5
        }]
    );
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn the_locked_balance_is_adopted_and_is_not_a_difference() {
    let mut account = ready();
    account.wait(31);
    round(&mut account, &[], &[], |own| {
        own.balances[0].locked = Amount(7);
    });
    assert_eq!(account.engine.balance(FUTURES, USDT).locked, Amount(7));
    assert_eq!(adjustments(&account), []);
    // An account event contains only the wallet balance.
    let mut reported = account.own_account();
    reported.balances[0].total += Amount(5);
    let event = UserEvent::Account(AccountUpdate {
        surface: FUTURES,
        reason: AccountReason::Other,
        balances: reported.balances,
        positions: Vec::new(),
        transaction_time: Time(0),
        event_time: Time(0),
    });
    account.handle(Input::User(&event));
    assert_eq!(account.engine.balance(FUTURES, USDT).locked, Amount(7));
    // It is not adopted from a snapshot that was in flight when an event arrived.
    account.wait(31);
    let orders = account.take_question().unwrap();
    account.tell(orders, StateReport::OpenOrders(Vec::new()));
    let asked = account.take_question().unwrap();
    let mut read = account.own_account();
    read.balances[0].locked = Amount(9);
    account.handle(Input::User(&event));
    account.tell(asked, StateReport::Account(read));
    assert_eq!(account.engine.balance(FUTURES, USDT).locked, Amount(7));
}

#[test]
fn a_user_event_between_two_snapshots_restarts_the_comparison() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.wait(31);
    let listed = [account.open_order(order)];
    round(&mut account, &listed, &[], |own| {
        own.positions = vec![position(5)];
    });
    account.update(fill(id, Side::Buy, 1, 5, 5, OrderStatus::PartiallyFilled));
    account.pass(250);
    round(&mut account, &listed, &[], |_| {});
    assert_eq!(qty(&account), 5);
    assert_eq!(adjustments(&account), [], "the fill explains it");
}

#[test]
fn a_lagging_snapshot_does_not_undo_newer_stream_events() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    let late = |own: &mut AccountSnapshot| own.lags = true;
    account.wait(31);
    account.confirm_countdowns();
    let listed = [account.open_order(order)];
    round(&mut account, &listed, &[], late);
    let before = account.own_account();
    account.wait(20);
    account.confirm_countdowns();
    account.update(fill(id, Side::Buy, 1, 5, 5, OrderStatus::PartiallyFilled));
    let listed = [account.open_order(order)];
    account.wait(8);
    for _ in 0..8 {
        round(&mut account, &listed, &[], |own| {
            *own = before.clone();
            own.lags = true;
        });
        account.wait(1);
        account.confirm_countdowns();
    }
    assert_eq!(qty(&account), 5, "it equals the account before the fill");
    assert_eq!(adjustments(&account), []);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    // After a long time, an unchanged snapshot counts as current.
    for _ in 0..90 {
        round(&mut account, &listed, &[], |own| {
            *own = before.clone();
            own.lags = true;
        });
        account.wait(1);
    }
    assert_eq!(qty(&account), 0);
}

pub(super) fn cost(account: &Account) -> Amount {
    let ledger = &account.engine.ledgers().account;
    ledger.at(BTC, PositionSide::Both).position.cost
}

/// A position of 10, and its cost as the venue states it, which is higher than the engine's.
pub(super) fn bought_at_another_entry() -> (Account, Amount) {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
    // Three ticks more per unit.
    let venues = cost(&account) + instrument().notional(3, 10);
    (account, venues)
}

#[test]
fn the_venues_entry_cost_of_a_position_is_adopted() {
    let (mut account, venues) = bought_at_another_entry();
    account.wait(31);
    round(&mut account, &[], &[], |own| {
        own.positions[0].cost = venues;
    });
    assert_eq!(cost(&account), venues);
    assert_eq!(adjustments(&account), []);
}

#[test]
fn an_entry_rounded_to_the_tick_is_not_adopted() {
    let (mut account, _) = bought_at_another_entry();
    let known = cost(&account);
    account.wait(31);
    round(&mut account, &[], &[], |own| {
        own.positions[0].cost = known + Amount(instrument().notional(1, 10).0 / 2);
    });
    assert_eq!(cost(&account), known, "the cost from fills is exact");
}

#[test]
fn the_entry_of_a_position_is_adopted_with_a_balance_difference() {
    let (mut account, venues) = bought_at_another_entry();
    let reported = account.engine.balance(FUTURES, USDT).total - Amount(7);
    account.wait(31);
    // Two snapshots agree, with a query for trades between them.
    for _ in 0..60 {
        round(&mut account, &[], &[], |own| {
            own.positions[0].cost = venues;
            own.balances[0].total = reported;
        });
        account.pass(250);
        account.alive();
        account.clock();
    }
    assert_eq!(cost(&account), venues);
    assert_eq!(adjustments(&account).len(), 1);
}

#[test]
fn unlisted_positions_and_balances_are_kept() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
    for _ in 0..5 {
        account.wait(31);
        account.alive();
        round(&mut account, &[], &[], |own| {
            own.positions.clear();
            own.balances.clear();
        });
    }
    assert_eq!(qty(&account), 10);
}

#[test]
fn an_order_missing_in_the_list_is_queried() {
    let mut account = ready();
    let order = account.rest();
    for _ in 0..3 {
        account.wait(10);
        account.confirm_countdowns();
    }
    account.wait(1);
    account
        .sent
        .retain(|request| matches!(request, Request::Read(_)));
    let subject = account.take_question().unwrap();
    account.tell(subject, StateReport::OpenOrders(Vec::new()));
    assert_eq!(account.queries(), 1);
    assert_eq!(account.engine.order(order).unwrap().state, OrderState::New);
}

#[test]
fn trades_that_were_read_for_another_difference_are_read_again() {
    let mut account = ready();
    account.wait(31);
    for found in [5, 5, 6, 6] {
        round(&mut account, &[], &[], |own| {
            own.positions = vec![position(found)];
        });
        account.pass(250);
        assert_eq!(qty(&account), 0, "a trade since then may explain it");
    }
    differs_for(&mut account, 16, 6, &[]);
    assert_eq!(qty(&account), 6);
}

/// Lets seconds pass in which every snapshot has a position of `held`.
fn differs_for(account: &mut Account, seconds: u32, held: i64, trades: &[AccountTrade]) {
    for _ in 0..seconds {
        for _ in 0..4 {
            round(account, &[], trades, |own| {
                own.positions = vec![position(held)];
            });
            account.pass(249);
        }
        account.alive();
        account.clock();
    }
}

fn ready_with_money() -> Account {
    let mut account = ready();
    let mut reported = account.own_account();
    reported.balances[0].total += Amount(1_000_000_000);
    reported.balances[0].change = Amount(1_000_000_000);
    let event = UserEvent::Account(AccountUpdate {
        surface: FUTURES,
        reason: AccountReason::Other,
        balances: reported.balances,
        positions: Vec::new(),
        transaction_time: Time(0),
        event_time: Time(0),
    });
    account.handle(Input::User(&event));
    account.notices.clear();
    account.wait(31);
    account
}

#[test]
fn a_difference_waits_for_trades_that_are_listed_late() {
    let mut account = ready_with_money();
    differs_for(&mut account, 10, 4, &[]);
    assert_eq!(qty(&account), 0, "the trade may still be listed");
    differs_for(&mut account, 4, 4, &[trade(77, 9, 4)]);
    assert_eq!(qty(&account), 4);
    let position = |one: &Adjustment| matches!(one, Adjustment::Position { .. });
    assert!(
        !adjustments(&account).iter().any(position),
        "the trade explains it"
    );
}

#[test]
fn trades_are_read_once_more_after_the_longest_delay() {
    let mut account = ready_with_money();
    differs_for(&mut account, 3, 4, &[]);
    // No response arrives for longer than the delay. Then the trade is listed.
    account.wait(14);
    differs_for(&mut account, 4, 4, &[trade(77, 9, 4)]);
    assert_eq!(qty(&account), 4);
    let position = |one: &Adjustment| matches!(one, Adjustment::Position { .. });
    assert!(
        !adjustments(&account).iter().any(position),
        "the trade explains it"
    );
}

#[test]
fn an_unexplained_difference_is_adopted_after_the_longest_delay() {
    let mut account = ready_with_money();
    differs_for(&mut account, 20, 4, &[]);
    assert_eq!(qty(&account), 4);
    let position = |one: &Adjustment| matches!(one, Adjustment::Position { .. });
    assert!(adjustments(&account).iter().any(position));
}

#[test]
fn a_fill_that_the_stream_missed_comes_with_the_trades() {
    let mut account = ready();
    let order = account.rest();
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
    let listed = [OpenOrder {
        report: report(account.id(MM, order), OrderStatus::PartiallyFilled, 4),
        ..account.open_order(order)
    }];
    round(&mut account, &listed, &[trade(1, 7, 4)], |_| {});
    assert_eq!(qty(&account), 4);
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    assert_eq!(own.position.qty, 4, "it belongs to the strategy");
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 7, 4, 4, OrderStatus::PartiallyFilled));
    assert_eq!(
        qty(&account),
        4,
        "the late event of the same trade is ignored"
    );
}

#[test]
fn an_outside_trade_changes_only_account_and_external_ledger() {
    let mut account = ready();
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
    round(&mut account, &[], &[trade(77, 9, 3)], |_| {});
    assert_eq!(qty(&account), 3);
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    assert_eq!(own.position.qty, 0);
    let external = account
        .engine
        .ledgers()
        .external
        .at(BTC, PositionSide::Both);
    assert_eq!(external.position.qty, 3);
}

#[test]
fn trades_before_the_first_snapshot_are_not_booked() {
    let mut account = booting(live_config());
    account.begin();
    round(&mut account, &[], &[trade(77, 9, 3)], |_| {});
    assert_eq!(qty(&account), 0);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

/// A run that has just begun, without saved state.
fn never_known() -> Account {
    let mut config = config();
    config.live = Some(live_config());
    config.balances.clear();
    let mut account = Account::new(config);
    account.begin();
    account
}

#[test]
fn the_first_account_needs_snapshots_newer_than_a_listed_trade() {
    for is_listed in [false, true] {
        let mut account = never_known();
        let new = AccountTrade {
            time: account.now,
            ..trade(77, 9, 3)
        };
        let listed = if is_listed { vec![new] } else { Vec::new() };
        differs_for(&mut account, 10, 5, &listed);
        let found = if is_listed { 0 } else { 5 };
        assert_eq!(qty(&account), found, "the snapshot may lack the trade");
        differs_for(&mut account, 6, 5, &listed);
        assert_eq!(qty(&account), 5);
    }
}

#[test]
fn after_a_lost_journal_a_late_listed_trade_counts_once() {
    let mut config = config();
    config.live = Some(live_config());
    config.balances.clear();
    let mut account = Account::new(config);
    account.engine.degrade_for_lost_state();
    let new = AccountTrade {
        time: account.now,
        ..trade(77, 9, 3)
    };
    account.begin();
    let with_money = |own: &mut AccountSnapshot| {
        own.balances[0].total = Amount(1_000_000_000);
        own.positions = vec![position(0)];
    };
    for second in 0..30 {
        let listed = if second < 5 { vec![] } else { vec![new] };
        for _ in 0..4 {
            round(&mut account, &[], &listed, with_money);
            account.pass(249);
        }
        account.alive();
        account.clock();
    }
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
    round(&mut account, &[], &[new], with_money);
    assert_eq!(qty(&account), 0, "it closed an earlier position");
    let balance = account.engine.balance(FUTURES, USDT).total;
    assert_eq!(balance, Amount(1_000_000_000));
}

#[test]
fn after_a_lost_journal_a_trade_after_the_connect_is_booked() {
    let mut config = config();
    config.live = Some(live_config());
    config.balances.clear();
    let mut account = Account::new(config);
    account.engine.degrade_for_lost_state();
    account.begin();
    let new = AccountTrade {
        time: account.now.plus_ms(5_000),
        ..trade(77, 9, 3)
    };
    // Its event is lost.
    for second in 0..30 {
        let is_made = second >= 6;
        let listed = if is_made { vec![new] } else { vec![] };
        for _ in 0..4 {
            round(&mut account, &[], &listed, |own| {
                own.balances[0].total = Amount(1_000_000_000);
                own.positions = vec![position(if is_made { 3 } else { 0 })];
            });
            account.pass(249);
        }
        account.alive();
        account.clock();
    }
    assert_eq!(qty(&account), 3);
    let is_position = |one: &Adjustment| matches!(one, Adjustment::Position { .. });
    assert!(!adjustments(&account).iter().any(is_position));
}

#[test]
fn a_long_start_stops_using_the_reserved_weight() {
    let mut account = never_known();
    let read = Request::Read(Subject::OpenOrders { surface: FUTURES });
    assert_eq!(account.engine.purpose(&read), Purpose::Start);
    account.wait(31);
    assert_eq!(account.engine.run_state(), RunState::Syncing);
    assert_eq!(account.engine.purpose(&read), Purpose::Ordinary);
    account.live(LiveInput::StreamUp { surface: FUTURES });
    assert_eq!(account.engine.purpose(&read), Purpose::Start);
}

#[test]
fn a_long_start_uses_the_reserve_again_after_three_tries() {
    let mut account = never_known();
    account.wait(31);
    let read = Request::Read(Subject::OpenOrders { surface: FUTURES });
    let mut tries = Vec::new();
    for _ in 0..80 {
        let question = account.take_question();
        if let Some(subject) = question {
            tries.push(account.engine.purpose(&read));
            account.answer(subject, Outcome::Unknown);
        }
        account.pass(250);
        account.alive();
        account.clock();
    }
    let first = tries.iter().position(|purpose| *purpose == Purpose::Start);
    // The first query was sent before.
    assert_eq!(first, Some(4), "{tries:?}");
    let query = Request::Query {
        instrument: BTC,
        client_order_id: windvane_model::ClientOrderId::from_venue("mm.5.1"),
    };
    assert_eq!(account.engine.purpose(&query), Purpose::Start);
}

#[test]
fn a_start_ends_while_outside_orders_trade() {
    let mut account = never_known();
    let mut trades = Vec::new();
    for id in 1..=6 {
        trades.push(AccountTrade {
            time: account.now,
            ..trade(77, id, 1)
        });
        differs_for(&mut account, 3, id, &trades);
    }
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_trade_is_not_outside_while_an_own_order_has_no_venue_id() {
    let mut account = ready();
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    account.confirm_countdowns();
    account.sent.clear();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Unknown);
    account.live(LiveInput::StreamDown { surface: FUTURES });
    account.live(LiveInput::StreamUp { surface: FUTURES });
    let subject = account.take_question().unwrap();
    account.tell(subject, StateReport::OpenOrders(Vec::new()));
    let subject = account.take_question().unwrap();
    let page = StateReport::Trades {
        trades: vec![trade(1, 7, 4)],
        more: false,
    };
    account.tell(subject, page.clone());
    assert_eq!(qty(&account), 0);
    account.handle(Input::Reply(&Reply::Queried {
        client_order_id: id,
        outcome: Outcome::Done(report(id, OrderStatus::PartiallyFilled, 4)),
    }));
    account.pass(500);
    let subject = account.take_question().unwrap();
    account.tell(subject, page);
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    assert_eq!(own.position.qty, 4);
}

/// The sum of the balance changes by adjustments.
fn taken(account: &Account) -> Amount {
    let taken = adjustments(account).into_iter().map(|one| match one {
        Adjustment::Balance { from, to, .. } => to - from,
        _ => Amount::ZERO,
    });
    taken.sum()
}

#[test]
fn snapshots_that_are_always_old_do_not_change_a_position() {
    let mut account = ready_with_money();
    let orders: Vec<_> = (0..8)
        .map(|_| {
            let order = account.submit(MM, limit(Side::Buy, 990, 1));
            account.id(MM, order)
        })
        .collect();
    // One entry per quarter of a second. Every snapshot is ten seconds old.
    let mut past: Vec<AccountSnapshot> = Vec::new();
    let untold = Amount(500_000_000);
    for second in 0..90 {
        if second % 5 == 0
            && let Some(id) = orders.get(second / 5)
        {
            let trade = 1 + second as i64;
            account.update(fill(*id, Side::Buy, trade, 1, 1, OrderStatus::Filled));
        }
        for _ in 0..4 {
            let mut present = account.own_account();
            present.balances[0].total += untold - taken(&account);
            past.push(present);
            let then = past[past.len().saturating_sub(40)].clone();
            round(&mut account, &[], &[], |own| {
                own.balances.clone_from(&then.balances);
                own.positions.clone_from(&then.positions);
            });
            account.pass(249);
        }
        account.alive();
        account.clock();
        account.confirm_countdowns();
        account.top(990, 1_000);
    }
    assert_eq!((qty(&account), taken(&account)), (8, untold));
    let is_position = |one: &Adjustment| matches!(one, Adjustment::Position { .. });
    assert!(!adjustments(&account).iter().any(is_position));
}
