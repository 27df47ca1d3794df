//! Benchmarks of the engine: a book update, a market event from input to effects, and an order from
//! intent to its last update.

#![allow(
    missing_docs,
    clippy::expect_used,
    reason = "a bench panics if its setup fails"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::BTC;
use windvane_engine::{Callback, Engine};
use windvane_model::book::Book;
use windvane_model::config::{EngineConfig, OnFault};
use windvane_model::protocol::{OrderReport, Refusal};
use windvane_model::risk::RiskLimits;
use windvane_model::{
    Effect, Input, Level, MarketEvent, OrderTerms, OrderType, Outcome, Price, Qty, Reply, Request,
    Side, StrategyId, Time, TimeInForce,
};

fn engine(strategies: u16) -> Engine {
    let strategy =
        |index| support::strategy(&format!("s{index}"), RiskLimits::default(), OnFault::Cancel);
    let config = EngineConfig {
        strategies: (0..strategies).map(strategy).collect(),
        balances: Vec::new(),
        ..support::config()
    };
    Engine::new(config).expect("sound rules")
}

fn top(price: i64) -> MarketEvent<'static> {
    MarketEvent::Top {
        update_id: price,
        bid: Level { price, qty: 5 },
        ask: Level {
            price: price + 2,
            qty: 7,
        },
    }
}

fn drain(engine: &mut Engine) -> usize {
    let effects = std::iter::from_fn(|| engine.poll_effect()).count();
    while engine.poll_notice().is_some() {}
    effects
}

fn book(c: &mut Criterion) {
    let mut group = c.benchmark_group("book");
    let levels: Vec<_> = (1..=500)
        .map(|i| Level {
            price: 600_000 - i,
            qty: i,
        })
        .collect();
    let asks: Vec<_> = (1..=500)
        .map(|i| Level {
            price: 600_000 + i,
            qty: i,
        })
        .collect();
    let mut deep = Book::default();
    deep.apply_depth(1, true, &levels, &asks);
    let mut id = 1;
    group.throughput(Throughput::Elements(10));
    group.bench_function("depth frame of 10 levels, 500 a side", |b| {
        b.iter(|| {
            id += 1;
            let change = |i: i64| Level {
                price: 599_999 - (id * 7 + i * 3) % 40,
                qty: (id + i) % 5,
            };
            let frame: [Level; 10] = std::array::from_fn(|i| change(i as i64));
            deep.apply_depth(id, false, &frame, &[]);
            black_box(deep.bid())
        });
    });
    group.throughput(Throughput::Elements(1));
    let mut shallow = Book::default();
    group.bench_function("top of book", |b| {
        b.iter(|| {
            id += 1;
            let bid = Level {
                price: 600_000 + id % 3,
                qty: 4,
            };
            shallow.apply_top(
                id,
                bid,
                Level {
                    price: bid.price + 1,
                    qty: 4,
                },
            )
        });
    });
    group.finish();
}

fn market(c: &mut Criterion) {
    let mut group = c.benchmark_group("input to effects");
    group.throughput(Throughput::Elements(1));
    for strategies in [0, 1, 10, 100] {
        let mut engine = engine(strategies);
        let mut time = 0;
        group.bench_function(format!("top of book, {strategies} strategies"), |b| {
            b.iter(|| {
                time += 1_000_000;
                let event = top(600_000 + time % 7);
                engine.handle(
                    Time(time),
                    Input::Market {
                        instrument: BTC,
                        event,
                    },
                );
                black_box(drain(&mut engine))
            });
        });
    }
    group.finish();
}

fn order(c: &mut Criterion) {
    let mut engine = engine(1);
    engine.handle(
        Time(1),
        Input::Market {
            instrument: BTC,
            event: top(600_000),
        },
    );
    drain(&mut engine);
    let mut terms = OrderTerms::new(BTC, Side::Buy, OrderType::Limit);
    terms.time_in_force = Some(TimeInForce::Gtx);
    terms.price = Some(Price(599_990));
    terms.qty = Some(Qty(10));
    let strategy = StrategyId(0);
    let mut callback = Callback::default();
    let mut time = 1;
    c.bench_function("order from intent to refusal", |b| {
        b.iter(|| {
            time += 1_000_000;
            callback.begin(&engine, strategy);
            callback.submit(&engine, terms).expect("within the rules");
            let intents = callback.intents();
            engine.handle(Time(time), Input::Answer { strategy, intents });
            while let Some(effect) = engine.poll_effect() {
                let Effect::Send { request, .. } = effect else {
                    continue;
                };
                let Request::Place(order) = *request else {
                    continue;
                };
                let refusal = Refusal {
                    code: -2019,
                    msg: String::new(),
                };
                let outcome: Outcome<OrderReport> = Outcome::Refused(refusal);
                let client_order_id = order.client_order_id;
                let reply = Reply::Placed {
                    client_order_id,
                    outcome,
                };
                engine.handle(Time(time), Input::Reply(&reply));
            }
            while engine.poll_notice().is_some() {}
        });
    });
}

criterion_group!(benches, book, market, order);
criterion_main!(benches);
