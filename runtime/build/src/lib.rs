//! Builds the folder of a strategy into a component. `windvane build DIR` does this, and so does
//! every command that gets a folder instead of a module.
//!
//! The compiler is the user's own if it has the target `wasm32-unknown-unknown`, otherwise a
//! private one (see [`toolchain`]). The strategy itself does not run, but its build scripts and
//! macros do, as in any `cargo build`. They see a short list of environment variables and the sources, the
//! toolchain and the system, but no data folder, no secret file and no socket ([`confinement`]). None of
//! their processes outlives the build ([`step`]).
//!
//! `backtest`, `replay`, `live`, `cli` and the fault simulator use [`modules`] to get their loaded
//! modules. The crate must not contain the venue, a clock, or a decision for a strategy.

mod cache;
mod cargo;
mod command;
mod confinement;
mod debian;
mod error;
mod folders;
pub mod modules;
mod program;
mod reachable;
mod rules;
mod search;
mod sources;
pub mod step;
mod toolchain;

use std::path::{Path, PathBuf};

use rules::Source;
use sha2::{Digest, Sha256};
use windvane_host::ContractVersion;

pub use cache::{folder as cache_folder, remove_toolchains, write_whole};
pub use command::NOT_STARTED;
pub use confinement::StepPlan;
pub use error::BuildError;
pub use folders::BuildFolders;
pub use program::{use_program, use_this_program};
pub use rules::BuildRules;
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

/// Builds the strategy in `dir`. No program of the build may read what `rules` deny. `progress`
/// gets one line per step, to show in a terminal.
///
/// On a machine without the target, the first build creates a toolchain, which takes minutes. Later
/// builds take as long as cargo does. On one machine, the same sources give the same bytes.
pub fn build(
    dir: &Path,
    rules: &BuildRules,
    progress: &mut dyn FnMut(&str),
) -> Result<Built, BuildError> {
    if !dir.join("Cargo.toml").is_file() {
        return Err(BuildError::NoManifest(dir.to_owned()));
    }
    let dir = dir.canonicalize().map_err(BuildError::file(dir))?;
    check_confinement(&dir, rules)?;
    let source = Source { dir: &dir, rules };
    let package = cargo::Package::of(source)?;
    let toolchain = Toolchain::find_or_make(source, progress)?;
    let folder = cargo::target_folder(&package, &toolchain)?;
    let core_path = cargo::compile(&package, source, &toolchain, &folder, progress)?;
    let core = windvane_files::read_bounded(&core_path, modules::MODULE_BYTES_MAX)
        .map_err(BuildError::file(&core_path))?;
    let not_a_strategy = |source| BuildError::NotAStrategy {
        package: package.name.clone(),
        source,
    };
    let wrapped = modules::compile::wrap(&core, rules.compile());
    let (component, contract) = wrapped.map_err(not_a_strategy)?;
    if contract != ContractVersion::PRESENT {
        return Err(BuildError::OldContract {
            package: package.name.clone(),
            contract,
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

/// Refuses or reports a build that can read what it must not.
fn check_confinement(dir: &Path, rules: &BuildRules) -> Result<(), BuildError> {
    let Some(reason) = command::unconfined() else {
        if !confinement::has_seccomp() {
            tracing::warn!(
                dir = %dir.display(),
                "this system has no seccomp: the build scripts of a strategy can use the network, and leave \
                 processes behind. They can read their sources, but no keys. Build only sources that you trust"
            );
        }
        return reachable::check_settings(&rules::settings(dir));
    };
    if rules.is_required() {
        let dir = dir.to_owned();
        return Err(BuildError::NotConfined { dir, reason });
    }
    if program::program().is_some() {
        tracing::warn!(
            dir = %dir.display(),
            reason,
            "this system cannot confine the build of a strategy: its build scripts can read every \
             file of this user, also keys and data folders. Build only sources that you trust"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
