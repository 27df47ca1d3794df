//! One loaded strategy, and the journal's name of each kind of fault.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use windvane_config as config;
use windvane_engine::Engine;
use windvane_host::{
    Capabilities, Capability, FaultKind as HostFault, Grant, Limits, LoadError, Strategy,
};
use windvane_model::input::FaultKind;
use windvane_model::{Event, Intent, StrategyId, Time};
use windvane_session::{BeginError, EngineLoop, Guests, InitResult, Made, StartFailure};

use super::Loader;

/// One loaded module and the inputs of its `start`.
pub struct Guest {
    /// The module.
    pub strategy: Strategy,
    /// Its id.
    pub name: String,
    /// `params` as JSON.
    pub params: Vec<u8>,
    /// Its instruments and the assets as JSON.
    pub instruments: Vec<u8>,
    /// SHA-256 of the module's bytes.
    pub sha256: [u8; 32],
    /// The module's bytes.
    pub module: Arc<[u8]>,
    /// Its fuel, memory and other limits.
    pub limits: Limits,
    /// Its limits of processor time. Only live and paper runs apply them.
    pub time: TimeLimits,
}

/// Limits of a strategy's processor time in live and paper runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    /// Processor time of one callback, milliseconds.
    pub callback_ms: u32,
    /// Share of one processor over time, percent.
    pub cpu_percent: u32,
}

impl From<&config::Limits> for TimeLimits {
    fn from(limits: &config::Limits) -> Self {
        Self {
            callback_ms: limits.callback_ms,
            cpu_percent: limits.cpu_percent,
        }
    }
}

impl Guest {
    /// Loads a module with the capabilities that `made` names.
    ///
    /// # Errors
    /// It is not a strategy, or it imports a capability that is not granted.
    pub fn load(
        loader: &Loader,
        name: &str,
        module: Arc<[u8]>,
        made: Made,
    ) -> Result<Self, LoadError> {
        let named = made.capabilities.iter();
        let granted: Capabilities = named
            .filter_map(|name| Capability::from_name(name))
            .collect();
        Self::load_with(loader, name, module, made, granted.into())
    }

    /// Loads a module with these capabilities, whatever `made` names.
    ///
    /// # Errors
    /// It is not a strategy, or it imports a capability that is not granted.
    pub fn load_with(
        loader: &Loader,
        name: &str,
        module: Arc<[u8]>,
        made: Made,
        grant: Grant,
    ) -> Result<Self, LoadError> {
        let limits = Limits {
            fuel_per_event: made.fuel_per_event,
            memory_bytes: usize::try_from(made.memory_bytes).unwrap_or(usize::MAX),
            ..Limits::default()
        };
        Ok(Self {
            strategy: loader.load(&module, limits, grant)?,
            name: name.to_owned(),
            params: made.params,
            instruments: made.instruments,
            sha256: Sha256::digest(&module).into(),
            module,
            limits,
            time: TimeLimits::from(&config::Limits::default()),
        })
    }

    /// The same compiled module, without an instance: see [`start_guest`].
    #[must_use]
    pub fn another(&self) -> Self {
        Self {
            strategy: self.strategy.another(),
            name: self.name.clone(),
            params: self.params.clone(),
            instruments: self.instruments.clone(),
            sha256: self.sha256,
            module: Arc::clone(&self.module),
            limits: self.limits,
            time: self.time,
        }
    }

    /// Everything besides the module that decides how this strategy behaves.
    pub fn made(&self) -> Made {
        Made {
            params: self.params.clone(),
            instruments: self.instruments.clone(),
            fuel_per_event: self.limits.fuel_per_event,
            memory_bytes: self.limits.memory_bytes as u64,
            capabilities: self
                .strategy
                .granted()
                .iter()
                .map(|one| one.to_string())
                .collect(),
        }
    }
}

/// Makes the instance of a guest new, then calls `start` and `load` on it with an engine that
/// nothing else uses. Returns the intents of `start`, which have no effect yet.
///
/// # Errors
/// Why it does not start.
pub fn start_guest(
    guest: &mut Guest,
    strategy: StrategyId,
    engine: &mut EngineLoop,
    state: Option<&[u8]>,
) -> Result<Vec<Intent>, StartFailure> {
    let renewed = guest.strategy.renew();
    renewed.map_err(|fault| StartFailure {
        error: BeginError::Fault(engine_fault(fault.kind)),
        details: format!("a new instance: {fault}"),
    })?;
    let mut alone = Alone {
        guest,
        details: String::new(),
    };
    let started = engine.try_begin(strategy, state, &mut alone);
    started.map_err(|error| StartFailure {
        error,
        details: alone.details,
    })
}

/// One strategy apart from all others. Its log output stays in the guest.
struct Alone<'a> {
    guest: &'a mut Guest,
    /// What failed, for people.
    details: String,
}

impl Guests for Alone<'_> {
    fn count(&self) -> usize {
        1
    }

    fn init(&mut self, strategy: StrategyId, engine: Box<Engine>) -> (Box<Engine>, InitResult) {
        let guest = &mut *self.guest;
        let (params, instruments) = (&guest.params, &guest.instruments);
        let (engine, result) = guest.strategy.start(engine, strategy, params, instruments);
        let result = match result {
            Ok(()) => InitResult::Ready,
            Err(fault) if fault.kind == HostFault::Refused => InitResult::Refused(fault.detail),
            Err(fault) => {
                self.details = format!("start: {fault}");
                InitResult::Fault(engine_fault(fault.kind))
            }
        };
        (engine, result)
    }

    fn deliver(
        &mut self,
        _: StrategyId,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>) {
        let (engine, result) = self.guest.strategy.deliver(engine, event);
        (engine, result.map_err(|fault| engine_fault(fault.kind)))
    }

    fn intents(&self, _: StrategyId) -> &[Intent] {
        self.guest.strategy.intents()
    }

    fn save(&mut self, _: StrategyId) -> Result<Option<Vec<u8>>, FaultKind> {
        let saved = self.guest.strategy.save();
        saved.map(Some).map_err(|fault| engine_fault(fault.kind))
    }

    fn load(&mut self, _: StrategyId, state: &[u8]) -> Result<(), String> {
        let loaded = self.guest.strategy.load(state);
        loaded.map_err(|fault| {
            self.details = format!("load: {fault}");
            fault.to_string()
        })
    }

    fn show_output(&mut self, _: StrategyId, _: Time) {}
}

/// Calls `start` and `load` of a new guest with an engine, and drops its log output.
///
/// # Errors
/// The kind of the fault.
pub fn begin_guest(
    engine: &mut EngineLoop,
    guest: &mut Guest,
    strategy: StrategyId,
    state: Option<&[u8]>,
) -> Result<Vec<Intent>, FaultKind> {
    let mut alone = Alone {
        guest,
        details: String::new(),
    };
    let outcome = engine.try_begin(strategy, state, &mut alone);
    drop(guest.strategy.take_output());
    outcome.map_err(|error| error.fault())
}

/// Maps the host's kind of fault to the journal's.
pub const fn engine_fault(kind: HostFault) -> FaultKind {
    match kind {
        HostFault::Trap => FaultKind::Trap,
        HostFault::Fuel => FaultKind::Fuel,
        HostFault::Memory => FaultKind::Memory,
        HostFault::Stack => FaultKind::Stack,
        HostFault::Intents => FaultKind::Intents,
        HostFault::Output => FaultKind::Output,
        HostFault::Contract | HostFault::Refused => FaultKind::Contract,
        HostFault::HostPanic | HostFault::Dead => FaultKind::Host,
        HostFault::Time => FaultKind::Time,
    }
}
