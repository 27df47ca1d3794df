//! Measures the time to decode one frame, by kind of frame and by parser.

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use windvane_protocol::{BookLevels, decode};

const MARK: &str = r#"{"e":"markPriceUpdate","E":1,"s":"BTCUSDT","p":"61800.10000000",
"P":"61800.1","i":"61799.12345678","r":"-0.00010000","T":9}"#;

fn frames() -> Vec<(String, String)> {
    let recorded = include_str!("../tests/frames.txt").lines();
    let recorded = recorded.filter_map(|line| line.split_once(' '));
    let mut frames: Vec<(String, String)> = recorded
        .map(|(name, frame)| (name.to_owned(), frame.to_owned()))
        .collect();
    let general = frames[0].1.replacen('{', "{ ", 1);
    frames.push((format!("{}, general parser", frames[0].0), general));
    let level = |at| format!(r#"["{}.20","{}.014"]"#, 61_000 + at, at % 7);
    let levels: Vec<String> = (0..50).map(level).collect();
    let levels = levels.join(",");
    let head = r#"{"e":"depthUpdate","E":1,"T":1,"s":"BTCUSDT","U":6,"u":7,"pu":5"#;
    let depth = format!(r#"{head},"b":[{levels}],"a":[{levels}]}}"#);
    frames.push(("depth, 100 levels".to_owned(), depth));
    let snapshot = format!(r#"{{"lastUpdateId":5,"bids":[{levels}],"asks":[{levels}]}}"#);
    frames.push(("depth snapshot, 100 levels".to_owned(), snapshot));
    frames.push(("mark price".to_owned(), MARK.to_owned()));
    frames
}

fn decoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    for (name, frame) in frames() {
        group.throughput(Throughput::Bytes(frame.len() as u64));
        let mut levels = BookLevels::default();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let decoded = decode(black_box(frame.as_bytes()), &mut levels);
                black_box(decoded.is_ok())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decoding);
criterion_main!(benches);
