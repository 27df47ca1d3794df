//! Finds a compiler with the target `wasm32-unknown-unknown`, or creates one.
//!
//! It tries, in this order:
//!
//! - the compiler that cargo would use, if it has the target
//! - a private toolchain that an earlier build created
//! - `rustup target add`
//! - a new private toolchain from Debian's packages
//!
//! The variable `WINDVANE_TOOLCHAIN` limits this to `installed`, `rustup` or `debian`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{BuildError, command, debian};
use sha2::{Digest, Sha256};

/// The compilation target of strategies.
pub(super) const TARGET: &str = "wasm32-unknown-unknown";

/// Advice for a machine without cargo.
pub(super) const NO_CARGO: &str = "install Rust (https://rustup.rs) so that cargo is on the PATH";

/// Longest wait for `rustup target add`, seconds. Without a network it may retry for a long time.
const RUSTUP_SECONDS_MAX: u64 = 120;

/// A compiler for strategies.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The version as `rustc --version` prints it.
    pub version: String,
    /// Short name that is unique per compiler. It is the name of the compiler's target folder.
    pub id: String,
    private: Option<Private>,
}

/// Paths that a compiler outside rustup needs.
#[derive(Clone, Debug)]
pub(super) struct Private {
    pub(super) rustc: PathBuf,
    pub(super) libraries: PathBuf,
    pub(super) linker: PathBuf,
}

/// The setting of `WINDVANE_TOOLCHAIN`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    Auto,
    Installed,
    Rustup,
    Debian,
}

impl Choice {
    fn from_environment() -> Result<Self, BuildError> {
        let value = std::env::var("WINDVANE_TOOLCHAIN").unwrap_or_default();
        match value.as_str() {
            "" | "auto" => Ok(Self::Auto),
            "installed" => Ok(Self::Installed),
            "rustup" => Ok(Self::Rustup),
            "debian" => Ok(Self::Debian),
            _ => Err(BuildError::NoToolchain(format!(
                "WINDVANE_TOOLCHAIN is {value:?}; it must be auto, installed, rustup or debian"
            ))),
        }
    }
}

impl Toolchain {
    /// Finds or creates the compiler for a strategy in `dir`. The strategy's `rust-toolchain.toml`
    /// applies.
    pub fn find_or_make(dir: &Path, progress: &mut dyn FnMut(&str)) -> Result<Self, BuildError> {
        let choice = Choice::from_environment()?;
        let mut tried = Vec::new();
        if choice != Choice::Debian {
            match Self::installed(dir)? {
                Some(found) => return Ok(found),
                None => tried.push("the installed compiler does not have the target".to_owned()),
            }
        }
        if matches!(choice, Choice::Auto | Choice::Debian)
            && let Some(found) = debian::find(dir)?
        {
            return Ok(found);
        }
        if matches!(choice, Choice::Auto | Choice::Rustup) {
            progress("Asking rustup for the target wasm32-unknown-unknown");
            match add_with_rustup(dir) {
                Ok(()) => match Self::installed(dir)? {
                    Some(found) => return Ok(found),
                    None => tried.push("rustup added the target to another toolchain".to_owned()),
                },
                Err(reason) => tried.push(reason),
            }
        }
        if matches!(choice, Choice::Auto | Choice::Debian) {
            match debian::make(dir, progress) {
                Ok(made) => return Ok(made),
                Err(reason) => tried.push(reason),
            }
        }
        Err(BuildError::NoToolchain(tried.join("; ")))
    }

    /// Finds a compiler that already exists. It downloads and creates nothing.
    pub fn find(dir: &Path) -> Result<Option<Self>, BuildError> {
        match Self::installed(dir)? {
            Some(found) => Ok(Some(found)),
            None => debian::find(dir),
        }
    }

    /// The compiler that cargo would use in `dir`, if it has the target.
    fn installed(dir: &Path) -> Result<Option<Self>, BuildError> {
        let library = sysroot(dir)?.join("lib/rustlib").join(TARGET).join("lib");
        let has_std = std::fs::read_dir(&library).is_ok_and(|entries| {
            entries
                .flatten()
                .any(|e| e.file_name().to_string_lossy().starts_with("libstd-"))
        });
        if !has_std {
            return Ok(None);
        }
        let mut version = command::clean("rustc", dir);
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
        Self {
            version,
            id: hex::encode(key)[..12].to_owned(),
            private,
        }
    }

    /// `cargo` in `dir` with this compiler, in a clean environment.
    pub(super) fn cargo(&self, dir: &Path) -> Command {
        let mut cargo = command::clean("cargo", dir);
        if let Some(private) = &self.private {
            private.apply(&mut cargo);
        }
        cargo
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

/// Root folder of the compiler that cargo would use in `dir`.
fn sysroot(dir: &Path) -> Result<PathBuf, BuildError> {
    let mut query = command::clean("rustc", dir);
    query.args(["--print", "sysroot"]);
    let text =
        command::output(query).map_err(|failure| failure.or(NO_CARGO, |tail| no_rustc(&tail)))?;
    Ok(PathBuf::from(text.trim()))
}

/// A linker for WebAssembly: the one of the installed toolchain, or one on the PATH.
pub(super) fn linker(dir: &Path) -> Option<PathBuf> {
    let rustlib = sysroot(dir).ok()?.join("lib/rustlib");
    let hosts = std::fs::read_dir(rustlib).ok()?;
    let bundled = hosts.flatten().map(|host| host.path().join("bin/rust-lld"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = ["rust-lld", "wasm-ld", "lld"];
    let named = std::env::split_paths(&path)
        .flat_map(|folder| on_path.map(|name| folder.join(name)))
        .collect::<Vec<_>>();
    bundled.chain(named).find(|candidate| candidate.is_file())
}

/// Runs `rustup target add` without showing its output.
fn add_with_rustup(dir: &Path) -> Result<(), String> {
    let mut add = command::clean("rustup", dir);
    add.args(["target", "add", TARGET])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = add
        .spawn()
        .map_err(|error| format!("rustup cannot be started: {error}"))?;
    let deadline = Instant::now() + Duration::from_secs(RUSTUP_SECONDS_MAX);
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(_)) => return Err("rustup cannot download the target".to_owned()),
            Ok(None) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(None) | Err(_) => {
                // The process may have ended meanwhile. Then there is nothing to kill.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!(
                    "rustup did not finish within {RUSTUP_SECONDS_MAX} s"
                ));
            }
        }
    }
}
