//! One call into a strategy, directly and as a component. The callbacks are: an empty one, one that
//! queries the best bid, and one that submits an order.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "criterion's macro has no docs, and a panic is how a bench fails"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use support::{SUBMIT, engine, event, guest, host};
use windvane_host::{Capabilities, Limits, PathChoice};
use windvane_model::StrategyId;

fn call(c: &mut Criterion) {
    let callbacks = [
        ("empty", String::new()),
        (
            "book",
            "(drop (call $book (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))"
                .to_owned(),
        ),
        ("submit", format!("(drop {SUBMIT})")),
    ];
    for (path_name, path) in [
        ("direct", PathChoice::Direct),
        ("component", PathChoice::Component),
    ] {
        for (callback, body) in &callbacks {
            let mut strategy = host(path)
                .load(&guest(body), Limits::default(), Capabilities::ALL)
                .unwrap();
            let (lent, result) = strategy.start(engine(), StrategyId(0), b"{}", b"{}");
            result.unwrap();
            let mut lent = Some(lent);
            let trade = event(1);
            c.bench_function(&format!("call/{path_name}/{callback}"), |b| {
                b.iter(|| {
                    let (back, result) = strategy.deliver(lent.take().unwrap(), black_box(&trade));
                    result.unwrap();
                    black_box(strategy.intents());
                    lent = Some(back);
                });
            });
        }
    }
}

fn load(c: &mut Criterion) {
    let module = guest(&format!("(drop {SUBMIT})"));
    let host = host(PathChoice::Direct);
    c.bench_function("load/direct", |b| {
        b.iter(|| {
            host.load(&module, Limits::default(), Capabilities::ALL)
                .unwrap()
        });
    });
}

criterion_group!(benches, call, load);
criterion_main!(benches);
