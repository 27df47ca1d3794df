//! An account snapshot includes the true commissions of its fills, even if the time of the snapshot
//! is unknown.

use windvane_model::live::LiveInput;
use windvane_model::{Amount, OrderStatus, Outcome, PositionSide, Side, Surface, VenueOrderId};

use super::reconciliation::{qty, round, trade};
use super::support::{Account, BTC, MM, USDT, instrument, market, report};
use super::world::ready;

/// The commission that the venue charged.
const FEE: Amount = Amount(20_000);

fn balance(account: &Account) -> Amount {
    account.engine.balance(Surface::Futures, USDT).total
}

fn reconnect(account: &mut Account) {
    let surface = Surface::Futures;
    account.live(LiveInput::StreamDown { surface });
    account.live(LiveInput::StreamUp { surface });
}

#[test]
fn a_commission_in_a_lagging_snapshot_is_charged_once() {
    let mut account = ready();
    let before = balance(&account);
    let order = account.submit(MM, market(Side::Buy, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    let mut filled = report(id, OrderStatus::Filled, 10);
    filled.order_id = VenueOrderId(1);
    filled.cum_quote = instrument().notional(990, 10);
    account.placed(id, Outcome::Done(filled));
    account.pass(300);
    assert_eq!(qty(&account), 10);
    let estimate = instrument().notional(990, 10).part(400, 1_000_000);
    assert_eq!(balance(&account), before - estimate);
    reconnect(&mut account);
    for _ in 0..100 {
        round(&mut account, &[], &[], |own| {
            own.balances[0].total = before - FEE;
            own.lags = true;
        });
        account.wait(1);
    }
    assert_eq!(balance(&account), before - FEE, "the snapshot is adopted");
    let mut listed = trade(1, 1, 10);
    listed.fill.fee = FEE;
    account.wait(31);
    reconnect(&mut account);
    round(&mut account, &[], &[listed], |own| own.lags = true);
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    assert_eq!(own.position.fees, FEE);
    assert_eq!(balance(&account), before - FEE, "charged once");
}
