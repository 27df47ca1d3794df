//! Starts of strategies beside the run, at a reload and after a quarantine.
//!
//! `start` and `load` of a module may take seconds. So they run on another thread of the shell, with
//! a copy of the engine. The trading thread goes on meanwhile. The strategy itself is not called
//! until its start ends; its events are kept. The strategies of a reload start one after the other:
//! until its turn comes, the old instance of a strategy goes on.

use std::collections::VecDeque;

use windvane_engine::Engine;
use windvane_model::config::Reconfiguration;
use windvane_model::input::{Command, FaultKind};
use windvane_model::{Intent, StrategyId, Time, planted};

use super::Session;
use super::events::Input;
use crate::engine_loop::{BeginError, EngineLoop};
use crate::guests::{Guests, ReloadGuests, StartFailure};

/// A start that takes longer counts as failed, in milliseconds.
pub const START_MAX_MS: i64 = 60_000;

/// How a new instance of a strategy began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// With the saved state, if there was one.
    WithState,
    /// Without the state, because it could not load it, for this reason.
    Fresh(String),
}

/// Why a strategy starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartCause {
    /// A reload changed it.
    Reload,
    /// The operator resumed it after a quarantine. If it cannot load its state, it starts without.
    Resume,
}

/// The start of one strategy. The shell calls [`StartJob::run`] on any thread, then
/// [`Session::end_start`].
pub struct StartJob<G: ReloadGuests> {
    strategy: StrategyId,
    cause: StartCause,
    instance: G::Instance,
    engine: Vec<u8>,
    state: Option<Vec<u8>>,
    result: Result<(Vec<Intent>, Renewed), StartFailure>,
}

impl<G: ReloadGuests> std::fmt::Debug for StartJob<G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StartJob")
            .field("strategy", &self.strategy)
            .field("cause", &self.cause)
            .finish_non_exhaustive()
    }
}

impl<G: ReloadGuests> StartJob<G> {
    /// The strategy.
    pub const fn strategy(&self) -> StrategyId {
        self.strategy
    }

    /// Why it starts.
    pub const fn cause(&self) -> StartCause {
        self.cause
    }

    /// Calls `start` and `load`. This may take seconds.
    pub fn run(&mut self) {
        let state = self.state.as_deref();
        let with_state = try_start::<G>(&mut self.instance, self.strategy, &self.engine, state);
        self.result = match with_state {
            Err(StartFailure {
                error: BeginError::State(reason),
                ..
            }) if self.cause == StartCause::Resume => {
                let fresh = try_start::<G>(&mut self.instance, self.strategy, &self.engine, None);
                self.state = None;
                fresh.map(|intents| (intents, Renewed::Fresh(reason)))
            }
            started => started.map(|intents| (intents, Renewed::WithState)),
        };
    }
}

/// The strategies of an applied reload whose start has not begun, in order: see
/// [`Session::next_start`].
pub struct ReloadStarts<G: ReloadGuests> {
    waiting: VecDeque<(StrategyId, G::Instance)>,
}

impl<G: ReloadGuests> std::fmt::Debug for ReloadStarts<G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let waiting = self.waiting.iter().map(|(strategy, _)| strategy);
        f.debug_list().entries(waiting).finish()
    }
}

impl<G: ReloadGuests> ReloadStarts<G> {
    /// How many starts have not begun.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether every start has begun.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// Starts an instance with a copy of the engine.
pub(super) fn try_start<G: ReloadGuests>(
    instance: &mut G::Instance,
    strategy: StrategyId,
    engine: &[u8],
    state: Option<&[u8]>,
) -> Result<Vec<Intent>, StartFailure> {
    let engine = Engine::restore_for_start(engine).map_err(|error| StartFailure {
        error: BeginError::Fault(FaultKind::Host),
        details: error.to_string(),
    })?;
    G::start(instance, strategy, &mut EngineLoop::new(engine), state)
}

/// The result of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The strategy.
    pub strategy: StrategyId,
    /// Why it started.
    pub cause: StartCause,
    /// How the new instance began, or why it did not start. In the latter case the strategy is in
    /// quarantine.
    pub result: Result<Renewed, String>,
    /// A saved state existed.
    pub had_state: bool,
}

/// The starts of a session.
#[derive(Debug, Default)]
pub(super) struct Starts {
    /// Strategies of a reload whose start has not begun.
    queued: Vec<StrategyId>,
    /// The configuration change of these strategies.
    change: Option<Reconfiguration>,
    /// Strategies that start, each with its time limit.
    under_way: Vec<(StrategyId, Time)>,
    /// Strategies whose start was given up, and whose instance has not come back yet.
    given_up: Vec<StrategyId>,
    /// Strategies for which a pause, halt or flatten came during their start. It stays in effect.
    overtaken: Vec<StrategyId>,
}

impl Starts {
    /// Notes a pause, halt or flatten of one strategy or of all.
    pub(super) fn overtake(&mut self, of: Option<StrategyId>) {
        let starting = self.under_way.iter().map(|(one, _)| *one);
        let meant = starting.filter(|one| of.is_none_or(|of| of == *one));
        self.overtaken.extend(meant);
    }

