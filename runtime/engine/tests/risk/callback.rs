//! Callbacks get results at once from a read-only engine. A callback sees its own intents at once,
//! and only a callback that returned has an effect.

use windvane_engine::Callback;
use windvane_engine::callback::TIMERS_MAX;
use windvane_model::order_state::OrderState;
use windvane_model::rules::Rule;
use windvane_model::{Input, InstrumentId, OrderSeq, OrderStatus, PositionSide, Side};

use super::support::{Account, BTC, MM, OTHER, config, limit, market, update};
use super::{fill_all, hold, with};

#[test]
fn a_failed_callback_has_no_effect() {
    let mut account = with(|_| {});
    hold(&mut account, MM, 5, 1);
    let before = format!("{:?}", account.engine);
    let mut callback = Callback::default();
    callback.begin(&account.engine, MM);
    let first = callback
        .submit(&account.engine, limit(Side::Buy, 1000, 3))
        .unwrap();
    callback
        .submit(&account.engine, limit(Side::Buy, 0, 3))
        .unwrap_err();
    callback.cancel(&account.engine, first).unwrap();
    callback.set_timer(&account.engine, account.now, 1).unwrap();
    callback.clear();
    account.handle(Input::Answer {
        strategy: MM,
        intents: callback.intents(),
    });
    let now = |text: &str| {
        text.split_once(", sequence")
            .map(|(_, rest)| rest.to_owned())
    };
    assert_eq!(now(&format!("{:?}", account.engine)), now(&before));
    // The number is used again, because no order was sent with it.
    callback.begin(&account.engine, MM);
    let again = callback
        .submit(&account.engine, limit(Side::Buy, 1000, 3))
        .unwrap();
    assert_eq!(again, first);
}

#[test]
fn a_callback_sees_its_own_orders() {
    let mut account = with(|_| {});
    let resting = account.submit(MM, limit(Side::Sell, 1010, 2));
    account.submit(OTHER, limit(Side::Sell, 1010, 2));
    account.call(MM, |callback, engine| {
        let own = callback.submit(engine, limit(Side::Buy, 990, 3)).unwrap();
        assert_eq!(own, OrderSeq(3));
        let position = callback.position(engine, BTC, PositionSide::Both).unwrap();
        assert_eq!((position.open_buy, position.open_sell), (3, 2));
        assert_eq!(callback.open_order_count(engine, Some(BTC)), 2);
        assert_eq!(callback.open_order(engine, None, 0), Some(resting));
        assert_eq!(callback.open_order(engine, None, 1), Some(own));
        assert_eq!(callback.open_order(engine, None, 2), None);
        callback.cancel(engine, own).unwrap();
        let view = callback.order(engine, own).unwrap();
        assert_eq!((view.state, view.qty), (OrderState::CancelRequested, 3));
    });
}

#[test]
fn foreign_and_ended_orders_cannot_be_cancelled() {
    let mut account = with(|_| {});
    let foreign = account.submit(OTHER, limit(Side::Buy, 990, 1));
    let ended = account.submit(MM, limit(Side::Buy, 990, 1));
    let id = account.id(MM, ended);
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
    account.call(MM, |callback, engine| {
        assert_eq!(callback.order(engine, foreign), None);
        let view = callback.order(engine, ended).unwrap();
        assert_eq!((view.state, view.price), (OrderState::Canceled, 990));
        let unknown = callback.cancel(engine, foreign).unwrap_err();
        assert_eq!(unknown.rule, Rule::UnknownOrder);
        let over = callback.cancel(engine, ended).unwrap_err();
        assert!([Rule::OrderFinal, Rule::UnknownOrder].contains(&over.rule));
        assert_eq!(callback.cancel_all(engine, None), 0);
        assert_eq!(callback.intents(), []);
    });
}

#[test]
fn cancel_all_cancels_own_orders_of_the_instrument() {
    let mut account = with(|config| {
        let mut eth = super::support::instrument();
        eth.symbol = "ETHUSDT".to_owned();
        config.instruments.push(eth);
        let mut subscription = config.strategies[0].subscriptions[0].clone();
        subscription.instrument = InstrumentId(1);
        config.strategies[0].subscriptions.push(subscription);
    });
    account.submit(MM, limit(Side::Buy, 990, 1));
    account.submit(OTHER, limit(Side::Buy, 990, 1));
    let mut eth = limit(Side::Buy, 990, 1);
    eth.instrument = InstrumentId(1);
    account.submit(MM, eth);
    account.sent.clear();
    let count = account.call(MM, |callback, engine| {
        callback.cancel_all(engine, Some(BTC))
    });
    assert_eq!((count, account.sent.len()), (1, 1));
}

#[test]
fn instruments_that_are_not_granted_are_unknown() {
    let mut config = config();
    config.strategies[1].subscriptions.clear();
    let mut account = Account::new(config);
    let rule = super::refusal(&mut account, OTHER, market(Side::Buy, 1));
    assert_eq!(rule, Some(Rule::UnknownInstrument));
}

#[test]
fn the_number_of_timers_is_limited() {
    let mut account = with(|_| {});
    account.call(MM, |callback, engine| {
        for token in 0..TIMERS_MAX as i64 {
            callback
                .set_timer(engine, engine.now().plus_ms(10), token)
                .unwrap();
        }
        let one_more = callback.set_timer(engine, engine.now(), -1).unwrap_err();
        assert_eq!(one_more.rule, Rule::TooManyTimers);
    });
    account.call(MM, |callback, engine| {
        callback.set_timer(engine, engine.now(), 3).unwrap();
        let one_more = callback.set_timer(engine, engine.now(), -1).unwrap_err();
        assert_eq!(one_more.rule, Rule::TooManyTimers);
    });
}

#[test]
fn order_numbers_increase_over_strategies_and_callbacks() {
    let mut account = with(|_| {});
    let order = limit(Side::Buy, 990, 1);
    let seqs = [MM, OTHER, MM].map(|strategy| account.submit(strategy, order).0);
    assert_eq!(seqs, [1, 2, 3]);
    fill_all(&mut account, MM, OrderSeq(1), 1);
    assert_eq!(account.submit(MM, order), OrderSeq(4));
}
