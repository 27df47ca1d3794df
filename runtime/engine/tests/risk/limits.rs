//! Every limit, for the account and for one strategy. Quantities are in 0.001 and prices in 0.1:
//! ten at 1000 has a notional of 1.

use windvane_model::config::EngineConfig;
use windvane_model::instrument::SymbolStatus;
use windvane_model::risk::RiskLimits;
use windvane_model::rules::Rule;
use windvane_model::{
    Input, InstrumentId, OrderStatus, OrderTerms, OrderType, Outcome, PositionSide, Price, Side,
};

use super::support::{Account, BTC, MM, OTHER, instrument, limit, market, refused, update};
use super::{fill_all, hold, refusal, usdt, with};

/// One account of one strategy with the limits for the whole account, and one with the limits for
/// the first strategy only.
fn account_and_strategy(limits: &RiskLimits) -> [Account; 2] {
    let own = limits.clone();
    [
        with(|config| {
            config.limits = limits.clone();
            config.strategies.truncate(1);
        }),
        with(|config| config.strategies[0].limits = own),
    ]
}

fn stop(price: i64) -> OrderTerms {
    let mut terms = market(Side::Buy, 1);
    terms.order_type = OrderType::StopMarket;
    terms.stop_price = Some(Price(price));
    terms
}

#[test]
fn order_notional_uses_the_worse_of_limit_and_mark_price() {
    let limits = RiskLimits {
        max_order_notional: Some(usdt(1)),
        ..RiskLimits::default()
    };
    for mut account in account_and_strategy(&limits) {
        let mut rule = |terms| refusal(&mut account, MM, terms);
        assert_eq!(rule(limit(Side::Buy, 1000, 10)), None, "exactly the limit");
        assert_eq!(
            rule(limit(Side::Buy, 1000, 11)),
            Some(Rule::RiskOrderNotional)
        );
        assert_eq!(
            rule(limit(Side::Buy, 1100, 10)),
            Some(Rule::RiskOrderNotional)
        );
        // A sell far below the market still fills at the market price.
        assert_eq!(
            rule(limit(Side::Sell, 900, 11)),
            Some(Rule::RiskOrderNotional)
        );
        assert_eq!(rule(market(Side::Sell, 10)), None);
        assert_eq!(rule(market(Side::Sell, 11)), Some(Rule::RiskOrderNotional));
    }
}

#[test]
fn position_notional_counts_orders_in_flight_and_unknown() {
    let limits = RiskLimits {
        max_position_notional: Some(usdt(3)),
        ..RiskLimits::default()
    };
    for mut account in account_and_strategy(&limits) {
        let in_flight = account.submit(MM, limit(Side::Buy, 1000, 10));
        let unknown = account.submit(MM, limit(Side::Buy, 1000, 10));
        let id = account.id(MM, unknown);
        account.placed(id, Outcome::Unknown);
        let buy = |qty| limit(Side::Buy, 1000, qty);
        let too_much = Some(Rule::RiskPositionNotional);
        assert_eq!(refusal(&mut account, MM, buy(11)), too_much);
        // The other side is a separate worst case: 20 open buys do not offset it.
        assert_eq!(
            refusal(&mut account, MM, limit(Side::Sell, 1000, 31)),
            too_much
        );
        assert_eq!(refusal(&mut account, MM, buy(10)), None);
        assert_eq!(refusal(&mut account, MM, buy(1)), too_much);
        // A fill changes nothing. A definite rejection frees the quantity.
        fill_all(&mut account, MM, in_flight, 1);
        assert_eq!(refusal(&mut account, MM, buy(1)), too_much);
        account.placed(id, refused(-2019));
        assert_eq!(refusal(&mut account, MM, buy(11)), too_much);
        assert_eq!(refusal(&mut account, MM, buy(10)), None);
    }
}

#[test]
fn orders_that_do_not_increase_the_worst_case_pass_a_full_limit() {
    let limits = RiskLimits {
        max_position_notional: Some(usdt(1)),
        ..RiskLimits::default()
    };
    for mut account in account_and_strategy(&limits) {
        hold(&mut account, MM, 10, 1);
        account.top(1999, 2001);
        assert_eq!(
            refusal(&mut account, MM, market(Side::Buy, 1)),
            Some(Rule::RiskPositionNotional)
        );
        assert_eq!(refusal(&mut account, MM, market(Side::Sell, 10)), None);
    }
}

#[test]
fn open_orders_of_the_other_side_do_not_offset_an_order() {
    let limits = RiskLimits {
        max_position_notional: Some(usdt(2)),
        ..RiskLimits::default()
    };
    for mut account in account_and_strategy(&limits) {
        let bought = refusal(&mut account, MM, limit(Side::Buy, 1000, 20));
        assert_eq!(bought, None);
        // At this price the open buy order exceeds the limit. While it is not filled, it does not
        // affect sell orders.
        account.top(1999, 2001);
        let sell = |qty| limit(Side::Sell, 2000, qty);
        let too_much = Some(Rule::RiskPositionNotional);
        assert_eq!(refusal(&mut account, MM, sell(11)), too_much);
        assert_eq!(refusal(&mut account, MM, sell(10)), None);
    }
}

