//! Replays one segment of a journal with its modules.

use std::collections::BTreeMap;

use windvane_engine::Engine;
use windvane_model::codec::RecordedInput;
use windvane_model::config::EngineConfig;
use windvane_model::event::EventKind;
use windvane_model::input::{FaultKind, StartPhase};
use windvane_model::record::Chain;
use windvane_model::{Event, InstrumentId, Intent, Notice, Request, StrategyId, Time};
use windvane_session::recovery::Difference;
use windvane_session::{Checkpoint, Cost, EffectHandler, EngineLoop, SavedStrategy};

use super::super::diff::Change;
use super::super::export::RecordFormatter;
use super::super::reader::{self, NextInput, SegmentReader};
use super::super::simulate::Simulation;
use super::players::{Player, Runner};
use super::report::OtherRules;
use windvane_build::modules::{begin_guest, engine_fault};
use windvane_report::utc::utc_text;

/// The state of the replay of one segment.
pub(super) struct SegmentReplay<'a, 'b> {
    pub(super) runner: &'b mut Runner<'a>,
    pub(super) reader: SegmentReader,
    pub(super) formatter: RecordFormatter,
    pub(super) checkpoint: &'b Checkpoint,
    /// The instances that a reload within the segment made.
    pub(super) reloaded: Option<Vec<SavedStrategy>>,
    /// The starts beside the run that have begun.
    pub(super) starting: BTreeMap<StrategyId, Start>,
    /// The intents of the new module in the current callback.
    pub(super) new_intents: Option<Vec<Intent>>,
    pub(super) difference: Option<Difference>,
    pub(super) segment: u32,
    /// All differences, if the segment has other engine rules.
    pub(super) other_rules: Option<OtherRules>,
}

/// What the modules of a strategy made of a start beside the run.
pub(super) struct Start {
    /// The recorded module: its intents or its fault. `None` without it.
    made: Option<Result<Vec<Intent>, FaultKind>>,
    /// The intents of the new module.
    new: Option<Vec<Intent>>,
}

impl SegmentReplay<'_, '_> {
    /// The inputs for a simulation: the account at this time, with only the newcomer's strategy.
    pub(super) fn simulation(&self, engine: &Engine) -> Option<Simulation> {
        let new_module = self.runner.new_module?;
        let mut saved = self.checkpoint.strategies.iter();
        let place = saved.position(|saved| saved.name == new_module.id)?;
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
        let saved = self.checkpoint.strategies[place].clone();
        Some(Simulation { engine, saved })
    }

    /// Brings the modules to their state at the start of the segment.
    pub(super) fn open(&mut self, core: &mut EngineLoop, base: Chain) {
        if self.reader.peek().is_none() {
            // A kill came before any record was durable. It is unknown whether a process started
            // with this segment or continued, so its states are not compared. A process that
            // follows has its own states.
            return;
        }
        if self.reader.begins_a_process() {
            self.new_cast();
            self.take_early_quarantines(core);
            for place in 0..self.runner.players.len() {
                let strategy = StrategyId(place as u16);
                if core.engine().fault(strategy).is_none() {
                    let state = self.checkpoint.strategies[place].state.as_deref();
                    self.begin(core, strategy, state);
                }
            }
            core.drain(core.engine().now(), self);
            return;
        }
        let goes_on = self.runner.ended == Some(base);
        if goes_on && self.runner.players.len() == self.checkpoint.strategies.len() {
            self.compare_states(core.engine());
            return;
        }
        self.join_late(core);
    }

    /// Quarantines that only the kill switch file contained were recorded before any strategy
    /// started. A module that fails to start is recorded later, in its turn.
    fn take_early_quarantines(&mut self, core: &mut EngineLoop) {
        while let Some(next) = self.reader.peek()
            && let RecordedInput::Fault { strategy, .. } = next.input
        {
            let place = usize::from(strategy.0);
            let Some(saved) = self.checkpoint.strategies.get(place).cloned() else {
                return;
            };
            let fails = matches!(
                self.try_begin(core, strategy, saved.state.as_deref()),
                Some(Err(_))
            );
            // The attempt has no effect, because another instance starts.
            self.runner.players[place].module = self.runner.module(&saved);
            if fails {
                return;
            }
            if let Some(next) = self.reader.pop() {
                feed(core.engine_mut(), &next);
            }
        }
    }

