//! One loaded strategy, and how what it says reaches people and the journal.

use windvane_engine::Time;
use windvane_engine::input::FaultKind;
use windvane_host::{FaultKind as HostFault, LogLevel, LogLine, Strategy};

/// One loaded module and what its `init` is given.
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
}

/// Writes the log lines of a strategy.
pub fn show_lines(name: &str, now: Time, lines: &[LogLine]) {
    for line in lines {
        let (time_ns, message) = (now.0, &line.message);
        match line.level {
            LogLevel::Error => tracing::error!(target: "strategy", %name, time_ns, "{message}"),
            LogLevel::Warn => tracing::warn!(target: "strategy", %name, time_ns, "{message}"),
            LogLevel::Info => tracing::info!(target: "strategy", %name, time_ns, "{message}"),
            LogLevel::Debug => tracing::debug!(target: "strategy", %name, time_ns, "{message}"),
        }
    }
}

/// The host's classes of faults in the words of the journal.
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
