//! Loads the inputs of a backtest from the files that its configuration names: recordings and
//! instruments.

use windvane_model::Instrument;
use windvane_protocol::Assets;

use super::feed::{Feed, FeedLatency};
use super::{BacktestError, Progress};
use windvane_config::{self as config, Config, InstrumentName, OnDamage};
use windvane_recording::{
    self as recording, InstrumentSurvey, Recording, RecordingError, ResolveError, RulesSource,
    Survey, Tape,
};

/// Opens all recordings of the configuration; each is decoded into its cache first where that is
/// missing or stale.
pub fn open_recordings(
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
    // Fail before strategies are built for nothing.
    if recordings
        .iter()
        .all(|recording| recording.survey().events == 0)
    {
        return Err(empty(&recordings));
    }
    Ok(recordings)
}

/// The surface that all strategies trade, or `None` if they trade several. It applies to frames
/// that do not state their surface.
fn sole_surface(config: &Config) -> Option<windvane_model::Surface> {
    let mut surfaces = config
        .strategies
        .iter()
        .flat_map(|s| &s.instruments)
        .map(|i| i.surface);
    let first = surfaces.next()?;
    surfaces.all(|surface| surface == first).then_some(first)
}

/// The instruments of a run, and the source of each instrument's rules.
pub struct Market {
    /// In the order of the names.
    pub instruments: Vec<Instrument>,
    /// Where the rules of each come from.
    pub sources: Vec<RulesSource>,
}

/// Finds the rules of every instrument: configured, recorded, or inferred from the data.
pub fn resolve_instruments(
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

/// Checks that an instrument has market events. Without them its strategies would never be called.
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

pub(crate) fn open_feed(
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

/// The offset of the clocks: the smallest difference of receive time and event time of an
/// instrument.
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

pub(crate) fn empty(recordings: &[Recording]) -> BacktestError {
    let files = recordings.iter().map(|r| r.path().display().to_string());
    BacktestError::EmptyData(files.collect::<Vec<_>>().join(", "))
}
