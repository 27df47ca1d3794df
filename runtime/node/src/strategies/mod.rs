//! The strategies of a run: their modules built or read, loaded into the host under their limits.
//!
//! What may never enter here: the venue, the clock, and what strategies decide.

mod guest;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use windvane_host::{Capabilities, Host, HostError, HostOptions, Limits, LoadError};

use crate::build::{self, BuildError};
use crate::config::{self, Config};

pub use guest::{Guest, engine_fault, show_lines};

/// Why a strategy's module cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// It is not there.
    #[error("strategy {strategy}: module {} does not exist; name a folder with Cargo.toml or a \
             .wasm file", module.display())]
    Missing {
        /// Its id.
        strategy: String,
        /// The path.
        module: PathBuf,
    },
    /// It cannot be read.
    #[error("strategy {strategy}: cannot read {}: {source}", module.display())]
    Read {
        /// Its id.
        strategy: String,
        /// The path.
        module: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It does not build.
    #[error("strategy {strategy}: {source}")]
    Build {
        /// Its id.
        strategy: String,
        /// Why.
        source: BuildError,
    },
    /// It is no strategy.
    #[error("strategy {strategy}: {source}")]
    Load {
        /// Its id.
        strategy: String,
        /// Why.
        source: LoadError,
    },
    /// No WebAssembly here.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl ModuleError {
    /// Whether the user's configuration or files are at fault, and not the machine.
    pub const fn is_usage(&self) -> bool {
        !matches!(self, Self::Host(_))
    }
}

/// Loads the modules of all configured strategies; `building` hears of each step of a build. What
/// `init` is told of instruments is still missing.
///
/// # Errors
/// The first module that cannot be had.
pub fn load(config: &Config, building: &mut dyn FnMut(&str)) -> Result<Vec<Guest>, ModuleError> {
    let host = Host::new(HostOptions {
        compile_cache: build::cache_folder().ok().map(|dir| dir.join("compiled")),
        ..HostOptions::default()
    })?;
    let mut guests = Vec::new();
    // Strategies of one module share its build.
    let mut modules: BTreeMap<&Path, Vec<u8>> = BTreeMap::new();
    for strategy in &config.strategies {
        let id = strategy.id.as_str().to_owned();
        let bytes = match modules.entry(&strategy.module) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(module_bytes(strategy, building)?),
        };
        let limits = Limits {
            fuel_per_event: strategy.limits.fuel_per_event,
            memory_bytes: strategy.limits.memory_mb as usize * 1024 * 1024,
            ..Limits::default()
        };
        let granted = granted(strategy);
        let loaded = host
            .load(bytes, limits, granted)
            .map_err(|source| ModuleError::Load {
                strategy: id.clone(),
                source,
            })?;
        guests.push(Guest {
            strategy: loaded,
            name: id,
            params: strategy.params.to_string().into_bytes(),
            instruments: Vec::new(),
            sha256: Sha256::digest(bytes).into(),
        });
    }
    Ok(guests)
}

/// The module of a strategy: built, if it is a folder, else read.
fn module_bytes(
    strategy: &config::Strategy,
    building: &mut dyn FnMut(&str),
) -> Result<Vec<u8>, ModuleError> {
    let id = || strategy.id.as_str().to_owned();
    let module = strategy.module.clone();
    if module.is_dir() {
        let built = build::build(&module, &mut |step| building(step));
        let built = built.map_err(|source| ModuleError::Build {
            strategy: id(),
            source,
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

fn granted(strategy: &config::Strategy) -> Capabilities {
    strategy
        .capabilities
        .iter()
        .filter_map(|capability| windvane_host::Capability::from_name(capability.as_str()))
        .collect()
}
