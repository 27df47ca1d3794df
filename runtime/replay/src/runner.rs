//! Replays a journal with its modules. Each strategy receives its recorded events and calls an
//! engine in its recorded state. The replay compares the strategy's intents with the recorded ones.
//! The engine always continues with the recorded intents, so every difference comes from the
//! module.
//!
//! A changed module can run beside the recorded one: it receives the same events, and the replay
//! lists the intents that differ. Its own orders are never placed here. A simulation shows what
//! they would have led to.

mod saved;
mod segment_replay;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use windvane_engine::Engine;
use windvane_host::Host;
use windvane_journal::{Directory, ExportError, Problem, StoredSegment};
use windvane_model::record::Chain;
use windvane_session::recovery::Difference;
use windvane_session::{Checkpoint, Cost, EngineLoop, SavedStrategy};

use super::diff::Changes;
use super::export::RecordFormatter;
use super::reader::SegmentReader;
use super::segments::ReplayError;
use super::shadow::Shadow;
use super::simulate::Simulation;
use segment_replay::SegmentReplay;
use windvane_build::modules::{self, Guest};

/// A module that runs beside the recorded one.
#[derive(Clone, Debug)]
pub struct NewModule {
    /// The strategy's id.
    pub id: String,
    /// The module.
    pub module: Arc<[u8]>,
}

/// How a module of the journal was replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The strategy's id.
    pub id: String,
    /// The hash of the recorded module.
    pub sha256: String,
    /// Why the recorded outputs were used; `None` if the module itself ran.
    pub from_journal: Option<String>,
    /// Its file is missing or was changed, so its outputs cannot be computed again.
    pub altered: bool,
}

/// The result of a replay.
#[derive(Debug, Default)]
pub struct ReplayReport {
    /// The number of segments.
    pub segments: u64,
    /// The number of blocks in them.
    pub blocks: u64,
    /// The number of records in them.
    pub records: u64,
    /// How many outputs the modules themselves produced again.
    pub answers: u64,
    /// The first difference, with its segment.
    pub difference: Option<(u32, Difference)>,
    /// Differences in segments of a program with other engine rules.
    pub other_rules: Option<OtherRules>,
    /// Parts of the journal that are missing or damaged, so they were not replayed.
    pub problems: Vec<Problem>,
    /// How each module was replayed.
    pub roles: Vec<Role>,
    /// Other facts that a reader should know.
    pub notes: Vec<String>,
    /// Orders and cancels that only one of the two modules sent.
    pub changes: Changes,
    /// The inputs of a simulation on the recorded market.
    pub simulation: Option<Simulation>,
}

impl ReplayReport {
    /// Whether the complete journal was replayed and gave the recorded results.
    pub fn is_equal(&self) -> bool {
        let altered = self.roles.iter().any(|role| role.altered);
        self.difference.is_none()
            && self.other_rules.is_none()
            && self.problems.is_empty()
            && !altered
    }
}

/// Segments of a program with other engine rules. Such a program decides differently, so this one
/// cannot verify them.
#[derive(Debug, Default)]
pub struct OtherRules {
    /// The numbers of their engine rules.
    pub rules: BTreeSet<u32>,
    /// The versions of the programs that wrote them.
    pub programs: BTreeSet<String>,
    /// The first differences, with their segments.
    pub differences: Vec<(u32, Difference)>,
    /// The number of all differences.
    pub count: u64,
}

impl OtherRules {
    /// At most this many differences are listed.
    const LISTED: usize = 20;

    fn add(&mut self, segment: u32, difference: Difference) {
        self.count += 1;
        if self.differences.len() < Self::LISTED {
            self.differences.push((segment, difference));
        }
    }
}

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
/// newcomer. Segments that cannot be read are listed as problems and skipped.
///
/// # Errors
/// The journal is in use or cannot be read, or this machine cannot run WebAssembly.
pub fn run(data_dir: &Path, new_module: Option<&NewModule>) -> Result<ReplayReport, ReplayError> {
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
        host: modules::host()?,
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

/// One strategy in the replay.
struct Player {
    id: String,
    /// The recorded module. Without it, the recorded outputs are used.
    module: Option<Guest>,
    /// The state that it saved last.
    saved: Option<Vec<u8>>,
    /// The cost of recording that state.
    cost: Cost,
    /// The new module beside it.
    shadow: Option<Shadow>,
}

struct Runner<'a> {
    data_dir: &'a Path,
    host: Host,
    new_module: Option<&'a NewModule>,
    players: Vec<Player>,
    /// The end of the previous segment.
    ended: Option<Chain>,
    result: ReplayReport,
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

    /// Loads the module of a saved strategy without starting it, and notes how it is replayed.
    fn module(&mut self, saved: &SavedStrategy) -> Option<Guest> {
        let module = modules::kept(self.data_dir, &saved.sha256);
        let altered = module.is_err();
        let loaded = match module {
            Err(why) => Err(why.to_string()),
            Ok(module) => Guest::load(&self.host, &saved.name, module, saved.made.clone())
                .map_err(|error| error.to_string()),
        };
        self.role(saved, loaded.as_ref().err().cloned(), altered);
        loaded.ok()
    }

    fn role(&mut self, saved: &SavedStrategy, from_journal: Option<String>, altered: bool) {
        let role = Role {
            id: saved.name.clone(),
            sha256: hex::encode(saved.sha256),
            from_journal,
            altered,
        };
        if !self.result.roles.contains(&role) {
            self.result.roles.push(role);
        }
    }

    fn shadow(&mut self, saved: &SavedStrategy) -> Option<Shadow> {
        let new_module = self.new_module.filter(|one| one.id == saved.name)?;
        let module = Arc::clone(&new_module.module);
        match Guest::load(&self.host, &saved.name, module, saved.made.clone()) {
            Ok(guest) => Some(Shadow {
                guest,
                timers: BTreeMap::new(),
                failed: false,
            }),
            Err(error) => {
                self.note(format!(
                    "the new module of {} cannot be loaded: {error}",
                    saved.name
                ));
                None
            }
        }
    }

    /// Notes market records that a kill or the retention removed. They are not a difference, but
    /// the rest of the segment cannot be replayed.
    fn note_lost(&mut self, segment: u32, lost: Option<u64>, dropped: bool) {
        let Some(block) = lost else { return };
        let why = if dropped {
            "were deleted by retention ([journal] retain_market_days)"
        } else {
            "are lost"
        };
        self.note(format!(
            "segment {segment:08x}: market records from block {block} on {why}; this segment was \
             replayed up to there"
        ));
    }

    fn note(&mut self, note: String) {
        if !self.result.notes.contains(&note) {
            self.result.notes.push(note);
        }
    }
}
