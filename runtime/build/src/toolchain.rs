//! A compiler with the target `wasm32-unknown-unknown`: where its programs are, and how to run cargo
//! with it. `search` finds or creates one.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::rules::{Source, Step};
use super::{BuildError, command};
use sha2::{Digest, Sha256};

/// The compilation target of strategies.
pub(super) const TARGET: &str = "wasm32-unknown-unknown";

/// Advice for a machine without cargo.
pub(super) const NO_CARGO: &str = "install Rust (https://rustup.rs) so that cargo is on the PATH";

/// A compiler for strategies.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The version as `rustc --version` prints it.
    pub version: String,
    /// Short name that is unique per compiler. It is the name of the compiler's target folder.
    pub id: String,
    /// The target of the compiler's own machine, for build scripts.
    pub(super) host: Option<String>,
    private: Option<Private>,
}

/// Paths that a compiler outside rustup needs.
#[derive(Clone, Debug)]
pub(super) struct Private {
    pub(super) rustc: PathBuf,
    pub(super) libraries: PathBuf,
    pub(super) linker: PathBuf,
}

impl Toolchain {
    /// The compiler that cargo would use in the strategy's folder, if it has the target.
    pub(super) fn installed(source: Source<'_>) -> Result<Option<Self>, BuildError> {
        let library = sysroot(source)?
            .join("lib/rustlib")
            .join(TARGET)
            .join("lib");
        let has_std = std::fs::read_dir(&library).is_ok_and(|entries| {
            entries
                .flatten()
                .any(|e| e.file_name().to_string_lossy().starts_with("libstd-"))
        });
        if !has_std {
            return Ok(None);
        }
        let mut version = source.command("rustc", Step::Query, &[])?;
        version.arg("-vV");
        let text = command::output(version)
            .map_err(|failure| failure.or(NO_CARGO, |tail| no_rustc(&tail)))?;
        Ok(Some(Self::new(&text, None)))
    }

    /// Creates the description of a compiler from the output of `rustc -vV`.
    pub(super) fn new(verbose_version: &str, private: Option<Private>) -> Self {
        let origin = if private.is_some() {
            "private"
        } else {
            "installed"
        };
        let key = Sha256::digest(format!("{origin}\n{verbose_version}"));
        let version = verbose_version.lines().next().unwrap_or("rustc").to_owned();
        let mut lines = verbose_version.lines();
        let host = lines.find_map(|line| line.strip_prefix("host: "));
        Self {
            version,
            host: host.map(str::to_owned),
            id: hex::encode(key)[..12].to_owned(),
            private,
        }
    }

    /// `cargo` in the strategy's folder with this compiler, in a clean environment. It may write
    /// below `writable`.
    pub(super) fn cargo(
        &self,
        source: Source<'_>,
        kind: Step,
        writable: &[&Path],
    ) -> Result<Command, BuildError> {
        let mut cargo = source.command("cargo", kind, writable)?;
        // A folder's `.cargo/config.toml` may name programs to run instead of the compiler.
        cargo
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", "");
        if let Some(private) = &self.private {
            private.apply(&mut cargo);
        }
        Ok(cargo)
    }
}

impl Private {
    pub(super) fn apply(&self, command: &mut Command) {
        command
            .env("RUSTC", &self.rustc)
            .env("LD_LIBRARY_PATH", &self.libraries)
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", &self.linker);
    }
}

fn no_rustc(tail: &str) -> BuildError {
    BuildError::NoToolchain(format!("rustc fails: {tail}"))
}

/// Root folder of the compiler that cargo would use in the strategy's folder.
fn sysroot(source: Source<'_>) -> Result<PathBuf, BuildError> {
    let mut query = source.command("rustc", Step::Query, &[])?;
    query.args(["--print", "sysroot"]);
    let text =
        command::output(query).map_err(|failure| failure.or(NO_CARGO, |tail| no_rustc(&tail)))?;
    Ok(PathBuf::from(text.trim()))
}

/// A linker for WebAssembly: the one of the installed toolchain, or one on the PATH.
pub(super) fn linker(source: Source<'_>) -> Option<PathBuf> {
    let rustlib = sysroot(source).ok()?.join("lib/rustlib");
    let hosts = std::fs::read_dir(rustlib).ok()?;
    let bundled = hosts.flatten().map(|host| host.path().join("bin/rust-lld"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = ["rust-lld", "wasm-ld", "lld"];
    let named = std::env::split_paths(&path)
        .flat_map(|folder| on_path.map(|name| folder.join(name)))
        .collect::<Vec<_>>();
    bundled.chain(named).find(|candidate| candidate.is_file())
}
