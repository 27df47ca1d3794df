//! Loads a module in two steps: one process checks and compiles it under limits of memory and time,
//! and the trading process loads the finished native code.

use serde::{Deserialize, Serialize};
use wasmtime::component::Component;
use wasmtime::{Engine, Module};

use crate::cache::{self, CacheUse, Native};
use crate::capability::{Capability, Grant};
use crate::error::LoadError;
use crate::footprint;
use crate::guest::Ready;
use crate::host::{Host, as_component, refuse_not_granted};
use crate::inspect::{ModuleInfo, inspect};
use crate::limits::Limits;
use crate::link;
use crate::strategy::Strategy;

/// A module that was checked, and whose native code is in the cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Prepared {
    info: ModuleInfo,
    /// Whether the direct path calls it.
    direct: bool,
    /// The name of the file in the cache.
    pub(crate) key: String,
    pub(crate) cache: CacheUse,
}

impl Host {
    /// Checks a module against the contract and puts its native code into the cache. No part of the
    /// module runs. It may take minutes and gigabytes: the caller limits the process.
    ///
    /// # Errors
    /// The module is not a strategy, needs a capability that is not granted, or does not compile.
    pub fn prepare(
        &self,
        bytes: &[u8],
        limits: &Limits,
        grant: Grant,
    ) -> Result<Prepared, LoadError> {
        if bytes.len() > limits.module_bytes {
            return Err(LoadError::TooLarge {
                size: bytes.len(),
                limit: limits.module_bytes,
            });
        }
        let inspected = inspect(bytes)?;
        footprint::check(bytes, limits)?;
        let granted = grant.before_description(inspected.info.capabilities);
        refuse_not_granted(&inspected.info, granted)?;
        let core = self.direct_module(&inspected)?;
        let (key, used) = if let Some(core) = core {
            self.compiled::<Module>(core)?
        } else {
            self.compiled::<Component>(&as_component(bytes, inspected.info.format)?)?
        };
        Ok(Prepared {
            info: inspected.info,
            direct: core.is_some(),
            key,
            cache: used,
        })
    }

    fn compiled<N: Native>(&self, wasm: &[u8]) -> Result<(String, CacheUse), LoadError> {
        let (_, stored) = cache::compile::<N>(&self.engine, self.cache.as_ref(), wasm)?;
        match stored.used {
            CacheUse::Unusable(reason) => Err(LoadError::Compile(format!(
                "its native code cannot be stored: {reason}"
            ))),
            used => Ok((cache::key::<N>(&self.engine, wasm), used)),
        }
    }

    /// Loads a module that [`Host::prepare`] of a process with the same options prepared: links the
    /// granted imports, makes an instance and calls `describe`. Nothing is compiled.
    ///
    /// # Errors
    /// A capability is not granted, the native code is not in the cache any more, or `describe`
    /// fails.
    pub fn load_prepared(
        &self,
        prepared: &Prepared,
        limits: Limits,
        grant: Grant,
    ) -> Result<Strategy, LoadError> {
        let granted = grant.before_description(prepared.info.capabilities);
        refuse_not_granted(&prepared.info, granted)?;
        if prepared.key.len() != 64 || !prepared.key.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(LoadError::CompileProcess(
                "gave no name of a file".to_owned(),
            ));
        }
        let contract = prepared.info.contract;
        let engine: &Engine = &self.engine;
        let cache = self.cache.as_ref();
        let (ready, native) = if prepared.direct {
            let (module, native) = cache::stored(engine, cache, prepared)?;
            let ready = link::core_linker(engine, contract, granted)
                .and_then(|linker| linker.instantiate_pre(&module))
                .map_err(|e| LoadError::compile(&e))?;
            (Ready::Direct(contract, ready), native)
        } else {
            let (component, native) = cache::stored(engine, cache, prepared)?;
            let ready = link::component_linker(engine, contract, granted)
                .and_then(|linker| linker.instantiate_pre(&component))
                .map_err(|e| LoadError::compile(&e))?;
            (Ready::Component(contract, ready), native)
        };
        let shows_log = granted.contains(Capability::Log);
        Strategy::new(
            engine.clone(),
            ready,
            limits,
            shows_log,
            prepared.info,
            native,
        )?
        .grant(grant)
    }
}
