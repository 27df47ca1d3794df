//! The real sample modules: built once by the build path of the binary, compiled once by the host,
//! instantiated for each start of a process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windvane_build as build;
use windvane_build::modules::{Guest, host};
use windvane_host::{ContractVersion, Host, Limits};
use windvane_session::Made;

/// The modules that live here, and their folders: two samples, and two of our own: one that orders as
/// much as it may, and one that quotes every instrument and both sides of hedge mode.
const NAMES: [(&str, &str); 4] = [
    ("market_maker", "../../strategies/market_maker"),
    ("ema_cross", "../../strategies/ema_cross"),
    ("greedy", "greedy"),
    ("quoter", "quoter"),
];

/// What each is granted.
const CAPABILITIES: [&str; 6] = ["orders", "account", "market", "timers", "log", "plot"];

/// Why there are no modules.
#[derive(Debug, thiserror::Error)]
pub enum ModulesError {
    /// One does not build.
    #[error("module {name}: {source}")]
    Build {
        /// Its name.
        name: &'static str,
        /// Why.
        source: windvane_build::BuildError,
    },
    /// One that was built cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Its file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// One is no strategy.
    #[error("module {name}: {source}")]
    Load {
        /// Its name.
        name: String,
        /// Why.
        source: windvane_host::LoadError,
    },
    /// One was built for an earlier version of the strategy contract: no run would start it.
    #[error("module {name} was built for strategy contract {contract}: build it again")]
    Contract {
        /// Its name.
        name: &'static str,
        /// Its contract.
        contract: ContractVersion,
    },
    /// No WebAssembly here.
    #[error(transparent)]
    Host(#[from] windvane_host::HostError),
}

/// The modules of all lives.
#[derive(Clone, Debug)]
pub struct Modules {
    host: Host,
    modules: Vec<(&'static str, Arc<[u8]>)>,
}

impl Modules {
    /// Builds them, where they are not built yet.
    ///
    /// # Errors
    /// No toolchain, or the sources do not build.
    pub fn build() -> Result<Self, ModulesError> {
        let host = host()?;
        let mut modules = Vec::new();
        for (name, folder) in NAMES {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
            let built = build::build(&folder, &mut |_| {});
            let built = built.map_err(|source| ModulesError::Build { name, source })?;
            modules.push((name, Arc::from(built.component)));
        }
        Ok(Self { host, modules })
    }

    /// Takes modules that were built before: `market_maker.wasm` and so on, in one folder.
    ///
    /// # Errors
    /// One cannot be read, or is not for the present contract.
    pub fn read(dir: &Path) -> Result<Self, ModulesError> {
        let host = host()?;
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
        Ok(Self { host, modules })
    }

    /// An instance of a build of a module for the strategy `id`. Builds differ in a section that means nothing.
    ///
    /// # Errors
    /// It is no strategy.
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
        let loaded = Guest::load(&self.host, id, bytes.unwrap_or_default(), made);
        loaded.map_err(|source| ModulesError::Load {
            name: module.to_owned(),
            source,
        })
    }
}
