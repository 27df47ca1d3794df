//! How a callback can fail. A fault affects only one strategy, and its callback has no effect.

use wasmtime::Trap;

use crate::contract::ContractVersion;

/// Why a call into a strategy failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {detail}")]
pub struct Fault {
    /// The class, as stored in metrics and journals.
    pub kind: FaultKind,
    /// One sentence for people.
    pub detail: String,
}

/// Class of a fault. The names are used in journals and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// A WebAssembly trap: a panic, a division by zero, an access out of bounds.
    Trap,
    /// The fuel of the callback is used up.
    Fuel,
    /// A limit of memory, table elements or instances.
    Memory,
    /// The call stack is exhausted.
    Stack,
    /// The callback made more intents than allowed.
    Intents,
    /// The callback made more log bytes or plot points than allowed.
    Output,
    /// The guest broke the contract: a bad pointer, or an import called where it is not available.
    Contract,
    /// `start` or `load` returned a reason for a refusal. The instance stays alive.
    Refused,
    /// A panic in the host. This is a bug of the host; it affects only this strategy.
    HostPanic,
    /// The strategy has no live instance: it was not started, or failed earlier and was not
    /// restarted.
    Dead,
    /// The callback used more processor time than allowed. Only if the caller watches callbacks:
    /// see [`Strategy::watch`](crate::Strategy::watch).
    Time,
}

impl FaultKind {
    /// The name in journals and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Fuel => "fuel",
            Self::Memory => "memory",
            Self::Stack => "stack",
            Self::Intents => "intents",
            Self::Output => "output",
            Self::Contract => "contract",
            Self::Refused => "refused",
            Self::HostPanic => "host-panic",
            Self::Dead => "dead",
            Self::Time => "time",
        }
    }
}

impl std::fmt::Display for FaultKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A limit or rule of the contract that a guest broke. It passes through the guest as a trap.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Breach {
    #[error("wants {wanted} bytes of memory, the limit is {limit} (strategy.limits.memory_mb)")]
    Memory { wanted: usize, limit: usize },
    #[error("wants a table of {wanted} elements, the limit is {limit}")]
    Table { wanted: usize, limit: usize },
    #[error("more than {limit} intents in one callback")]
    Intents { limit: usize },
    #[error("more than {limit} bytes of log in one callback")]
    Log { limit: usize },
    #[error("more than {limit} points in one callback")]
    Plots { limit: usize },
    #[error("{0}")]
    Contract(String),
    /// The caller's [`Watch`](crate::Watch) ended the callback.
    #[error("{0}")]
    Time(String),
    /// The guest reported a fault itself (`fault.report`).
    #[error("{0}")]
    Reported(String),
}

impl Breach {
    pub(crate) fn contract(detail: impl Into<String>) -> wasmtime::Error {
        wasmtime::Error::new(Self::Contract(detail.into()))
    }

    const fn kind(&self) -> FaultKind {
        match self {
            Self::Memory { .. } | Self::Table { .. } => FaultKind::Memory,
            Self::Intents { .. } => FaultKind::Intents,
            Self::Log { .. } | Self::Plots { .. } => FaultKind::Output,
            Self::Contract(_) => FaultKind::Contract,
            Self::Time(_) => FaultKind::Time,
            Self::Reported(_) => FaultKind::Trap,
        }
    }
}

/// Beginning of a panic message of Rust in modules of contract 0.1. File, line and column follow.
const PANICKED: &str = "panicked at ";

impl Fault {
    pub(crate) fn new(kind: FaultKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
        }
    }

    /// Classifies an error of wasmtime. `last_words` is the last error that the guest logged in
    /// this callback. A fault that the guest reported keeps its message. In contract 0.1 a panic
    /// was logged, and its line replaces the text of the trap, which only names the abort function.
    pub(crate) fn from_error(
        error: &wasmtime::Error,
        contract: ContractVersion,
        last_words: Option<&str>,
    ) -> Self {
        let (kind, mut detail) = if let Some(breach) = error.downcast_ref::<Breach>() {
            if let Breach::Reported(message) = breach {
                return Self::new(FaultKind::Trap, message);
            }
            (breach.kind(), breach.to_string())
        } else if let Some(trap) = error.downcast_ref::<Trap>() {
            let kind = match trap {
                Trap::OutOfFuel => FaultKind::Fuel,
                Trap::StackOverflow => FaultKind::Stack,
                Trap::AllocationTooLarge => FaultKind::Memory,
                _ => FaultKind::Trap,
            };
            (kind, trap.to_string())
        } else {
            // The remaining errors come from the canonical ABI, such as a list out of bounds.
            (FaultKind::Contract, error.root_cause().to_string())
        };
        if let (FaultKind::Trap, ContractVersion::V0_1, Some(panic)) = (kind, contract, last_words)
            && panic.starts_with(PANICKED)
        {
            return Self::new(kind, panic);
        }
        if let Some(function) = innermost_function(error) {
            detail.push_str(" in ");
            detail.push_str(&function);
        }
        if let Some(words) = last_words {
            detail.push_str("; it last logged: ");
            detail.push_str(words);
        }
        Self { kind, detail }
    }

    pub(crate) fn from_panic(payload: &(dyn std::any::Any + Send)) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        Self::new(FaultKind::HostPanic, format!("the host panicked: {text}"))
    }

    pub(crate) fn dead() -> Self {
        Self::new(
            FaultKind::Dead,
            "the strategy was not started, or failed earlier and was not restarted",
        )
    }
}

/// The name of the function that trapped, if the module contains names.
fn innermost_function(error: &wasmtime::Error) -> Option<String> {
    let backtrace = error.downcast_ref::<wasmtime::WasmBacktrace>()?;
    let frame = backtrace.frames().first()?;
    Some(match frame.func_name() {
        Some(name) => name.to_owned(),
        None => format!("function {}", frame.func_index()),
    })
}
