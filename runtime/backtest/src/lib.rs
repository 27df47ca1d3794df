//! `windvane backtest`: plays recorded data through strategies, engine and simulated venue, as fast
//! as possible.
//!
//! `cli` runs it for `windvane backtest` and the demo. `live` uses its tally for runs on
//! recordings, and `replay` its comparison of modules. The crate must not contain sockets,
//! decisions about orders, or a use of the wall clock that could change a result: time is the
//! recording's.

mod error;
mod feed;
pub mod guests;
pub mod load;
pub mod play;
mod progress;
pub mod session;
pub mod summary;
pub mod tally;

use std::path::{Path, PathBuf};
use std::time::Instant;

use windvane_engine::Engine;
use windvane_model::record::{Block, Recorder};
use windvane_model::{Input, StrategyId, Time};
use windvane_protocol::Assets;
use windvane_sim::{Latency, LatencyModel, Venue};

use windvane_build::modules;
use windvane_config::assembly;
use windvane_config::{self as config, Config, InstrumentName};
use windvane_report::{ResultError, ResultWriter, Summary};

pub use error::BacktestError;
use guests::HostedGuests;
pub use progress::Progress;
use session::Session;
use tally::{Names, Tally};

/// The outputs of a run.
pub struct Options<'a> {
    /// Folder of the result files. Without one, only the summary is returned.
    pub out: Option<PathBuf>,
    /// Called to report progress.
    pub progress: &'a mut dyn FnMut(Progress<'_>),
    /// The engine's recorder. If it keeps its blocks, it needs memory for all of them.
    pub recorder: Recorder,
    /// Called at the end with each block that the recorder kept.
    pub block: &'a mut dyn FnMut(Block),
}

/// Runs a backtest and writes its files.
///
/// # Errors
/// See [`BacktestError`].
pub fn run(config: &Config, options: &mut Options<'_>) -> Result<Summary, BacktestError> {
    let names = assembly::instrument_names(config);
    if config.strategies.is_empty() {
        return Err(BacktestError::NoStrategy);
    }
    let recordings = load::open_recordings(config, &mut *options.progress)?;
    let mut assets = Assets::default();
    let market = load::resolve_instruments(config, &names, &recordings, &mut assets)?;
    let progress = &mut *options.progress;
    let mut guests = modules::load(config, &mut |step| progress(Progress::Building { step }))?;

    let balances = assembly::balances(&config.sim, &mut assets);
    let venue_config = assembly::venue_config(config, &balances);
    let venue = Venue::new(venue_config, market.instruments.clone())?;
    for (guest, strategy) in guests.iter_mut().zip(&config.strategies) {
        guest.instruments =
            assembly::instruments_json(strategy, &names, &market.instruments, assets.names());
    }
    let first = recordings.iter().map(|r| r.survey().first_recv_ns).min();
    let epoch = first.unwrap_or(0).div_euclid(1_000_000_000).max(1) as u64;
    let engine_config = assembly::engine_config(
        config,
        &names,
        market.instruments.clone(),
        &assets,
        balances,
        epoch,
    );
    let mut engine = Engine::recording_to(engine_config, options.recorder.clone())?;

    let reaction = assembly::on_liquidation(&config.risk);
    if engine.on_liquidation() != reaction {
        engine.handle(Time::default(), Input::OnLiquidation(reaction));
    }
    let tally = tally(config, &names, options.out.as_deref())?;
    let guests = HostedGuests::new(guests);
    let mut feed = load::open_feed(config, &recordings, &names, &market.instruments)?;
    if feed.engine_time() == Time::NEVER {
        return Err(load::empty(&recordings));
    }
    let mut session = Session::new(engine, venue, guests, order_latency(config), tally);
    let started = Instant::now();
    let start = feed.engine_time();
    session
        .start(start)
        .map_err(|(strategy, reason)| refused(config, strategy, &reason))?;
    let last = recordings.iter().map(|r| r.survey().last_recv_ns).max();
    let span = (last.unwrap_or(0) - start.0).max(1) as u64;
    let progress = &mut *options.progress;
    let mut finished = session.run(&mut feed, &mut |now| {
        let done = (now.0 - start.0).max(0) as u64;
        progress(Progress::Running {
            done: done.min(span),
            of: span,
        });
    })?;
    let wall = started.elapsed();
    finished.engine.seal();
    while let Some(block) = finished.engine.poll_block() {
        (options.block)(block);
    }
    let timing = summary::Timing {
        wall,
        reading: feed.reading(),
    };
    let (writer, summary) =
        summary::summarize(config, &recordings, &market.sources, finished, &timing);
    for notice in feed.notices() {
        (options.progress)(Progress::Notice(notice));
    }
    writer.finish(&summary)?;
    Ok(summary)
}

/// The counts and rows of a run. It writes files if `out` is a folder.
pub fn tally(
    config: &Config,
    names: &[InstrumentName],
    out: Option<&Path>,
) -> Result<Tally, ResultError> {
    let instruments: Vec<_> = names.iter().map(ToString::to_string).collect();
    let writer = match out {
        Some(dir) => ResultWriter::create(dir, &instruments)?,
        None => ResultWriter::discard(),
    };
    let ids = config.strategies.iter().map(|s| s.id.as_str().to_owned());
    let names = Names {
        strategies: ids.collect(),
        instruments,
    };
    Ok(Tally::new(writer, names))
}

/// Reports the strategy's own reason, with all white space reduced to single spaces.
fn refused(config: &Config, strategy: StrategyId, reason: &str) -> BacktestError {
    BacktestError::Refused {
        strategy: config.strategies[usize::from(strategy.0)]
            .id
            .as_str()
            .to_owned(),
        reason: reason.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

fn order_latency(config: &Config) -> Latency {
    let model = match config.sim.latency {
        config::Latency::Constant { order_ns, .. } => LatencyModel::Constant { order_ns },
        config::Latency::Recorded => LatencyModel::Recorded,
    };
    Latency::new(model, config.sim.seed)
}
