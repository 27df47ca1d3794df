//! The venue's list of the account's trades has outside trades. A forced order with another id does
//! not explain them.

use windvane_model::effect::Adjustment;
use windvane_model::live::LiveInput;
use windvane_model::protocol::PositionUpdate;
use windvane_model::state_report::{AccountTrade, OpenOrder, StateReport};
use windvane_model::{
    ClientOrderId, Input, OrderStatus, OrderTerms, OrderType, Outcome, Qty, Side, Surface,
    VenueOrderId,
};

use super::forced::{answer_with_trades, held, holding, minute, refused_route, reports, sold};
use super::reconciliation::{adjustments, trade};
use super::support::{Account, BTC, MM, fill, instrument, limit, report};
use super::world::{position, ready};

const FORCED: VenueOrderId = VenueOrderId(503);

/// Lets seconds pass in which account snapshots, the list of the account's trades and the list of
/// forced orders have these contents.
fn answer(
    account: &mut Account,
    seconds: u32,
    trades: &[AccountTrade],
    read: PositionUpdate,
    forced: &Outcome<StateReport>,
) {
    for _ in 0..2 * seconds {
        let total = account.own_account().balances[0].total;
        answer_with_trades(account, trades, Some((read, total)), forced);
        account.pass(499);
        account.alive();
        account.clock();
    }
}

/// An outside trade with this order id and trade id.
fn listed_trade(account: &Account, order: i64, id: i64, side: Side, qty: i64) -> AccountTrade {
    AccountTrade {
        side,
        time: account.now,
        ..trade(order, id, qty)
    }
}

/// A buying ADL order, as `forceOrders` lists it.
fn listed_order(account: &Account, qty: i64) -> OpenOrder {
    let id = ClientOrderId::new("adl_autoclose").unwrap();
    let mut report = report(id, OrderStatus::Filled, qty);
    report.order_id = FORCED;
    report.orig_qty = Qty(qty);
    report.cum_quote = instrument().notional(1000, qty);
    report.update_time = account.now;
    let mut terms = OrderTerms::new(BTC, Side::Buy, OrderType::Liquidation);
    terms.qty = Some(Qty(qty));
    OpenOrder { report, terms }
}

#[test]
fn trades_by_hand_are_not_mistaken_for_another_forced_order() {
    let mut account = ready();
    minute(&mut account, &[], None, &refused_route());
    let mut trades = vec![listed_trade(&account, 501, 9, Side::Buy, 5)];
    answer(&mut account, 30, &trades, position(5), &refused_route());
    // A person reverses the position. The venue's list of forced orders then contains an order that
    // is newer than that snapshot.
    trades.push(listed_trade(&account, 502, 10, Side::Sell, 9));
    let forced = Outcome::Done(StateReport::ForcedOrders(vec![listed_order(&account, 4)]));
    account.notices.clear();
    while account.own_account().positions != [position(-4)] {
        answer(&mut account, 1, &trades, position(-4), &forced);
    }
    answer(&mut account, 2, &trades, position(-4), &forced);
    trades.push(listed_trade(&account, FORCED.0, 11, Side::Buy, 4));
    answer(&mut account, 90, &trades, position(0), &forced);
    let flat = account.own_account().positions[0].qty;
    assert_eq!(flat, Qty(0));
    let reported: Vec<_> = reports(&account).iter().map(|one| one.qty).collect();
    assert_eq!(reported, [4]);
    let mut adjusted = adjustments(&account);
    adjusted.retain(|one| matches!(one, Adjustment::Position { .. }));
    assert_eq!(adjusted, [], "trades explain every position");
}

/// The stream reports that the order of a liquidation was placed, but not its fill. Meanwhile the
/// strategies sold a part, so the account is short.
#[test]
fn the_list_settles_a_liquidation_whose_fill_event_was_lost() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    let mut placed = sold(0, 40, 0, 40);
    placed.client_order_id = ClientOrderId::new("autoclose-17").unwrap();
    placed.execution = windvane_model::ExecutionType::New;
    placed.fill = None;
    account.update(placed);
    let listed = super::forced::listed_order(&account, 40);
    let forced = Outcome::Done(StateReport::ForcedOrders(vec![listed]));
    account.handle(Input::Command(windvane_model::input::Command::Resume));
    let exit = account.submit(MM, limit(Side::Sell, 1000, 10));
    account.confirm_countdowns();
    let id = account.id(MM, exit);
    account.update(fill(id, Side::Sell, 3, 10, 10, OrderStatus::Filled));
    for (surface, up) in [(Surface::Futures, false), (Surface::Futures, true)] {
        account.live(if up {
            LiveInput::StreamUp { surface }
        } else {
            LiveInput::StreamDown { surface }
        });
    }
    answer(&mut account, 60, &[], position(-10), &forced);
    assert_eq!(held(&account), [-10, 0, 0]);
    let reported: i64 = reports(&account).iter().map(|one| one.qty).sum();
    assert_eq!(reported, 40);
}

/// No event reported the close. A later own sale reversed the position. The snapshot shows that,
/// and the list contains the forced order.
#[test]
fn a_listed_close_before_a_reversing_own_fill_closes_strategies() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    let mut forced = listed_order(&account, 40);
    forced.terms.side = Side::Sell;
    let forced = Outcome::Done(StateReport::ForcedOrders(vec![forced]));
    account.pass(3_000);
    account.alive();
    account.clock();
    let order = account.submit(MM, limit(Side::Sell, 1_000, 25));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    let mut sale = fill(id, Side::Sell, 3, 25, 25, OrderStatus::Filled);
    sale.transaction_time = account.now;
    account.update(sale);
    assert_eq!(held(&account), [15, 5, 10]);
    answer(&mut account, 60, &[], position(-25), &forced);
    assert_eq!(held(&account), [-25, -25, 0]);
    let closed: i64 = reports(&account).iter().map(|one| one.qty).sum();
    assert_eq!(closed, 40);
}
