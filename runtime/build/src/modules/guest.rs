//! One loaded strategy, and the journal's name of each kind of fault.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use windvane_host::{
    Capabilities, Capability, FaultKind as HostFault, Host, Limits, LoadError, Strategy,
};
use windvane_model::input::FaultKind;
use windvane_session::Made;

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
    /// The capabilities that the configuration grants it.
    pub granted: Capabilities,
}

impl Guest {
    /// Loads a module.
    ///
    /// # Errors
    /// It is not a strategy, or it needs a capability that is not granted.
    pub fn load(host: &Host, name: &str, module: Arc<[u8]>, made: Made) -> Result<Self, LoadError> {
        let limits = Limits {
            fuel_per_event: made.fuel_per_event,
            memory_bytes: usize::try_from(made.memory_bytes).unwrap_or(usize::MAX),
            ..Limits::default()
        };
        let named = made.capabilities.iter();
        let granted = named
            .filter_map(|name| Capability::from_name(name))
            .collect();
        Ok(Self {
            strategy: host.load(&module, limits, granted)?,
            name: name.to_owned(),
            params: made.params,
            instruments: made.instruments,
            sha256: Sha256::digest(&module).into(),
            module,
            limits,
            granted,
        })
    }

    /// Everything besides the module that decides how this strategy behaves.
    pub fn made(&self) -> Made {
        Made {
            params: self.params.clone(),
            instruments: self.instruments.clone(),
            fuel_per_event: self.limits.fuel_per_event,
            memory_bytes: self.limits.memory_bytes as u64,
            capabilities: self.granted.iter().map(|one| one.to_string()).collect(),
        }
    }
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
    }
}
