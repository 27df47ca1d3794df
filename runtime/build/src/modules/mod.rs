//! The strategies of a run: their modules are built or read, and loaded into the host under their
//! limits.
//!
//! This module does not know the venue or the clock, and makes no decision for a strategy.

pub(crate) mod compile;
mod guest;
mod kept;
mod lines;
mod loader;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windvane_host::{ContractVersion, Grant, HostError, LoadError};
use windvane_session::Made;

use crate::{BuildError, BuildRules};
use windvane_config::{self as config, Config};

pub use compile::CompileTask;
pub use guest::{Guest, TimeLimits, begin_guest, engine_fault, start_guest};
pub use kept::{NotKept, all_kept, drop_kept, keep, keep_module, kept};
pub use lines::{AllLines, RecentLines};
pub use loader::Loader;

/// Longest module that is read, bytes. A component with an interpreter of Python has about 20 MB.
pub const MODULE_BYTES_MAX: u64 = 128 << 20;

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
    /// It is a folder with sources, and its build would run beside the keys of a real exchange.
    #[error(
        "strategy {strategy}: {} is a folder with sources. On an exchange that is not on loopback, a run \
         accepts only built modules, because a build runs scripts of the sources beside the keys. Nothing was \
         started and no order was touched. Run `windvane build {} --out FILE.wasm`, and name FILE.wasm as \
         `module`. Or set run.allow_source = true, if you trust the sources and all their dependencies",
        module.display(),
        module.display()
    )]
    Source {
        /// Its id.
        strategy: String,
        /// The folder.
        module: PathBuf,
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

/// Refuses folders with sources on an exchange that is not on loopback.
///
/// # Errors
/// The first such folder.
pub fn refuse_sources(config: &Config, on_loopback: bool) -> Result<(), ModuleError> {
    if on_loopback || config.run.allow_source {
        return Ok(());
    }
    match config.strategies.iter().find(|one| one.module.is_dir()) {
        Some(strategy) => Err(ModuleError::Source {
            strategy: strategy.id.as_str().to_owned(),
            module: strategy.module.clone(),
        }),
        None => Ok(()),
    }
}

/// The folder of a run's native code, in its data folder.
const COMPILED: &str = "compiled";

/// Loads the modules of all configured strategies for trading. `building` receives each step of a
/// build. The instruments for `start` are still empty in the result.
///
/// # Errors
/// The first module that cannot be loaded.
pub fn load(config: &Config, building: &mut dyn FnMut(&str)) -> Result<Vec<Guest>, ModuleError> {
    load_with(&Loader::new(config.compile)?, config, building)
}

/// Loads them for a live or paper run. Its native code is in its data folder: a run that was taken over
/// must not be able to write native code that other commands execute.
///
/// # Errors
/// The first module that cannot be loaded.
pub fn load_for_run(
    config: &Config,
    building: &mut dyn FnMut(&str),
) -> Result<Vec<Guest>, ModuleError> {
    let folder = config.run.data_dir.join(COMPILED);
    // In a copy of a data folder, others may look into it, and its native code is made again. A failure shows
    // when the folder is used.
    let _ = windvane_files::folder(&folder);
    let _ = windvane_files::own_folder(&folder);
    let loader = Loader::with_cache(config.compile, Some(folder))?;
    load_with(&loader, config, building)
}

fn load_with(
    loader: &Loader,
    config: &Config,
    building: &mut dyn FnMut(&str),
) -> Result<Vec<Guest>, ModuleError> {
    let rules = BuildRules::of(config);
    let mut guests = Vec::new();
    // Strategies with the same module share one build.
    let mut modules: BTreeMap<&Path, Arc<[u8]>> = BTreeMap::new();
    for strategy in &config.strategies {
        let module = match modules.entry(&strategy.module) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(module_bytes(strategy, &rules, building)?.into()),
        };
        let name = strategy.id.as_str();
        let made = Made {
            params: strategy.params.to_string().into_bytes(),
            instruments: Vec::new(),
            fuel_per_event: strategy.limits.fuel_per_event,
            memory_bytes: u64::from(strategy.limits.memory_mb) * 1024 * 1024,
            capabilities: Vec::new(),
        };
        let granted = strategy.capabilities.as_ref();
        let grant = granted.map_or(Grant::Described, |names| {
            Grant::Only(names.iter().copied().collect())
        });
        let loaded = Guest::load_with(loader, name, Arc::clone(module), made, grant);
        let mut guest = loaded.map_err(|source| ModuleError::Load {
            strategy: name.to_owned(),
            source,
        })?;
        guest.time = TimeLimits::from(&strategy.limits);
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

/// The bytes of a strategy's module. A folder is built; a file is read.
fn module_bytes(
    strategy: &config::Strategy,
    rules: &BuildRules,
    building: &mut dyn FnMut(&str),
) -> Result<Vec<u8>, ModuleError> {
    let id = || strategy.id.as_str().to_owned();
    let module = strategy.module.clone();
    if module.is_dir() {
        let built = crate::build(&module, rules, &mut |step| building(step));
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
    windvane_files::read_bounded(&module, MODULE_BYTES_MAX).map_err(|source| ModuleError::Read {
        strategy: id(),
        module,
        source,
    })
}
