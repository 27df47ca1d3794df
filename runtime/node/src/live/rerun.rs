//! A journal again with its modules: each strategy is told what it was told, asks an engine that
//! is in the state that it was in, and what it answers is held against what was recorded. The
//! engine itself always goes on with the recorded answers, so that every difference is the
//! module's own.
//!
//! A module that was changed can be put beside the one that ran: it hears the same, and what it
//! would have done otherwise is told. Its own orders never come to life here: what they would
//! have led to is for a simulation.

mod saved;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use windvane_engine::codec::RecordedInput;
use windvane_engine::config::EngineConfig;
use windvane_engine::event::EventKind;
use windvane_engine::input::FaultKind;
use windvane_engine::{Effect, Engine, Event, InstrumentId, Intent, StrategyId, Time};
use windvane_host::Host;
use windvane_journal::{Directory, ExportError, Problem, StoredSegment};
use windvane_session::Cost;

use super::beside::{Beside, begin_guest};
use super::export::Words;
use super::reload;
use super::replay::{Difference, ReplayError};
use super::reread::{self, Next, Reading};
use super::trial::Trial;
use super::whatif::{Change, Changes};
use crate::results::hex;
use crate::results::utc::utc_text;
use crate::strategies::{self, Guest, engine_fault};
use windvane_session::{Head, SavedStrategy};

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
        host: strategies::host()?,
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
    ended: Option<windvane_engine::record::Chain>,
    result: Rerun,
}

/// One segment on its way.
struct Scene<'a, 'b> {
    stage: &'b mut Stage<'a>,
    /// Away only while a module is called with it.
    engine: Option<Box<Engine>>,
    reading: Reading,
    words: Words,
    head: &'b Head,
    /// What a reload within the segment made instances of.
    reloaded: Option<Vec<SavedStrategy>>,
    difference: Option<Difference>,
    segment: u32,
    /// All differences, where the segment has other engine rules.
    other_rules: Option<OtherRules>,
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
            engine: Some(Box::new(engine)),
            reading: Reading::new(
                segment,
                stored.blocks,
                head.paper.as_deref(),
                head.has_our_rules(),
            )?,
            words,
            head,
            reloaded: None,
            difference: None,
            segment,
            other_rules,
        };
        scene.open(base);
        scene.play();
        let lost = scene.reading.lost;
        let (difference, ended) = (scene.difference.take(), scene.engine().chain());
        let trial = scene.trial();
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
        let module = strategies::kept(self.data_dir, &saved.sha256);
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

impl Scene<'_, '_> {
    fn engine(&self) -> &Engine {
        match &self.engine {
            Some(engine) => engine,
            None => unreachable!("the engine is away only while a module is called"),
        }
    }

    /// The account of now for the strategy of the newcomer alone.
    fn trial(&self) -> Option<Trial> {
        let newcomer = self.stage.newcomer?;
        let mut saved = self.head.strategies.iter();
        let place = saved.position(|saved| saved.name == newcomer.id)?;
        let engine = self.engine();
        let balances = engine
            .balances()
            .filter(|(.., balance)| balance.total.0 > 0);
        let engine = EngineConfig {
            assets: engine.assets().to_vec(),
            instruments: engine.instruments().to_vec(),
            strategies: vec![engine.strategy_config(StrategyId(place as u16))?.clone()],
            limits: engine.limits().clone(),
            hedge_mode: engine.hedge_mode(),
            epoch: engine.epoch(),
            balances: balances
                .map(|(surface, asset, balance)| (surface, asset, balance.total))
                .collect(),
            ..EngineConfig::default()
        };
        let saved = self.head.strategies[place].clone();
        Some(Trial { engine, saved })
    }

    /// Brings the modules to where they were when the segment began.
    fn open(&mut self, base: windvane_engine::record::Chain) {
        if self.reading.peek().is_none() {
            // A kill came before any of it was durable. Whether a process began with it or went on
            // is not told: its states are held to nothing, and a process that follows says its own.
            return;
        }
        if self.reading.begins_a_process() {
            self.new_cast();
            self.take_latched();
            for place in 0..self.stage.cast.len() {
                let strategy = StrategyId(place as u16);
                if self.engine().fault(strategy).is_none() {
                    self.begin(strategy, self.head.strategies[place].state.as_deref());
                }
            }
            self.drain();
            return;
        }
        let goes_on = self.stage.ended == Some(base);
        if goes_on && self.stage.cast.len() == self.head.strategies.len() {
            self.compare_states();
            return;
        }
        self.join_late();
    }

