//! A running instance takes its configuration and modules anew. What is slow (reading, building,
//! compiling) happens beside the engine's thread; what follows there is one moment.
//!
//! All or nothing: each changed module is tried with the state of the running one first. One that
//! does not begin leaves everything as it was.

use std::path::Path;
use std::sync::Arc;

use windvane_admin::{Applied, Refused, Steer};
use windvane_engine::StrategyId;
use windvane_engine::config::{Reconfiguration, StrategyTerms};
use windvane_session::SavedStrategy;

use super::mailbox::Happened;
use super::pulse::{Pulse, State};
use super::steering::joined;
use super::{remains, start, tell};
use crate::assembly;
use crate::config::{Config, Strategy, fixed_difference};
use crate::results::hex;
use crate::strategies::{self, Guest};

/// Reads the configuration again as it was read at the start; why not, in words. A file that whoever
/// asks means has to be the one of the start.
pub type Reread = Arc<dyn Fn(Option<&Path>) -> Result<Config, String> + Send + Sync>;

/// What is to be taken, and who asked.
pub struct Reload {
    /// Who asked.
    pub steer: Steer,
    /// What was read, or why nothing was.
    pub fresh: Result<Fresh, NotTaken>,
}

/// Why nothing was read, or not taken.
pub struct NotTaken {
    refused: Refused,
    /// What was read, where it is of another run.
    config: Option<Box<Config>>,
}

impl From<Refused> for NotTaken {
    fn from(refused: Refused) -> Self {
        Self {
            refused,
            config: None,
        }
    }
}

/// A configuration with its modules, none of which has begun.
pub struct Fresh {
    config: Config,
    guests: Vec<Guest>,
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").finish_non_exhaustive()
    }
}

/// Reads, builds and compiles; may take minutes.
pub fn read(old: &Config, reread: &Reread, meant: Option<&Path>) -> Result<Fresh, NotTaken> {
    let config = reread(meant).map_err(|error| Refused {
        error,
        what_to_do: "correct the configuration and reload again; nothing was changed".to_owned(),
    })?;
    if let Some(key) = fixed_difference(old, &config) {
        let refused = Refused {
            error: format!("{key} cannot change while running"),
            what_to_do: "set it back and reload, or stop the instance and start it again; \
                         nothing was changed"
                .to_owned(),
        };
        return Err(NotTaken {
            refused,
            config: Some(Box::new(config)),
        });
    }
    let guests = strategies::load(&config, &mut |step| tracing::info!(step, "building"));
    let guests = guests.map_err(|error| Refused {
        error: error.to_string(),
        what_to_do: "mend the module and reload again; nothing was changed".to_owned(),
    })?;
    if let Err(error) = strategies::keep(&guests, &config.run.data_dir) {
        tracing::warn!(%error, "modules are not kept: a replay takes their answers as recorded");
    }
    Ok(Fresh { config, guests })
}

/// A strategy that gets a new instance.
struct Change {
    strategy: StrategyId,
    /// What it goes on with.
    state: Option<Vec<u8>>,
    /// It is in quarantine and stays there.
    idle: bool,
    /// The module before.
    old: Guest,
}

impl Pulse {
    /// Begins to read beside this thread; the answer comes back through the mailbox.
    pub(super) fn begin_reload(&mut self, steer: Steer, state: &mut State) {
        if state.reloading {
            let refused = Refused {
                error: "a reload is under way".to_owned(),
                what_to_do: "wait for it, then reload again".to_owned(),
            };
            drop(steer.answer.send(Err(refused)));
            return;
        }
        state.reloading = true;
        let outside = &self.outside;
        let (old, reread) = (Arc::clone(&outside.config), Arc::clone(&outside.reread));
        let mailbox = outside.mailbox.clone();
        outside.handle.spawn_blocking(move || {
            let fresh = read(&old, &reread, steer.config.as_deref());
            mailbox.tell_blocking(Happened::Reload(Box::new(Reload { steer, fresh })));
        });
    }

    /// Takes what was read, and answers.
    pub(super) async fn take_reload(&mut self, reload: Reload, state: &mut State) {
        state.reloading = false;
        let Reload { steer, fresh } = reload;
        if !steer.is_wanted() {
            tracing::warn!("a reload came too late for whoever asked: nothing was changed");
            return;
        }
        let answer = match fresh {
            Ok(fresh) => self.reload(fresh, state).await,
            Err(not_taken) => Err(self.refusal(not_taken)),
        };
        match &answer {
            Ok(applied) => tracing::warn!(changes = ?applied.changes, "reloaded"),
            Err(refused) => tracing::error!(error = refused.error, "the reload is refused"),
        }
        drop(steer.answer.send(answer));
    }

    /// Who is told to start again instead has to know what that leaves to nobody.
    fn refusal(&self, not_taken: NotTaken) -> Refused {
        let NotTaken { refused, config } = not_taken;
        let engine = self.session.engine();
        let remains = config.map_or_else(Vec::new, |config| remains::left_out(engine, &config));
        let what = "a start with the configuration that was read would leave a position to nobody";
        let what_to_do = "put it back in the configuration, or flatten the strategy first";
        tell::remains(&remains, what, what_to_do);
        let words = remains.iter().map(|one| {
            let strategy = &one.strategy;
            format!(
                "{one}, which a start with this configuration leaves to nobody: \
                 `windvane flatten --strategy {strategy}` first"
            )
        });
        Refused {
            what_to_do: joined([refused.what_to_do].into_iter().chain(words)),
            ..refused
        }
    }

