//! A position became smaller while no event could explain it, and the venue does not list forced
//! orders.

use windvane_model::forced::ForcedClose;
use windvane_model::live::LiveInput;
use windvane_model::run_state::{KillSwitch, RunState};
use windvane_model::{Amount, Side, Surface, VenueOrderId};

use super::forced::{answer_with_trades, held, holding, minute, refused_route, reports};
use super::forced_events::delivered_closes;
use super::reconciliation::trade;
use super::succession::{killed, next_config};
use super::support::{Account, USDT, instrument};
use super::world::position;

const FUTURES: Surface = Surface::Futures;

/// The wallet balance after a close of 40 at 90.0.
fn left(account: &Account) -> Amount {
    let total = account.engine.balance(FUTURES, USDT).total;
    total - instrument().notional(100, 40)
}

/// Why the events of the close were lost.
#[derive(Clone, Copy, Debug)]
enum Gap {
    None,
    Cut,
    Killed,
}

fn after(gap: Gap) -> Account {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    match gap {
        Gap::None => {}
        Gap::Cut => {
            account.live(LiveInput::StreamDown { surface: FUTURES });
            account.live(LiveInput::StreamUp { surface: FUTURES });
        }
        Gap::Killed => {
            account = killed(account, next_config());
            account.begin();
        }
    }
    account
}

#[test]
fn a_close_that_no_order_explains_counts_as_forced() {
    for gap in [Gap::None, Gap::Cut, Gap::Killed] {
        let mut account = after(gap);
        let wallet = left(&account);
        for _ in 0..2 {
            minute(&mut account, &[], Some(wallet), &refused_route());
        }
        assert_eq!(held(&account), [0, 0, 0], "{gap:?}");
        assert_eq!(account.engine.kill_switch(), KillSwitch::Halted, "{gap:?}");
        let reported = reports(&account);
        assert_eq!(reported.len(), 1, "{gap:?}");
        let report = &reported[0];
        let shares: Vec<_> = report.shares.iter().map(|share| share.qty).collect();
        assert_eq!(
            (report.kind, report.qty, report.side),
            (ForcedClose::Unreported, 40, Side::Sell)
        );
        assert_eq!((shares, report.unowned, report.left), (vec![30, 10], 0, 0));
        assert_eq!(report.realized_pnl, -instrument().notional(100, 40));
        assert_eq!(report.quote, instrument().notional(900, 40));
        // Price and fee are only part of the balance change, and the order is unknown.
        for (strategy, event) in delivered_closes(&account) {
            assert_eq!(
                [event.fields[0], event.fields[2]],
                [i64::MIN; 2],
                "{strategy:?}"
            );
            assert_eq!((event.fields[4], event.id), (3, 0));
        }
        assert_eq!(delivered_closes(&account).len(), 2, "{gap:?}");
    }
}

#[test]
fn a_close_that_outside_trades_explain_is_not_forced() {
    let mut account = after(Gap::Cut);
    let mut by_hand = trade(VenueOrderId(500).0, 9, 40);
    by_hand.side = Side::Sell;
    by_hand.time = account.now;
    let wallet = left(&account);
    for _ in 0..120 {
        let read = Some((position(0), wallet));
        answer_with_trades(&mut account, &[by_hand], read, &refused_route());
        account.pass(499);
        account.alive();
        account.clock();
        account.confirm_countdowns();
    }
    assert_eq!(held(&account), [0, 0, 0]);
    assert_eq!(reports(&account), []);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_larger_position_is_not_a_forced_close() {
    let mut account = after(Gap::Cut);
    for _ in 0..240 {
        let total = account.engine.balance(FUTURES, USDT).total;
        let read = Some((position(60), total));
        answer_with_trades(&mut account, &[], read, &refused_route());
        account.pass(499);
        account.alive();
        account.clock();
        account.confirm_countdowns();
    }
    assert_eq!(held(&account), [60, 30, 10]);
    assert_eq!(reports(&account), []);
    assert_eq!(account.engine.kill_switch(), KillSwitch::Clear);
}

#[test]
fn an_outside_orders_total_explains_fills_without_events() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    // 40 were sold, and the only event reports the last 15.
    let mut by_hand = super::forced::sold(9, 15, 40, 40);
    by_hand.order_id = VenueOrderId(501);
    by_hand.transaction_time = account.now;
    account.update(by_hand);
    let wallet = left(&account);
    for _ in 0..2 {
        minute(&mut account, &[], Some(wallet), &refused_route());
    }
    assert_eq!(held(&account), [0, 0, 0]);
    assert_eq!(reports(&account), []);
    assert_eq!(account.engine.kill_switch(), KillSwitch::Clear);
}
