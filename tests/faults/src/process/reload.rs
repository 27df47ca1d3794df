//! A running process reads its configuration and modules again.

use windvane_build::modules::Guest;
use windvane_config::assembly;
use windvane_live::startup_steps;
use windvane_model::StrategyId;
use windvane_session::Reload;

use super::{Arc, Out, Process, Setup};
use crate::witness::WitnessEvent;

impl Process {
    /// Applies a new configuration.
    pub(super) fn reload(&mut self, next: Arc<Setup>) {
        let now = self.shell_time();
        let Some((session, _)) = &mut self.run else {
            return;
        };
        let instances = (0..next.strategies.len()).map(|place| next.guest(place));
        let instances: Vec<_> = match instances.collect::<Result<_, _>>() {
            Ok(instances) => instances,
            Err(error) => {
                self.broken = Some(error.to_string());
                return;
            }
        };
        // Compares the configurations, not what the session sees of them: this finds a change that
        // the session overlooks.
        let changed = (0..instances.len()).filter(|place| self.setup.differs(&next, *place));
        // A quarantined strategy gets its module, but does not start.
        let is_sound = |place: &usize| {
            let id = StrategyId(*place as u16);
            session.engine().fault(id).is_none()
        };
        let begins = changed.filter(is_sound);
        let strategies = begins.map(|place| next.strategies[place].0.clone());
        let strategies = strategies.collect();
        self.outs
            .push_back(Out::WitnessEvent(WitnessEvent::Reloading { strategies }));
        let config = &next.config;
        let reload = Reload {
            instances,
            limits: assembly::risk_limits(&config.risk),
            strategies: assembly::strategy_terms(config),
            on_stop: startup_steps::on_stop(config),
            on_liquidation: assembly::on_liquidation(&config.risk),
        };
        let reloaded = session.reload(now, reload);
        let refused = reloaded.is_err();
        let troubles = match reloaded {
            Ok(reloaded) => {
                self.setup = next;
                self.record_configured();
                let failed = reloaded.failed.into_iter();
                failed.map(|(_, reason)| reason).collect()
            }
            Err(error) => vec![error.to_string()],
        };
        for trouble in troubles {
            let seen =
                WitnessEvent::Fault(format!("a reload does not start every strategy: {trouble}"));
            self.outs.push_back(Out::WitnessEvent(seen));
        }
        self.perform();
        self.outs
            .push_back(Out::WitnessEvent(WitnessEvent::Reloaded { refused }));
    }

    /// Reports the configuration to the witness that holds from here on.
    pub(super) fn record_configured(&mut self) {
        let config = &self.setup.config;
        let limits = config.strategies.iter().map(|strategy| {
            let id = strategy.id.as_str().to_owned();
            (id, strategy.limits.max_open_orders)
        });
        let configured = WitnessEvent::Configured {
            on_stop: format!("{:?}", config.run.on_stop).to_lowercase(),
            max_open_orders: limits.collect(),
        };
        self.outs.push_back(Out::WitnessEvent(configured));
    }
}

impl Setup {
    /// Whether another setup has other parameters or another build for a strategy.
    fn differs(&self, other: &Self, place: usize) -> bool {
        let of = |setup: &Self| {
            let params = setup.config.strategies[place].params.to_string();
            (setup.builds[place], params)
        };
        of(self) != of(other)
    }

    /// A new instance of a strategy.
    pub(super) fn guest(&self, place: usize) -> Result<Guest, crate::modules::ModulesError> {
        let (id, module) = &self.strategies[place];
        let params = self.config.strategies[place].params.to_string();
        let build = self.builds[place];
        self.modules
            .instance((module, build), id, params.into_bytes())
    }
}
