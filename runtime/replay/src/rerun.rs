//! A journal again with its modules: each strategy is told what it was told, asks an engine that
//! is in the state that it was in, and what it answers is held against what was recorded. The
//! engine itself always goes on with the recorded answers, so that every difference is the
//! module's own.
//!
//! A module that was changed can be put beside the one that ran: it hears the same, and what it
//! would have done otherwise is told. Its own orders never come to life here: what they would
//! have led to is for a simulation.

mod saved;
mod scene;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use windvane_engine::Engine;
use windvane_host::Host;
use windvane_journal::{Directory, ExportError, Problem, StoredSegment};
use windvane_model::record::Chain;
use windvane_session::recovery::Difference;
use windvane_session::{Cost, EngineLoop, Head, SavedStrategy};

use super::beside::Beside;
use super::export::Words;
use super::reread::Reading;
use super::segments::ReplayError;
use super::trial::Trial;
use super::whatif::Changes;
use scene::Scene;
use windvane_build::modules::{self, Guest};
use windvane_report::hex;

/// A module to be put beside the one that ran.
#[derive(Clone, Debug)]
pub struct Newcomer {
    /// The strategy's id.
    pub id: String,
    /// The module.
    pub module: Arc<[u8]>,
}

/// How a module of the journal was played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The strategy's id.
    pub id: String,
    /// Hash of the module that ran.
    pub sha256: String,
    /// Why its answers were taken as recorded; `None` where the module itself ran.
    pub from_journal: Option<String>,
    /// Its file is another one, or is gone: what the module would have answered nobody knows.
    pub altered: bool,
}

/// What was played.
#[derive(Debug, Default)]
pub struct Rerun {
    /// Segments.
    pub segments: u64,
    /// Blocks in them.
    pub blocks: u64,
    /// Records in them.
    pub records: u64,
    /// Answers that the modules themselves gave again.
    pub answers: u64,
    /// Where it came out otherwise first: segment and place.
    pub difference: Option<(u32, Difference)>,
    /// What other engine rules led to.
    pub other_rules: Option<OtherRules>,
    /// What of the journal is missing or damaged, so that it was not played.
    pub problems: Vec<Problem>,
    /// Who played.
    pub roles: Vec<Role>,
    /// What else a reader should know.
    pub notes: Vec<String>,
    /// What the newcomer would have done otherwise.
    pub changes: Changes,
    /// What it takes to let it trade on the recorded market.
    pub trial: Option<Trial>,
}

impl Rerun {
    /// Whether all that the journal should hold was played and came out as it was recorded.
    pub fn is_equal(&self) -> bool {
        let altered = self.roles.iter().any(|role| role.altered);
        self.difference.is_none()
            && self.other_rules.is_none()
            && self.problems.is_empty()
            && !altered
    }
}

/// Segments of a program with other engine rules: such a program decides otherwise, so that its
/// journal cannot be verified by this one.
#[derive(Debug, Default)]
pub struct OtherRules {
    /// The engine rules of those segments.
    pub rules: BTreeSet<u32>,
    /// The programs that wrote them.
    pub programs: BTreeSet<String>,
    /// The first differences, with their segments.
    pub differences: Vec<(u32, Difference)>,
    /// The number of all differences.
    pub count: u64,
}

impl OtherRules {
    /// So many differences are listed.
    const LISTED: usize = 20;

    fn add(&mut self, segment: u32, difference: Difference) {
        self.count += 1;
        if self.differences.len() < Self::LISTED {
            self.differences.push((segment, difference));
        }
    }
}

/// The ids of the strategies in a journal, up to the segment, from its end, that has this one.
///
/// # Errors
/// The journal is in use, or its folder cannot be read.
pub fn strategies_until(data_dir: &Path, id: &str) -> Result<BTreeSet<String>, ReplayError> {
    let _ours = Directory::lock(data_dir)?;
    let mut ids = BTreeSet::new();
    for segment in windvane_journal::segments(data_dir)?.into_iter().rev() {
        // What cannot be read is told by the replay itself.
        let stored = windvane_journal::segment(data_dir, segment).ok();
        let head = stored.and_then(|stored| Head::from_bytes(&stored.head));
        ids.extend(
            head.into_iter()
                .flat_map(|head| head.strategies)
                .map(|saved| saved.name),
        );
        if ids.contains(id) {
            break;
        }
    }
    Ok(ids)
}

