//! The real sample modules: built once by the build path of the binary, compiled once by the host,
//! instantiated for each start of a process.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use windvane::build;
use windvane::strategies::Guest;
use windvane_host::{Capabilities, Host, HostOptions, Limits};

/// The samples that live here.
const NAMES: [&str; 2] = ["market_maker", "ema_cross"];

/// Why there are no modules.
#[derive(Debug, thiserror::Error)]
pub enum ModulesError {
    /// One does not build.
    #[error("strategies/{name}: {source}")]
    Build {
        /// Its folder.
        name: &'static str,
        /// Why.
        source: windvane::build::BuildError,
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
    #[error("strategies/{name}: {source}")]
    Load {
        /// Its folder.
        name: String,
        /// Why.
        source: windvane_host::LoadError,
    },
    /// No WebAssembly here.
    #[error(transparent)]
    Host(#[from] windvane_host::HostError),
}

/// The modules of all lives.
#[derive(Clone, Debug)]
pub struct Modules {
    host: Host,
    modules: Vec<(&'static str, Vec<u8>)>,
}

impl Modules {
    /// Builds them, where they are not built yet.
    ///
    /// # Errors
    /// No toolchain, or the sources do not build.
    pub fn build() -> Result<Self, ModulesError> {
        let host = host()?;
        let mut modules = Vec::new();
        for name in NAMES {
            let built = build::build(&folder(name), &mut |_| {});
            let built = built.map_err(|source| ModulesError::Build { name, source })?;
            modules.push((name, built.component));
        }
        Ok(Self { host, modules })
    }

    /// Takes modules that were built before: `market_maker.wasm` and `ema_cross.wasm` in a folder.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn read(dir: &Path) -> Result<Self, ModulesError> {
        let host = host()?;
        let mut modules = Vec::new();
        for name in NAMES {
            let path = dir.join(format!("{name}.wasm"));
            let bytes = std::fs::read(&path);
            modules.push((
                name,
                bytes.map_err(|source| ModulesError::Read { path, source })?,
            ));
        }
        Ok(Self { host, modules })
    }

    /// An instance of a module for the strategy `id`.
    ///
    /// # Errors
    /// It is no strategy.
    pub fn instance(&self, module: &str, id: &str, params: Vec<u8>) -> Result<Guest, ModulesError> {
        let known = self.modules.iter().find(|(name, _)| *name == module);
        let bytes = known.map_or(&[][..], |(_, bytes)| bytes);
        let loaded = self.host.load(bytes, Limits::default(), Capabilities::ALL);
        let strategy = loaded.map_err(|source| ModulesError::Load {
            name: module.to_owned(),
            source,
        })?;
        Ok(Guest {
            strategy,
            name: id.to_owned(),
            params,
            instruments: Vec::new(),
            sha256: Sha256::digest(bytes).into(),
        })
    }
}

fn host() -> Result<Host, windvane_host::HostError> {
    Host::new(HostOptions {
        compile_cache: build::cache_folder().ok().map(|dir| dir.join("compiled")),
        ..HostOptions::default()
    })
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../strategies")
        .join(name)
}