#[test]
fn a_callback_counts_its_own_orders() {
    let limits = RiskLimits {
        max_position_notional: Some(usdt(1)),
        ..RiskLimits::default()
    };
    for mut account in account_and_strategy(&limits) {
        let answers = account.call(MM, |callback, engine| {
            [6, 5, 4].map(|qty| callback.submit(engine, limit(Side::Buy, 1000, qty)).is_ok())
        });
        assert_eq!(answers, [true, false, true]);
    }
}

/// Adds a second instrument without a price, and limits all positions together to 2. One strategy
/// has the whole limit.
fn second(config: &mut EngineConfig) {
    config.strategies.truncate(1);
    let mut eth = instrument();
    "ETHUSDT".clone_into(&mut eth.symbol);
    config.instruments.push(eth);
    let mut subscription = config.strategies[0].subscriptions[0].clone();
    subscription.instrument = InstrumentId(1);
    config.strategies[0].subscriptions.push(subscription);
    config.limits.max_position_notional = Some(usdt(2));
}

#[test]
fn a_position_without_a_price_never_counts_as_zero() {
    let mut account = with(second);
    let mut eth = limit(Side::Buy, 1000, 15);
    eth.instrument = InstrumentId(1);
    account.submit(MM, eth);
    assert_eq!(
        refusal(&mut account, MM, limit(Side::Buy, 1000, 6)),
        Some(Rule::RiskNoReferencePrice),
        "the price of the other instrument is unknown"
    );
}

#[test]
fn positions_of_other_instruments_count() {
    let mut account = with(second);
    hold(&mut account, MM, 15, 1);
    let mut eth = limit(Side::Buy, 1000, 6);
    eth.instrument = InstrumentId(1);
    assert_eq!(
        refusal(&mut account, MM, eth),
        Some(Rule::RiskPositionNotional)
    );
    eth = limit(Side::Buy, 1000, 5);
    eth.instrument = InstrumentId(1);
    assert_eq!(refusal(&mut account, MM, eth), None);
}

#[test]
fn open_orders_count_until_they_end() {
    let limits = RiskLimits {
        max_open_orders: Some(2),
        ..RiskLimits::default()
    };
    for mut account in account_and_strategy(&limits) {
        let first = account.submit(MM, limit(Side::Buy, 1000, 1));
        let second = account.submit(MM, limit(Side::Buy, 1000, 1));
        account.cancel(MM, first);
        let third = limit(Side::Buy, 1000, 1);
        assert_eq!(refusal(&mut account, MM, third), Some(Rule::RiskOpenOrders));
        let id = account.id(MM, first);
        account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
        assert_eq!(refusal(&mut account, MM, third), None);
        fill_all(&mut account, MM, second, 1);
        assert_eq!(refusal(&mut account, MM, third), None);
        assert_eq!(refusal(&mut account, MM, third), Some(Rule::RiskOpenOrders));
    }
}

#[test]
fn limits_of_one_strategy_do_not_apply_to_another() {
    let mut account = with(|config| config.strategies[0].limits.max_open_orders = Some(0));
    let order = limit(Side::Buy, 1000, 1);
    assert_eq!(refusal(&mut account, MM, order), Some(Rule::RiskOpenOrders));
    assert_eq!(refusal(&mut account, OTHER, order), None);
    let mut account = with(|config| config.limits.max_open_orders = Some(1));
    assert_eq!(refusal(&mut account, MM, order), None);
    assert_eq!(
        refusal(&mut account, OTHER, order),
        Some(Rule::RiskOpenOrders)
    );
}

#[test]
fn orders_within_any_60_seconds_are_counted() {
    let limits = RiskLimits {
        max_orders_per_minute: Some(2),
        ..RiskLimits::default()
    };
    for mut account in account_and_strategy(&limits) {
        let order = limit(Side::Buy, 1000, 1);
        let both = account.call(MM, |callback, engine| {
            [0; 3].map(|_| callback.submit(engine, order).is_ok())
        });
        assert_eq!(both, [true, true, false]);
        account.pass(59_000);
        assert_eq!(
            refusal(&mut account, MM, order),
            Some(Rule::RiskOrdersPerMinute)
        );
        account.pass(1_000);
        assert_eq!(refusal(&mut account, MM, order), None);
        assert_eq!(refusal(&mut account, MM, order), None);
        assert_eq!(
            refusal(&mut account, MM, order),
            Some(Rule::RiskOrdersPerMinute)
        );
    }
}

#[test]
fn rejected_orders_do_not_count_for_the_rate() {
    let mut account = with(|config| config.limits.max_orders_per_minute = Some(1));
    let bad = limit(Side::Buy, 0, 1);
    assert_eq!(refusal(&mut account, MM, bad), Some(Rule::PricePositive));
    assert_eq!(refusal(&mut account, MM, limit(Side::Buy, 1000, 1)), None);
}

