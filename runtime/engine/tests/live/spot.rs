//! The spot account. Its account events report fills a second time. Apart from fills, only deposits
//! and withdrawals explain themselves.

use windvane_engine::Engine;
use windvane_model::event::EventKind;
use windvane_model::ids::ClientOrderId;
use windvane_model::input::Command;
use windvane_model::ledger::{Grains, Position};
use windvane_model::live::LiveInput;
use windvane_model::protocol::{
    AccountReason, AccountUpdate, BalanceUpdate, OrderReport, OrderUpdate, Refusal,
};
use windvane_model::state_report::{AccountSnapshot, StateReport, Subject};
use windvane_model::{
    Amount, AssetId, Input, Notice, OrderStatus, Outcome, PositionSide, Qty, Reply, Request, Side,
    Surface, Time, UserEvent,
};

use super::support::{Account, BTC, MM, USDT, fill, limit, report, update};
use super::watchdog::{spot_config, watched};

const SPOT: Surface = Surface::Spot;
const BASE: AssetId = AssetId(0);

/// An account event with two balances that differ from the engine's by these amounts.
fn account_event(
    account: &Account,
    reason: AccountReason,
    changes: [(AssetId, i128); 2],
) -> UserEvent {
    let balances = changes.map(|(asset, change)| BalanceUpdate {
        asset,
        total: account.engine.balance(SPOT, asset).total + Amount(change),
        locked: Amount::ZERO,
        change: Amount::ZERO,
    });
    UserEvent::Account(AccountUpdate {
        surface: SPOT,
        reason,
        balances: balances.to_vec(),
        positions: Vec::new(),
        transaction_time: Time(0),
        event_time: Time(0),
    })
}

fn adjustments(account: &Account) -> usize {
    let notices = account.notices.iter();
    notices
        .filter(|notice| matches!(notice, Notice::Adjusted { .. }))
        .count()
}

/// A buy of 0.010 at 100.0 with a fee of 0.01.
const BOUGHT: [(AssetId, i128); 2] = [(BASE, 1_000_000), (USDT, -101_000_000)];

#[test]
fn a_fill_and_its_account_event_count_once_in_any_order() {
    for event_first in [true, false] {
        let mut account = watched();
        let order = account.rest_on_spot();
        let id = account.id(MM, order);
        let reported = account_event(&account, AccountReason::Order, BOUGHT);
        if event_first {
            account.handle(Input::User(&reported));
        }
        account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
        if !event_first {
            account.handle(Input::User(&reported));
        }
        let base = account.engine.balance(SPOT, BASE).total;
        assert_eq!(base, Amount(1_000_000), "{event_first}");
        assert_eq!(adjustments(&account), 0, "{event_first}");
    }
}

#[test]
fn an_account_event_without_a_fill_starts_a_reconciliation() {
    let mut account = watched();
    let reported = account_event(&account, AccountReason::Order, BOUGHT);
    account.handle(Input::User(&reported));
    assert_eq!(account.engine.balance(SPOT, BASE).total, Amount::ZERO);
    account.sent.clear();
    for _ in 0..3 {
        account.pass(1_000);
    }
    assert!(account.take_question().is_some());
}

/// The venue does not list the account's trades for this key, and the order event of a fill is
/// lost.
#[test]
fn a_fill_without_an_order_event_is_found_by_an_order_query() {
    let mut account = watched();
    let order = account.rest_on_spot();
    let id = account.id(MM, order);
    let event = account_event(&account, AccountReason::Order, BOUGHT);
    let UserEvent::Account(stated) = &event else {
        unreachable!("it is an account event");
    };
    let balances = stated.balances.clone();
    account.handle(Input::User(&event));
    let mut waited_ms = 0;
    while positions(&account)[0].qty == 0 {
        account.pass(100);
        waited_ms += 100;
        assert!(waited_ms < 6_000, "{:?}", account.engine.degraded_reasons());
        while let Some(subject) = account.take_question() {
            let outcome = match subject {
                Subject::Trades { .. } => Outcome::Refused(Refusal {
                    code: 0,
                    msg: String::new(),
                }),
                Subject::Account { .. } => Outcome::Done(StateReport::Account(AccountSnapshot {
                    balances: balances.clone(),
                    ..AccountSnapshot::default()
                })),
                _ => Outcome::Done(super::world::nothing(subject)),
            };
            account.answer(subject, outcome);
        }
        for _ in 0..account.take_queries() {
            let filled = OrderReport {
                cum_quote: Amount(101_000_000),
                ..report(id, OrderStatus::Filled, 10)
            };
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: id,
                outcome: Outcome::Done(filled),
            }));
        }
    }
    assert_eq!(positions(&account).map(|position| position.qty), [10, 10]);
    assert_eq!(account.engine.balance(SPOT, BASE).total, Amount(1_000_000));
}