    /// Quarantines that only the file of latches knew were recorded before any strategy began. One
    /// whose module does not begin is recorded in its turn.
    fn take_latched(&mut self) {
        while let Some(next) = self.reading.peek()
            && let RecordedInput::Fault { strategy, .. } = next.input
        {
            let place = usize::from(strategy.0);
            let Some(saved) = self.head.strategies.get(place).cloned() else {
                return;
            };
            let fails = matches!(
                self.try_begin(strategy, saved.state.as_deref()),
                Some(Err(_))
            );
            // What was tried has no effect: another instance begins.
            self.stage.cast[place].module = self.stage.module(&saved);
            if fails {
                return;
            }
            if let Some(next) = self.reading.pop() {
                self.feed(&next);
            }
        }
    }

    /// The segment begins in the middle of a run whose beginning is lost: what its modules knew is
    /// more than what they saved, so that they cannot be held to what they answered.
    fn join_late(&mut self) {
        let saved = self.head.strategies.iter();
        self.stage.cast = saved
            .map(|saved| {
                let why = "the journal begins in the middle of its run".to_owned();
                self.stage.role(saved, Some(why), false);
                Player {
                    id: saved.name.clone(),
                    module: None,
                    saved: saved.state.clone(),
                    cost: Cost::of(saved.state.as_deref()),
                    beside: self.stage.beside(saved),
                }
            })
            .collect();
        for place in 0..self.stage.cast.len() {
            let state = self.head.strategies[place].state.clone();
            // What it intends at its beginning was intended before the segment.
            drop(self.begin_beside(StrategyId(place as u16), state.as_deref()));
        }
    }

    fn new_cast(&mut self) {
        let saved = self.head.strategies.iter();
        self.stage.cast = saved
            .map(|saved| Player {
                id: saved.name.clone(),
                module: self.stage.module(saved),
                saved: saved.state.clone(),
                cost: Cost::of(saved.state.as_deref()),
                beside: self.stage.beside(saved),
            })
            .collect();
    }

    fn play(&mut self) {
        while let Some(next) = self.reading.pop() {
            reread::seal_before(next.block, &mut self.engine);
            match &next.input {
                RecordedInput::Answer { strategy, .. } | RecordedInput::Fault { strategy, .. }
                    if self
                        .player(*strategy)
                        .is_some_and(|one| one.module.is_some()) =>
                {
                    let strategy = *strategy;
                    let made = self.failing_save(strategy);
                    if made.as_ref() != Some(&next.input) {
                        self.differ(&next, made.as_ref());
                    }
                    self.feed(&next);
                }
                RecordedInput::Reconfigure(after) => {
                    self.reloaded = reload::instances(&after.circumstances);
                    self.feed(&next);
                }
                RecordedInput::Saved {
                    strategy, state, ..
                } => {
                    self.take_saved(&next, *strategy, state.as_ref());
                }
                RecordedInput::Renew { strategy } => {
                    let quarantined = self.engine().fault(*strategy).is_some();
                    self.feed(&next);
                    self.renew(*strategy, quarantined);
                }
                _ => self.feed(&next),
            }
            self.drain();
            self.own_timers(next.time);
            if self.stop() {
                return;
            }
        }
        self.reading.seal_last(&mut self.engine);
        self.stop();
    }

    /// Compares blocks, and says whether the replay ends at a difference. With other engine rules
    /// it goes on and collects all of them.
    fn stop(&mut self) -> bool {
        if let Some(engine) = &mut self.engine {
            self.reading.compare(engine);
        }
        if let Some(other) = &mut self.other_rules {
            let found = [self.difference.take(), self.reading.difference.take()];
            for difference in found.into_iter().flatten() {
                other.add(self.segment, difference);
            }
            return false;
        }
        if self.difference.is_none() {
            self.difference = self.reading.difference.take();
        }
        self.difference.is_some() && self.stage.newcomer.is_none()
    }

    fn player(&self, strategy: StrategyId) -> Option<&Player> {
        self.stage.cast.get(usize::from(strategy.0))
    }

    fn feed(&mut self, next: &Next) {
        if let Some(engine) = &mut self.engine {
            engine.handle(next.time, next.input.as_input());
        }
    }

    fn drain(&mut self) {
        while let Some(effect) = self.engine.as_mut().and_then(|engine| engine.poll_effect()) {
            if let Effect::Deliver { strategy, event } = effect {
                self.deliver(strategy, &event);
            }
        }
        while self
            .engine
            .as_mut()
            .is_some_and(|engine| engine.poll_notice().is_some())
        {}
    }

