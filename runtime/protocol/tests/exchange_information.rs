//! Exchange information of both surfaces with every filter, with numbers as text and as numbers.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use windvane_model::decimal::Decimal;
use windvane_model::instrument::SymbolStatus;
use windvane_model::{Amount, OrderType, Surface, TimeInForce};
use windvane_protocol::symbol_rules::RulesError;
use windvane_protocol::wire::exchange::ExchangeInfo;
use windvane_protocol::{Assets, exchange_info};

const FUTURES: &str = include_str!("exchange_info_futures.json");

const SPOT: &str = include_str!("exchange_info_spot.json");

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

#[test]
fn a_futures_symbol_has_every_rule() {
    let entries = exchange_info::entries(FUTURES).unwrap();
    assert_eq!(exchange_info::surface(entries[0].1), Ok(Surface::Futures));
    let mut assets = Assets::default();
    let rules = exchange_info::symbol_rules(entries[0].1).unwrap();
    let instrument = rules.instrument(&mut assets).unwrap();
    assert_eq!(instrument.name(), "futures:BTCUSDT");
    assert_eq!(instrument.status, SymbolStatus::Trading);
    assert_eq!(
        (assets.name(instrument.base), assets.name(instrument.quote)),
        ("BTC", "USDT")
    );
    assert_eq!((instrument.price_scale, instrument.qty_scale), (1, 3));
    assert_eq!(
        (instrument.price_precision, instrument.qty_precision),
        (Some(2), Some(3))
    );
    let filters = &instrument.filters;
    let price = filters.price.unwrap();
    assert_eq!(
        (price.min_price, price.max_price, price.tick_size),
        (5568, 45_297_640, 1)
    );
    let lot = filters.lot_size.unwrap();
    assert_eq!((lot.min_qty, lot.max_qty, lot.step_size), (1, 1_000_000, 1));
    assert_eq!(filters.market_lot_size.unwrap().max_qty, 120_500);
    assert_eq!(
        (filters.max_num_orders, filters.max_num_algo_orders),
        (Some(200), Some(10))
    );
    assert_eq!(filters.min_notional, Amount::from_decimal(decimal("100")));
    assert_eq!(
        filters.percent_price.unwrap().multiplier_down,
        decimal("0.95")
    );
    assert_eq!(
        instrument.order_types,
        [
            OrderType::Limit,
            OrderType::Market,
            OrderType::TrailingStopMarket
        ]
    );
    assert_eq!(
        instrument.times_in_force,
        [TimeInForce::Gtc, TimeInForce::Gtx]
    );
    assert_eq!(instrument.trigger_protect, Some(decimal("0.05")));
    assert_eq!(instrument.market_take_bound, Some(decimal("0.05")));
    assert_eq!(instrument.liquidation_fee, Some(decimal("0.0125")));
}

#[test]
fn a_spot_symbol_has_every_rule() {
    let entries = exchange_info::entries(SPOT).unwrap();
    assert_eq!(entries[0].0, "ADAUSDC");
    let rules = exchange_info::symbol_rules(entries[0].1).unwrap();
    let instrument = rules.instrument(&mut Assets::default()).unwrap();
    assert_eq!(instrument.surface, Surface::Spot);
    assert_eq!(instrument.status, SymbolStatus::Other("BREAK".to_owned()));
    assert_eq!((instrument.price_scale, instrument.qty_scale), (4, 1));
    let notional = instrument.filters.notional.unwrap();
    assert!(notional.apply_min_to_market && !notional.apply_max_to_market);
    assert_eq!(
        (notional.min_notional.to_string(), notional.avg_price_mins),
        ("5".to_owned(), 5)
    );
    assert_eq!(
        instrument.filters.min_notional,
        Amount::from_decimal(decimal("4.5"))
    );
    assert_eq!(
        instrument.filters.max_notional,
        Amount::from_decimal(decimal("9000"))
    );
    let by_side = instrument.filters.percent_price_by_side.unwrap();
    assert_eq!(
        (by_side.bid_multiplier_up, by_side.ask_multiplier_down),
        (decimal("5"), decimal("0.3"))
    );
}

#[test]
fn invalid_rules_are_refused_with_their_name() {
    let missing = SPOT.replace("\"tickSize\":\"0.00010000\"", "\"tick\":1");
    let entries = exchange_info::entries(&missing).unwrap();
    let error = exchange_info::symbol_rules(entries[0].1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "exchange information of ADAUSDC: PRICE_FILTER without \"tickSize\""
    );
    let fine = SPOT.replace(
        "\"minPrice\":\"0.00010000\"",
        "\"minPrice\":\"0.00000000000001\"",
    );
    let entries = exchange_info::entries(&fine).unwrap();
    let rules = exchange_info::symbol_rules(entries[0].1).unwrap();
    let error = rules.instrument(&mut Assets::default()).unwrap_err();
    assert!(
        matches!(
            error,
            RulesError::TooFine {
                what: "minPrice",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_count_may_have_two_spellings() {
    let both = r#"{"filterType":"MAX_NUM_ORDERS","maxNumOrders":150,"limit":200}"#;
    let named = r#"{"filterType":"MAX_NUM_ALGO_ORDERS","maxNumAlgoOrders":"10"}"#;
    let start = FUTURES.find("\"filters\":[").unwrap() + "\"filters\":[".len();
    let text = format!("{}{both},{named},{}", &FUTURES[..start], &FUTURES[start..]);
    let whole: ExchangeInfo = windvane_protocol::wire::read(&text).unwrap();
    let filters = &whole.symbols[0].filters;
    assert_eq!(filters[0].limit.unwrap().0, 200);
    assert_eq!(filters[0].max_num_orders.unwrap().0, 150);
    assert_eq!(filters[1].max_num_algo_orders.unwrap().0, 10);

    let symbol =
        format!(r#"{{"symbol":"AB","baseAsset":"A","quoteAsset":"B","filters":[{both},{named}]}}"#);
    let rules = exchange_info::symbol_rules(&symbol).unwrap();
    assert_eq!(
        (rules.max_num_orders, rules.max_num_algo_orders),
        (Some(200), Some(10))
    );
}