    async fn reload(&mut self, fresh: Fresh, state: &mut State) -> Result<Applied, Refused> {
        let Fresh { config, guests } = fresh;
        let old = Arc::clone(&self.outside.config);
        let mut changes = Vec::new();
        let mut changed = Vec::new();
        for (place, guest) in guests.into_iter().enumerate() {
            let (before, after) = (&old.strategies[place], &config.strategies[place]);
            let strategy = StrategyId(place as u16);
            let running = self.session.driver().guests().guest(strategy);
            let new_module = guest.sha256 != running.sha256;
            changes.extend(told(before, after, new_module.then_some(&guest.sha256)));
            if new_module || needs_instance(before, after) {
                match self.try_module(strategy, guest) {
                    Ok(change) => changed.push(change),
                    Err(reason) => {
                        self.put_back(changed);
                        self.perform(state).await;
                        return Err(Refused {
                            error: format!("strategy {}: {reason}", after.id.as_str()),
                            what_to_do: "mend it and reload again; the one before runs on, and \
                                         nothing was changed"
                                .to_owned(),
                        });
                    }
                }
            }
        }
        if config.risk != old.risk {
            changes.push("risk".to_owned());
        }
        if config.run.on_stop != old.run.on_stop {
            changes.push("run.on_stop".to_owned());
        }
        if config.journal != old.journal {
            changes.push("journal".to_owned());
            self.outside.keep = config.journal.keep();
        }
        let next = reconfiguration(&config, self);
        let now = self.clock.now();
        let reaction = assembly::on_liquidation(&config.risk);
        self.session.reconfigure(now, &next, reaction);
        let pending = self.begin_changed(changed);
        self.outside.config = Arc::new(config);
        self.perform(state).await;
        let applied = self.applied(None);
        Ok(Applied {
            changes,
            pending: joined(pending.into_iter().chain([applied.pending])),
            ..applied
        })
    }

    /// Puts a module in its place and tries whether it begins with the state of the one before.
    fn try_module(&mut self, strategy: StrategyId, mut guest: Guest) -> Result<Change, String> {
        let idle = self.session.engine().fault(strategy).is_some();
        let state = self.session.state(self.clock.now(), strategy);
        let guests = self.session.guests_mut();
        guest
            .instruments
            .clone_from(&guests.guest(strategy).instruments);
        let old = guests.replace(strategy, guest);
        let tried = if idle {
            Ok(())
        } else {
            self.session.rehearse(strategy, state.as_deref())
        };
        let change = Change {
            strategy,
            state,
            idle,
            old,
        };
        match tried {
            Ok(()) => Ok(change),
            Err(reason) => {
                self.put_back(vec![change]);
                Err(reason)
            }
        }
    }

    fn put_back(&mut self, changed: Vec<Change>) {
        for change in changed {
            let guests = self.session.guests_mut();
            guests.replace(change.strategy, change.old);
            if !change.idle {
                guests.runs_on(change.strategy);
            }
        }
    }

    /// Begins what was tried; answers what went wrong all the same.
    fn begin_changed(&mut self, changed: Vec<Change>) -> Vec<String> {
        let mut pending = Vec::new();
        for change in changed {
            let place = usize::from(change.strategy.0);
            let sha256 = self.session.driver().guests().guest(change.strategy).sha256;
            self.session.replace_module(change.strategy, sha256);
            if change.idle {
                continue;
            }
            let now = self.clock.now();
            let (strategy, saved) = (change.strategy, change.state.as_deref());
            if let Err(reason) = self.session.renew(now, strategy, saved, false) {
                let name = &self.session.modules()[place].0;
                pending.push(format!("{name} is in quarantine: {reason}"));
            }
        }
        pending
    }
}

/// What an instance is made of beside its module.
fn needs_instance(before: &Strategy, after: &Strategy) -> bool {
    before.params != after.params
        || before.limits.fuel_per_event != after.limits.fuel_per_event
        || before.limits.memory_mb != after.limits.memory_mb
}

/// What changes for a strategy, in words.
fn told(before: &Strategy, after: &Strategy, module: Option<&[u8; 32]>) -> Vec<String> {
    let id = after.id.as_str();
    let mut changes = Vec::new();
    if let Some(sha256) = module {
        changes.push(format!("{id}: module {}", hex(sha256)));
    }
    if before.params != after.params {
        changes.push(format!("{id}: params"));
    }
    if before.limits != after.limits {
        changes.push(format!("{id}: limits"));
    }
    if before.on_fault != after.on_fault {
        changes.push(format!("{id}: on_fault"));
    }
    changes
}

/// What instances are made of from a reload on, by what it recorded.
pub fn instances(circumstances: &str) -> Option<Vec<SavedStrategy>> {
    serde_json::from_str(circumstances).ok()
}

fn reconfiguration(config: &Config, pulse: &Pulse) -> Reconfiguration {
    let strategies = config.strategies.iter();
    let guests = pulse.session.driver().guests();
    let instances: Vec<_> = (0..config.strategies.len())
        .map(|place| guests.guest(StrategyId(place as u16)))
        .map(|guest| SavedStrategy {
            name: guest.name.clone(),
            sha256: guest.sha256,
            state: None,
            made: guest.made(),
        })
        .collect();
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
