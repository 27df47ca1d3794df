//! Reloads configuration and modules in a running instance. The slow steps run outside the engine's
//! thread: read, build and compile (`new_config`), then a test of each changed module with the state
//! of the running one, then the start of its new instance. In between, the engine's thread applies
//! the change in one step.
//!
//! A reload changes everything or nothing. If one module fails the test, nothing changes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use windvane_admin::{Applied, Refused, Steer};
use windvane_model::StrategyId;
use windvane_session::recovery::unowned_positions;
use windvane_session::{NotReloaded, Reload as SessionReload, ReloadTrial, StartCause, StartJob};

use super::applied::joined;
use super::guests::LiveGuests;
use super::loop_state::{AppliedReload, EventLoop, State};
use super::mailbox::LoopEvent;
use super::new_config::{NewConfig, Reload, ReloadFailure, TestedReload, read};
use super::{notice_log, retention, startup_steps, unowned_positions};
use windvane_build::modules::Guest;
use windvane_config::assembly;
use windvane_config::{Config, Strategy};

impl EventLoop {
    /// Starts to read on another thread. The result comes back through the mailbox.
    pub(super) fn begin_reload(&mut self, steer: Steer, state: &mut State) {
        if state.reloading {
            let refused = Refused {
                error: "another reload is still running".to_owned(),
                what_to_do: "wait for it, then reload again".to_owned(),
            };
            drop(steer.answer.send(Err(refused)));
            return;
        }
        state.reloading = true;
        let services = &self.services;
        let (old, read_config) = (
            Arc::clone(&services.config),
            Arc::clone(&services.read_config),
        );
        let mailbox = services.mailbox.clone();
        services.handle.spawn_blocking(move || {
            let new_config = read(&old, &read_config, steer.config.as_deref());
            mailbox.post_blocking(LoopEvent::Reload(Box::new(Reload { steer, new_config })));
        });
    }

    /// Tests what was read on another thread. The result comes back through the mailbox.
    pub(super) async fn test_reload(&mut self, reload: Reload, state: &mut State) {
        let Reload { steer, new_config } = reload;
        if !steer.is_wanted() {
            state.reloading = false;
            self.drop_beside(new_config);
            tracing::warn!(
                "the caller of a reload gave up before the configuration was read: nothing was \
                 changed"
            );
            return;
        }
        let tested = match new_config {
            Ok(new_config) => self.begin_test(new_config, state).await,
            Err(failure) => Err(self.refusal(failure)),
        };
        match tested {
            Ok((config, changes, trial)) => {
                let mut tested = TestedReload {
                    steer,
                    config,
                    changes,
                    trial,
                };
                self.run_beside(move || {
                    tested.trial.run();
                    LoopEvent::Tested(Box::new(tested))
                });
            }
            Err(refused) => answer_reload(steer, Err(refused), state),
        }
    }

    async fn begin_test(
        &mut self,
        new_config: NewConfig,
        state: &mut State,
    ) -> Result<(Config, Vec<String>, ReloadTrial<LiveGuests>), Refused> {
        let NewConfig { config, guests } = new_config;
        let changes = self.changes(&config, &guests);
        let reload = SessionReload {
            instances: guests,
            limits: assembly::risk_limits(&config.risk),
            strategies: assembly::strategy_terms(&config),
            on_stop: startup_steps::on_stop(&config),
            on_liquidation: assembly::on_liquidation(&config.risk),
        };
        let trial = self.session.begin_reload(self.clock.now(), reload);
        self.perform(state).await;
        let trial = trial.map_err(|error| not_reloaded(&error))?;
        Ok((config, changes, trial))
    }

    /// Applies a tested reload. The reply follows when its strategies have started.
    pub(super) async fn apply_reload(&mut self, tested: TestedReload, state: &mut State) {
        let TestedReload {
            steer,
            config,
            changes,
            trial,
        } = tested;
        if !steer.is_wanted() {
            state.reloading = false;
            self.drop_beside(trial);
            tracing::warn!(
                "the caller of a reload gave up before the new modules were tested: nothing was \
                 changed"
            );
            return;
        }
        let starts = self.session.apply_reload(self.clock.now(), trial);
        self.perform(state).await;
        let starts = match starts {
            Ok(starts) => starts,
            Err(error) => return answer_reload(steer, Err(not_reloaded(&error)), state),
        };
        let limits = config.strategies.iter().map(|one| (&one.limits).into());
        self.session.guests_mut().set_time_limits(limits);
        if config.journal != self.services.config.journal {
            self.services.keep = retention::keep(&config.journal);
        }
        if let Some(signer) = self
            .signer
            .as_ref()
            .filter(|_| limits_differ(&self.services.config, &config))
        {
            // A policy without a file follows from the limits. The signer reads them itself.
            signer.process.restart();
        }
        self.services.config = Arc::new(config);
        if !starts.is_empty() {
            tracing::info!("the new configuration applies; the changed strategies start");
        }
        state.applied_reload = Some(AppliedReload {
            steer,
            changes,
            starts,
            running: 0,
            failed: Vec::new(),
        });
        self.next_start(state).await;
    }

    /// Begins the next start of a reload if the one before is over or was given up. So the starts take
    /// at most one processor from the engine's thread, and each old instance goes on until its turn.
    pub(super) async fn next_start(&mut self, state: &mut State) {
        let Some(reload) = &mut state.applied_reload else {
            return;
        };
        if reload.starts.is_empty() && reload.running > 0 {
            return;
        }
        if self.session.is_stopping() && !reload.starts.is_empty() {
            let text = "the run is stopping: changed strategies that had not started keep their \
                        earlier instance";
            reload.failed.push(text.to_owned());
        }
        let job = self
            .session
            .next_start(self.clock.now(), &mut reload.starts);
        reload.running += usize::from(job.is_some());
        self.perform(state).await;
        if let Some(job) = job {
            self.start_beside(job);
        }
        self.answer_applied_reload(state);
    }

