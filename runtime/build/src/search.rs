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

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::rules::{BuildRules, Source, Step};
use super::toolchain::{TARGET, Toolchain};
use super::{BuildError, debian};

/// Longest wait for `rustup target add`, seconds. Without a network it may retry for a long time.
const RUSTUP_SECONDS_MAX: u64 = 120;

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
    /// Finds or creates the compiler for a strategy. The strategy's `rust-toolchain.toml`
    /// applies.
    pub(super) fn find_or_make(
        source: Source<'_>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, BuildError> {
        let choice = Choice::from_environment()?;
        let mut tried = Vec::new();
        if choice != Choice::Debian {
            match Self::installed(source)? {
                Some(found) => return Ok(found),
                None => tried.push("the installed compiler does not have the target".to_owned()),
            }
        }
        if matches!(choice, Choice::Auto | Choice::Debian)
            && let Some(found) = debian::find(source)?
        {
            return Ok(found);
        }
        if matches!(choice, Choice::Auto | Choice::Rustup) {
            progress("Asking rustup for the target wasm32-unknown-unknown");
            match add_with_rustup(source) {
                Ok(()) => match Self::installed(source)? {
                    Some(found) => return Ok(found),
                    None => tried.push("rustup added the target to another toolchain".to_owned()),
                },
                Err(reason) => tried.push(reason),
            }
        }
        if matches!(choice, Choice::Auto | Choice::Debian) {
            match debian::make(source, progress) {
                Ok(made) => return Ok(made),
                Err(reason) => tried.push(reason),
            }
        }
        Err(BuildError::NoToolchain(tried.join("; ")))
    }

    /// Finds a compiler that already exists. It downloads and creates nothing.
    pub fn find(dir: &Path) -> Result<Option<Self>, BuildError> {
        let source = Source {
            dir,
            rules: &BuildRules::default(),
        };
        match Self::installed(source)? {
            Some(found) => Ok(Some(found)),
            None => debian::find(source),
        }
    }
}

/// Runs `rustup target add` without showing its output.
fn add_with_rustup(source: Source<'_>) -> Result<(), String> {
    let add = source.command("rustup", Step::Query, &[]);
    let mut add = add.map_err(|error| error.to_string())?;
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
