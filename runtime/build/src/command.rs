//! Runs commands in a clean environment: a build inside `cargo test` must not inherit the outer
//! build.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use super::BuildError;

/// How many lines of a failed command's output are shown.
const TAIL_LINES: usize = 60;

/// Prefixes of variables that hold the user's cargo settings. Every build keeps them.
const KEPT: [&str; 7] = [
    "CARGO_HOME",
    "CARGO_NET_",
    "CARGO_HTTP_",
    "CARGO_REGISTRY_",
    "CARGO_REGISTRIES_",
    "CARGO_SOURCE_",
    "CARGO_TERM_",
];

/// A command in `dir`, without the variables that an outer cargo or rustup sets for its own build:
/// wrappers, flags, target folder, profile, job server, toolchain.
pub(super) fn clean(program: impl AsRef<std::ffi::OsStr>, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let Some(text) = name.to_str() else { continue };
        let outer = text.starts_with("CARGO") && !KEPT.iter().any(|kept| text.starts_with(kept))
            || text.starts_with("RUSTC")
            || text.starts_with("RUSTFLAGS")
            || text.starts_with("RUSTDOC")
            || matches!(
                text,
                "RUSTUP_TOOLCHAIN" | "MAKEFLAGS" | "MFLAGS" | "NUM_JOBS" | "__CARGO_FIX"
            );
        if outer {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a command and returns its standard output. The error contains the end of its error output.
pub(super) fn output(mut command: Command) -> Result<String, Failure> {
    let program = name(&command);
    let output = command
        .output()
        .map_err(|source| Failure::start(&program, source))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let text = String::from_utf8_lossy(&output.stderr);
        Err(Failure::Failed {
            program,
            tail: tail(text.lines()),
        })
    }
}

/// Runs a command and passes each line of its standard error to `line`.
pub(super) fn watch(mut command: Command, line: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    let program = name(&command);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|source| Failure::start(&program, source))?;
    let mut lines = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let mut reader = BufReader::new(stderr);
        let mut bytes = Vec::new();
        while matches!(reader.read_until(b'\n', &mut bytes), Ok(1..)) {
            let text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
            bytes.clear();
            line(&text);
            lines.push(text);
        }
        // Data is left only if a line could not be read. Drain it, so that the child does not
        // block.
        let _ = reader.read_to_end(&mut bytes);
    }
    let status = child
        .wait()
        .map_err(|source| Failure::start(&program, source))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::Failed {
            program,
            tail: tail(lines.iter().map(String::as_str)),
        })
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The command could not be started.
    Start {
        program: String,
        source: std::io::Error,
    },
    /// The command ended with an error.
    Failed { program: String, tail: String },
}

impl Failure {
    fn start(program: &str, source: std::io::Error) -> Self {
        Self::Start {
            program: program.to_owned(),
            source,
        }
    }

    /// Converts the failure: a program that did not start becomes `BuildError::Program` with
    /// `hint`, and `failed` converts the end of the output.
    pub(super) fn or(
        self,
        hint: &'static str,
        failed: impl FnOnce(String) -> BuildError,
    ) -> BuildError {
        match self {
            Self::Start { program, source } => BuildError::Program {
                program,
                hint,
                source,
            },
            Self::Failed { tail, .. } => failed(tail),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Start { program, source } => write!(f, "cannot run {program}: {source}"),
            Self::Failed { program, tail } => write!(f, "{program} failed: {}", tail.trim()),
        }
    }
}

fn name(command: &Command) -> String {
    let program = Path::new(command.get_program());
    program
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The last lines, without cargo's progress lines.
fn tail<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let is_relevant = |line: &&str| {
        let line = line.trim_start();
        !["Compiling ", "Downloaded ", "Downloading ", "Fresh "]
            .iter()
            .any(|p| line.starts_with(p))
    };
    let lines: Vec<&str> = lines.filter(is_relevant).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
