//! Measures whole backtests per market event: 1, 10 and 100 instances of `market_maker` on five
//! generated minutes. It uses the wall time in the summary, from the first event to the last. That
//! excludes generating, decoding and compiling.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "criterion's macro, and a panic is how a benchmark fails"
)]

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use windvane_backtest::{self as backtest, Options};
use windvane_build as build;
use windvane_config::{Config, Overrides};
use windvane_model::Surface;
use windvane_model::record::Recorder;
use windvane_recording::SyntheticSession;
use windvane_report::Summary;

const MINUTES: u32 = 5;
const SEED: u64 = 7;
const MARKET_MAKER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../strategies/market_maker");

/// A configuration with this number of market makers. Each quotes one tick farther from the best
/// price than the one before.
fn config(folder: &Path, strategies: u32) -> Config {
    let mut text = format!(
        "[backtest]\ndata = ['{0}/session.gz']\ncache = '{0}/cache'\n\
         [[instrument]]\nname = \"futures:BTCUSDT\"\ntick = \"0.10\"\nstep = \"0.001\"\n\
         [sim]\nstart_balance = {{ \"futures:USDT\" = \"10000000\" }}\nleverage = 20\n",
        folder.display()
    );
    for number in 0..strategies {
        write!(
            text,
            "[[strategy]]\nid = \"mm-{number}\"\nmodule = '{}/maker.wasm'\n\
             instruments = [\"futures:BTCUSDT\"]\nstreams = [\"trade\", \"book\"]\n\
             [strategy.params]\nqty = \"0.01\"\nreference = \"touch\"\n\
             half_spread_ticks = {number}\nreplace_threshold_ticks = 10\n\
             skew_ticks_per_qty = 2\nmax_position = \"0.1\"\n",
            folder.display()
        )
        .unwrap();
    }
    Config::parse(&text, "bench.toml", &Overrides::default()).unwrap()
}

fn play(config: &Config) -> Summary {
    let mut options = Options {
        out: None,
        progress: &mut |_| {},
        recorder: Recorder::new(false),
        block: &mut |_| {},
    };
    backtest::run(config, &mut options).unwrap()
}

fn whole_backtest(c: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let session = SyntheticSession {
        minutes: MINUTES,
        ..SyntheticSession::new(Surface::Futures, "BTCUSDT", SEED)
    };
    session.write(&folder.path().join("session.gz")).unwrap();
    let built = build::build(
        Path::new(MARKET_MAKER),
        &build::BuildRules::default(),
        &mut |_| {},
    )
    .unwrap();
    std::fs::write(folder.path().join("maker.wasm"), built.component).unwrap();

    let mut group = c.benchmark_group("backtest");
    for strategies in [1, 10, 100] {
        let config = config(folder.path(), strategies);
        // The first run decodes the session and counts the events of the later runs.
        let first = play(&config);
        assert!(first.fills > 0, "the market makers must trade");
        group.throughput(Throughput::Elements(first.events));
        group.bench_function(format!("market_maker/{strategies}"), |b| {
            b.iter_custom(|runs| {
                let seconds = (0..runs).map(|_| play(&config).wall_seconds).sum();
                Duration::from_secs_f64(seconds)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, whole_backtest);
criterion_main!(benches);