    fn deliver(&mut self, strategy: StrategyId, event: &Event) {
        // It failed at an event before this one.
        if self.engine().fault(strategy).is_some() {
            return;
        }
        let place = usize::from(strategy.0);
        let Some(player) = self.stage.cast.get_mut(place) else {
            return;
        };
        let Some(mut engine) = self.engine.take() else {
            return;
        };
        // One that fell, or is not meant, has no intents of its own.
        let mut new = player.beside.as_ref().map(|_| Vec::new());
        if let Some(beside) = player.beside.as_mut().filter(|one| one.hears(event)) {
            let heard;
            (engine, heard) = beside.deliver(engine, event);
            new = Some(heard);
            if beside.fell {
                let (id, at) = (&player.id, utc_text(event.time));
                let note = format!("the new module of {id} fails at {at}: quarantine");
                self.stage.result.notes.push(note);
            }
        }
        let mut made = None;
        if let Some(module) = &mut player.module {
            let result;
            (engine, result) = module.strategy.deliver(engine, event);
            drop(module.strategy.take_output());
            made = match result {
                Ok(()) => answer(strategy, module.strategy.intents()),
                Err(fault) => Some(RecordedInput::Fault {
                    strategy,
                    kind: engine_fault(fault.kind),
                }),
            };
        }
        self.engine = Some(engine);
        let made = self.settle_saved(strategy, event, made);
        let old = self.settle(strategy, made);
        if let Some(new) = new {
            self.compare_intents(event.time, old, &new);
        }
    }

    /// Takes what was recorded of a strategy here, held against what its module made.
    fn settle(&mut self, strategy: StrategyId, made: Option<RecordedInput>) -> Vec<Intent> {
        let has_module = self
            .player(strategy)
            .is_some_and(|one| one.module.is_some());
        if has_module && made.is_none() {
            return Vec::new();
        }
        let is_its = |input: &RecordedInput| match input {
            RecordedInput::Answer { strategy: of, .. }
            | RecordedInput::Fault { strategy: of, .. } => *of == strategy,
            _ => false,
        };
        let recorded = self.reading.pop_if(is_its);
        match (&recorded, made) {
            (Some(next), Some(made)) if next.input != made => self.differ(next, Some(&made)),
            (Some(_), Some(_)) => self.stage.result.answers += 1,
            (None, Some(made)) => {
                // Where the journal ends, what followed was kept from the disk.
                if let Some(next) = self.reading.peek() {
                    self.differ(&next, Some(&made));
                }
            }
            (_, None) => {}
        }
        let Some(next) = recorded else {
            return Vec::new();
        };
        self.feed(&next);
        match next.input {
            RecordedInput::Answer { intents, .. } => intents,
            _ => Vec::new(),
        }
    }

    fn differ(&mut self, next: &Next, made: Option<&RecordedInput>) {
        if self.difference.is_some() {
            return;
        }
        let word = |input: &RecordedInput| {
            let at = utc_text(next.time);
            match input {
                RecordedInput::Answer { strategy, intents } => {
                    let id = self.words.strategy(*strategy);
                    let intents = intents.iter().map(|one| self.words.intent(one).to_string());
                    let intents: Vec<_> = intents.collect();
                    format!("at {at} an answer of {id}: {}", intents.join(", "))
                }
                RecordedInput::Fault { strategy, kind } => {
                    let id = self.words.strategy(*strategy);
                    format!("at {at} a fault of {id}: {}", kind.as_str())
                }
                other => format!("at {at} {other:?}"),
            }
        };
        let recorded = Some(word(&next.input));
        let made = made
            .map(word)
            .or_else(|| Some("no answer of the module".to_owned()));
        self.difference = Some(Difference {
            block: next.block,
            record: next.record,
            recorded,
            made,
        });
    }

    /// Begins a module; what it intends and whether it fails is held against the record.
    fn begin(&mut self, strategy: StrategyId, state: Option<&[u8]>) {
        let new = self.begin_beside(strategy, state);
        let made = match self.try_begin(strategy, state) {
            None => None,
            Some(Ok(intents)) => answer(strategy, &intents),
            Some(Err(kind)) => Some(RecordedInput::Fault { strategy, kind }),
        };
        let now = self.engine().now();
        let old = self.settle(strategy, made);
        if let Some(new) = new {
            self.compare_intents(now, old, &new);
        }
    }

