//! Mark prices that stop while a position is held.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::run_state::RunState;
use windvane_model::state_report::{StateReport, StatedPosition, Subject};
use windvane_model::{Amount, Input, MarketEvent, OrderStatus, PositionSide, Reply, Side, Time};

use super::support::{Account, BTC, MM, fill, limit};
use super::world::{live_config, no_trades, nothing};

const fn usdt(whole: i128) -> Amount {
    Amount(whole * 100_000_000)
}

fn mark(account: &mut Account, price: i64) {
    account.handle(Input::Market {
        instrument: BTC,
        event: MarketEvent::Mark {
            mark: price * 100_000_000,
            index: 0,
            funding_rate: 0,
            next_funding: Time::NEVER,
        },
    });
}

/// Bought 10 at 100 with a mark price of 100 and a loss limit of 500.
fn holding(side: Side) -> Account {
    let mut config = super::support::config();
    config.live = Some(live_config());
    config.limits.max_daily_loss = Some(usdt(500));
    let mut account = Account::new(config);
    account.begin();
    account.sync();
    mark(&mut account, 100);
    let order = account.submit(MM, limit(side, 1000, 10_000));
    let id = account.id(MM, order);
    account.update(fill(id, side, 1, 10_000, 10_000, OrderStatus::Filled));
    account.seconds(2);
    mark(&mut account, 100);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account
}

/// Lets seconds pass in which account snapshots state this unrealized profit, or none.
fn seconds(account: &mut Account, side: Side, unrealized: Option<i128>, seconds: u32) {
    for _ in 0..seconds {
        while let Some(subject) = account.take_question() {
            let state_report = match subject {
                Subject::Account { .. } => {
                    let stated = unrealized.map(|unrealized| StatedPosition {
                        symbol: "BTCUSDT".to_owned(),
                        instrument: Some(BTC),
                        position_side: PositionSide::Both,
                        qty: usdt(10 * i128::from(side.sign())),
                        entry_price: usdt(100),
                        unrealized: usdt(unrealized),
                    });
                    if let Some(stated) = stated {
                        account.handle(Input::Reply(&Reply::Stated(vec![stated])));
                    }
                    StateReport::Account(account.own_account())
                }
                Subject::Trades { .. } => no_trades(),
                _ => nothing(subject),
            };
            account.tell(subject, state_report);
        }
        account.pass(999);
        account.alive();
        account.clock();
        account.confirm_countdowns();
    }
}

#[test]
fn a_snapshot_shows_the_loss_that_an_old_mark_hides() {
    for side in [Side::Buy, Side::Sell] {
        for (lost, state) in [(-400, RunState::Ready), (-600, RunState::Halted)] {
            let mut account = holding(side);
            seconds(&mut account, side, Some(lost), 31);
            assert_eq!(account.engine.run_state(), state, "{side:?} {lost}");
        }
    }
}

#[test]
fn a_current_mark_price_has_priority_over_a_snapshot() {
    let mut account = holding(Side::Buy);
    for _ in 0..40 {
        seconds(&mut account, Side::Buy, Some(-600), 1);
        mark(&mut account, 99);
    }
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn without_any_mark_price_a_held_position_degrades_the_run() {
    let mut account = holding(Side::Buy);
    seconds(&mut account, Side::Buy, None, 58);
    assert_eq!(account.engine.degraded_reasons(), []);
    seconds(&mut account, Side::Buy, None, 5);
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::Mark(BTC)]
    );
    mark(&mut account, 99);
    account.pass(999);
    assert_eq!(account.engine.degraded_reasons(), []);
}
