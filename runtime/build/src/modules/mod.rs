//! The strategies of a run: their modules are built or read, and loaded into the host under their
//! limits.
//!
//! This module does not know the venue or the clock, and makes no decision for a strategy.

mod guest;
mod kept;
mod lines;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windvane_host::{ContractVersion, Host, HostError, HostOptions, LoadError};
use windvane_session::Made;

use crate::BuildError;
use windvane_config::{self as config, Config};

pub use guest::{Guest, engine_fault};
pub use kept::{NotKept, all_kept, drop_kept, keep, keep_module, kept};
pub use lines::{RecentLines, show_lines};

/// Why a strategy's module cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// The path does not exist.
    #[error("strategy {strategy}: module {} does not exist; name a folder with Cargo.toml or a \
             .wasm file", module.display())]
    Missing {
        /// Its id.
        strategy: String,
        /// The path.
        module: PathBuf,
    },
    /// The file cannot be read.
    #[error("strategy {strategy}: cannot read {}: {source}", module.display())]
    Read {
        /// Its id.
        strategy: String,
        /// The path.
        module: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The source does not build.
    #[error("strategy {strategy}: {source}")]
    Build {
        /// Its id.
        strategy: String,
        /// Why.
        source: Box<BuildError>,
    },
    /// The file is not a strategy that this program can load.
    #[error("strategy {strategy}: {source}")]
    Load {
        /// Its id.
        strategy: String,
        /// Why.
        source: LoadError,
    },
    /// It was built for an earlier version of the strategy contract. Only a replay runs such
    /// modules.
    #[error(
        "strategy {strategy}: {} was built for strategy contract {contract}, and this program runs strategies of \
         contract {}. Nothing was started and no order was touched. Build the strategy again with the SDK of this \
         version, `windvane build DIR`, where DIR is the folder of its source, and name DIR or the new .wasm file \
         as `module`. What it saved is kept and carries over",
        module.display(),
        ContractVersion::PRESENT
    )]
    OldContract {
        /// Its id.
        strategy: String,
        /// The path.
        module: PathBuf,
        /// Its contract.
        contract: ContractVersion,
    },
    /// WebAssembly is not available on this machine.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl ModuleError {
    /// Whether the cause is the user's configuration or files, and not the machine.
    pub const fn is_usage(&self) -> bool {
        !matches!(self, Self::Host(_))
    }
}

/// Loads the modules of all configured strategies for trading. `building` receives each step of a
/// build. The instruments for `start` are still empty in the result.
///
/// # Errors
/// The first module that cannot be loaded.
pub fn load(config: &Config, building: &mut dyn FnMut(&str)) -> Result<Vec<Guest>, ModuleError> {
    let host = host()?;
    let mut guests = Vec::new();
    // Strategies with the same module share one build.
    let mut modules: BTreeMap<&Path, Arc<[u8]>> = BTreeMap::new();
    for strategy in &config.strategies {
        let module = match modules.entry(&strategy.module) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(module_bytes(strategy, building)?.into()),
        };
        let name = strategy.id.as_str();
        let names = strategy.capabilities.iter();
        let made = Made {
            params: strategy.params.to_string().into_bytes(),
            instruments: Vec::new(),
            fuel_per_event: strategy.limits.fuel_per_event,
            memory_bytes: u64::from(strategy.limits.memory_mb) * 1024 * 1024,
            capabilities: names.map(|one| one.name().to_owned()).collect(),
        };
        let loaded = Guest::load(&host, name, Arc::clone(module), made);
        let guest = loaded.map_err(|source| ModuleError::Load {
            strategy: name.to_owned(),
            source,
        })?;
        let contract = guest.strategy.contract();
        if contract != ContractVersion::PRESENT {
            return Err(ModuleError::OldContract {
                strategy: name.to_owned(),
                module: strategy.module.clone(),
                contract,
            });
        }
        guests.push(guest);
    }
    Ok(guests)
}

/// The WebAssembly host, with its compile cache.
///
/// # Errors
/// This machine cannot run WebAssembly modules.
pub fn host() -> Result<Host, HostError> {
    Host::new(HostOptions {
        compile_cache: crate::cache_folder().ok().map(|dir| dir.join("compiled")),
        ..HostOptions::default()
    })
}

/// The bytes of a strategy's module. A folder is built; a file is read.
fn module_bytes(
    strategy: &config::Strategy,
    building: &mut dyn FnMut(&str),
) -> Result<Vec<u8>, ModuleError> {
    let id = || strategy.id.as_str().to_owned();
    let module = strategy.module.clone();
    if module.is_dir() {
        let built = crate::build(&module, &mut |step| building(step));
        let built = built.map_err(|source| ModuleError::Build {
            strategy: id(),
            source: Box::new(source),
        })?;
        return Ok(built.component);
    }
    if !module.exists() {
        return Err(ModuleError::Missing {
            strategy: id(),
            module,
        });
    }
    std::fs::read(&module).map_err(|source| ModuleError::Read {
        strategy: id(),
        module,
        source,
    })
}
