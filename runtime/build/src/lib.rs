//! Builds a strategy's folder into a component: what `windvane build DIR` does, and every verb
//! that is given a folder instead of a module.
//!
//! The compiler is the user's own when it has the target `wasm32-unknown-unknown`, else a private
//! one (see [`toolchain`]). Nothing of the strategy runs here, but its build scripts and macros
//! do, as with any `cargo build`.

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
    /// The component's file.
    pub path: PathBuf,
    /// Its size.
    pub bytes_len: usize,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its bytes.
    pub component: Vec<u8>,
    /// The compiler that built it, as `rustc --version` says.
    pub compiler: String,
}

/// Why a folder cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is no `Cargo.toml`.
    #[error("{0} has no Cargo.toml: give the folder of a strategy, or a .wasm file")]
    NoManifest(PathBuf),
    /// The manifest is a workspace without a package of its own.
    #[error("{0} is a workspace, not a strategy: give the folder of one of its members")]
    NoPackage(PathBuf),
    /// The package is no dynamic library.
    #[error(
        "package {0} is no WebAssembly module: add `[lib] crate-type = [\"cdylib\", \"rlib\"]` to \
         its Cargo.toml"
    )]
    NotAModule(String),
    /// A program is missing.
    #[error("cannot run {program}: {source}; {hint}")]
    Program {
        /// The program.
        program: String,
        /// What to do.
        hint: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// No compiler for the target could be had.
    #[error(
        "no compiler for wasm32-unknown-unknown: {0}. Where rustup can download, \
         `rustup target add wasm32-unknown-unknown` gives one; on Debian its packages are used"
    )]
    NoToolchain(String),
    /// The compiler refuses the strategy.
    #[error("{package} does not compile:\n{tail}")]
    Compile {
        /// The package.
        package: String,
        /// The end of what cargo wrote.
        tail: String,
    },
    /// What was built is not a strategy.
    #[error("{package} compiles, but is not a strategy: {source}")]
    NotAStrategy {
        /// The package.
        package: String,
        /// What the host says.
        source: windvane_host::LoadError,
    },
    /// It was built with an SDK of an earlier version of the contract.
    #[error(
        "{package} compiles, but with an SDK of strategy contract {contract}, and this program runs strategies of \
         contract {}. Name the windvane-sdk of this version in {}, and build again",
        ContractVersion::PRESENT,
        manifest.display()
    )]
    OldContract {
        /// The package.
        package: String,
        /// Its contract.
        contract: ContractVersion,
        /// Where its SDK is named.
        manifest: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl BuildError {
    fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}

/// Builds the strategy in `dir`. `progress` is told one line per step, for a terminal.
///
/// The first build on a machine without the target makes a toolchain, which takes minutes;
/// later ones take what cargo takes. The same sources give the same bytes on the same machine.
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
    let sha256 = hex::encode(&Sha256::digest(&component));
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