    /// `start`, then `load`; `None` without a module.
    fn try_begin(
        &mut self,
        strategy: StrategyId,
        state: Option<&[u8]>,
    ) -> Option<Result<Vec<Intent>, FaultKind>> {
        let engine = self.engine.take()?;
        let player = self.stage.cast.get_mut(usize::from(strategy.0));
        let Some(module) = player.and_then(|player| player.module.as_mut()) else {
            self.engine = Some(engine);
            return None;
        };
        let (engine, begun) = begin_guest(module, engine, strategy, state);
        self.engine = Some(engine);
        Some(begun)
    }

    fn begin_beside(&mut self, strategy: StrategyId, state: Option<&[u8]>) -> Option<Vec<Intent>> {
        let place = usize::from(strategy.0);
        let mut beside = self.stage.cast.get_mut(place)?.beside.take()?;
        let mut engine = self.engine.take()?;
        let mut begun;
        (engine, begun) = begin_guest(&mut beside.guest, engine, strategy, state);
        if begun == Err(FaultKind::State) {
            self.stage
                .note("the new module cannot use the saved state: it begins fresh".to_owned());
            if let Some(fresh) = self.stage.beside(&self.head.strategies[place]) {
                beside = fresh;
                (engine, begun) = begin_guest(&mut beside.guest, engine, strategy, None);
            }
        }
        self.engine = Some(engine);
        if let Err(kind) = begun {
            let word = kind.as_str();
            self.stage.note(format!(
                "the new module does not begin ({word}): it would do nothing"
            ));
            beside.fell = true;
        }
        let intents = begun.unwrap_or_default();
        beside.keep_timers(&intents);
        self.stage.cast[place].beside = Some(beside);
        Some(intents)
    }

    /// A strategy's module was instantiated anew: the same, or, after a reload, the one that the
    /// reload named. Out of quarantine it has what it saved last, and begins without what it cannot
    /// use of that.
    fn renew(&mut self, strategy: StrategyId, quarantined: bool) {
        let place = usize::from(strategy.0);
        let reloaded = self.reloaded.as_ref().and_then(|all| all.get(place));
        let saved = reloaded.unwrap_or(&self.head.strategies[place]).clone();
        let (module, beside) = (self.stage.module(&saved), self.stage.beside(&saved));
        let Some(player) = self.stage.cast.get_mut(place) else {
            return;
        };
        let old = player.module.as_mut().filter(|_| !quarantined);
        let state = old.and_then(|old| old.strategy.save().ok());
        let state = state.or_else(|| player.saved.clone());
        (player.module, player.beside) = (module, beside);
        let unusable = self.try_begin(strategy, state.as_deref()) == Some(Err(FaultKind::State));
        // What was tried has no effect: another instance begins.
        self.stage.cast[place].module = self.stage.module(&saved);
        let state = state.filter(|_| !(unusable && quarantined));
        self.begin(strategy, state.as_deref());
    }

    /// Fires what only the newcomer waits for.
    fn own_timers(&mut self, now: Time) {
        for place in 0..self.stage.cast.len() {
            let strategy = StrategyId(place as u16);
            let Some(beside) = &self.stage.cast[place].beside else {
                continue;
            };
            let due = |(token, at): (&i64, &Time)| (*at <= now).then_some(*token);
            let due: Vec<i64> = beside.timers.iter().filter_map(due).collect();
            for token in due {
                if self.engine().has_timer(strategy, token) {
                    continue;
                }
                let event = Event {
                    time: now,
                    sequence: 0,
                    kind: EventKind::Timer,
                    instrument: InstrumentId(0),
                    flags: 0,
                    fields: [token, 0, 0, 0, 0, 0],
                    id: 0,
                };
                let Some(engine) = self.engine.take() else {
                    return;
                };
                let Some(beside) = self.stage.cast[place].beside.as_mut() else {
                    self.engine = Some(engine);
                    return;
                };
                beside.timers.remove(&token);
                let (engine, new) = beside.deliver(engine, &event);
                self.engine = Some(engine);
                self.compare_intents(now, Vec::new(), &new);
            }
        }
    }

    fn compare_intents(&mut self, time: Time, old: Vec<Intent>, new: &[Intent]) {
        let Some(engine) = &self.engine else { return };
        for change in Change::between(time, old, new, engine, &self.words) {
            self.stage.result.changes.push(change);
        }
    }
}

/// An answer as it is recorded; one without intents is not.
fn answer(strategy: StrategyId, intents: &[Intent]) -> Option<RecordedInput> {
    (!intents.is_empty()).then(|| RecordedInput::Answer {
        strategy,
        intents: intents.to_vec(),
    })
}
