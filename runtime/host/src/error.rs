//! Why a module cannot be loaded. Every message names what is wrong and what to do about it.

use crate::capability::Capability;
use crate::fault::Fault;

/// Why a module cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is over `Limits::module_bytes`.
    #[error("the module has {size} bytes, the limit is {limit}")]
    TooLarge {
        /// Size of the file.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The bytes are no valid WebAssembly, or use a proposal that is off.
    #[error("not a valid WebAssembly module or component: {0}")]
    Invalid(String),
    /// Imports something outside the contract: WASI, `env`, another package.
    #[error(
        "the module imports `{name}`, which is no part of the strategy contract; strategies have \
         no WASI, clock, randomness, files or network"
    )]
    ForeignImport {
        /// Interface or module, and function where there is one.
        name: String,
    },
    /// Imports an interface of our package in a version that this runtime does not have.
    #[error(
        "the module imports `{name}`, which this runtime does not know; build it again with the \
         SDK of this version"
    )]
    UnknownInterface {
        /// The interface or function.
        name: String,
    },
    /// Imports a capability that the configuration does not grant.
    #[error(
        "the module imports the capability `{capability}`, which is not granted; add \
         \"{capability}\" to strategy.capabilities, or build without it"
    )]
    NotGranted {
        /// The capability.
        capability: Capability,
    },
    /// A function of the contract is not exported.
    #[error("the module does not export `{name}`; a strategy exports the whole world `strategy`")]
    MissingExport {
        /// The function.
        name: String,
    },
    /// A function has another signature than in the contract.
    #[error("`{name}` has the signature {found}, the contract says {expected}")]
    Signature {
        /// The function.
        name: String,
        /// As the module has it.
        found: String,
        /// As `sdk/wit/strategy.wit` has it.
        expected: String,
    },
    /// The direct path was asked for, but the component is not a wrapped core module.
    #[error("the component is not a wrapped core module, it can only be called as a component")]
    NoDirectPath,
    /// A core module cannot be wrapped into a component.
    #[error("the module cannot be wrapped into a component: {0}")]
    Wrap(String),
    /// The compiler or the linker refused.
    #[error("the module cannot be compiled: {0}")]
    Compile(String),
    /// The module's start or `describe` failed.
    #[error("the module fails at its start: {0}")]
    Start(#[from] Fault),
    /// `describe` answered with something else than the contract's JSON.
    #[error("`describe` answered with {answer:?}, which is not as the contract says: {reason}")]
    Describe {
        /// The beginning of the answer.
        answer: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl LoadError {
    pub(crate) fn compile(error: &wasmtime::Error) -> Self {
        Self::Compile(format!("{error:#}"))
    }
}
