//! `windvane backtest`: recorded data through strategies, the engine and the simulated venue, as
//! fast as it goes.

mod feed;
mod guests;
mod session;
mod setup;
mod summary;
mod tally;
mod transit;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use windvane_engine::rules::InstrumentError;
use windvane_engine::{Engine, Instrument, StrategyId, Time};
use windvane_host::{Capabilities, Host, HostError, HostOptions, Limits, LoadError};
use windvane_sim::{Latency, LatencyModel, Venue, VenueConfigError};
use windvane_venue::Assets;

use crate::build::{self, BuildError};
use crate::config::{self, Config, InstrumentName, OnDamage};
use crate::recording::{self, Chunk, Recording, RecordingError, ResolveError, RulesSource, Tape};
use crate::results::{ResultError, ResultWriter, Summary};

use feed::{Feed, FeedLatency};
use guests::{Guest, HostedGuests};
use session::Session;
use tally::{Names, Tally};

/// Where a run writes and what it shows while it goes.
pub struct Options<'a> {
    /// Folder of the result files; without one only the summary is made.
    pub out: Option<PathBuf>,
    /// Called as the run goes.
    pub progress: &'a mut dyn FnMut(Progress<'_>),
}

/// What a run is at.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// Decoding a recording for the first time.
    Decoding {
        /// The recording.
        file: &'a Path,
        /// Bytes read.
        done: u64,
        /// Bytes in all.
        of: u64,
    },
    /// Building a strategy from source.
    Building {
        /// What is done.
        step: &'a str,
    },
    /// Playing.
    Running {
        /// Virtual time played, nanoseconds.
        done: u64,
        /// Virtual time in all.
        of: u64,
    },
    /// Something that the reader of the results should know.
    Notice(&'a str),
}

