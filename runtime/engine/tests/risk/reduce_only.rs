//! `reduce_only` is checked against the strategy's own position. The flag is sent only if the
//! account's position covers the order.

use windvane_model::input::Command;
use windvane_model::rules::Rule;
use windvane_model::{
    ClientOrderId, Input, OrderStatus, OrderTerms, OrderType, PositionSide, Price, Request, Side,
};

use super::support::{Account, MM, OTHER, fill, limit, market};
use super::{hold, refusal, with};

fn reducing(side: Side, qty: i64) -> OrderTerms {
    let mut terms = market(side, qty);
    terms.reduce_only = true;
    terms
}

fn wire_flags(account: &Account) -> Vec<bool> {
    let flag = |request: &Request| match request {
        Request::Place(order) => Some(order.terms.reduce_only),
        _ => None,
    };
    account.sent.iter().filter_map(flag).collect()
}

#[test]
fn reduce_only_is_limited_to_the_free_own_position() {
    let mut account = with(|_| {});
    let too_much = Some(Rule::ReduceOnlyPosition);
    assert_eq!(refusal(&mut account, MM, reducing(Side::Sell, 1)), too_much);
    hold(&mut account, MM, 10, 1);
    assert_eq!(refusal(&mut account, MM, reducing(Side::Buy, 1)), too_much);
    assert_eq!(
        refusal(&mut account, MM, reducing(Side::Sell, 11)),
        too_much
    );
    account.submit(MM, limit(Side::Sell, 1010, 4));
    assert_eq!(refusal(&mut account, MM, reducing(Side::Sell, 7)), too_much);
    let answers = account.call(MM, |callback, engine| {
        [4, 3, 2].map(|qty| callback.submit(engine, reducing(Side::Sell, qty)).is_ok())
    });
    assert_eq!(answers, [true, false, true], "6 are left");
    assert_eq!(
        refusal(&mut account, OTHER, reducing(Side::Sell, 1)),
        too_much
    );
}

#[test]
fn the_flag_is_sent_only_if_the_net_position_covers_the_order() {
    let mut account = with(|_| {});
    hold(&mut account, MM, 10, 1);
    hold(&mut account, OTHER, -6, 2);
    // The net position is 4. Both strategies may reduce their own positions, but at the venue only
    // a sell of up to 4 reduces.
    account.submit(MM, reducing(Side::Sell, 5));
    account.submit(OTHER, reducing(Side::Buy, 6));
    assert_eq!(wire_flags(&account), [false, false]);
    let mut account = with(|_| {});
    hold(&mut account, MM, 10, 1);
    hold(&mut account, OTHER, -6, 2);
    account.submit(MM, reducing(Side::Sell, 3));
    account.submit(MM, reducing(Side::Sell, 2));
    assert_eq!(
        wire_flags(&account),
        [true, false],
        "3 of the 4 are in flight"
    );
}

#[test]
fn hedge_mode_has_the_same_limit_without_the_flag() {
    let mut account = with(|config| config.hedge_mode = true);
    let mut open = market(Side::Buy, 5);
    open.position_side = PositionSide::Long;
    let order = account.submit(MM, open);
    let id = account.id(MM, order);
    let mut bought = super::fill(id, Side::Buy, 1, 5, 5, windvane_model::OrderStatus::Filled);
    bought.position_side = PositionSide::Long;
    account.update(bought);
    account.sent.clear();
    let mut close = reducing(Side::Sell, 6);
    close.position_side = PositionSide::Long;
    assert_eq!(
        refusal(&mut account, MM, close),
        Some(Rule::ReduceOnlyPosition)
    );
    close.qty = Some(windvane_model::Qty(5));
    assert_eq!(refusal(&mut account, MM, close), None);
    assert_eq!(wire_flags(&account), [false]);
}

/// An account in hedge mode in which `MM` holds 10 on a side and `OTHER` nothing.
fn hedged(side: PositionSide) -> (Account, Side) {
    let (opening, closing) = match side {
        PositionSide::Short => (Side::Sell, Side::Buy),
        _ => (Side::Buy, Side::Sell),
    };
    let mut account = with(|config| config.hedge_mode = true);
    let order = account.submit(MM, sided(side, market(opening, 10)));
    let id = account.id(MM, order);
    let mut filled = super::fill(id, opening, 1, 10, 10, windvane_model::OrderStatus::Filled);
    filled.position_side = side;
    account.update(filled);
    account.sent.clear();
    (account, closing)
}

