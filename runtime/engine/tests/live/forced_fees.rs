//! The commission of a forced close, if the order event lacks it.

use windvane_model::live::LiveInput;
use windvane_model::state_report::AccountTrade;
use windvane_model::{Amount, PositionSide, Side, Surface};

use super::forced::{holding, marked, sold};
use super::reconciliation::{round, trade};
use super::support::{Account, BTC};

const FEE: Amount = Amount(2_000_000);

/// The commissions of the two strategies and of the unowned position.
fn fees(account: &Account) -> [Amount; 3] {
    let ledgers = account.engine.ledgers();
    let [mm, other] = [0, 1].map(|place: usize| &ledgers.strategies[place]);
    [mm, other, &ledgers.external].map(|own| own.at(BTC, PositionSide::Both).position.fees)
}

/// A liquidation of the whole position. Its event states no commission.
fn liquidated() -> Account {
    let mut account = holding(30, 10);
    let mut event = marked(sold(3, 40, 40, 40));
    if let Some(fill) = &mut event.fill {
        fill.fee = Amount::ZERO;
    }
    account.update(event);
    account
}

/// The first reconciliation after a reconnect lists the trade of the liquidation with its
/// commission.
fn list_trade(account: &mut Account) {
    let surface = Surface::Futures;
    account.live(LiveInput::StreamDown { surface });
    account.live(LiveInput::StreamUp { surface });
    let event = sold(3, 40, 40, 40);
    let mut listed = AccountTrade {
        side: Side::Sell,
        fill: event.fill.unwrap(),
        ..trade(event.order_id.0, 3, 40)
    };
    listed.fill.fee = FEE;
    round(account, &[], &[listed], |_| {});
}

#[test]
fn strategies_share_a_late_commission_like_the_forced_close() {
    let mut account = liquidated();
    let before = fees(&account);
    list_trade(&mut account);
    let after = fees(&account);
    let paid: Vec<Amount> = (after.into_iter().zip(before))
        .map(|(after, before)| after - before)
        .collect();
    assert_eq!(paid, [Amount(1_500_000), Amount(500_000), Amount::ZERO]);
    let (_, report) = account.engine.forced_closes().next().unwrap();
    assert_eq!(report.fee, FEE);
    list_trade(&mut account);
    assert_eq!(fees(&account), after, "once");
}

#[test]
fn an_unowned_part_bears_its_share_of_a_late_commission() {
    let mut account = holding(30, 0);
    let mut bought = sold(2, 10, 10, 10);
    bought.side = Side::Buy;
    bought.order_id.0 = 499;
    account.update(bought);
    let mut event = marked(sold(3, 40, 40, 40));
    if let Some(fill) = &mut event.fill {
        fill.fee = Amount::ZERO;
    }
    account.update(event);
    let before = fees(&account);
    list_trade(&mut account);
    let after = fees(&account);
    assert_eq!(after[0] - before[0], Amount(1_500_000));
    assert_eq!(after[2] - before[2], Amount(500_000));
}
