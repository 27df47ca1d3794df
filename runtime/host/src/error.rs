//! Why a module cannot be loaded. Every message names the problem and what to do about it.

use crate::capability::Capability;
use crate::fault::Fault;

/// Why a module cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is larger than `Limits::module_bytes`.
    #[error("the module has {size} bytes, the limit is {limit}")]
    TooLarge {
        /// Size of the file.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The bytes are not valid WebAssembly, or use a proposal that is off.
    #[error("not a valid WebAssembly module or component: {0}")]
    Invalid(String),
    /// The module imports something outside the contract: WASI, `env`, another package.
    #[error(
        "the module imports `{name}`, which is not part of the strategy contract; strategies have \
         no WASI, clock, randomness, files or network"
    )]
    ForeignImport {
        /// The interface or module, with the function if there is one.
        name: String,
    },
    /// The module imports an interface of our package in a version that this runtime does not have.
    #[error(
        "the module imports `{name}`, which this runtime does not have; build it again with the \
         SDK of this version"
    )]
    UnknownInterface {
        /// The interface or function.
        name: String,
    },
    /// The module imports a capability that the configuration does not grant.
    #[error(
        "the module imports the capability `{capability}`, which is not granted; add \
         \"{capability}\" to strategy.capabilities, or build the module without it"
    )]
    NotGranted {
        /// The capability.
        capability: Capability,
    },
    /// The module does not export a function of the contract.
    #[error(
        "the module does not export `{name}`; a strategy must export all of the world `strategy`"
    )]
    MissingExport {
        /// The function.
        name: String,
    },
    /// A function does not have the signature of the contract.
    #[error("`{name}` has the signature {found}, but the contract has {expected}")]
    Signature {
        /// The function.
        name: String,
        /// The signature in the module.
        found: String,
        /// The signature in `sdk/wit/strategy.wit`.
        expected: String,
    },
    /// The direct path was requested, but the component is not a wrapped core module.
    #[error("the component is not a wrapped core module, so it can only be called as a component")]
    NoDirectPath,
    /// A core module cannot be wrapped into a component.
    #[error("the module cannot be wrapped into a component: {0}")]
    Wrap(String),
    /// The compiler or the linker failed.
    #[error("the module cannot be compiled: {0}")]
    Compile(String),
    /// The module's start function or `describe` failed.
    #[error("the start function or `describe` of the module failed: {0}")]
    Start(#[from] Fault),
    /// The answer of `describe` is not the JSON of the contract.
    #[error("`describe` returned {answer:?}, which does not follow the contract: {reason}")]
    Describe {
        /// The beginning of the answer.
        answer: String,
        /// The problem.
        reason: String,
    },
}

impl LoadError {
    pub(crate) fn compile(error: &wasmtime::Error) -> Self {
        Self::Compile(format!("{error:#}"))
    }
}
