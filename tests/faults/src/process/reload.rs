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
        // The shell refuses a reload during another one.
        if self.starter.is_busy() {
            return;
        }
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
        let tested = session.begin_reload(now, reload).and_then(|mut trial| {
            trial.run();
            session.apply_reload(now, trial)
        });
        match tested {
            Ok(starts) => {
                self.setup = next;
                self.record_configured();
                self.starter.queue = Some(starts);
                self.perform();
                self.next_start();
            }
            Err(error) => {
                self.record_trouble(&error.to_string());
                self.perform();
                self.record_reloaded();
            }
        }
    }

    /// Begins the next start of a reload if the one before is over.
    fn next_start(&mut self) {
        let now = self.shell_time();
        let (Some((session, _)), Some(queue)) = (&mut self.run, &mut self.starter.queue) else {
            return;
        };
        if session.is_stopping() && !queue.is_empty() {
            self.record_trouble("the run is stopping");
        }
        let (Some((session, _)), Some(queue)) = (&mut self.run, &mut self.starter.queue) else {
            return;
        };
        let job = session.next_start(now, queue);
        let is_over = queue.is_empty() && job.is_none() && !self.starter.is_running();
        if let Some(job) = job {
            self.starter.begin(self.now_ns, job);
        }
        self.perform();
        if is_over {
            self.starter.queue = None;
            self.record_reloaded();
        }
    }

    /// The starts whose time has come are over.
    pub(super) fn end_starts(&mut self) {
        while let Some(mut job) = self.starter.take_due(self.now_ns) {
            let now = self.shell_time();
            let Some((session, _)) = &mut self.run else {
                return;
            };
            job.run();
            if let Err(reason) = session.end_start(now, job).result {
                self.record_trouble(&reason);
            }
            self.perform();
            self.next_start();
        }
        if !self.starter.is_running() {
            self.next_start();
        }
    }

    fn record_trouble(&mut self, trouble: &str) {
        let seen =
            WitnessEvent::Fault(format!("a reload does not start every strategy: {trouble}"));
        self.outs.push_back(Out::WitnessEvent(seen));
        self.starter.refused = true;
    }

    fn record_reloaded(&mut self) {
        let refused = std::mem::take(&mut self.starter.refused);
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