    /// Handles a segment from the middle of a run whose beginning is lost. Its modules knew more
    /// than they saved, so their outputs cannot be compared.
    fn join_late(&mut self, core: &mut EngineLoop) {
        let saved = self.checkpoint.strategies.iter();
        self.runner.players = saved
            .map(|saved| {
                let why = "the beginning of its run is missing in the journal".to_owned();
                self.runner.role(saved, Some(why), false);
                Player {
                    id: saved.name.clone(),
                    module: None,
                    saved: saved.state.clone(),
                    cost: Cost::of(saved.state.as_deref()),
                    shadow: self.runner.shadow(saved),
                }
            })
            .collect();
        for place in 0..self.runner.players.len() {
            let state = self.checkpoint.strategies[place].state.clone();
            // The intents of its start were handled before this segment.
            let strategy = StrategyId(place as u16);
            drop(self.begin_shadow(core, strategy, state.as_deref()));
        }
    }

    fn new_cast(&mut self) {
        let saved = self.checkpoint.strategies.iter();
        self.runner.players = saved
            .map(|saved| Player {
                id: saved.name.clone(),
                module: self.runner.module(saved),
                saved: saved.state.clone(),
                cost: Cost::of(saved.state.as_deref()),
                shadow: self.runner.shadow(saved),
            })
            .collect();
    }

