//! Reload of the configuration: a strategy that changed gets a new instance, and limits and
//! reactions are replaced.
//!
//! A reload is all or nothing. Each new instance is first tested beside the run, with the state of
//! the running one. If one of them does not start, nothing changes. Otherwise the new configuration
//! applies at once, and the instances start for good, again beside the run, one after the other.

use std::collections::VecDeque;
use std::fmt;

use windvane_model::config::{Reconfiguration, StrategyTerms};
use windvane_model::forced::OnLiquidation;
use windvane_model::live::OnStop;
use windvane_model::risk::RiskLimits;
use windvane_model::{StrategyId, Time};

use super::Session;
use super::starts::{ReloadStarts, START_MAX_MS, try_start};
use crate::checkpoint::{SavedStrategy, circumstances};
use crate::guests::ReloadGuests;

/// The new configuration.
#[derive(Debug)]
pub struct Reload<I> {
    /// A new instance of each strategy, in order. None of them has started.
    pub instances: Vec<I>,
    /// Limits of the account.
    pub limits: RiskLimits,
    /// Limits and reactions of each strategy.
    pub strategies: Vec<StrategyTerms>,
    /// The handling of orders and positions at a stop.
    pub on_stop: OnStop,
    /// The reaction to a forced close.
    pub on_liquidation: OnLiquidation,
}

/// A reload failed. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReloaded {
    /// The first strategy whose new instance does not start; `None` if the reload may not happen
    /// now.
    pub strategy: Option<String>,
    /// Why.
    pub reason: String,
}

impl fmt::Display for NotReloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.strategy {
            Some(strategy) => write!(f, "strategy {strategy}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for NotReloaded {}

/// The test of a reload, which has no effect. The shell calls [`ReloadTrial::run`] on any thread,
/// then [`Session::apply_reload`].
pub struct ReloadTrial<G: ReloadGuests> {
    reload: Reload<G::Instance>,
    tests: Vec<Test>,
    engine: Vec<u8>,
    began: Time,
    result: Result<(), NotReloaded>,
}

/// The test of one changed strategy.
struct Test {
    strategy: StrategyId,
    name: String,
    /// The state of the running instance.
    state: Option<Vec<u8>>,
    /// The strategy is in quarantine. Its new instance is not tested.
    idle: bool,
}

impl<G: ReloadGuests> std::fmt::Debug for ReloadTrial<G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReloadTrial")
            .field("result", &self.result)
            .finish_non_exhaustive()
    }
}

impl<G: ReloadGuests> ReloadTrial<G> {
    /// Tests each new instance, up to the first one that does not start. This may take seconds for
    /// each.
    pub fn run(&mut self) {
        for test in self.tests.iter().filter(|test| !test.idle) {
            let (strategy, state) = (test.strategy, test.state.as_deref());
            let instance = &mut self.reload.instances[usize::from(strategy.0)];
            if let Err(failure) = try_start::<G>(instance, strategy, &self.engine, state) {
                self.result = Err(test.fails(failure.error.to_string()));
                return;
            }
        }
        self.result = Ok(());
    }
}

impl Test {
    fn fails(&self, reason: String) -> NotReloaded {
        NotReloaded {
            strategy: Some(self.name.clone()),
            reason,
        }
    }
}

/// A reload that may not happen now.
fn not_now(reason: &str) -> NotReloaded {
    NotReloaded {
        strategy: None,
        reason: reason.to_owned(),
    }
}

impl<G: ReloadGuests> Session<G> {
    /// The strategies that changed: their module, or what their instance is made of.
    pub fn changed(&self, instances: &[G::Instance]) -> Vec<StrategyId> {
        let guests = self.driver().guests();
        let ids = (0..instances.len()).map(|place| StrategyId(place as u16));
        let is_changed = |(id, instance): &(StrategyId, &G::Instance)| {
            let running = guests.instance(*id);
            let mut made = G::made_of(instance);
            // Asset ids of the new configuration may differ from the engine's; the engine's ids
            // apply.
            made.instruments = G::made_of(running).instruments;
            G::module(instance) != G::module(running) || made != G::made_of(running)
        };
        let changed = ids.zip(instances).filter(is_changed);
        changed.map(|(id, _)| id).collect()
    }

