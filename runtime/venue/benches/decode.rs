//! Speed of decoding one frame, by kind and by path.

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use windvane_venue::{BookLevels, decode};

fn frames() -> Vec<(&'static str, String)> {
    let levels: Vec<String> = (0..50)
        .map(|at| format!(r#"["{}.20","{}.014"]"#, 61_000 + at, at % 7))
        .collect();
    let levels = levels.join(",");
    let top = r#"{"stream":"btcusdt@bookTicker","data":{"e":"bookTicker","u":5123107839020,"s":"BTCUSDT","b":"61800.20","B":"2.507","a":"61800.30","A":"2.510","T":1723161256313,"E":1723161256313}}"#;
    vec![
        ("top, futures", top.to_owned()),
        ("top, futures, general parser", top.replacen('{', "{ ", 1)),
        (
            "top, spot",
            r#"{"stream":"btcusdt@bookTicker","data":{"u":50093239212,"s":"BTCUSDT","b":"61837.63000000","B":"3.78826000","a":"61837.64000000","A":"1.54698000"}}"#.to_owned(),
        ),
        (
            "trade, futures",
            r#"{"stream":"btcusdt@trade","data":{"e":"trade","E":1723161256322,"T":1723161256322,"s":"BTCUSDT","t":5266583935,"p":"61800.30","q":"0.006","X":"MARKET","m":false}}"#.to_owned(),
        ),
        (
            "trade, spot",
            r#"{"stream":"btcusdt@trade","data":{"e":"trade","E":1723161255343,"s":"BTCUSDT","t":3735683259,"p":"61837.63000000","q":"0.02000000","T":1723161255342,"m":true,"M":true}}"#.to_owned(),
        ),
        (
            "aggregate trade",
            r#"{"e":"aggTrade","E":1723161255343,"s":"BTCUSDT","a":99,"p":"61837.63","q":"0.02","f":1,"l":2,"T":1723161255342,"m":true}"#.to_owned(),
        ),
        (
            "mark price",
            r#"{"e":"markPriceUpdate","E":1,"s":"BTCUSDT","p":"61800.10000000","P":"61800.1","i":"61799.12345678","r":"-0.00010000","T":9}"#.to_owned(),
        ),
        (
            "depth, futures, 100 levels",
            format!(
                r#"{{"stream":"btcusdt@depth@0ms","data":{{"e":"depthUpdate","E":1723161256299,"T":1723161256298,"s":"BTCUSDT","U":5123107832006,"u":5123107837557,"pu":5123107831937,"b":[{levels}],"a":[{levels}]}}}}"#
            ),
        ),
        (
            "depth snapshot, 100 levels",
            format!(r#"{{"lastUpdateId":5123107832006,"bids":[{levels}],"asks":[{levels}]}}"#),
        ),
    ]
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