    pub(super) fn play(&mut self, core: &mut EngineLoop) {
        while let Some(next) = self.reader.pop() {
            reader::seal_before(next.block, core.engine_mut());
            match &next.input {
                RecordedInput::Fault { strategy, .. } if self.starting.contains_key(strategy) => {
                    self.start_failed(core, &next, *strategy);
                }
                // The record of a fault that was measured with a clock is the only evidence of it.
                RecordedInput::Fault { kind, .. } if kind.is_measured() => {
                    feed(core.engine_mut(), &next);
                }
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
                    feed(core.engine_mut(), &next);
                }
                RecordedInput::Reconfigure(after) => {
                    self.reloaded = windvane_session::instances(&after.circumstances);
                    feed(core.engine_mut(), &next);
                }
                RecordedInput::Saved {
                    strategy, state, ..
                } => {
                    self.take_saved(core.engine_mut(), &next, *strategy, state.as_ref());
                }
                RecordedInput::Renew { strategy } => {
                    let quarantined = core.engine().fault(*strategy).is_some();
                    feed(core.engine_mut(), &next);
                    self.renew(core, *strategy, quarantined);
                }
                RecordedInput::Start {
                    strategy,
                    phase: StartPhase::Begins,
                } => {
                    let quarantined = core.engine().fault(*strategy).is_some();
                    feed(core.engine_mut(), &next);
                    self.begin_start(core, *strategy, quarantined);
                }
                RecordedInput::Start {
                    strategy,
                    phase: StartPhase::Ends,
                } => {
                    feed(core.engine_mut(), &next);
                    self.end_start(core, &next, *strategy);
                }
                _ => feed(core.engine_mut(), &next),
            }
            core.drain(next.time, self);
            self.own_timers(core, next.time);
            if self.stop(core.engine_mut()) {
                return;
            }
        }
        self.reader.seal_last(core.engine_mut());
        self.stop(core.engine_mut());
    }

    /// Compares blocks. Returns whether the replay ends at a difference. With other engine rules it
    /// continues and collects all differences.
    fn stop(&mut self, engine: &mut Engine) -> bool {
        self.reader.compare(engine);
        if let Some(other) = &mut self.other_rules {
            let found = [self.difference.take(), self.reader.difference.take()];
            for difference in found.into_iter().flatten() {
                other.add(self.segment, difference);
            }
            return false;
        }
        if self.difference.is_none() {
            self.difference = self.reader.difference.take();
        }
        self.difference.is_some() && self.runner.new_module.is_none()
    }

    pub(super) fn player(&self, strategy: StrategyId) -> Option<&Player> {
        self.runner.players.get(usize::from(strategy.0))
    }

    /// Takes the recorded output of a strategy and compares it with the output of its module.
    fn take_recorded(
        &mut self,
        engine: &mut Engine,
        strategy: StrategyId,
        made: Option<RecordedInput>,
    ) -> Vec<Intent> {
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
        let recorded = self.reader.pop_if(is_its);
        match (&recorded, made) {
            (Some(next), Some(made)) if is_quarantine_of_the_run(&next.input, &made) => {}
            (Some(next), Some(made)) if next.input != made => self.differ(next, Some(&made)),
            (Some(_), Some(_)) => self.runner.result.answers += 1,
            (None, Some(made)) => {
                // The journal may end here, because the following records never reached the disk.
                if let Some(next) = self.reader.peek() {
                    self.differ(&next, Some(&made));
                }
            }
            (_, None) => {}
        }
        let Some(next) = recorded else {
            return Vec::new();
        };
        feed(engine, &next);
        match next.input {
            RecordedInput::Answer { intents, .. } => intents,
            _ => Vec::new(),
        }
    }

    /// Takes a fault of the strategy that the run measured with a clock. Returns whether there is
    /// one.
    fn take_measured(&mut self, engine: &mut Engine, strategy: StrategyId) -> bool {
        let next = self.reader.pop_if(|input| is_measured(input, strategy));
        if let Some(next) = &next {
            feed(engine, next);
        }
        next.is_some()
    }

    fn differ(&mut self, next: &NextInput, made: Option<&RecordedInput>) {
        if self.difference.is_some() {
            return;
        }
        let word = |input: &RecordedInput| {
            let at = utc_text(next.time);
            match input {
                RecordedInput::Answer { strategy, intents } => {
                    let id = self.formatter.strategy(*strategy);
                    let intents = intents
                        .iter()
                        .map(|one| self.formatter.intent(one).to_string());
                    let intents: Vec<_> = intents.collect();
                    format!("at {at} an output of {id}: {}", intents.join(", "))
                }
                RecordedInput::Fault { strategy, kind } => {
                    let id = self.formatter.strategy(*strategy);
                    format!("at {at} a fault of {id}: {}", kind.as_str())
                }
                other => format!("at {at} {other:?}"),
            }
        };
        let recorded = Some(word(&next.input));
        let made = made
            .map(word)
            .or_else(|| Some("no output of the module".to_owned()));
        self.difference = Some(Difference {
            block: next.block,
            record: next.record,
            recorded,
            made,
        });
    }

    /// Starts a module and compares its intents or its fault with the record.
    fn begin(&mut self, core: &mut EngineLoop, strategy: StrategyId, state: Option<&[u8]>) {
        let new = self.begin_shadow(core, strategy, state);
        let made = match self.try_begin(core, strategy, state) {
            None => None,
            Some(Ok(intents)) => answer(strategy, &intents),
            Some(Err(kind)) => Some(RecordedInput::Fault { strategy, kind }),
        };
        let now = core.engine().now();
        let old = self.take_recorded(core.engine_mut(), strategy, made);
        if let Some(new) = new {
            self.compare_intents(core.engine(), now, old, &new);
        }
    }

    /// Calls `start`, then `load`; `None` without a module.
    fn try_begin(
        &mut self,
        core: &mut EngineLoop,
        strategy: StrategyId,
        state: Option<&[u8]>,
    ) -> Option<Result<Vec<Intent>, FaultKind>> {
        let player = self.runner.players.get_mut(usize::from(strategy.0))?;
        let module = player.module.as_mut()?;
        Some(begin_guest(core, module, strategy, state))
    }

    fn begin_shadow(
        &mut self,
        core: &mut EngineLoop,
        strategy: StrategyId,
        state: Option<&[u8]>,
    ) -> Option<Vec<Intent>> {
        let place = usize::from(strategy.0);
        let mut shadow = self.runner.players.get_mut(place)?.shadow.take()?;
        let mut outcome = begin_guest(core, &mut shadow.guest, strategy, state);
        if outcome == Err(FaultKind::State) {
            self.runner
                .note("the new module cannot use the saved state: it starts without it".to_owned());
            if let Some(fresh) = self.runner.shadow(&self.checkpoint.strategies[place]) {
                shadow = fresh;
                outcome = begin_guest(core, &mut shadow.guest, strategy, None);
            }
        }
        if let Err(kind) = outcome {
            let word = kind.as_str();
            self.runner.note(format!(
                "the new module fails to start ({word}): it would send nothing"
            ));
            shadow.failed = true;
        }
        let intents = outcome.unwrap_or_default();
        shadow.keep_timers(&intents);
        self.runner.players[place].shadow = Some(shadow);
        Some(intents)
    }

    /// Handles a new instance of a journal of an earlier program, which started at once.
    fn renew(&mut self, core: &mut EngineLoop, strategy: StrategyId, quarantined: bool) {
        if self.player(strategy).is_some() {
            let state = self.take_new_instance(core, strategy, quarantined);
            self.begin(core, strategy, state.as_deref());
        }
    }

    /// Handles the begin of a start beside the run: starts the modules with a copy of the engine,
    /// and keeps the events of the strategy from here on.
    fn begin_start(&mut self, core: &mut EngineLoop, strategy: StrategyId, quarantined: bool) {
        core.hold(strategy);
        let Ok(engine) = Engine::restore_for_start(&core.engine().report()) else {
            return;
        };
        let mut copy = EngineLoop::new(engine);
        if self.player(strategy).is_none() {
            return;
        }
        let state = self.take_new_instance(&mut copy, strategy, quarantined);
        let new = self.begin_shadow(&mut copy, strategy, state.as_deref());
        let made = self.try_begin(&mut copy, strategy, state.as_deref());
        self.starting.insert(strategy, Start { made, new });
    }

    /// Handles the end of a start: compares the intents of `start`, then gives the module the kept
    /// events.
    fn end_start(&mut self, core: &mut EngineLoop, next: &NextInput, strategy: StrategyId) {
        if let Some(Start { made, new }) = self.starting.remove(&strategy)
            && core.engine().fault(strategy).is_none()
        {
            let made = match made {
                Some(Err(kind)) => {
                    self.differ(next, Some(&RecordedInput::Fault { strategy, kind }));
                    None
                }
                Some(Ok(intents)) => answer(strategy, &intents),
                None => None,
            };
            let old = self.take_recorded(core.engine_mut(), strategy, made);
            if let Some(new) = new {
                self.compare_intents(core.engine(), next.time, old, &new);
            }
        }
        core.release(next.time, strategy, self);
    }

    /// Handles a start that failed. The module must fail in the same way, unless the recorded run
    /// gave the start up.
    fn start_failed(&mut self, core: &mut EngineLoop, next: &NextInput, strategy: StrategyId) {
        let made = self.starting.remove(&strategy).and_then(|start| start.made);
        let kind = match made {
            Some(Err(kind)) => kind,
            Some(Ok(_)) | None => FaultKind::Host,
        };
        let made_input = RecordedInput::Fault { strategy, kind };
        let gives_up = RecordedInput::Fault {
            strategy,
            kind: FaultKind::Host,
        };
        if made.is_some() && next.input != made_input && next.input != gives_up {
            self.differ(next, Some(&made_input));
        }
        core.drop_held(strategy);
        feed(core.engine_mut(), next);
    }

    /// Takes a new instance of a strategy's module: of the same module, or of the one of a reload.
    /// Returns the state with which it starts. After a quarantine that is the state that was saved
    /// last, or no state if the module cannot use it.
    fn take_new_instance(
        &mut self,
        core: &mut EngineLoop,
        strategy: StrategyId,
        quarantined: bool,
    ) -> Option<Vec<u8>> {
        let place = usize::from(strategy.0);
        let reloaded = self.reloaded.as_ref().and_then(|all| all.get(place));
        let saved = reloaded
            .unwrap_or(&self.checkpoint.strategies[place])
            .clone();
        let (module, shadow) = (self.runner.module(&saved), self.runner.shadow(&saved));
        let player = self.runner.players.get_mut(place)?;
        let old = player.module.as_mut().filter(|_| !quarantined);
        let state = old.and_then(|old| old.strategy.save().ok());
        let state = state.or_else(|| player.saved.clone());
        (player.module, player.shadow) = (module, shadow);
        let tried = self.try_begin(core, strategy, state.as_deref());
        let unusable = tried == Some(Err(FaultKind::State));
        // The attempt has no effect, because another instance starts.
        self.runner.players[place].module = self.runner.module(&saved);
        state.filter(|_| !(unusable && quarantined))
    }

    /// Fires the timers that only the new module set.
    fn own_timers(&mut self, core: &mut EngineLoop, now: Time) {
        for place in 0..self.runner.players.len() {
            let strategy = StrategyId(place as u16);
            let Some(shadow) = &self.runner.players[place].shadow else {
                continue;
            };
            let due = |(token, at): (&i64, &Time)| (*at <= now).then_some(*token);
            let due: Vec<i64> = shadow.timers.iter().filter_map(due).collect();
            for token in due {
                if core.engine().has_timer(strategy, token) {
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
                let Some(shadow) = self.runner.players[place].shadow.as_mut() else {
                    return;
                };
                shadow.timers.remove(&token);
                let new = core.lend(|engine| shadow.deliver(engine, &event));
                self.compare_intents(core.engine(), now, Vec::new(), &new);
            }
        }
    }

    fn compare_intents(&mut self, engine: &Engine, time: Time, old: Vec<Intent>, new: &[Intent]) {
        for change in Change::between(time, old, new, engine, &self.formatter) {
            self.runner.result.changes.push(change);
        }
    }
}