/// A buy of 0.010 at 100.0 that was booked from its order's totals with an estimated commission.
fn booked_from_totals() -> (Account, ClientOrderId) {
    let mut account = watched();
    let order = account.rest_on_spot();
    let id = account.id(MM, order);
    let filled = OrderReport {
        cum_quote: Amount(100_000_000),
        ..report(id, OrderStatus::Filled, 10)
    };
    let queried = Reply::Queried {
        client_order_id: id,
        outcome: Outcome::Done(filled),
    };
    account.handle(Input::Reply(&queried));
    let mut waited_ms = 0;
    while positions(&account)[0].qty == 0 {
        account.pass(100);
        waited_ms += 100;
        assert!(
            waited_ms < 30_000,
            "{:?}",
            account.engine.degraded_reasons()
        );
        while let Some(subject) = account.take_question() {
            let outcome = match subject {
                Subject::Trades { .. } => Outcome::Refused(Refusal {
                    code: 0,
                    msg: String::new(),
                }),
                Subject::Account { .. } => {
                    Outcome::Done(StateReport::Account(AccountSnapshot::default()))
                }
                _ => Outcome::Done(super::world::nothing(subject)),
            };
            account.answer(subject, outcome);
        }
        for _ in 0..account.take_queries() {
            account.handle(Input::Reply(&queried));
        }
    }
    (account, id)
}

#[test]
fn on_spot_the_commission_of_a_late_event_replaces_the_estimate() {
    // The commission, the holding in grains, and the fee at the price of the fill.
    let fees = [
        (USDT, 3_000_000, 1_000_000, 3_000_000),
        (BASE, 10_000, 990_000, 1_000_000),
        (USDT, 0, 1_000_000, 0),
    ];
    for (asset, fee, held, paid) in fees {
        let (mut account, id) = booked_from_totals();
        let futures = account.engine.balance(Surface::Futures, USDT).total;
        let mut event = fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled);
        if let Some(fill) = &mut event.fill {
            (fill.fee, fill.fee_asset) = (Amount(fee), asset);
        }
        account.update(event);
        let quote_fee = if asset == USDT { fee } else { 0 };
        let balances = [(SPOT, BASE), (SPOT, USDT), (Surface::Futures, USDT)];
        let balances =
            balances.map(|(surface, asset)| account.engine.balance(surface, asset).total);
        let expected = [Amount(held), Amount(-100_000_000 - quote_fee), futures];
        assert_eq!(balances, expected, "{asset:?}");
        let grains = Grains::of(&account.engine.instruments()[0]);
        for position in positions(&account) {
            assert_eq!(grains.amount(position.held(grains)), Amount(held));
            assert_eq!(position.fees, Amount(paid), "{asset:?}");
        }
    }
}

#[test]
fn a_fill_before_the_adoption_of_its_order_counts_once() {
    let mut account = Account::new(spot_config());
    account.engine.continue_folder(5);
    account.live(LiveInput::Begin);
    account.live(LiveInput::StreamUp { surface: SPOT });
    let id = ClientOrderId::new("mm.5.1").unwrap();
    let filled = || fill(id, Side::Buy, 7, 10, 10, OrderStatus::Filled);
    account.update(filled());
    account.update(update(id, Side::Buy, OrderStatus::New, 0));
    assert_eq!(account.engine.orders().iter().count(), 1);
    account.update(filled());
    let [own, whole] = positions(&account);
    assert_eq!((own.qty, whole.qty), (0, 10));
}

#[test]
fn a_deposit_event_needs_no_other_explanation() {
    let mut account = watched();
    let before = account.engine.balance(SPOT, USDT).total;
    let reported = account_event(&account, AccountReason::Other, [(BASE, 5), (USDT, 7)]);
    account.handle(Input::User(&reported));
    assert_eq!(account.engine.balance(SPOT, USDT).total, before + Amount(7));
    assert_eq!(adjustments(&account), 0);
}

/// The positions of the first strategy and of the account.
fn positions(account: &Account) -> [Position; 2] {
    let ledgers = account.engine.ledgers();
    let both = [&ledgers.strategies[0], &ledgers.account];
    both.map(|ledger| ledger.at(BTC, PositionSide::Both).position)
}

/// A fill of the whole order at 100.0 with a fee in the base asset.
fn with_base_fee(id: ClientOrderId, side: Side, trade: i64, qty: i64, fee: i128) -> OrderUpdate {
    let mut update = fill(id, side, trade, qty, qty, OrderStatus::Filled);
    let fill = update.fill.as_mut().unwrap();
    (fill.fee, fill.fee_asset) = (Amount(fee), BASE);
    update
}