    /// Whether a strategy is starting, or waits for its start. Then no segment may begin.
    pub(super) const fn is_under_way(&self) -> bool {
        !self.under_way.is_empty() || !self.queued.is_empty()
    }

    /// Whether a strategy waits for its start, or has an instance on another thread.
    fn has(&self, strategy: StrategyId) -> bool {
        self.all().any(|one| one == strategy)
    }

    /// The first strategy that waits for its start or has an instance on another thread.
    pub(super) fn first(&self) -> Option<StrategyId> {
        self.all().next()
    }

    fn all(&self) -> impl Iterator<Item = StrategyId> {
        let under_way = self.under_way.iter().map(|(strategy, _)| strategy);
        let all = under_way.chain(&self.queued).chain(&self.given_up);
        all.copied()
    }

    /// The configuration change whose starts have not all begun.
    pub(super) fn open_change(&self) -> Option<Reconfiguration> {
        let change = self.change.as_ref();
        change.filter(|_| !self.queued.is_empty()).cloned()
    }

    /// The run stops: nothing starts any more.
    pub(super) fn drop_queued(&mut self) {
        self.queued.clear();
    }

    /// When the next start is given up.
    pub(super) fn next(&self) -> Option<Time> {
        self.under_way.iter().map(|(_, by)| *by).min()
    }

    /// Ends a start. Returns whether it was still awaited.
    fn end(&mut self, strategy: StrategyId) -> bool {
        let before = self.under_way.len();
        self.under_way.retain(|(one, _)| *one != strategy);
        self.given_up.retain(|one| *one != strategy);
        self.overtaken.retain(|one| *one != strategy);
        self.under_way.len() < before
    }
}

impl<G: Guests> Session<G> {
    /// Whether a strategy is starting beside the run.
    pub const fn is_starting(&self) -> bool {
        self.starts.is_under_way()
    }

    /// Gives up the starts that take too long, or for which too many events came.
    pub(super) fn give_up_starts(&mut self, now: Time) {
        let driver = &self.driver;
        let mut under_way = self.starts.under_way.iter();
        let over = under_way.find_map(|(strategy, by)| {
            let why = if *by <= now {
                format!("its start took more than {} s", START_MAX_MS / 1_000)
            } else if driver.has_lost_events(*strategy) {
                "too many of its events came while it started".to_owned()
            } else {
                return None;
            };
            Some((*strategy, why))
        });
        let Some((strategy, why)) = over else {
            return;
        };
        self.starts.end(strategy);
        self.starts.given_up.push(strategy);
        self.driver.guests_mut().started(strategy, Err(&why));
        let time = self.clock.at(now);
        self.driver.end_start(time, strategy, Err(FaultKind::Host));
        self.kill_switch.set_resumes(strategy, false);
        self.act(now);
    }
}

/// Starts. Drain [`Session::poll_output`] after each call.
impl<G: ReloadGuests> Session<G> {
    /// Handles an operator command for one strategy. A resume of a strategy in quarantine begins
    /// the start of a new instance of its module, with the last saved state. The command takes
    /// effect when the start ends well. Until then the kill switch file keeps the quarantine.
    ///
    /// # Errors
    /// The reason why no new instance can start. The strategy stays in quarantine, and the command
    /// has no effect.
    pub fn steer(
        &mut self,
        now: Time,
        strategy: StrategyId,
        command: Command,
    ) -> Result<Option<StartJob<G>>, String> {
        if command == Command::Resume && self.engine().fault(strategy).is_some() {
            if self.is_stopping() || self.ended.is_some() {
                return Err("the run is stopping".to_owned());
            }
            if self.starts.has(strategy) {
                return Err("an earlier start of it is not over yet".to_owned());
            }
            let guests = self.driver.guests();
            let given = (
                G::another(guests.instance(strategy)),
                guests.saved(strategy),
            );
            self.kill_switch.set_resumes(strategy, true);
            return Ok(Some(self.begin_start(
                now,
                strategy,
                given,
                StartCause::Resume,
            )));
        }
        self.handle(now, Input::Command(command, Some(strategy)));
        Ok(None)
    }

    /// Has the changed strategies of a configuration change wait for their starts.
    pub(super) fn queue_starts(
        &mut self,
        change: Reconfiguration,
        waiting: VecDeque<(StrategyId, G::Instance)>,
    ) -> ReloadStarts<G> {
        self.starts.change = Some(change);
        let queued = waiting.iter().map(|(strategy, _)| *strategy);
        self.starts.queued = queued.collect();
        let mut starts = ReloadStarts { waiting };
        self.replace_quarantined(&mut starts);
        starts
    }

