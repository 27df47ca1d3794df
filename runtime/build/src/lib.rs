//! Builds the folder of a strategy into a component. `windvane build DIR` does this, and so does
//! every command that gets a folder instead of a module.
//!
//! The compiler is the user's own if it has the target `wasm32-unknown-unknown`, otherwise a
//! private one (see [`toolchain`]). The strategy itself does not run, but its build scripts and
//! macros do, as in any `cargo build`.
//!
//! `backtest`, `replay`, `live`, `cli` and the fault simulator use [`modules`] to get their loaded
//! modules. The crate must not contain the venue, a clock, or a decision for a strategy.

mod cache;
mod cargo;
mod command;
mod debian;
mod error;
pub mod modules;
mod search;
mod toolchain;

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use windvane_host::ContractVersion;

pub use cache::{folder as cache_folder, remove_toolchains};
pub use error::BuildError;
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
