//! Benchmarks of the order check on the hot path: a LIMIT GTX order, as market makers send them, a
//! MARKET order, and a LIMIT order that breaks a rule.

use std::hint::black_box;

use criterion::Criterion;
use windvane_model::instrument::{
    Filters, Instrument, LotSize, PercentPrice, PriceFilter, SymbolStatus,
};
use windvane_model::rules::{CompiledRules, OrderContext, check};
use windvane_model::{
    Amount, AssetId, Decimal, InstrumentId, OrderTerms, OrderType, Price, Qty, Side, Surface,
    TimeInForce,
};

fn instrument() -> Instrument {
    Instrument {
        surface: Surface::Futures,
        symbol: "BTCUSDT".to_owned(),
        status: SymbolStatus::Trading,
        base: AssetId(0),
        quote: AssetId(1),
        price_scale: 2,
        qty_scale: 3,
        price_precision: Some(2),
        qty_precision: Some(3),
        filters: Filters {
            price: Some(PriceFilter {
                min_price: 55_680,
                max_price: 452_976_400,
                tick_size: 10,
            }),
            lot_size: Some(LotSize {
                min_qty: 1,
                max_qty: 1_000_000,
                step_size: 1,
            }),
            market_lot_size: Some(LotSize {
                min_qty: 1,
                max_qty: 120_000,
                step_size: 1,
            }),
            max_num_orders: Some(200),
            max_num_algo_orders: Some(10),
            percent_price: Some(PercentPrice {
                multiplier_up: Decimal::new(105, 2),
                multiplier_down: Decimal::new(95, 2),
            }),
            min_notional: Some(Amount(500_000_000)),
            ..Filters::default()
        },
        order_types: OrderType::ALL.to_vec(),
        times_in_force: TimeInForce::ALL.to_vec(),
        trigger_protect: Some(Decimal::new(5, 2)),
        market_take_bound: Some(Decimal::new(5, 2)),
        liquidation_fee: None,
    }
}

fn benches(c: &mut Criterion) {
    let Ok(rules) = CompiledRules::new(&instrument()) else {
        unreachable!("the instrument above is sound");
    };
    let context = OrderContext {
        mark: Some(6_000_000_000_000),
        last: Some(6_000_000),
        best_bid: Some(5_999_990),
        best_ask: Some(6_000_010),
        open_orders: 2,
        ..OrderContext::default()
    };
    let limit = OrderTerms {
        price: Some(Price(5_999_980)),
        qty: Some(Qty(100)),
        time_in_force: Some(TimeInForce::Gtx),
        ..OrderTerms::new(InstrumentId(0), Side::Buy, OrderType::Limit)
    };
    let market = OrderTerms {
        qty: Some(Qty(100)),
        ..OrderTerms::new(InstrumentId(0), Side::Sell, OrderType::Market)
    };
    let off_tick = OrderTerms {
        price: Some(Price(5_999_983)),
        ..limit
    };
    assert!(check(&rules, &limit, &context).is_ok() && check(&rules, &market, &context).is_ok());
    assert!(check(&rules, &off_tick, &context).is_err());

    let mut group = c.benchmark_group("rules");
    for (name, terms) in [
        ("limit gtx passes", limit),
        ("market passes", market),
        ("limit off the tick fails", off_tick),
    ] {
        group.bench_function(name, |b| {
            b.iter(|| check(black_box(&rules), black_box(&terms), black_box(&context)).is_ok());
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    benches(&mut criterion);
    criterion.final_summary();
}
