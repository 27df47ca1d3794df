//! Changes that no event reported: transfers, fills that are missing in the list of the account's
//! trades, and earlier margin calls.

use windvane_model::config::EngineConfig;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::input::Command;
use windvane_model::protocol::{AccountReason, AccountUpdate};
use windvane_model::run_state::RunState;
use windvane_model::state_report::{AccountTrade, StateReport, Subject};
use windvane_model::{
    Amount, Input, Notice, OrderSeq, OrderStatus, Outcome, PositionSide, Price, Qty, Reply, Side,
    Surface, Time, TradeId, UserEvent, VenueOrderId,
};

use super::reconciliation::round;
use super::succession::{killed, next_config};
use super::support::{Account, BTC, MM, fill, instrument, limit, market, report};
use super::world::{live_config, no_trades, position, ready};

pub(super) const fn usdt(whole: i128) -> Amount {
    Amount(whole * 100_000_000)
}

pub(super) fn limited(mut config: EngineConfig) -> EngineConfig {
    config.live = Some(live_config());
    config.limits.max_daily_loss = Some(usdt(500));
    config
}

/// A run in state ready with a loss limit of 500 that bought 10 at 100.
pub(super) fn holding() -> Account {
    let mut account = Account::new(limited(super::support::config()));
    account.begin();
    account.sync();
    account.top(999, 1001);
    let order = account.submit(MM, limit(Side::Buy, 1000, 10_000));
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 10_000, 10_000, OrderStatus::Filled));
    account.seconds(2);
    account.top(999, 1001);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account
}

#[test]
fn a_transfer_that_the_next_fills_event_shows_is_not_a_loss() {
    let mut account = holding();
    let mut reported = account.own_account();
    reported.balances[0].total += -usdt(1_000);
    account.handle(Input::User(&UserEvent::Account(AccountUpdate {
        surface: Surface::Futures,
        reason: AccountReason::Order,
        balances: reported.balances,
        positions: reported.positions,
        transaction_time: Time(0),
        event_time: Time(0),
    })));
    account.top(999, 1001);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_charge_of_the_venue_is_a_loss() {
    let mut account = holding();
    let mut reported = account.own_account();
    reported.balances[0].total += -usdt(1_000);
    reported.balances[0].change = -usdt(1_000);
    account.handle(Input::User(&UserEvent::Account(AccountUpdate {
        surface: Surface::Futures,
        reason: AccountReason::Charge,
        balances: reported.balances,
        positions: Vec::new(),
        transaction_time: Time(0),
        event_time: Time(0),
    })));
    assert_eq!(account.engine.run_state(), RunState::Halted, "at once");
}

#[test]
fn transfers_whose_events_arrive_out_of_order_count_once() {
    let mut account = holding();
    let before = account.own_account().balances[0].total;
    for (ms, total) in [(2, 2_000), (1, 1_000)] {
        let mut reported = account.own_account();
        reported.balances[0].total = before + usdt(total);
        reported.balances[0].change = usdt(1_000);
        account.handle(Input::User(&UserEvent::Account(AccountUpdate {
            surface: Surface::Futures,
            reason: AccountReason::Other,
            balances: reported.balances,
            positions: Vec::new(),
            transaction_time: Time::from_millis(ms),
            event_time: Time::from_millis(ms),
        })));
    }
    account.top(999, 1001);
    let known = account.own_account().balances[0].total;
    assert_eq!(known, before + usdt(2_000));
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn transfers_repeated_on_a_new_connection_count_once() {
    for restarts in [false, true] {
        let mut account = holding();
        let before = account.own_account().balances[0].total;
        let events: Vec<_> = [(1, -usdt(200)), (2, -usdt(300))]
            .into_iter()
            .scan(before, |total, (second, change)| {
                *total += change;
                let mut reported = account.own_account();
                reported.balances[0].total = *total;
                reported.balances[0].change = change;
                Some(UserEvent::Account(AccountUpdate {
                    surface: Surface::Futures,
                    reason: AccountReason::Other,
                    balances: reported.balances,
                    positions: Vec::new(),
                    transaction_time: account.now.plus_ms(second * 1_000),
                    event_time: account.now.plus_ms(second * 1_000),
                }))
            })
            .collect();
        for event in &events {
            account.handle(Input::User(event));
        }
        account.wait(60);
        if restarts {
            account = killed(account, limited(next_config()));
            account.begin();
        }
        for event in &events {
            account.handle(Input::User(event));
        }
        let known = account.own_account().balances[0].total;
        assert_eq!(known, before - usdt(500), "restarts: {restarts}");
    }
}

#[test]
fn the_loss_of_an_unreported_close_is_a_loss() {
    let mut account = holding();
    account.wait(31);
    let total = account.own_account().balances[0].total;
    for _ in 0..60 {
        round(&mut account, &[], &[], |own| {
            own.balances[0].total = total - usdt(600);
            own.positions = vec![position(0)];
        });
        account.pass(300);
        account.alive();
        account.clock();
    }
    account.top(999, 1001);
    assert_eq!(account.engine.run_state(), RunState::Halted);
}

#[test]
fn a_margin_call_survives_a_restart() {
    let mut account = ready();
    account.handle(Input::User(&UserEvent::MarginCall));
    let mut account = killed(account, next_config());
    account.begin();
    account.sync();
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::MarginCall]
    );
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    account.handle(Input::Command(Command::Resume));
    assert_eq!(account.engine.run_state(), RunState::Ready);
    let mut account = killed(account, next_config());
    account.begin();
    account.sync();
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

/// For this many seconds the venue reports an order as filled, while its list of the account's
/// trades is empty. Returns how often the order and the trades were queried.
fn ask_in_vain(account: &mut Account, order: OrderSeq, qty: i64, seconds: u32) -> (usize, usize) {
    let id = account.id(MM, order);
    let (mut queries, mut reads) = (0, 0);
    for _ in 0..seconds {
        account.wait(1);
        let asked = account.take_queries();
        queries += asked;
        for _ in 0..asked {
            let mut filled = report(id, OrderStatus::Filled, qty);
            filled.cum_quote = instrument().notional(990, qty);
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: id,
                outcome: Outcome::Done(filled),
            }));
        }
        while let Some(subject) = account.take_question() {
            let state_report = match subject {
                Subject::Account { .. } => StateReport::Account(account.own_account()),
                Subject::Trades { .. } => {
                    reads += 1;
                    no_trades()
                }
                _ => super::world::nothing(subject),
            };
            account.tell(subject, state_report);
        }
    }
    (queries, reads)
}