impl EffectHandler for SegmentReplay<'_, '_> {
    /// Calls the recorded module and the new one beside it.
    fn deliver(
        &mut self,
        strategy: StrategyId,
        mut engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>) {
        let place = usize::from(strategy.0);
        let Some(player) = self.runner.players.get_mut(place) else {
            return (engine, Ok(()));
        };
        // A module that failed, or that does not receive this event, has no intents.
        self.new_intents = player.shadow.as_ref().map(|_| Vec::new());
        if let Some(shadow) = player.shadow.as_mut().filter(|one| one.receives(event)) {
            let new;
            (engine, new) = shadow.deliver(engine, event);
            self.new_intents = Some(new);
            if shadow.failed {
                let (id, at) = (&player.id, utc_text(event.time));
                let note = format!("the new module of {id} fails at {at}: it would be quarantined");
                self.runner.result.notes.push(note);
            }
        }
        // The run dropped the answer of the module, which may be an endless loop.
        let dropped = self.reader.next_is(|input| is_measured(input, strategy));
        let Some(module) = player.module.as_mut().filter(|_| !dropped) else {
            return (engine, Ok(()));
        };
        let (engine, result) = module.strategy.deliver(engine, event);
        drop(module.strategy.take_output());
        (engine, result.map_err(|fault| engine_fault(fault.kind)))
    }