fn sided(side: PositionSide, mut terms: OrderTerms) -> OrderTerms {
    terms.position_side = side;
    terms
}

#[test]
fn in_hedge_mode_a_strategy_cannot_close_another_strategy() {
    let too_much = Some(Rule::ReduceOnlyPosition);
    for side in [PositionSide::Long, PositionSide::Short] {
        let (mut account, closing) = hedged(side);
        let mut stop = sided(side, market(closing, 1));
        stop.order_type = OrderType::StopMarket;
        stop.stop_price = Some(Price(if closing == Side::Sell { 950 } else { 1050 }));
        let rests = if closing == Side::Sell { 1010 } else { 990 };
        for order in [
            sided(side, market(closing, 1)),
            sided(side, limit(closing, rests, 1)),
            stop,
        ] {
            let refused = refusal(&mut account, OTHER, order);
            assert_eq!(refused, too_much, "{side:?} {order:?}");
        }
        let opening = sided(side, market(closing.opposite(), 1));
        assert_eq!(refusal(&mut account, OTHER, opening), None, "{side:?}");
    }
}

#[test]
fn in_hedge_mode_closes_in_flight_count_for_the_limit() {
    let too_much = Some(Rule::ReduceOnlyPosition);
    for side in [PositionSide::Long, PositionSide::Short] {
        let (mut account, closing) = hedged(side);
        let close = |qty| sided(side, market(closing, qty));
        assert_eq!(refusal(&mut account, MM, close(11)), too_much, "{side:?}");
        let answers = account.call(MM, |callback, engine| {
            [6, 5, 3].map(|qty| callback.submit(engine, close(qty)).is_ok())
        });
        assert_eq!(answers, [true, false, true], "{side:?}");
        assert_eq!(refusal(&mut account, MM, close(2)), too_much, "{side:?}");
        assert_eq!(refusal(&mut account, MM, close(1)), None, "{side:?}");
        assert_eq!(wire_flags(&account), [false; 3], "{side:?}");
    }
}

#[test]
fn in_hedge_mode_a_pause_allows_closes() {
    for side in [PositionSide::Long, PositionSide::Short] {
        let (mut account, closing) = hedged(side);
        account.handle(Input::Command(Command::Pause));
        let opening = sided(side, market(closing.opposite(), 1));
        assert_eq!(
            refusal(&mut account, MM, opening),
            Some(Rule::Paused),
            "{side:?}"
        );
        let close = sided(side, market(closing, 10));
        assert_eq!(refusal(&mut account, MM, close), None, "{side:?}");
    }
}

#[test]
fn close_position_is_only_for_the_sole_owner() {
    let mut close = OrderTerms::new(super::BTC, Side::Sell, OrderType::StopMarket);
    close.stop_price = Some(Price(950));
    close.close_position = true;
    let mut alone = with(|config| config.strategies[1].subscriptions.clear());
    hold(&mut alone, MM, 10, 1);
    assert_eq!(refusal(&mut alone, MM, close), None);
    // A person bought more.
    let by_hand = ClientOrderId::new("web-1").unwrap();
    alone.update(fill(by_hand, Side::Buy, 2, 1, 1, OrderStatus::Filled));
    assert_eq!(
        refusal(&mut alone, MM, close),
        Some(Rule::ClosePositionShared)
    );
}

#[test]
fn close_position_is_refused_where_another_strategy_may_open_a_position() {
    let mut close = OrderTerms::new(super::BTC, Side::Sell, OrderType::StopMarket);
    close.stop_price = Some(Price(950));
    close.close_position = true;
    let mut account = with(|_| {});
    for qty in [0, 10] {
        if qty > 0 {
            hold(&mut account, MM, qty, 1);
        }
        assert_eq!(
            refusal(&mut account, MM, close),
            Some(Rule::ClosePositionShared)
        );
    }
    assert_eq!(refusal(&mut account, MM, reducing(Side::Sell, 10)), None);
}

#[test]
fn a_pause_allows_reducing_orders_and_cancels() {
    let mut account = with(|_| {});
    hold(&mut account, MM, 10, 1);
    let open = account.submit(MM, limit(Side::Buy, 900, 1));
    account.handle(Input::Command(Command::Pause));
    assert_eq!(
        refusal(&mut account, MM, market(Side::Sell, 1)),
        Some(Rule::Paused)
    );
    assert_eq!(refusal(&mut account, MM, reducing(Side::Sell, 10)), None);
    account.sent.clear();
    account.cancel(MM, open);
    assert_eq!(account.sent.len(), 1, "cancels always pass");
}
