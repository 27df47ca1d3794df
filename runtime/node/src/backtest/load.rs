//! What a run is made of, from the files that its configuration names: recordings, instruments,
//! modules.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use windvane_engine::Instrument;
use windvane_host::{Capabilities, Host, HostOptions, Limits};
use windvane_venue::Assets;

use super::feed::{Feed, FeedLatency};
use super::guests::Guest;
use super::{BacktestError, Options, Progress};
use crate::build;
use crate::config::{self, Config, InstrumentName, OnDamage};
use crate::recording::{
    self, InstrumentSurvey, Recording, RecordingError, ResolveError, RulesSource, Survey, Tape,
};

pub(super) fn open_recordings(
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
pub(super) struct Market {
    pub(super) instruments: Vec<Instrument>,
    pub(super) sources: Vec<RulesSource>,
}

pub(super) fn resolve_instruments(
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
        recorded(name, &surveys)?;
        let rules = config.instruments.iter().find(|rules| rules.name == *name);
        let (instrument, source) = recording::resolve_instrument(name, rules, &surveys, assets)?;
        market.instruments.push(instrument);
        market.sources.push(source);
    }
    Ok(market)
}

/// An instrument without a market event could only stand still, whoever states its rules.
fn recorded(name: &InstrumentName, surveys: &[&Survey]) -> Result<(), ResolveError> {
    let all = surveys.iter().flat_map(|survey| &survey.instruments);
    let live: Vec<_> = all.filter(|survey| survey.has_events()).collect();
    let is_this = |s: &&InstrumentSurvey| s.surface == name.surface && s.symbol == name.symbol;
    if live.iter().any(is_this) {
        return Ok(());
    }
    Err(ResolveError::Unknown {
        name: name.clone(),
        recorded: live.iter().map(|survey| survey.name()).collect(),
    })
}

pub(super) fn load_guests(
    config: &Config,
    options: &mut Options<'_>,
) -> Result<Vec<Guest>, BacktestError> {
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
            instruments: Vec::new(),
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

pub(super) fn open_feed(
    config: &Config,
    recordings: &[Recording],
    names: &[InstrumentName],
    instruments: &[Instrument],
) -> Result<Feed, RecordingError> {
    let latency = match config.sim.latency {
        config::Latency::Constant { feed_ns, .. } => FeedLatency::Constant(feed_ns),
        config::Latency::Recorded => FeedLatency::Recorded {
            offsets_ns: names
                .iter()
                .map(|name| clock_offset(recordings, name))
                .collect(),
        },
    };
    Feed::new(Tape::new(recordings, instruments)?, latency)
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

pub(super) fn empty(recordings: &[Recording]) -> BacktestError {
    let files = recordings.iter().map(|r| r.path().display().to_string());
    BacktestError::EmptyData(files.collect::<Vec<_>>().join(", "))
}