    /// Begins a reload: the result tests whether each new instance starts with the state of the
    /// running one.
    ///
    /// # Errors
    /// A strategy is starting. Nothing was changed.
    pub fn begin_reload(
        &mut self,
        now: Time,
        mut reload: Reload<G::Instance>,
    ) -> Result<ReloadTrial<G>, NotReloaded> {
        if let Err(refused) = self.may_reload() {
            self.retire_all(reload.instances);
            return Err(refused);
        }
        let mut tests = Vec::new();
        for strategy in self.changed(&reload.instances) {
            let running = self.driver().guests().instance(strategy);
            G::take_instruments(&mut reload.instances[usize::from(strategy.0)], running);
            let state = self.state(now, strategy);
            let name = self.engine().strategy_name(strategy);
            tests.push(Test {
                strategy,
                name: name.unwrap_or_default().to_owned(),
                state,
                idle: self.engine().fault(strategy).is_some(),
            });
        }
        Ok(ReloadTrial {
            reload,
            tests,
            engine: self.engine().report(),
            began: now,
            result: Err(not_now("the new configuration was not tested")),
        })
    }

    /// Applies a tested reload. The result are the starts of the changed strategies, for
    /// [`Session::next_start`]. The next segment begins when they are over.
    ///
    /// # Errors
    /// A strategy does not start with its new instance, or the reload may not happen now. Nothing
    /// was changed.
    pub fn apply_reload(
        &mut self,
        now: Time,
        trial: ReloadTrial<G>,
    ) -> Result<ReloadStarts<G>, NotReloaded> {
        let ReloadTrial {
            reload,
            tests,
            began,
            result,
            ..
        } = trial;
        if let Err(refused) = result.and_then(|()| self.may_apply(now, &tests, began)) {
            self.retire_all(reload.instances);
            return Err(refused);
        }
        let changed: Vec<_> = tests.iter().map(|test| test.strategy).collect();
        let next = Reconfiguration {
            limits: reload.limits,
            strategies: reload.strategies,
            on_stop: reload.on_stop,
            circumstances: circumstances(&self.next_strategies(&reload.instances, &changed)),
        };
        self.reconfigure(now, &next, reload.on_liquidation);
        let mut waiting = VecDeque::new();
        for (place, instance) in reload.instances.into_iter().enumerate() {
            let strategy = StrategyId(place as u16);
            if changed.contains(&strategy) {
                waiting.push_back((strategy, instance));
            } else {
                self.driver().guests().retire(instance);
            }
        }
        Ok(self.queue_starts(next, waiting))
    }

    /// Whether a tested reload may be applied now.
    fn may_apply(&self, now: Time, tests: &[Test], began: Time) -> Result<(), NotReloaded> {
        self.may_reload()?;
        let count = i64::try_from(tests.len()).unwrap_or(0);
        if began.plus_ms(START_MAX_MS.saturating_mul(count + 1)) < now {
            let seconds = START_MAX_MS / 1_000;
            return Err(not_now(&format!(
                "the test took more than {seconds} s for each new instance"
            )));
        }
        let is_back = |test: &&Test| test.idle && self.engine().fault(test.strategy).is_none();
        if let Some(test) = tests.iter().find(is_back) {
            return Err(test.fails("it left quarantine during the reload".to_owned()));
        }
        Ok(())
    }

    fn retire_all(&self, instances: Vec<G::Instance>) {
        for instance in instances {
            self.driver().guests().retire(instance);
        }
    }

    /// Whether a reload may happen now.
    fn may_reload(&self) -> Result<(), NotReloaded> {
        if self.is_stopping() || self.ended.is_some() {
            return Err(not_now("the run is stopping"));
        }
        match self.starts.first() {
            Some(strategy) => Err(NotReloaded {
                strategy: self.engine().strategy_name(strategy).map(str::to_owned),
                reason: "an earlier start of it is not over yet".to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// The inputs from which the instances are made after a reload.
    fn next_strategies(
        &self,
        instances: &[G::Instance],
        changed: &[StrategyId],
    ) -> Vec<SavedStrategy> {
        let guests = self.driver().guests();
        let modules = self.modules().iter().zip(instances).enumerate();
        let saved = modules.map(|(place, ((name, _), next))| {
            let strategy = StrategyId(place as u16);
            let instance = if changed.contains(&strategy) {
                next
            } else {
                guests.instance(strategy)
            };
            SavedStrategy {
                name: name.clone(),
                sha256: G::module(instance),
                state: None,
                made: G::made_of(instance),
            }
        });
        saved.collect()
    }
}
