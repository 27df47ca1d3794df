//! The real sample modules. The binary's build path builds them once, the host compiles them once,
//! and each start of a process creates new instances.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windvane_build as build;
use windvane_build::modules::{Guest, Loader};
use windvane_config::Compile;
use windvane_host::{ContractVersion, Limits};
use windvane_session::Made;

/// The modules and their folders: two samples, and two modules of the simulator. `greedy` orders as
/// much as it may; `quoter` quotes every instrument and both sides of hedge mode.
const NAMES: [(&str, &str); 4] = [
    ("market_maker", "../../strategies/market_maker"),
    ("ema_cross", "../../strategies/ema_cross"),
    ("greedy", "greedy"),
    ("quoter", "quoter"),
];

/// The capabilities of each module.
const CAPABILITIES: [&str; 6] = ["orders", "account", "market", "timers", "log", "plot"];

/// Why the modules are not available.
#[derive(Debug, thiserror::Error)]
pub enum ModulesError {
    /// A module does not build.
    #[error("module {name}: {source}")]
    Build {
        /// The module.
        name: &'static str,
        /// The build error.
        source: windvane_build::BuildError,
    },
    /// A built module cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system error.
        source: std::io::Error,
    },
    /// A file is not a strategy.
    #[error("module {name}: {source}")]
    Load {
        /// The module.
        name: String,
        /// The error of the host.
        source: windvane_host::LoadError,
    },
    /// A module was built for an earlier version of the strategy contract, so that no run would
    /// start it.
    #[error("module {name} was built for strategy contract {contract}: build it again")]
    Contract {
        /// The module.
        name: &'static str,
        /// Its contract version.
        contract: ContractVersion,
    },
    /// The WebAssembly host cannot be created.
    #[error(transparent)]
    Host(#[from] windvane_host::HostError),
}

/// The modules of all lives.
#[derive(Clone, Debug)]
pub struct Modules {
    loader: Loader,
    modules: Vec<(&'static str, Arc<[u8]>)>,
}

impl Modules {
    /// Builds the modules that are not built yet.
    ///
    /// # Errors
    /// If there is no toolchain, or the sources do not build.
    pub fn build() -> Result<Self, ModulesError> {
        let loader = Loader::new(Compile::default())?;
        let mut modules = Vec::new();
        for (name, folder) in NAMES {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
            let built = build::build(&folder, &build::BuildRules::default(), &mut |_| {});
            let built = built.map_err(|source| ModulesError::Build { name, source })?;
            modules.push((name, Arc::from(built.component)));
        }
        Ok(Self { loader, modules })
    }

    /// Reads modules that are already built: `market_maker.wasm` and so on, in one folder.
    ///
    /// # Errors
    /// If one cannot be read, or is not built for the current contract.
    pub fn read(dir: &Path) -> Result<Self, ModulesError> {
        let loader = Loader::new(Compile::default())?;
        let mut modules = Vec::new();
        for (name, _) in NAMES {
            let path = dir.join(format!("{name}.wasm"));
            let bytes = std::fs::read(&path);
            let bytes = bytes.map_err(|source| ModulesError::Read { path, source })?;
            let info = windvane_host::validate(&bytes).map_err(|source| ModulesError::Load {
                name: name.to_owned(),
                source,
            })?;
            if info.contract != ContractVersion::PRESENT {
                return Err(ModulesError::Contract {
                    name,
                    contract: info.contract,
                });
            }
            modules.push((name, Arc::from(bytes)));
        }
        Ok(Self { loader, modules })
    }

    /// A new instance of a module's build for the strategy `id`. Builds differ only in a section
    /// without meaning.
    ///
    /// # Errors
    /// If the module is not a strategy.
    pub fn instance(
        &self,
        (module, build): (&str, u8),
        id: &str,
        params: Vec<u8>,
    ) -> Result<Guest, ModulesError> {
        let known = self.modules.iter().find(|(name, _)| *name == module);
        let bytes = known.map(|(_, bytes)| Arc::clone(bytes));
        let bytes = bytes.map(|bytes| match build {
            0 => bytes,
            _ => Arc::from([&bytes[..], &[0, 2, 1, build]].concat()),
        });
        let limits = Limits::default();
        let made = Made {
            params,
            instruments: Vec::new(),
            fuel_per_event: limits.fuel_per_event,
            memory_bytes: limits.memory_bytes as u64,
            capabilities: CAPABILITIES.map(str::to_owned).to_vec(),
        };
        let loaded = Guest::load(&self.loader, id, bytes.unwrap_or_default(), made);
        loaded.map_err(|source| ModulesError::Load {
            name: module.to_owned(),
            source,
        })
    }
}