    /// Runs a start on another thread. The result comes back through the mailbox.
    pub(super) fn start_beside(&self, mut job: StartJob<LiveGuests>) {
        self.run_beside(move || {
            // After a panic the job says that it was not called.
            let _ = catch_unwind(AssertUnwindSafe(|| job.run()));
            LoopEvent::Started(Box::new(job))
        });
    }

    /// Drops instances on another thread: unmapping their memory can take many milliseconds.
    fn drop_beside(&self, unused: impl Send + 'static) {
        self.services.handle.spawn_blocking(move || drop(unused));
    }

    fn run_beside(&self, work: impl FnOnce() -> LoopEvent + Send + 'static) {
        let mailbox = self.services.mailbox.clone();
        self.services.handle.spawn_blocking(move || {
            mailbox.post_blocking(work());
        });
    }

    /// Puts a started instance into place, and replies if this was the last start of a command.
    pub(super) async fn end_start(&mut self, job: StartJob<LiveGuests>, state: &mut State) {
        let started = self.session.end_start(self.clock.now(), job);
        self.perform(state).await;
        match started.cause {
            StartCause::Resume => self.answer_resume(started, state),
            StartCause::Reload => {
                if let Some(reload) = &mut state.applied_reload {
                    reload.running = reload.running.saturating_sub(1);
                    let (name, _) = &self.session.modules()[usize::from(started.strategy.0)];
                    let failed = started.result.err();
                    let text = failed.map(|reason| format!("{name} is in quarantine: {reason}"));
                    reload.failed.extend(text);
                }
                self.answer_applied_reload(state);
            }
        }
    }

    /// Replies to an applied reload whose strategies have started.
    fn answer_applied_reload(&mut self, state: &mut State) {
        let is_over = |reload: &mut AppliedReload| reload.running == 0 && reload.starts.is_empty();
        let Some(reload) = state.applied_reload.take_if(is_over) else {
            return;
        };
        let applied = self.applied(None);
        let pending = joined(reload.failed.into_iter().chain([applied.pending]));
        let applied = Applied {
            changes: reload.changes,
            pending,
            ..applied
        };
        answer_reload(reload.steer, Ok(applied), state);
    }

    /// The error reply. If it advises a restart, it also names the positions that the restart would
    /// leave without a strategy.
    fn refusal(&self, failure: ReloadFailure) -> Refused {
        let ReloadFailure { refused, config } = failure;
        let engine = self.session.engine();
        let unowned = config.map_or_else(Vec::new, |config| {
            unowned_positions(engine, &unowned_positions::configured(&config))
        });
        let what = "a restart with the configuration that was read would leave a position without \
                    a strategy";
        let what_to_do = "put the strategy back into the configuration, or close its position with \
                          windvane flatten first";
        notice_log::unowned_positions(&unowned, what, what_to_do);
        let texts = unowned.iter().map(|one| {
            let strategy = &one.strategy;
            format!(
                "{one}; a restart with this configuration leaves it without a strategy: run \
                 `windvane flatten --strategy {strategy}` first"
            )
        });
        Refused {
            what_to_do: joined([refused.what_to_do].into_iter().chain(texts)),
            ..refused
        }
    }

    /// The differences from the running configuration, as text.
    fn changes(&self, config: &Config, guests: &[Guest]) -> Vec<String> {
        let old = &self.services.config;
        let mut changes = Vec::new();
        for (place, guest) in guests.iter().enumerate() {
            let running = self.session.driver().guests();
            let running = running.guest(StrategyId(place as u16));
            let module = (guest.sha256 != running.sha256).then_some(&guest.sha256);
            changes.extend(describe_changes(
                &old.strategies[place],
                &config.strategies[place],
                module,
            ));
        }
        let others = [
            (config.risk != old.risk, "risk"),
            (config.run.on_stop != old.run.on_stop, "run.on_stop"),
            (config.journal != old.journal, "journal"),
        ];
        let others = others.iter().filter(|(differs, _)| *differs);
        changes.extend(others.map(|(_, name)| (*name).to_owned()));
        changes
    }
}

/// Logs the result of a reload, and replies.
fn answer_reload(steer: Steer, answer: Result<Applied, Refused>, state: &mut State) {
    state.reloading = false;
    match &answer {
        Ok(applied) => tracing::warn!(changes = ?applied.changes, "reloaded"),
        Err(refused) => tracing::error!(
            error = refused.error,
            "the reload failed: nothing was changed"
        ),
    }
    drop(steer.answer.send(answer));
}

fn not_reloaded(error: &NotReloaded) -> Refused {
    Refused {
        error: error.to_string(),
        what_to_do: "fix it and run windvane reload again; the earlier version keeps running, and \
                     nothing was changed"
            .to_owned(),
    }
}

/// Whether the risk limits of the account or of a strategy differ.
fn limits_differ(old: &Config, new: &Config) -> bool {
    let limits = |config: &Config| -> Vec<_> {
        let strategies = config.strategies.iter();
        strategies.map(|strategy| strategy.limits.risk()).collect()
    };
    old.risk != new.risk || limits(old) != limits(new)
}

/// The differences of one strategy, as text.
fn describe_changes(before: &Strategy, after: &Strategy, module: Option<&[u8; 32]>) -> Vec<String> {
    let id = after.id.as_str();
    let mut changes = Vec::new();
    if let Some(sha256) = module {
        changes.push(format!("{id}: module {}", hex::encode(sha256)));
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
