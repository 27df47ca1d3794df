//! Reload of the configuration: a strategy that changed gets a new instance, and limits and
//! reactions are replaced.
//!
//! A reload is all or nothing. Each new instance is first tested with the state of the running one.
//! If one of them does not start, nothing changes.

use windvane_model::config::{Reconfiguration, StrategyTerms};
use windvane_model::forced::OnLiquidation;
use windvane_model::live::OnStop;
use windvane_model::risk::RiskLimits;
use windvane_model::{StrategyId, Time};

use super::Session;
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

/// Result of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Strategies whose new instance started.
    pub started: Vec<StrategyId>,
    /// Strategies whose new instance passed the test and then failed to start, with the reason.
    /// They are in quarantine.
    pub failed: Vec<(StrategyId, String)>,
}

/// A reload failed. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("strategy {strategy}: {reason}")]
pub struct NotReloaded {
    /// The first strategy whose new instance does not start.
    pub strategy: String,
    /// Why.
    pub reason: String,
}

/// A strategy that gets a new instance.
struct Change<I> {
    strategy: StrategyId,
    /// The state that the new instance gets.
    state: Option<Vec<u8>>,
    /// The strategy is in quarantine and stays there.
    idle: bool,
    /// The old instance.
    old: I,
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

    /// Applies a new configuration. Drain [`Session::poll_output`] after it.
    ///
    /// # Errors
    /// A strategy does not start with its new instance. Nothing was changed.
    pub fn reload(
        &mut self,
        now: Time,
        reload: Reload<G::Instance>,
    ) -> Result<Reloaded, NotReloaded> {
        let changed = self.changed(&reload.instances);
        let mut changes = Vec::new();
        for (place, instance) in reload.instances.into_iter().enumerate() {
            let strategy = StrategyId(place as u16);
            if !changed.contains(&strategy) {
                continue;
            }
            match self.try_instance(now, strategy, instance) {
                Ok(change) => changes.push(change),
                Err(reason) => {
                    self.put_back(changes);
                    let name = self.driver().engine().strategy_name(strategy);
                    return Err(NotReloaded {
                        strategy: name.unwrap_or_default().to_owned(),
                        reason,
                    });
                }
            }
        }
        let next = Reconfiguration {
            limits: reload.limits,
            strategies: reload.strategies,
            on_stop: reload.on_stop,
            circumstances: circumstances(&self.saved_strategies()),
        };
        self.reconfigure(now, &next, reload.on_liquidation);
        Ok(self.begin_changed(now, changes))
    }

    /// Puts a new instance in place and tests whether it starts with the state of the old one.
    fn try_instance(
        &mut self,
        now: Time,
        strategy: StrategyId,
        mut instance: G::Instance,
    ) -> Result<Change<G::Instance>, String> {
        let idle = self.engine().fault(strategy).is_some();
        let state = self.state(now, strategy);
        let guests = self.guests_mut();
        G::take_instruments(&mut instance, guests.instance(strategy));
        let old = guests.replace(strategy, instance);
        let tried = if idle {
            Ok(())
        } else {
            self.rehearse(strategy, state.as_deref())
        };
        let change = Change {
            strategy,
            state,
            idle,
            old,
        };
        if let Err(reason) = tried {
            self.put_back(vec![change]);
            return Err(reason);
        }
        Ok(change)
    }

    fn put_back(&mut self, changes: Vec<Change<G::Instance>>) {
        let guests = self.guests_mut();
        for change in changes {
            guests.replace(change.strategy, change.old);
            if !change.idle {
                guests.runs_on(change.strategy);
            }
        }
    }

    /// The inputs from which the present instances are made.
    fn saved_strategies(&self) -> Vec<SavedStrategy> {
        let guests = self.driver().guests();
        let modules = self.modules().iter().enumerate();
        let saved = modules.map(|(place, (name, _))| {
            let instance = guests.instance(StrategyId(place as u16));
            SavedStrategy {
                name: name.clone(),
                sha256: G::module(instance),
                state: None,
                made: G::made_of(instance),
            }
        });
        saved.collect()
    }

    /// Starts the tested instances.
    fn begin_changed(&mut self, now: Time, changes: Vec<Change<G::Instance>>) -> Reloaded {
        let mut reloaded = Reloaded::default();
        for change in changes {
            let strategy = change.strategy;
            let sha256 = G::module(self.driver().guests().instance(strategy));
            self.replace_module(strategy, sha256);
            if change.idle {
                continue;
            }
            match self.renew(now, strategy, change.state.as_deref(), false) {
                Ok(_) => reloaded.started.push(strategy),
                Err(reason) => reloaded.failed.push((strategy, reason)),
            }
        }
        reloaded
    }
}
