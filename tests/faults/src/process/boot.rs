//! The start of a process, which is the same path as recovery: the requests of the session's start,
//! the journal, then the session's recovery (`runtime/live/src/startup.rs`).

use windvane_client_core::gateway::Gateway;
use windvane_client_core::streams::StreamSettings;
use windvane_config::Leave;
use windvane_config::assembly;
use windvane_live::guests::LiveGuests;
use windvane_live::startup_steps;
use windvane_model::Time;
use windvane_protocol::adapter::Names;
use windvane_session::recovery::{Before, LaunchTerms, recover_state};
use windvane_session::{
    Account, Module, Parts, RequestTerms, Requests, Session, Startup, StartupInput, StartupOutput,
    StartupResult, weights,
};

use super::observed::ObservedGuests;
use super::shown::Shown;
use super::{Given, Out, Process, REQUEST, Setup};

/// A start in progress.
pub struct Boot {
    given: Given,
    startup: Startup,
}

impl Boot {
    /// Begins a start with requests that the session later takes over.
    pub fn new(given: Given, setup: &Setup, requests: Requests, now: Time) -> Self {
        let terms = startup_steps::terms(&setup.config, &setup.names);
        Self {
            given,
            startup: Startup::new(now, terms, requests),
        }
    }

    /// When it must be called next, by the shell's clock.
    pub fn due(&self) -> Option<Time> {
        self.startup.poll_timeout()
    }
}

impl Process {
    /// Handles the timer of a start in progress if it is due.
    pub(super) fn keep_start_time(&mut self) {
        let now = self.shell_time();
        let due = self.boot.as_ref().and_then(Boot::due);
        if due.is_some_and(|due| due <= now) {
            self.start_input(StartupInput::Timeout);
        }
    }

    /// Gives an input to a start in progress, and executes its outputs.
    pub(super) fn start_input(&mut self, input: StartupInput<'_>) {
        let now = self.shell_time();
        if let Some(boot) = &mut self.boot {
            boot.startup.handle(now, input);
        }
        self.perform_start();
    }

    /// Executes the outputs of the start; begins the recovery once the start is complete.
    pub(super) fn perform_start(&mut self) {
        while let Some(output) = self
            .boot
            .as_mut()
            .and_then(|boot| boot.startup.poll_output())
        {
            match output {
                StartupOutput::Sign(id, unsigned) => self.signer.take(self.now_ns, id, unsigned),
                StartupOutput::Send(call) => self.send(call),
                StartupOutput::Abandon(id) => self.abandon(id),
                StartupOutput::LimitsKnown => {
                    let setup = &self.setup;
                    let surfaces = setup.surfaces.iter();
                    let wants =
                        surfaces.map(|&surface| startup_steps::wants(&setup.config, surface));
                    if let Err(error) = weights::keep(&self.gateway, wants) {
                        self.broken = Some(error.to_string());
                    }
                }
                StartupOutput::CallEnded(_) => {}
            }
        }
        let result = self
            .boot
            .as_mut()
            .and_then(|boot| boot.startup.take_result());
        let Some(result) = result else { return };
        let Some(Boot { given, .. }) = self.boot.take() else {
            return;
        };
        match result {
            Ok(known) => {
                if let Err(error) = self.recover(given, known) {
                    self.broken = Some(error);
                }
            }
            // Responses were damaged one after another. The operator starts the process again.
            Err(error) => self
                .outs
                .push_back(Out::Ended(format!("the start failed: {error}"))),
        }
    }

    fn recover(&mut self, given: Given, known: StartupResult) -> Result<(), String> {
        let (instruments, assets) = (known.instruments, &known.assets);
        let setup = std::sync::Arc::clone(&self.setup);
        let config = &setup.config;
        let adapter_names = Names::new(&instruments, assets.names());
        let mut requests = known.requests;
        requests.configure(adapter_names.clone(), known.futures_account);
        let (mut guests, mut modules) = (Vec::new(), Vec::<Module>::new());
        for (place, strategy) in config.strategies.iter().enumerate() {
            let mut guest = setup.guest(place).map_err(|error| error.to_string())?;
            guest.instruments =
                assembly::instruments_json(strategy, &setup.names, &instruments, assets.names());
            modules.push((guest.name.clone(), guest.sha256));
            guests.push(guest);
        }
        let engine =
            startup_steps::engine_config(config, &setup.names, instruments, assets, given.epoch);
        let mut left = recover_state(given.remembered);
        if let Some(flaw) = left.flaw.take() {
            return Err(format!("journal {}: {flaw}", given.verdict));
        }
        let terms = LaunchTerms {
            now: self.shell_time(),
            played_from: None,
            engine,
            before: Before {
                epoch: given.epoch_before,
                take_over: false,
            },
            modules: &modules,
            account: Account::Venue,
            kill_switch: given.kill_switches,
            foreign: None,
            is_unwaited: false,
            on_liquidation: assembly::on_liquidation(&config.risk),
            surfaces: &setup.surfaces,
            is_streamed: true,
        };
        let launched = left.launch(terms, |states| {
            ObservedGuests::new(LiveGuests::new(guests, states))
        });
        let launched = launched.map_err(|error| format!("the process does not start: {error}"))?;
        let streams = StreamSettings {
            seed: setup.seed,
            ..StreamSettings::default()
        };
        let (gateway, now) = (requests.gateway(), self.shell_time());
        let with = ((&streams, gateway), (&adapter_names, now));
        let public = startup_steps::public_streams(config, &setup.surfaces, with.0, with.1);
        let public = public.map_err(|error| error.to_string())?;
        self.outs
            .push_back(Out::Begin(launched.first.checkpoint, launched.first.at));
        self.record_running(given.epoch, given.verdict);
        self.record_configured();
        self.begin_watchdog();
        let records = launched.driver.engine().records();
        let shown = Shown::new(self.life, given.epoch, records);
        let parts = Parts {
            driver: launched.driver,
            account: launched.account,
            requests: Some(requests),
            clock: launched.clock,
            modules,
            surfaces: setup.surfaces.clone(),
            streams,
            public: Some(public),
            kill_switch: launched.kill_switch,
            flattens: config.run.on_stop == Leave::Flatten,
            blocks_under_way: setup.disk_room,
        };
        let session = Session::new(self.shell_time(), parts);
        self.run = Some((session, shown));
        self.perform();
        Ok(())
    }
}

/// The requests of a process, sent through this gateway.
pub fn requests(setup: &Setup, gateway: Gateway, life: u32, origin: Time) -> Requests {
    let terms = RequestTerms {
        request: REQUEST,
        countdown: setup.config.heartbeat.answer_within(),
    };
    let first = u64::from(life) << 32;
    let exchange = setup.signer.exchange(&setup.config, gateway);
    Requests::new(exchange, terms, origin, setup.surfaces.clone(), first)
}