/// Plays the journal of a data folder: up to the first difference, or, with a newcomer, to its
/// end. A segment that cannot be read is a problem of the journal and left out.
///
/// # Errors
/// It is in use, or cannot be read, or there is no WebAssembly here.
pub fn rerun(data_dir: &Path, newcomer: Option<&Newcomer>) -> Result<Rerun, ReplayError> {
    let ours = Directory::lock(data_dir)?;
    let report = ours.verify().map_err(|error| ExportError::Folder {
        path: data_dir.to_owned(),
        error,
    })?;
    let result = Rerun {
        problems: report.problems,
        ..Rerun::default()
    };
    let mut stage = Stage {
        data_dir,
        host: modules::host()?,
        newcomer,
        cast: Vec::new(),
        ended: None,
        result,
    };
    for segment in windvane_journal::segments(data_dir)? {
        let stored = match windvane_journal::segment(data_dir, segment) {
            Err(ExportError::Segment { .. }) => continue,
            stored => stored?,
        };
        let head = Head::from_bytes(&stored.head).ok_or(ReplayError::Head { segment })?;
        stage.segment(segment, stored, &head)?;
        if stage.result.difference.is_some() && newcomer.is_none() {
            break;
        }
    }
    Ok(stage.result)
}

/// One strategy.
struct Player {
    id: String,
    /// The module that ran; without it, answers are those of the journal.
    module: Option<Guest>,
    /// What it saved last.
    saved: Option<Vec<u8>>,
    /// What it took to record that.
    cost: Cost,
    /// The module beside it.
    beside: Option<Beside>,
}

struct Stage<'a> {
    data_dir: &'a Path,
    host: Host,
    newcomer: Option<&'a Newcomer>,
    cast: Vec<Player>,
    /// Where the segment before ended.
    ended: Option<Chain>,
    result: Rerun,
}

impl Stage<'_> {
    fn segment(
        &mut self,
        segment: u32,
        stored: StoredSegment,
        head: &Head,
    ) -> Result<(), ReplayError> {
        let engine = Engine::restore(&head.engine);
        let mut engine = engine.map_err(|error| ReplayError::Snapshot { segment, error })?;
        engine.record_as(stored.format);
        let words = Words::new(segment, &stored.head).ok_or(ReplayError::Head { segment })?;
        let base = engine.chain();
        let other_rules = if head.has_our_rules() {
            None
        } else {
            let mut other = self.result.other_rules.take().unwrap_or_default();
            other.rules.insert(head.engine_rules);
            other.programs.insert(head.version.clone());
            Some(other)
        };
        let mut scene = Scene {
            stage: self,
            reading: Reading::new(
                segment,
                stored.blocks,
                head.paper.as_deref(),
                head.has_our_rules(),
            )?,
            words,
            head,
            reloaded: None,
            new_intents: None,
            difference: None,
            segment,
            other_rules,
        };
        let mut core = EngineLoop::new(engine);
        scene.open(&mut core, base);
        scene.play(&mut core);
        let lost = scene.reading.lost;
        let (difference, ended) = (scene.difference.take(), core.engine().chain());
        let trial = scene.trial(core.engine());
        let read = scene.reading.counts();
        let other_rules = scene.other_rules.take();
        self.ended = Some(ended);
        self.note_lost(segment, lost, stored.market_dropped);
        self.result.other_rules = other_rules.or(self.result.other_rules.take());
        self.result.trial = trial.or(self.result.trial.take());
        self.result.segments += 1;
        self.result.blocks += read.0;
        self.result.records += read.1;
        if let (None, Some(difference)) = (&self.result.difference, difference) {
            self.result.difference = Some((segment, difference));
        }
        Ok(())
    }

    /// The module of a saved strategy, not begun; and who plays it.
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
            sha256: hex(&saved.sha256),
            from_journal,
            altered,
        };
        if !self.result.roles.contains(&role) {
            self.result.roles.push(role);
        }
    }

    fn beside(&mut self, saved: &SavedStrategy) -> Option<Beside> {
        let newcomer = self.newcomer.filter(|one| one.id == saved.name)?;
        let module = Arc::clone(&newcomer.module);
        match Guest::load(&self.host, &saved.name, module, saved.made.clone()) {
            Ok(guest) => Some(Beside {
                guest,
                timers: BTreeMap::new(),
                fell: false,
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

    /// Market records that a kill or retention took are no difference, but nothing behind them can
    /// be played.
    fn note_lost(&mut self, segment: u32, lost: Option<u64>, dropped: bool) {
        let Some(block) = lost else { return };
        let why = if dropped {
            "were dropped by retention ([journal] retain_market_days)"
        } else {
            "are lost"
        };
        self.note(format!(
            "segment {segment:08x}: market records from block {block} on {why}; this segment was \
             played up to there"
        ));
    }

    fn note(&mut self, note: String) {
        if !self.result.notes.contains(&note) {
            self.result.notes.push(note);
        }
    }
}