#[test]
fn limit_and_stop_prices_must_be_within_the_price_collar() {
    let limits = RiskLimits {
        price_collar_ppm: Some(50_000),
        ..RiskLimits::default()
    };
    for mut account in account_and_strategy(&limits) {
        let collar = Some(Rule::RiskPriceCollar);
        for (price, rule) in [(1050, None), (1051, collar), (950, None), (949, collar)] {
            assert_eq!(refusal(&mut account, MM, limit(Side::Buy, price, 1)), rule);
        }
        assert_eq!(refusal(&mut account, MM, stop(1051)), collar);
        assert_eq!(refusal(&mut account, MM, stop(1050)), None);
        assert_eq!(refusal(&mut account, MM, market(Side::Buy, 1)), None);
        let mut stop_limit = limit(Side::Buy, 1050, 1);
        stop_limit.order_type = OrderType::Stop;
        stop_limit.stop_price = Some(Price(1051));
        assert_eq!(refusal(&mut account, MM, stop_limit), collar);
    }
}

#[test]
fn limits_that_need_a_price_reject_without_one() {
    let mut config = super::config();
    config.limits.max_position_notional = Some(usdt(1));
    config.limits.price_collar_ppm = Some(50_000);
    let mut account = Account {
        engine: windvane_engine::Engine::new(config).unwrap(),
        ..Account::new(super::config())
    };
    let rule = Some(Rule::RiskNoReferencePrice);
    assert_eq!(refusal(&mut account, MM, limit(Side::Buy, 1000, 1)), rule);
    assert_eq!(refusal(&mut account, MM, market(Side::Buy, 1)), rule);
}

#[test]
fn max_num_orders_counts_the_orders_of_the_callback() {
    let mut account = with(|config| {
        config.strategies.truncate(1);
        let mut eth = instrument();
        eth.symbol = "ETHUSDT".to_owned();
        config.instruments.push(eth);
        config.instruments[0].filters.max_num_orders = Some(2);
        config.instruments[0].filters.max_num_algo_orders = Some(1);
        let mut subscription = config.strategies[0].subscriptions[0].clone();
        subscription.instrument = InstrumentId(1);
        config.strategies[0].subscriptions.push(subscription);
    });
    let answers = account.call(MM, |callback, engine| {
        let mut elsewhere = limit(Side::Buy, 1000, 1);
        elsewhere.instrument = InstrumentId(1);
        let orders = [
            elsewhere,
            elsewhere,
            limit(Side::Buy, 990, 1),
            // Limit orders do not count as algo orders.
            stop(1010),
            stop(1010),
        ];
        orders.map(|terms| {
            callback
                .submit(engine, terms)
                .map_err(|rejection| rejection.rule)
        })
    });
    assert!(answers[..4].iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(answers[4], Err(Rule::MaxNumOrders));
    let mut account = with(|config| config.instruments[0].filters.max_num_algo_orders = Some(1));
    assert_eq!(refusal(&mut account, MM, limit(Side::Buy, 990, 1)), None);
    assert_eq!(refusal(&mut account, MM, stop(1010)), None);
    assert_eq!(
        refusal(&mut account, MM, stop(1010)),
        Some(Rule::MaxNumAlgoOrders)
    );
}

#[test]
fn a_symbol_accepts_no_order_while_it_does_not_trade() {
    let mut account = with(|_| {});
    let settling = SymbolStatus::Other("SETTLING".to_owned());
    for (status, rule) in [
        (settling, Some(Rule::SymbolStatus)),
        (SymbolStatus::Trading, None),
    ] {
        account.handle(Input::SymbolStatus {
            instrument: BTC,
            status: &status,
        });
        assert_eq!(refusal(&mut account, MM, limit(Side::Buy, 1000, 1)), rule);
    }
}

#[test]
fn huge_quantities_do_not_overflow() {
    let mut account = with(|config| {
        config.instruments[0].filters.lot_size = None;
        config.instruments[0].filters.market_lot_size = None;
        config.limits.max_position_notional = Some(usdt(1_000_000));
    });
    for _ in 0..3 {
        let rule = refusal(&mut account, MM, limit(Side::Buy, 1000, i64::MAX / 4));
        assert_eq!(rule, Some(Rule::RiskPositionNotional));
    }
    let mut account = with(|config| {
        config.instruments[0].filters.lot_size = None;
        config.instruments[0].filters.market_lot_size = None;
    });
    for _ in 0..3 {
        let rule = refusal(&mut account, MM, limit(Side::Buy, 1000, i64::MAX));
        assert_eq!(rule, Some(Rule::LotMax));
        refusal(&mut account, MM, limit(Side::Buy, 1000, i64::MAX / 4));
        let open = account
            .engine
            .ledgers()
            .account
            .at(BTC, PositionSide::Both)
            .open_buy;
        assert!(open >= 0, "{open}");
    }
}
