//! Why a module cannot be loaded. Every message names the problem and what to do about it.

use crate::capability::{Capabilities, Capability};
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
        "the module imports the capability `{capability}`, which is not granted: \
         strategy.capabilities grants {granted}; add \"{capability}\" to strategy.capabilities, or \
         build the module without it"
    )]
    NotGranted {
        /// The capability.
        capability: Capability,
        /// What the configuration grants.
        granted: Capabilities,
    },
    /// The configuration states no capabilities, and the module imports one that its description
    /// does not ask for.
    #[error(
        "the module imports the capability `{capability}`, but its description asks for {described} \
         only, and the configuration has no strategy.capabilities, so `{capability}` is not \
         granted; set strategy.capabilities to a list with \"{capability}\" if you trust the module \
         with it, or add it to the description (CAPABILITIES in the SDK) and build the module again"
    )]
    NotDescribed {
        /// The capability.
        capability: Capability,
        /// What the description asks for.
        described: Capabilities,
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
    /// Its instances would need too much memory of the host.
    #[error(
        "the instances of the module need about {bytes} bytes of the host for globals, functions and \
         elements; the limit is {limit}. Build the module with fewer of them"
    )]
    Instances {
        /// The estimate.
        bytes: u64,
        /// The limit.
        limit: usize,
    },
    /// Another process checked and compiled the module, and reports this.
    #[error("{0}")]
    Reported(String),
    /// The compiler needed more memory than the limit.
    #[error(
        "compiling the module needs more memory than the limit, {limit_mb} MiB, so it was stopped. \
         Make the module smaller (fewer and shorter functions, fewer locals), or raise \
         compile.memory_mb in the configuration"
    )]
    CompileMemory {
        /// The limit, MiB.
        limit_mb: u32,
    },
    /// The compiler needed more time than the limit.
    #[error(
        "compiling the module takes longer than the limit, {limit} s, so it was stopped. Make the \
         module smaller, or raise compile.seconds in the configuration"
    )]
    CompileTime {
        /// The limit, seconds.
        limit: u32,
    },
    /// The process that compiles cannot be used, or ended without an answer.
    #[error("the process that compiles modules {0}")]
    CompileProcess(String),
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
