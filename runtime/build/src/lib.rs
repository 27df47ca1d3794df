//! Builds the folder of a strategy into a component. `windvane build DIR` does this, and so does
//! every command that gets a folder instead of a module.
//!
//! The compiler is the user's own if it has the target `wasm32-unknown-unknown`, otherwise a
//! private one (see [`toolchain`]). The strategy itself does not run, but its build scripts and
//! macros do, as in any `cargo build`.
//!
//! `backtest`, `replay`, `live`, `cli` and the fault simulator get their loaded modules from
//! [`modules`]. The crate must not contain the venue, a clock, or a decision for a strategy.

mod cache;
mod cargo;
mod command;
mod debian;
pub mod modules;
mod toolchain;

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use windvane_host::ContractVersion;

pub use cache::{folder as cache_folder, remove_toolchains};
pub use toolchain::Toolchain;

/// A built strategy.
#[derive(Clone, Debug)]
pub struct Built {
    /// Path of the component.
    pub path: PathBuf,
    /// Size of the component, bytes.
    pub bytes_len: usize,
    /// SHA-256 of the component, hexadecimal.
    pub sha256: String,
    /// The component itself.
    pub component: Vec<u8>,
    /// The compiler that built it, in the form of `rustc --version`.
    pub compiler: String,
}

/// Why a folder cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The folder has no `Cargo.toml`.
    #[error("{0} has no Cargo.toml: name the folder of a strategy, or a .wasm file")]
    NoManifest(PathBuf),
    /// The manifest is a workspace without a package of its own.
    #[error("{0} is a workspace, not a strategy: name the folder of one of its members")]
    NoPackage(PathBuf),
    /// The package is not a dynamic library.
    #[error(
        "package {0} is not a WebAssembly module: add `[lib] crate-type = [\"cdylib\", \"rlib\"]` \
         to its Cargo.toml"
    )]
    NotAModule(String),
    /// A program cannot be started.
    #[error("cannot run {program}: {source}; {hint}")]
    Program {
        /// The program.
        program: String,
        /// Advice for the user.
        hint: &'static str,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// No compiler has the target, and none could be created.
    #[error(
        "there is no compiler for wasm32-unknown-unknown: {0}. If rustup can download, run \
         `rustup target add wasm32-unknown-unknown`. On Debian, a compiler from its packages \
         is used"
    )]
    NoToolchain(String),
    /// The strategy does not compile.
    #[error("{package} does not compile:\n{tail}")]
    Compile {
        /// The package.
        package: String,
        /// The end of cargo's output.
        tail: String,
    },
    /// The package compiles, but is not a strategy.
    #[error("{package} compiles, but is not a strategy: {source}")]
    NotAStrategy {
        /// The package.
        package: String,
        /// The host's error.
        source: windvane_host::LoadError,
    },
    /// The package uses an SDK of an earlier contract version.
    #[error(
        "{package} compiles, but its SDK has strategy contract {contract}, and \
         this program runs contract {}. Set windvane-sdk to this program's version in {}, and \
         build again",
        ContractVersion::PRESENT,
        manifest.display()
    )]
    OldContract {
        /// The package.
        package: String,
        /// The contract version of its SDK.
        contract: ContractVersion,
        /// The manifest that names its SDK.
        manifest: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
}

impl BuildError {
    fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}

/// Builds the strategy in `dir`. `progress` gets one line per step, to show in a terminal.
///
/// On a machine without the target, the first build creates a toolchain, which takes minutes. Later
/// builds take as long as cargo does. On one machine, the same sources give the same bytes.
pub fn build(dir: &Path, progress: &mut dyn FnMut(&str)) -> Result<Built, BuildError> {
    if !dir.join("Cargo.toml").is_file() {
        return Err(BuildError::NoManifest(dir.to_owned()));
    }
    let dir = dir.canonicalize().map_err(BuildError::file(dir))?;
    let package = cargo::Package::of(&dir)?;
    let toolchain = Toolchain::find_or_make(&dir, progress)?;
    let folder = cargo::target_folder(&package, &toolchain)?;
    let core_path = cargo::compile(&package, &toolchain, &folder, progress)?;
    let core = std::fs::read(&core_path).map_err(BuildError::file(&core_path))?;
    let not_a_strategy = |source| BuildError::NotAStrategy {
        package: package.name.clone(),
        source,
    };
    let component = windvane_host::wrap(&core).map_err(not_a_strategy)?;
    let info = windvane_host::validate(&component).map_err(not_a_strategy)?;
    if info.contract != ContractVersion::PRESENT {
        return Err(BuildError::OldContract {
            package: package.name.clone(),
            contract: info.contract,
            manifest: dir.join("Cargo.toml"),
        });
    }

    let path = folder
        .join("windvane")
        .join(format!("{}.wasm", package.name));
    cache::write_whole(&path, &component)?;
    let sha256 = hex::encode(Sha256::digest(&component));
    let bytes_len = component.len();
    progress(&format!(
        "Built {} ({bytes_len} bytes, sha256 {})",
        path.display(),
        &sha256[..16]
    ));
    Ok(Built {
        path,
        bytes_len,
        sha256,
        component,
        compiler: toolchain.version,
    })
}

#[cfg(test)]
mod tests;
