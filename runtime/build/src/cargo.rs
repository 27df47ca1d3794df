//! Runs `cargo fetch` and `cargo build` for one package, with a separate target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::command::Failure;
use super::folders::{cargo_home, rustup_home};
use super::rules::{Source, Step};
use super::toolchain::{NO_CARGO, TARGET, Toolchain};
use super::{BuildError, cache, command};

/// The package in a folder.
#[derive(Debug)]
pub(super) struct Package {
    /// Name of the package.
    pub(super) name: String,
    /// Folder of the package.
    pub(super) dir: PathBuf,
    /// File name of the library, without extension.
    library: String,
    /// Root of its workspace. For a package outside a workspace, its own folder.
    workspace: PathBuf,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetadataPackage>,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct MetadataPackage {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<MetadataTarget>,
}

#[derive(Deserialize)]
struct MetadataTarget {
    name: String,
    crate_types: Vec<String>,
}

impl Package {
    /// Reads the package in the folder, which contains a `Cargo.toml`.
    pub(super) fn of(source: Source<'_>) -> Result<Self, BuildError> {
        let dir = source.dir;
        let mut query = source.command("cargo", Step::Query, &[])?;
        query.args(["metadata", "--no-deps", "--format-version", "1"]);
        let package = dir.display().to_string();
        let compile = |tail| BuildError::Compile {
            package: package.clone(),
            tail,
        };
        let text = command::output(query).map_err(|failure| failure.or(NO_CARGO, compile))?;
        let metadata: Metadata = serde_json::from_str(&text).map_err(|error| {
            compile(format!(
                "cannot parse the output of cargo metadata: {error}"
            ))
        })?;
        let manifest = dir.join("Cargo.toml");
        let is_ours = |package: &MetadataPackage| {
            package
                .manifest_path
                .canonicalize()
                .is_ok_and(|path| path == manifest)
        };
        let Some(found) = metadata.packages.into_iter().find(is_ours) else {
            return Err(BuildError::NoPackage(dir.to_owned()));
        };
        let module = |target: &&MetadataTarget| target.crate_types.iter().any(|t| t == "cdylib");
        let Some(library) = found.targets.iter().find(module) else {
            return Err(BuildError::NotAModule(found.name));
        };
        Ok(Self {
            library: library.name.replace('-', "_"),
            name: found.name,
            dir: dir.to_owned(),
            workspace: metadata.workspace_root,
        })
    }
}

/// The target folder: one per workspace and compiler. So artifacts of two compilers never mix, and
/// an outer `cargo` process never blocks ours. A strategy that is its own workspace uses its
/// `target` folder. Members of a workspace share one folder in the cache, so that the SDK is
/// compiled only once.
pub(super) fn target_folder(p: &Package, toolchain: &Toolchain) -> Result<PathBuf, BuildError> {
    if p.workspace.canonicalize().is_ok_and(|root| root == p.dir) {
        return Ok(p.dir.join("target").join("windvane").join(&toolchain.id));
    }
    let key = Sha256::digest(format!("{}\n{}", p.workspace.display(), toolchain.id));
    Ok(cache::folder()?.join("build").join(&hex::encode(key)[..16]))
}

/// Downloads what the package needs. This is the only step with a network. Returns the end of
/// cargo's output if it fails: what is already here may be enough for the build.
pub(super) fn fetch(
    package: &Package,
    source: Source<'_>,
    toolchain: &Toolchain,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Option<String>, BuildError> {
    let lock = package.workspace.join("Cargo.lock");
    let is_locked = lock.is_file();
    if !is_locked {
        // Where the step may not create files, it can still fill an empty one.
        std::fs::File::create(&lock).map_err(BuildError::file(&lock))?;
    }
    let mut writable = vec![folder];
    if !is_locked {
        writable.push(&lock);
    }
    let mut fetch = toolchain.cargo(source, Step::Fetch, &writable)?;
    fetch
        .args(["fetch", "--target", TARGET])
        .env("TMPDIR", private_tmp(folder)?);
    if let Some(host) = &toolchain.host {
        fetch.args(["--target", host]);
    }
    if is_locked {
        fetch.arg("--locked");
    }
    let fetched = watch(fetch, progress);
    let is_empty = || std::fs::metadata(&lock).is_ok_and(|meta| meta.len() == 0);
    if !is_locked && is_empty() {
        let _ = std::fs::remove_file(&lock);
    }
    match fetched {
        Ok(()) => Ok(None),
        Err(failure @ Failure::Start { .. }) => {
            Err(failure.or(NO_CARGO, |tail| compile_error(package, tail)))
        }
        Err(Failure::Failed { tail, .. }) => Ok(Some(tail)),
    }
}

/// Compiles the package without a network. Returns the path of its core module.
pub(super) fn compile(
    package: &Package,
    source: Source<'_>,
    toolchain: &Toolchain,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, BuildError> {
    progress(&format!(
        "Building {} with {}",
        package.name, toolchain.version
    ));
    std::fs::create_dir_all(folder).map_err(BuildError::file(folder))?;
    let not_fetched = fetch(package, source, toolchain, folder, progress)?;
    let mut build = toolchain.cargo(source, Step::Compile, &[folder])?;
    let tmp = private_tmp(folder)?;
    // Programs look for settings of the user in his home folder, which a build cannot read.
    for (variable, home) in [
        ("CARGO_HOME", cargo_home()),
        ("RUSTUP_HOME", rustup_home()),
        ("HOME", Some(tmp.clone())),
    ] {
        build.envs(home.map(|home| (variable, home)));
    }
    build
        .args(["build", "--release", "--lib", "--offline", "--locked"])
        .args(["--target", TARGET])
        .env("TMPDIR", tmp)
        .env("CARGO_TARGET_DIR", folder)
        // Cargo ignores profiles of workspace members. These variables give all strategies the same
        // one.
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3")
        .env("CARGO_PROFILE_RELEASE_LTO", "true")
        .env("CARGO_PROFILE_RELEASE_PANIC", "abort")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        // Keep function names, because stack traces of faults show them.
        .env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo")
        .env("CARGO_PROFILE_RELEASE_INCREMENTAL", "false")
        .env("CARGO_ENCODED_RUSTFLAGS", remap(package).join("\u{1f}"));
    let built = watch(build, progress);
    built.map_err(|failure| {
        failure.or(NO_CARGO, |tail| match not_fetched {
            Some(fetch) => BuildError::Fetch {
                package: package.name.clone(),
                dir: package.dir.clone(),
                fetch,
                build: tail,
            },
            None => compile_error(package, tail),
        })
    })?;
    Ok(folder
        .join(TARGET)
        .join("release")
        .join(format!("{}.wasm", package.library)))
}

fn compile_error(package: &Package, tail: String) -> BuildError {
    BuildError::Compile {
        package: package.name.clone(),
        tail,
    }
}

/// Runs a step of the build, and shows what it compiles and downloads.
fn watch(step: Command, progress: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    let mut line = |text: &str| {
        let text = text.trim_start();
        if text.starts_with("Compiling ") || text.starts_with("Downloading ") {
            progress(text);
        }
    };
    command::watch(step, &mut line)
}

/// A folder for temporary files that only this build uses.
fn private_tmp(folder: &Path) -> Result<PathBuf, BuildError> {
    let tmp = folder.join("tmp");
    std::fs::create_dir_all(&tmp).map_err(BuildError::file(&tmp))?;
    Ok(tmp)
}

/// Keeps this machine's paths out of the module, so that the folder of the sources does not change
/// it.
fn remap(package: &Package) -> Vec<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let mut flags = vec![format!(
        "--remap-path-prefix={}=/strategy",
        package.workspace.display()
    )];
    flags.extend(home.map(|home| format!("--remap-path-prefix={}=/cargo", home.display())));
    flags
}