/// Why a run did not happen.
#[derive(Debug, thiserror::Error)]
pub enum BacktestError {
    /// No strategy.
    #[error("the configuration has no [[strategy]]; add one with id, module and instruments")]
    NoStrategy,
    /// No data.
    #[error(
        "no recording to play: set [backtest] data = [\"FILE\"] or pass --data FILE; \
         `windvane data generate --out FILE` makes one"
    )]
    NoData,
    /// A recording that is not there.
    #[error(
        "recording {} does not exist; record or download one, or make one with \
         `windvane data generate --out {}`",
        .0.display(), .0.display()
    )]
    MissingData(PathBuf),
    /// Recordings without any event.
    #[error("the recordings hold no market event: {0}")]
    EmptyData(String),
    /// A strategy's module is not there.
    #[error("strategy {strategy}: module {} does not exist; name a folder with Cargo.toml or a \
             .wasm file", module.display())]
    MissingModule {
        /// Its id.
        strategy: String,
        /// The path.
        module: PathBuf,
    },
    /// A module that cannot be read.
    #[error("strategy {strategy}: cannot read {}: {source}", module.display())]
    ReadModule {
        /// Its id.
        strategy: String,
        /// The path.
        module: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A strategy that does not build.
    #[error("strategy {strategy}: {source}")]
    Build {
        /// Its id.
        strategy: String,
        /// Why.
        source: BuildError,
    },
    /// A module that is no strategy.
    #[error("strategy {strategy}: {source}")]
    Load {
        /// Its id.
        strategy: String,
        /// Why.
        source: LoadError,
    },
    /// `init` refused.
    #[error("strategy {strategy} cannot start: {reason}; mend its params")]
    Refused {
        /// Its id.
        strategy: String,
        /// Its reason.
        reason: String,
    },
    /// The rules of an instrument cannot be had.
    #[error(transparent)]
    Rules(#[from] ResolveError),
    /// The rules of an instrument cannot be used.
    #[error(transparent)]
    Instrument(#[from] InstrumentError),
    /// The simulated account cannot be.
    #[error("[sim]: {0}")]
    Venue(#[from] VenueConfigError),
    /// The recording could not be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The results could not be written.
    #[error(transparent)]
    Results(#[from] ResultError),
    /// No WebAssembly here.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl BacktestError {
    /// Whether the user's configuration or files are at fault, and not the machine.
    pub const fn is_usage(&self) -> bool {
        !matches!(self, Self::Results(_) | Self::Host(_))
    }
}

/// Runs a backtest and writes its files.
///
/// # Errors
/// See [`BacktestError`].
pub fn run(config: &Config, options: &mut Options<'_>) -> Result<Summary, BacktestError> {
    let names = setup::instrument_names(config);
    if config.strategies.is_empty() {
        return Err(BacktestError::NoStrategy);
    }
    let recordings = open_recordings(config, &mut *options.progress)?;
    let mut assets = Assets::default();
    let market = resolve_instruments(config, &names, &recordings, &mut assets)?;
    let guests = load_guests(config, options)?;

    let balances = setup::balances(&config.sim, &mut assets);
    let venue_config = setup::venue_config(config, &balances);
    let venue = Venue::new(venue_config, market.instruments.clone())?;
    let instruments_json = setup::instruments_json(&market.instruments, assets.names());
    let first = recordings.iter().map(|r| r.survey().first_recv_ns).min();
    let epoch = first.unwrap_or(0).div_euclid(1_000_000_000).max(1) as u64;
    let engine = Engine::new(setup::engine_config(
        config,
        &names,
        market.instruments.clone(),
        &assets,
        balances,
        epoch,
    ))?;

    let instrument_names: Vec<_> = names.iter().map(ToString::to_string).collect();
    let writer = match &options.out {
        Some(dir) => ResultWriter::create(dir, &instrument_names)?,
        None => ResultWriter::discard(),
    };
    let tally_names = Names {
        strategies: config
            .strategies
            .iter()
            .map(|s| s.id.as_str().to_owned())
            .collect(),
        instruments: instrument_names,
    };
    let tally = Tally::new(writer, tally_names);
    let guests = HostedGuests::new(guests, instruments_json);
    let mut reading = Duration::ZERO;
    let mut feed = open_feed(
        config,
        &recordings,
        &names,
        &market.instruments,
        &mut reading,
    )?;
    if feed.engine_time() == Time::NEVER {
        return Err(empty(&recordings));
    }
    let mut session = Session::new(engine, venue, guests, order_latency(config), tally);
    let started = Instant::now();
    let start = feed.engine_time();
    session
        .start(start)
        .map_err(|(strategy, reason)| refused(config, strategy, reason))?;
    let last = recordings.iter().map(|r| r.survey().last_recv_ns).max();
    let span = (last.unwrap_or(0) - start.0).max(1) as u64;
    let progress = &mut *options.progress;
    let finished = session.run(&mut feed, &mut |now| {
        let done = (now.0 - start.0).max(0) as u64;
        progress(Progress::Running {
            done: done.min(span),
            of: span,
        });
    })?;
    drop(feed);
    let wall = started.elapsed();
    let timing = summary::Timing { wall, reading };
    let (writer, summary) =
        summary::summarize(config, &recordings, &market.sources, finished, &timing);
    writer.finish(&summary)?;
    Ok(summary)
}

fn refused(config: &Config, strategy: StrategyId, reason: String) -> BacktestError {
    BacktestError::Refused {
        strategy: config.strategies[usize::from(strategy.0)]
            .id
            .as_str()
            .to_owned(),
        reason,
    }
}

fn empty(recordings: &[Recording]) -> BacktestError {
    let files = recordings.iter().map(|r| r.path().display().to_string());
    BacktestError::EmptyData(files.collect::<Vec<_>>().join(", "))
}

fn open_recordings(
    config: &Config,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Recording>, BacktestError> {
    if config.backtest.data.is_empty() {
        return Err(BacktestError::NoData);
    }
    let mut recordings = Vec::new();
    for file in &config.backtest.data {
        if !file.exists() {
            return Err(BacktestError::MissingData(file.clone()));
        }
        let options = recording::Options {
            cache_dir: config.backtest.cache.clone(),
            on_damage: match config.backtest.on_damage {
                OnDamage::Skip => recording::OnDamage::Skip,
                OnDamage::Fail => recording::OnDamage::Fail,
            },
            surface: sole_surface(config),
        };
        let recording = Recording::open(file, &options, &mut |done, of| {
            progress(Progress::Decoding { file, done, of });
        })?;
        for notice in recording.notices() {
            progress(Progress::Notice(&notice));
        }
        recordings.push(recording);
    }
    // Before any strategy is built for nothing.
    if recordings
        .iter()
        .all(|recording| recording.survey().events == 0)
    {
        return Err(empty(&recordings));
    }
    Ok(recordings)
}

/// The surface that all strategies trade, for frames that do not tell theirs.
fn sole_surface(config: &Config) -> Option<windvane_engine::Surface> {
    let mut surfaces = config
        .strategies
        .iter()
        .flat_map(|s| &s.instruments)
        .map(|i| i.surface);
    let first = surfaces.next()?;
    surfaces.all(|surface| surface == first).then_some(first)
}

/// The instruments of a run with where their rules come from.
struct Market {
    instruments: Vec<Instrument>,
    sources: Vec<RulesSource>,
}

fn resolve_instruments(
    config: &Config,
    names: &[InstrumentName],
    recordings: &[Recording],
    assets: &mut Assets,
) -> Result<Market, BacktestError> {
    let mut market = Market {
        instruments: Vec::new(),
        sources: Vec::new(),
    };
    let surveys: Vec<_> = recordings.iter().map(Recording::survey).collect();
    for name in names {
        let rules = config.instruments.iter().find(|rules| rules.name == *name);
        let (instrument, source) = recording::resolve_instrument(name, rules, &surveys, assets)?;
        market.instruments.push(instrument);
        market.sources.push(source);
    }
    Ok(market)
}

fn load_guests(config: &Config, options: &mut Options<'_>) -> Result<Vec<Guest>, BacktestError> {
    let host = Host::new(HostOptions {
        compile_cache: build::cache_folder().ok().map(|dir| dir.join("compiled")),
        ..HostOptions::default()
    })?;
    let mut guests = Vec::new();
    // Strategies of one module share its build.
    let mut modules: BTreeMap<&Path, Vec<u8>> = BTreeMap::new();
    for strategy in &config.strategies {
        let id = strategy.id.as_str().to_owned();
        let bytes = match modules.entry(&strategy.module) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(module_bytes(strategy, &mut *options.progress)?),
        };
        let limits = Limits {
            fuel_per_event: strategy.limits.fuel_per_event,
            memory_bytes: strategy.limits.memory_mb as usize * 1024 * 1024,
            ..Limits::default()
        };
        let granted = granted(strategy);
        let loaded = host
            .load(bytes, limits, granted)
            .map_err(|source| BacktestError::Load {
                strategy: id.clone(),
                source,
            })?;
        guests.push(Guest {
            strategy: loaded,
            name: id,
            params: strategy.params.to_string().into_bytes(),
        });
    }
    Ok(guests)
}

/// The module of a strategy: built, if it is a folder, else read.
fn module_bytes(
    strategy: &config::Strategy,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<u8>, BacktestError> {
    let id = || strategy.id.as_str().to_owned();
    let module = strategy.module.clone();
    if module.is_dir() {
        let built = build::build(&module, &mut |step| progress(Progress::Building { step }));
        let built = built.map_err(|source| BacktestError::Build {
            strategy: id(),
            source,
        })?;
        return Ok(built.component);
    }
    if !module.exists() {
        return Err(BacktestError::MissingModule {
            strategy: id(),
            module,
        });
    }
    std::fs::read(&module).map_err(|source| BacktestError::ReadModule {
        strategy: id(),
        module,
        source,
    })
}

fn granted(strategy: &config::Strategy) -> Capabilities {
    strategy
        .capabilities
        .iter()
        .filter_map(|capability| windvane_host::Capability::from_name(capability.as_str()))
        .collect()
}

fn order_latency(config: &Config) -> Latency {
    let model = match config.sim.latency {
        config::Latency::Constant { feed_ns, order_ns } => {
            LatencyModel::Constant { feed_ns, order_ns }
        }
        config::Latency::Recorded => LatencyModel::Recorded {
            feed_ns: 0,
            order_ns: 0,
        },
    };
    Latency::new(model, config.sim.seed)
}

fn open_feed<'a>(
    config: &Config,
    recordings: &[Recording],
    names: &[InstrumentName],
    instruments: &[Instrument],
    reading: &'a mut Duration,
) -> Result<Feed<'a>, RecordingError> {
    let latency = match config.sim.latency {
        config::Latency::Constant { feed_ns, .. } => FeedLatency::Constant(feed_ns),
        config::Latency::Recorded => FeedLatency::Recorded {
            offsets_ns: names
                .iter()
                .map(|name| clock_offset(recordings, name))
                .collect(),
        },
    };
    let mut tape = Tape::new(recordings, instruments)?;
    let source = move || -> Result<Option<Chunk>, RecordingError> {
        let began = Instant::now();
        let chunk = tape.next_chunk();
        *reading += began.elapsed();
        chunk
    };
    Feed::new(Box::new(source), latency)
}

/// The smallest receive time less event time of an instrument: the offset of the clocks.
fn clock_offset(recordings: &[Recording], name: &InstrumentName) -> i64 {
    recordings
        .iter()
        .filter_map(|r| {
            r.survey()
                .instrument(name.surface, &name.symbol)?
                .delay_min_ns
        })
        .min()
        .unwrap_or(0)
}
