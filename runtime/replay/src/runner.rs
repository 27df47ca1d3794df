//! Replays a journal with its modules. Each strategy receives its recorded events and calls an
//! engine in its recorded state. The replay compares the strategy's intents with the recorded ones.
//! The engine always continues with the recorded intents, so every difference comes from the
//! module.
//!
//! A changed module can run beside the recorded one: it receives the same events, and the replay
//! lists the intents that differ. Its own orders are never placed here. A simulation shows what
//! they would have led to.

mod players;
mod report;
mod saved;
mod segment_replay;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use windvane_engine::Engine;
use windvane_journal::{Directory, ExportError, StoredSegment};
use windvane_session::{Checkpoint, EngineLoop};

use super::export::RecordFormatter;
use super::reader::SegmentReader;
use super::segments::ReplayError;
use players::Runner;
use segment_replay::SegmentReplay;
use windvane_build::modules::Loader;
use windvane_config::Compile;

pub use super::shadow::NewModule;
pub use report::{OtherRules, ReplayReport, Role};

/// The ids of the strategies in a journal, from its end back to the segment that contains `id`.
///
/// # Errors
/// The journal is in use, or its folder cannot be read.
pub fn strategies_until(data_dir: &Path, id: &str) -> Result<BTreeSet<String>, ReplayError> {
    let _ours = Directory::lock(data_dir)?;
    let mut ids = BTreeSet::new();
    for segment in windvane_journal::segments(data_dir)?.into_iter().rev() {
        // The replay itself reports segments that cannot be read.
        let stored = windvane_journal::segment(data_dir, segment).ok();
        let checkpoint = stored.and_then(|stored| Checkpoint::from_bytes(&stored.checkpoint));
        ids.extend(
            checkpoint
                .into_iter()
                .flat_map(|checkpoint| checkpoint.strategies)
                .map(|saved| saved.name),
        );
        if ids.contains(id) {
            break;
        }
    }
    Ok(ids)
}

/// Replays the journal of a data folder, up to the first difference, or to its end if there is a
/// newcomer. Segments that cannot be read are listed as problems and skipped. Modules that are not in
/// the cache are compiled under the limits of `compile`.
///
/// # Errors
/// The journal is in use or cannot be read, or this machine cannot run WebAssembly.
pub fn run(
    data_dir: &Path,
    new_module: Option<&NewModule>,
    compile: Compile,
) -> Result<ReplayReport, ReplayError> {
    let ours = Directory::lock(data_dir)?;
    let report = ours.verify().map_err(|error| ExportError::Folder {
        path: data_dir.to_owned(),
        error,
    })?;
    let result = ReplayReport {
        problems: report.problems,
        ..ReplayReport::default()
    };
    let mut runner = Runner {
        data_dir,
        loader: Loader::new(compile)?,
        new_module,
        players: Vec::new(),
        ended: None,
        result,
    };
    for segment in windvane_journal::segments(data_dir)? {
        let stored = match windvane_journal::segment(data_dir, segment) {
            Err(ExportError::Segment { .. }) => continue,
            stored => stored?,
        };
        let checkpoint = Checkpoint::from_bytes(&stored.checkpoint)
            .ok_or(ReplayError::Checkpoint { segment })?;
        runner.segment(segment, stored, &checkpoint)?;
        if runner.result.difference.is_some() && new_module.is_none() {
            break;
        }
    }
    Ok(runner.result)
}

impl Runner<'_> {
    fn segment(
        &mut self,
        segment: u32,
        stored: StoredSegment,
        checkpoint: &Checkpoint,
    ) -> Result<(), ReplayError> {
        let engine = Engine::restore(&checkpoint.engine);
        let mut engine = engine.map_err(|error| ReplayError::Snapshot { segment, error })?;
        engine.record_as(stored.format);
        let formatter = RecordFormatter::new(segment, &stored.checkpoint)
            .ok_or(ReplayError::Checkpoint { segment })?;
        let base = engine.chain();
        let other_rules = if checkpoint.has_our_rules() {
            None
        } else {
            let mut other = self.result.other_rules.take().unwrap_or_default();
            other.rules.insert(checkpoint.engine_rules);
            other.programs.insert(checkpoint.version.clone());
            Some(other)
        };
        let mut segment_replay = SegmentReplay {
            runner: self,
            reader: SegmentReader::new(
                segment,
                stored.blocks,
                checkpoint.paper.as_deref(),
                checkpoint.has_our_rules(),
            )?,
            formatter,
            checkpoint,
            reloaded: None,
            starting: BTreeMap::new(),
            new_intents: None,
            difference: None,
            segment,
            other_rules,
        };
        let mut core = EngineLoop::new(engine);
        segment_replay.open(&mut core, base);
        segment_replay.play(&mut core);
        let lost = segment_replay.reader.lost;
        let (difference, ended) = (segment_replay.difference.take(), core.engine().chain());
        let simulation = segment_replay.simulation(core.engine());
        let read = segment_replay.reader.counts();
        let other_rules = segment_replay.other_rules.take();
        let starting: Vec<_> = segment_replay.starting.into_keys().collect();
        for strategy in starting {
            self.leave_start(strategy);
        }
        self.ended = Some(ended);
        self.note_lost(segment, lost, stored.market_dropped);
        self.result.other_rules = other_rules.or(self.result.other_rules.take());
        self.result.simulation = simulation.or(self.result.simulation.take());
        self.result.segments += 1;
        self.result.blocks += read.0;
        self.result.records += read.1;
        if let (None, Some(difference)) = (&self.result.difference, difference) {
            self.result.difference = Some((segment, difference));
        }
        Ok(())
    }
}
