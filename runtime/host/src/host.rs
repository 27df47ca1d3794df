//! The host: one compiler and one set of settings for all strategies of the process.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::cache::{self, Cache};
use crate::capability::{Capabilities, Capability, Grant};
use crate::config::{WASM_STACK_BYTES, wasmtime_config};
use crate::error::LoadError;
use crate::footprint;
use crate::guest::Ready;
use crate::inspect::{Format, Inspected, ModuleInfo, inspect};
use crate::limits::Limits;
use crate::link;
use crate::strategy::Strategy;
use crate::wrap::wrap;

/// Settings that all strategies of a process share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostOptions {
    /// Folder of the compile cache; created with mode 0700. With `None`, modules are compiled at
    /// every load.
    pub compile_cache: Option<PathBuf>,
    /// Stack of a guest, in bytes. Deeper recursion is a fault.
    pub wasm_stack_bytes: usize,
    /// How guests are called.
    pub path: PathChoice,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            compile_cache: None,
            wasm_stack_bytes: WASM_STACK_BYTES,
            path: PathChoice::Fastest,
        }
    }
}

/// How guests are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathChoice {
    /// Directly if the module allows it, otherwise as a component.
    #[default]
    Fastest,
    /// Only directly. A module that does not allow it is refused.
    Direct,
    /// As a component. A core module is wrapped first.
    Component,
}

/// Why the host cannot start.
#[derive(Debug, thiserror::Error)]
#[error("the WebAssembly runtime cannot start on this machine: {0}")]
pub struct HostError(String);

/// Loads strategies. Compiling may take seconds, so do not load on the hot thread.
#[derive(Clone, Debug)]
pub struct Host {
    pub(crate) engine: wasmtime::Engine,
    pub(crate) cache: Option<Cache>,
    path: PathChoice,
}

impl Host {
    /// Creates a host with these settings.
    pub fn new(options: HostOptions) -> Result<Self, HostError> {
        let config = wasmtime_config(options.wasm_stack_bytes);
        let engine = wasmtime::Engine::new(&config).map_err(|e| HostError(format!("{e:#}")))?;
        Ok(Self {
            engine,
            cache: options.compile_cache.map(Cache::new),
            path: options.path,
        })
    }

    /// Loads a module file. Checks it against the contract, compiles it or takes it from the cache,
    /// links the granted imports, makes an instance and calls `describe`.
    ///
    /// # Errors
    /// The module is not a strategy, or imports a capability that is not granted.
    pub fn load(
        &self,
        bytes: &[u8],
        limits: Limits,
        grant: impl Into<Grant>,
    ) -> Result<Strategy, LoadError> {
        let grant = grant.into();
        if bytes.len() > limits.module_bytes {
            return Err(LoadError::TooLarge {
                size: bytes.len(),
                limit: limits.module_bytes,
            });
        }
        let inspected = inspect(bytes)?;
        footprint::check(bytes, &limits)?;
        let contract = inspected.info.contract;
        let imported = inspected.info.capabilities;
        let granted = grant.before_description(imported);
        refuse_not_granted(&inspected.info, granted)?;
        let cache = self.cache.as_ref();
        let (ready, cache_use) = if let Some(core) = self.direct_module(&inspected)? {
            let (module, cache_use) = cache::compile(&self.engine, cache, core)?;
            let ready = link::core_linker(&self.engine, contract, granted)
                .and_then(|linker| linker.instantiate_pre(&module))
                .map_err(|e| LoadError::compile(&e))?;
            (Ready::Direct(contract, ready), cache_use)
        } else {
            let component = as_component(bytes, inspected.info.format)?;
            let (component, cache_use) = cache::compile(&self.engine, cache, &component)?;
            let ready = link::component_linker(&self.engine, contract, granted)
                .and_then(|linker| linker.instantiate_pre(&component))
                .map_err(|e| LoadError::compile(&e))?;
            (Ready::Component(contract, ready), cache_use)
        };
        let engine = self.engine.clone();
        let shows_log = granted.contains(Capability::Log);
        Strategy::new(engine, ready, limits, shows_log, inspected.info, cache_use)?.grant(grant)
    }

    /// The core module to call directly, or `None` for the component path.
    pub(crate) fn direct_module<'a>(
        &self,
        inspected: &Inspected<'a>,
    ) -> Result<Option<&'a [u8]>, LoadError> {
        match (self.path, inspected.core) {
            (PathChoice::Component, _) | (PathChoice::Fastest, None) => Ok(None),
            (PathChoice::Direct, None) => Err(LoadError::NoDirectPath),
            (PathChoice::Direct | PathChoice::Fastest, core) => Ok(core),
        }
    }
}

pub(crate) fn refuse_not_granted(
    info: &ModuleInfo,
    granted: Capabilities,
) -> Result<(), LoadError> {
    match info.contract.unlinked(info.capabilities, granted) {
        Some(capability) => Err(LoadError::NotGranted {
            capability,
            granted,
        }),
        None => Ok(()),
    }
}

pub(crate) fn as_component(bytes: &[u8], format: Format) -> Result<Cow<'_, [u8]>, LoadError> {
    match format {
        Format::Component => Ok(Cow::Borrowed(bytes)),
        Format::Core => wrap(bytes).map(Cow::Owned),
    }
}
