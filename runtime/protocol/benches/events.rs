//! Measures the time from one frame to one typed event: the work of a client for each stream
//! message.

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use windvane_model::Surface;
use windvane_protocol::{BookLevels, market_stream, user_stream};

const MARK: &str = r#"{"stream":"btcusdt@markPrice@1s","data":{"e":"markPriceUpdate","E":1723161256323,"s":"BTCUSDT","p":"61800.10000000","P":"61800.10000000","i":"61799.12345678","r":"-0.00010000","T":1723190400000}}"#;

/// Name and frame of every line.
fn lines(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.lines().filter_map(|line| line.split_once(' '))
}

fn market(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("market event");
    let marks = std::iter::once(("mark price", MARK));
    for (name, frame) in lines(include_str!("../tests/frames.txt")).chain(marks) {
        group.throughput(Throughput::Bytes(frame.len() as u64));
        let mut levels = BookLevels::default();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let event = market_stream::decode(black_box(frame), &mut levels);
                black_box(event.is_ok())
            });
        });
    }
    group.finish();
}

fn user(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("user event");
    for (name, frame) in lines(include_str!("../tests/user_frames.txt")) {
        let surface = if name.starts_with("spot") {
            Surface::Spot
        } else {
            Surface::Futures
        };
        group.throughput(Throughput::Bytes(frame.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let event = user_stream::decode(surface, black_box(frame));
                black_box(event.is_ok())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, market, user);
criterion_main!(benches);