    /// Begins the next start of a reload, if no strategy is starting. Until then the old instance is
    /// called and manages its orders, under the new limits. To be called after each event while
    /// `starts` is not empty. A stop drops the starts that have not begun. While a segment begins,
    /// no start does: the new segment first names the instances that wait.
    pub fn next_start(&mut self, now: Time, starts: &mut ReloadStarts<G>) -> Option<StartJob<G>> {
        if self.is_stopping() || self.ended.is_some() {
            for (_, instance) in starts.waiting.drain(..) {
                self.driver.guests().retire(instance);
            }
            return None;
        }
        self.replace_quarantined(starts);
        while self.starts.under_way.is_empty() && !self.writer.is_rolling() {
            let (strategy, instance) = starts.waiting.pop_front()?;
            let state = self.state(now, strategy);
            self.starts.queued.retain(|one| *one != strategy);
            self.replace_module(strategy, G::module(&instance));
            if self.engine().fault(strategy).is_none() {
                let given = (instance, state);
                return Some(self.begin_start(now, strategy, given, StartCause::Reload));
            }
            // It failed to save its state.
            self.put(strategy, instance);
        }
        None
    }

    /// Gives the new instance to each strategy that is in quarantine. It starts with a resume.
    fn replace_quarantined(&mut self, starts: &mut ReloadStarts<G>) {
        for (strategy, instance) in std::mem::take(&mut starts.waiting) {
            if self.engine().fault(strategy).is_none() {
                starts.waiting.push_back((strategy, instance));
                continue;
            }
            self.starts.queued.retain(|one| *one != strategy);
            self.replace_module(strategy, G::module(&instance));
            self.put(strategy, instance);
        }
    }

    /// Puts an instance in place of another one.
    fn put(&mut self, strategy: StrategyId, instance: G::Instance) {
        let guests = self.driver.guests_mut();
        let old = guests.replace(strategy, instance);
        guests.retire(old);
    }

    /// Begins the start of an instance with this state. An idle copy of it takes the place of the old
    /// instance, so that a segment that begins has its module and parameters, also if the start is
    /// given up.
    fn begin_start(
        &mut self,
        now: Time,
        strategy: StrategyId,
        (instance, state): (G::Instance, Option<Vec<u8>>),
        cause: StartCause,
    ) -> StartJob<G> {
        let engine = self.driver.begin_start(self.clock.at(now), strategy);
        self.put(strategy, G::another(&instance));
        let by = now.plus_ms(START_MAX_MS);
        self.starts.under_way.push((strategy, by));
        self.act(now);
        self.settle(now);
        StartJob {
            strategy,
            cause,
            instance,
            engine,
            state,
            result: Err(StartFailure {
                error: BeginError::Fault(FaultKind::Host),
                details: "it was not called".to_owned(),
            }),
        }
    }

    /// Puts a started instance into place. It gets the events since the begin of its start. If it
    /// failed, the strategy is in quarantine.
    pub fn end_start(&mut self, now: Time, job: StartJob<G>) -> Started {
        let StartJob {
            strategy,
            cause,
            instance,
            state,
            result,
            ..
        } = job;
        let had_state = state.is_some() || matches!(result, Ok((_, Renewed::Fresh(_))));
        let is_overtaken = self.starts.overtaken.contains(&strategy);
        let is_awaited = self.starts.end(strategy) && self.ended.is_none();
        let result = if is_awaited {
            self.put(strategy, instance);
            let state = state.as_deref();
            if planted!(ReloadAppliedTwice) && cause == StartCause::Reload {
                let intents = result.as_ref().map_or(&[][..], |(intents, _)| intents);
                drop(self.apply_start(now, strategy, state, Ok(intents)));
            }
            match result {
                Ok((intents, renewed)) => self
                    .apply_start(now, strategy, state, Ok(&intents))
                    .map(|()| renewed),
                Err(failure) => self
                    .apply_start(now, strategy, state, Err(failure))
                    .map(|()| Renewed::WithState),
            }
        } else {
            let guests = self.driver.guests();
            guests.retire(instance);
            let why = guests.trouble(strategy).unwrap_or("the run is over");
            Err(why.to_owned())
        };
        if result.is_ok() && cause == StartCause::Resume && !is_overtaken {
            self.handle(now, Input::Command(Command::Resume, Some(strategy)));
        }
        Started {
            strategy,
            cause,
            result,
            had_state,
        }
    }

    fn apply_start(
        &mut self,
        now: Time,
        strategy: StrategyId,
        state: Option<&[u8]>,
        result: Result<&[Intent], StartFailure>,
    ) -> Result<(), String> {
        let time = self.clock.at(now);
        let result = match result {
            Ok(intents) => {
                let fault = self.engine().fault(strategy);
                let reason = fault.map(|kind| format!("quarantined meanwhile: {}", kind.as_str()));
                let guests = self.driver.guests_mut();
                guests.started(strategy, reason.as_deref().map_or(Ok(state), Err));
                self.driver.end_start(time, strategy, Ok(intents));
                reason.map_or(Ok(()), Err)
            }
            Err(StartFailure { error, details }) => {
                let reason = error.to_string();
                let shown = if details.is_empty() {
                    &reason
                } else {
                    &details
                };
                self.driver.guests_mut().started(strategy, Err(shown));
                self.driver.end_start(time, strategy, Err(error.fault()));
                Err(reason)
            }
        };
        self.kill_switch.set_resumes(strategy, false);
        self.act(now);
        self.settle(now);
        result
    }
}