    /// Feeds the recorded output and compares it with the module's output.
    fn settle(
        &mut self,
        _: Time,
        strategy: StrategyId,
        engine: &mut Engine,
        event: &Event,
        result: Result<(), FaultKind>,
    ) {
        let new = self.new_intents.take();
        if self.take_measured(engine, strategy) {
            // The run dropped the module's own answer.
            if let Some(new) = new {
                self.compare_intents(engine, event.time, Vec::new(), &new);
            }
            return;
        }
        let Some(player) = self.player(strategy) else {
            return;
        };
        let made = match (result, &player.module) {
            (Err(kind), _) => Some(RecordedInput::Fault { strategy, kind }),
            (Ok(()), Some(module)) => answer(strategy, module.strategy.intents()),
            (Ok(()), None) => None,
        };
        let made = self.settle_saved(engine, strategy, event, made);
        let old = self.take_recorded(engine, strategy, made);
        if let Some(new) = new {
            self.compare_intents(engine, event.time, old, &new);
        }
    }

    /// Nothing is sent: the journal contains the replies.
    fn send(&mut self, _: Time, _: u64, _: Box<Request>) {}

    /// Nothing is logged: the recorded run did that.
    fn notice(&mut self, _: &Engine, _: Notice) {}
}

/// Whether the run quarantined a strategy whose module did not fail, because its intents filled the
/// journal. The module of the replay made these intents, and they are not in the journal.
fn is_quarantine_of_the_run(recorded: &RecordedInput, made: &RecordedInput) -> bool {
    let is_fault = matches!(
        recorded,
        RecordedInput::Fault {
            kind: FaultKind::Intents,
            ..
        }
    );
    is_fault && matches!(made, RecordedInput::Answer { .. })
}

/// Whether an input is a fault of this strategy that the run measured with a clock.
fn is_measured(input: &RecordedInput, strategy: StrategyId) -> bool {
    matches!(input, RecordedInput::Fault { strategy: of, kind }
        if *of == strategy && kind.is_measured())
}

/// Feeds a recorded input to the engine.
pub(super) fn feed(engine: &mut Engine, next: &NextInput) {
    engine.handle(next.time, next.input.as_input());
}

/// An output in its recorded form; an output without intents is not recorded.
fn answer(strategy: StrategyId, intents: &[Intent]) -> Option<RecordedInput> {
    (!intents.is_empty()).then(|| RecordedInput::Answer {
        strategy,
        intents: intents.to_vec(),
    })
}
