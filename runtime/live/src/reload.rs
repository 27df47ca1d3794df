//! Reloads configuration and modules in a running instance. The slow steps (read, build, compile)
//! run outside the engine's thread (`new_config`). The change itself is one step on that thread.
//!
//! A reload changes everything or nothing. Each changed module is first tried with the state of the
//! running one. If one module does not start, nothing changes.

use std::sync::Arc;

use windvane_admin::{Applied, Refused, Steer};
use windvane_model::StrategyId;
use windvane_session::Reload as SessionReload;
use windvane_session::recovery::unowned_positions;

use super::applied::joined;
use super::loop_state::{EventLoop, State};
use super::mailbox::LoopEvent;
use super::new_config::{NewConfig, Reload, ReloadFailure, read};
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

    /// Applies what was read, and replies.
    pub(super) async fn apply_reload(&mut self, reload: Reload, state: &mut State) {
        state.reloading = false;
        let Reload { steer, new_config } = reload;
        if !steer.is_wanted() {
            tracing::warn!(
                "the caller of a reload gave up before the configuration was read: nothing was \
                 changed"
            );
            return;
        }
        let answer = match new_config {
            Ok(new_config) => self.reload(new_config, state).await,
            Err(failure) => Err(self.refusal(failure)),
        };
        match &answer {
            Ok(applied) => tracing::warn!(changes = ?applied.changes, "reloaded"),
            Err(refused) => tracing::error!(
                error = refused.error,
                "the reload failed: nothing was changed"
            ),
        }
        drop(steer.answer.send(answer));
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

    async fn reload(
        &mut self,
        new_config: NewConfig,
        state: &mut State,
    ) -> Result<Applied, Refused> {
        let NewConfig { config, guests } = new_config;
        let old = Arc::clone(&self.services.config);
        let changes = self.changes(&config, &guests);
        let reload = SessionReload {
            instances: guests,
            limits: assembly::risk_limits(&config.risk),
            strategies: assembly::strategy_terms(&config),
            on_stop: startup_steps::on_stop(&config),
            on_liquidation: assembly::on_liquidation(&config.risk),
        };
        let reloaded = self.session.reload(self.clock.now(), reload);
        self.perform(state).await;
        let reloaded = reloaded.map_err(|error| Refused {
            error: error.to_string(),
            what_to_do: "fix it and run windvane reload again; the earlier version keeps running, \
                         and nothing was changed"
                .to_owned(),
        })?;
        if config.journal != old.journal {
            self.services.keep = retention::keep(&config.journal);
        }
        self.services.config = Arc::new(config);
        let failed = reloaded.failed.iter().map(|(strategy, reason)| {
            let (name, _) = &self.session.modules()[usize::from(strategy.0)];
            format!("{name} is in quarantine: {reason}")
        });
        let failed: Vec<_> = failed.collect();
        let applied = self.applied(None);
        Ok(Applied {
            changes,
            pending: joined(failed.into_iter().chain([applied.pending])),
            ..applied
        })
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