/// Bought 0.010 with a fee of 0.000002: the account owns 0.009998 and can sell 0.009.
fn bought_with_base_fee() -> Account {
    let mut account = watched();
    account.top(999, 1001);
    let order = account.rest_on_spot();
    let id = account.id(MM, order);
    account.update(with_base_fee(id, Side::Buy, 1, 10, 200));
    account.sent.clear();
    account
}

#[test]
fn a_fee_in_the_base_asset_reduces_the_holding() {
    let account = bought_with_base_fee();
    assert_eq!(account.engine.balance(SPOT, BASE).total, Amount(999_800));
    for position in positions(&account) {
        assert_eq!((position.qty, position.dust), (9, 99_800));
        // The fee is 0.000002 at 100.0, as if it had been paid in the quote asset.
        assert_eq!(position.fees, Amount(20_000));
        assert_eq!(position.cost, Amount(99_980_000));
    }
    let reported = account.events.iter().rev();
    let mut reported = reported.filter(|(_, kind, _)| *kind == EventKind::Position);
    let (strategy, _, fields) = reported.next().unwrap();
    assert_eq!(
        (*strategy, fields[0]),
        (MM, 9),
        "the quantity that it can sell"
    );
}

#[test]
fn totals_explain_equity_with_fees_in_the_base_asset() {
    let mut account = bought_with_base_fee();
    account.top(1099, 1101);
    let totals = account.engine.totals().unwrap();
    let start = account.engine.start_equity().unwrap();
    assert_eq!(
        totals.equity,
        start + totals.realized_pnl + totals.unrealized_pnl - totals.fees
    );
}

#[test]
fn dust_of_two_fills_can_become_a_whole_step() {
    let mut account = bought_with_base_fee();
    let order = account.rest_on_spot();
    let id = account.id(MM, order);
    // A rebate that equals the first fee.
    account.update(with_base_fee(id, Side::Buy, 2, 10, -200));
    for position in positions(&account) {
        assert_eq!((position.qty, position.dust), (20, 0));
        assert_eq!(position.fees, Amount::ZERO);
    }
}

#[test]
fn a_fee_in_the_base_asset_of_a_sale_reduces_the_holding() {
    let mut account = bought_with_base_fee();
    let order = account.submit(MM, limit(Side::Sell, 1000, 5));
    let id = account.id(MM, order);
    account.update(with_base_fee(id, Side::Sell, 2, 5, 100));
    assert_eq!(account.engine.balance(SPOT, BASE).total, Amount(499_700));
    for position in positions(&account) {
        assert_eq!((position.qty, position.dust), (4, 99_700));
    }
}

#[test]
fn closing_sells_whole_steps_and_reports_dust_once() {
    let mut account = bought_with_base_fee();
    account.handle(Input::Command(Command::Flatten));
    assert_eq!(account.places(), 1);
    let Some(Request::Place(order)) = account.sent.pop() else {
        panic!("nothing was sent");
    };
    assert_eq!(order.terms.qty, Some(Qty(9)));
    let id = order.client_order_id;
    account.update(with_base_fee(id, Side::Sell, 2, 9, 0));
    let left = account.engine.balance(SPOT, BASE).total;
    assert_eq!(left, Amount(99_800));
    for _ in 0..30 {
        account.pass(1_000);
    }
    assert_eq!(account.places(), 0, "the rest cannot be sold");
    let notices = account.notices.iter();
    let dust: Vec<_> = notices
        .filter_map(|notice| match notice {
            Notice::Dust { left, .. } => Some(*left),
            _ => None,
        })
        .collect();
    assert_eq!(dust, [left]);
}

#[test]
fn a_restart_keeps_dust_and_a_coarser_step_increases_it() {
    let mut account = bought_with_base_fee();
    let mut config = spot_config();
    config.epoch = 8;
    config.instruments[0]
        .filters
        .lot_size
        .as_mut()
        .unwrap()
        .step_size = 5;
    let bytes = account.engine.snapshot();
    let old = Engine::restore(&bytes).unwrap();
    let chain = old.chain();
    let heir = old.succeed(config, chain).unwrap();
    let held = heir.ledgers().strategies[0].at(BTC, PositionSide::Both);
    assert_eq!((held.position.qty, held.position.dust), (5, 499_800));
    let mut config = spot_config();
    config.epoch = 8;
    config.instruments[0].qty_scale = 2;
    let old = Engine::restore(&bytes).unwrap();
    let heir = old.succeed(config, chain).unwrap();
    let held = heir.ledgers().strategies[0].at(BTC, PositionSide::Both);
    assert_eq!((held.position.qty, held.position.dust), (0, 999_800));
}
