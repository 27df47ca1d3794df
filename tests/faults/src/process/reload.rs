//! A running process takes its configuration and modules anew, as `node/src/live/reload` does: each strategy that
//! changed is tried with what it knows, and begins again where all of them can. A reload of the same gives every
//! strategy a new instance.

use windvane::assembly;
use windvane::live::start;
use windvane::strategies::Guest;
use windvane_engine::StrategyId;
use windvane_engine::config::{Reconfiguration, StrategyTerms};
use windvane_session::{Guests as _, SavedStrategy};

use super::{Arc, Out, Process, Setup};
use crate::witness::Seen;

/// A strategy that gets a new instance.
struct Change {
    strategy: StrategyId,
    state: Option<Vec<u8>>,
    /// The module before, where it changed.
    old: Option<Guest>,
}

impl Process {
    /// Takes a configuration.
    pub(super) fn reload(&mut self, next: Arc<Setup>) {
        let Some((session, _)) = &self.run else {
            return;
        };
        let before = std::mem::replace(&mut self.setup, next);
        let places = 0..session.driver().guests().count();
        let changed: Vec<_> = places
            .clone()
            .filter(|place| has_changed(&before, &self.setup, *place))
            .collect();
        let is_same = changed.is_empty();
        let places = if is_same { places.collect() } else { changed };
        // One in quarantine keeps its instance.
        let runs = |place: &usize| {
            let fault = session.engine().fault(StrategyId(*place as u16));
            fault.is_none()
        };
        let places: Vec<_> = places.into_iter().filter(runs).collect();
        let names = places
            .iter()
            .map(|place| before.strategies[*place].0.clone());
        let strategies = names.collect();
        self.outs
            .push_back(Out::Seen(Seen::Reloading { strategies }));
        let taken = self.take(&places, is_same);
        if let Err(reason) = &taken {
            self.setup = before;
            let seen = Seen::Fault(format!("a reload is refused: {reason}"));
            self.outs.push_back(Out::Seen(seen));
        }
        self.perform();
        let refused = taken.is_err();
        self.outs.push_back(Out::Seen(Seen::Reloaded { refused }));
    }

    /// Tries all that changed, then begins it.
    fn take(&mut self, places: &[usize], is_same: bool) -> Result<(), String> {
        let now = self.shell_time();
        let mut changes = Vec::new();
        for place in places {
            match self.try_one(*place, is_same) {
                Ok(change) => changes.push(change),
                Err(reason) => {
                    self.restore(changes);
                    return Err(reason);
                }
            }
        }
        let reconfiguration = (!is_same).then(|| self.reconfiguration());
        let reaction = assembly::on_liquidation(&self.setup.config.risk);
        let Some((session, _)) = &mut self.run else {
            return Ok(());
        };
        if let Some(next) = &reconfiguration {
            session.reconfigure(now, next, reaction);
        }
        for change in changes {
            let strategy = change.strategy;
            if change.old.is_some() {
                let sha256 = session.driver().guests().guest(strategy).sha256;
                session.replace_module(strategy, sha256);
            }
            if let Err(reason) = session.renew(now, strategy, change.state.as_deref(), false) {
                let seen = Seen::Fault(format!("a reload fails: {reason}"));
                self.outs.push_back(Out::Seen(seen));
            }
        }
        Ok(())
    }

    /// Puts a module in its place and tries whether it begins with what the one before knows.
    fn try_one(&mut self, place: usize, is_same: bool) -> Result<Change, String> {
        let now = self.shell_time();
        let setup = Arc::clone(&self.setup);
        let strategy = StrategyId(place as u16);
        let Some((session, _)) = &mut self.run else {
            return Err("no session runs".to_owned());
        };
        let state = session.state(now, strategy);
        if is_same {
            return Ok(Change {
                strategy,
                state,
                old: None,
            });
        }
        let mut guest = setup.guest(place).map_err(|error| error.to_string())?;
        let guests = session.guests_mut();
        guest
            .instruments
            .clone_from(&guests.guest(strategy).instruments);
        let old = Some(guests.replace(strategy, guest));
        let tried = session.rehearse(strategy, state.as_deref());
        let change = Change {
            strategy,
            state,
            old,
        };
        if let Err(reason) = tried {
            self.restore(vec![change]);
            return Err(reason);
        }
        Ok(change)
    }

    fn restore(&mut self, changes: Vec<Change>) {
        let Some((session, _)) = &mut self.run else {
            return;
        };
        for change in changes {
            if let Some(old) = change.old {
                let guests = session.guests_mut();
                guests.replace(change.strategy, old);
                guests.runs_on(change.strategy);
            }
        }
    }

    fn reconfiguration(&self) -> Reconfiguration {
        let config = &self.setup.config;
        let guests = self
            .run
            .as_ref()
            .map(|(session, _)| session.driver().guests());
        let places = 0..config.strategies.len();
        let instances = places.filter_map(|place| {
            let guest = guests?.guest(StrategyId(place as u16));
            Some(SavedStrategy {
                name: guest.name.clone(),
                sha256: guest.sha256,
                state: None,
                made: guest.made(),
            })
        });
        let instances: Vec<_> = instances.collect();
        let strategies = config.strategies.iter();
        Reconfiguration {
            limits: assembly::risk_limits(&config.risk),
            strategies: strategies
                .map(|strategy| StrategyTerms {
                    limits: assembly::risk_limits(&strategy.limits.risk()),
                    on_fault: assembly::on_fault(strategy.on_fault),
                })
                .collect(),
            on_stop: start::on_stop(config),
            // Writing to memory cannot fail.
            circumstances: serde_json::to_string(&instances).unwrap_or_default(),
        }
    }
}

/// Whether an instance of a strategy is made of something else now.
fn has_changed(before: &Setup, after: &Setup, place: usize) -> bool {
    let params = |setup: &Setup| setup.config.strategies[place].params.to_string();
    before.builds[place] != after.builds[place] || params(before) != params(after)
}

impl Setup {
    /// A new instance of a strategy.
    pub(super) fn guest(&self, place: usize) -> Result<Guest, crate::modules::ModulesError> {
        let (id, module) = &self.strategies[place];
        let params = self.config.strategies[place].params.to_string();
        let build = self.builds[place];
        self.modules
            .instance((module, build), id, params.into_bytes())
    }
}