fn recovered(account: &Account) -> Vec<(Price, Qty)> {
    let fill = |notice: &Notice| match notice {
        Notice::Recovered { fill, .. } => Some((fill.price, fill.qty)),
        _ => None,
    };
    account.notices.iter().filter_map(fill).collect()
}

fn own_qty(account: &Account) -> i64 {
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    own.position.qty
}

#[test]
fn a_fill_missing_in_account_trades_is_derived_from_totals() {
    let mut account = ready();
    let order = account.submit(MM, market(Side::Buy, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    let mut filled = report(id, OrderStatus::Filled, 10);
    filled.cum_quote = instrument().notional(990, 10);
    account.placed(id, Outcome::Done(filled));
    account.seconds(2);
    let (queries, reads) = ask_in_vain(&mut account, order, 10, 25);
    assert_eq!(recovered(&account), [(Price(990), Qty(10))]);
    assert_eq!(own_qty(&account), 10);
    assert!(account.engine.order(order).is_none(), "the order is filled");
    assert!(queries <= 10, "{queries}");
    assert!(reads <= 6, "{reads}");
    // The venue finally reports the fill, in the list of the account's trades and by an event.
    let filled = fill(id, Side::Buy, 7, 10, 10, OrderStatus::Filled);
    let late = AccountTrade {
        order_id: VenueOrderId(1),
        side: Side::Buy,
        position_side: PositionSide::Both,
        fill: filled.fill.unwrap(),
        time: Time(0),
    };
    account.live(windvane_model::live::LiveInput::StreamDown {
        surface: Surface::Futures,
    });
    account.live(windvane_model::live::LiveInput::StreamUp {
        surface: Surface::Futures,
    });
    round(&mut account, &[], &[late], |_| {});
    assert_eq!(
        own_qty(&account),
        10,
        "account trades do not count it again"
    );
    account.update(filled);
    assert_eq!(own_qty(&account), 10, "the stream does not count it again");
}

#[test]
fn no_fill_is_derived_while_the_list_of_trades_may_be_stale() {
    let mut account = ready();
    let order = account.submit(MM, market(Side::Buy, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    // Responses to its cancels and queries report the total again and again.
    for _ in 0..12 {
        for _ in 0..2 {
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: id,
                outcome: Outcome::Done(report(id, OrderStatus::Filled, 10)),
            }));
        }
        ask_in_vain(&mut account, order, 10, 1);
    }
    assert_eq!(own_qty(&account), 0, "the list may be twelve seconds old");
    ask_in_vain(&mut account, order, 10, 8);
    assert_eq!(own_qty(&account), 10);
}

#[test]
fn a_trade_larger_than_the_derived_fill_counts_for_the_rest() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.placed(
        id,
        Outcome::Done(report(id, OrderStatus::PartiallyFilled, 4)),
    );
    ask_in_vain(&mut account, order, 4, 25);
    assert_eq!(own_qty(&account), 4);
    let late = |id, qty| {
        let fill = fill(
            account.id(MM, order),
            Side::Buy,
            id,
            qty,
            qty,
            OrderStatus::New,
        )
        .fill;
        AccountTrade {
            order_id: VenueOrderId(1),
            side: Side::Buy,
            position_side: PositionSide::Both,
            fill: fill.unwrap(),
            time: Time(0),
        }
    };
    let trades = [late(8, 6), late(9, 4)];
    assert_eq!(trades[0].fill.trade_id, TradeId(8));
    account.live(windvane_model::live::LiveInput::StreamDown {
        surface: Surface::Futures,
    });
    account.live(windvane_model::live::LiveInput::StreamUp {
        surface: Surface::Futures,
    });
    round(&mut account, &[], &trades, |_| {});
    assert_eq!(own_qty(&account), 10);
}
