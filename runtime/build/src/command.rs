//! Runs commands in a clean environment: a build inside `cargo test` must not inherit the outer
//! build.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use windvane_files::BoundedLines;

use super::program::program;
use super::rules::{Source, Step};
use super::{BuildError, confinement};

/// The hidden command of the binary that confines itself and becomes another program.
pub(super) const BUILD_STEP: &str = "build-step";
/// Exit code of [`BUILD_STEP`] if the other program cannot be started.
pub const NOT_STARTED: u8 = 127;

/// How many lines of a failed command's output are shown.
const TAIL_LINES: usize = 60;
/// A longer line of a command is cut.
const LINE_BYTES_MAX: usize = 16 << 10;
/// A command that writes more is not usable: the largest output is that of `cargo metadata`.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;

/// Variables that a program of a build may see. Build scripts see them too, so no variable is here
/// that may hold a key: every other variable is removed.
const KEPT: [&str; 30] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "TZ",
    "TERM",
    "TMPDIR",
    // Cargo and rustup.
    "CARGO_HOME",
    "CARGO_REGISTRY_DEFAULT",
    "RUSTUP_HOME",
    "RUSTUP_DIST_SERVER",
    "RUSTUP_UPDATE_ROOT",
    "RUSTUP_AUTO_INSTALL",
    "RUSTUP_USE_CURL",
    "WINDVANE_TOOLCHAIN",
    // Compilers of native code, for build scripts.
    "CC",
    "CXX",
    "AR",
    "LD_LIBRARY_PATH",
    // Proxies and certificates.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Prefixes of variables with the user's settings of cargo and of the language.
const KEPT_PREFIXES: [&str; 6] = [
    "CARGO_NET_",
    "CARGO_HTTP_",
    "CARGO_REGISTRIES_",
    "CARGO_SOURCE_",
    "CARGO_TERM_",
    "LC_",
];

/// Ends of variables with access tokens, and with commands that give one. A private registry needs
/// its token in cargo's file of credentials.
const SECRET_ENDS: [&str; 3] = ["_TOKEN", "_SECRET_KEY", "_CREDENTIAL_PROVIDER"];

/// A command in `dir` that sees only the permitted variables. Those that an outer cargo or rustup
/// sets for its own build are not among them: wrappers, flags, target folder, profile, job server,
/// toolchain.
pub(super) fn clean(program: impl AsRef<OsStr>, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).stdin(Stdio::null()).env_clear();
    command.envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_kept)));
    command
}

pub(super) fn is_kept(name: &str) -> bool {
    let is_setting = KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let is_secret = SECRET_ENDS.iter().any(|end| name.ends_with(end));
    KEPT.contains(&name) || is_setting && !is_secret
}

/// Why builds of this process cannot be confined; `None` if they can.
pub(super) fn unconfined() -> Option<String> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let missing = || match program() {
        None => Some("this program has no command for it".to_owned()),
        Some(_) => confinement::missing(),
    };
    REASON.get_or_init(missing).clone()
}

impl Source<'_> {
    /// A command in the strategy's folder, confined where the system permits it. It may write only
    /// below `writable`, and what its kind of step writes.
    pub(super) fn command(
        &self,
        name: &str,
        kind: Step,
        writable: &[&Path],
    ) -> Result<Command, BuildError> {
        let (Some(step), None) = (program(), unconfined()) else {
            return Ok(clean(name, self.dir));
        };
        let plan = self.plan(kind, writable)?;
        let plan = serde_json::to_string(&plan).map_err(|error| BuildError::File {
            path: self.dir.to_owned(),
            source: error.into(),
        })?;
        let mut command = clean(step, self.dir);
        command.args([BUILD_STEP, "--plan", &plan, "--", name]);
        Ok(command)
    }
}

/// Runs a command and returns its standard output. The error contains the end of its error output.
pub(super) fn output(mut command: Command) -> Result<String, Failure> {
    let program = name(&command);
    let failed = |source| Failure::start(&program, source);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let stderr = child.stderr.take();
    let errors = std::thread::spawn(move || stderr.map(|pipe| last_lines(pipe, &mut |_| {})));
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        // The command ends when its closed pipe refuses what is beyond the limit.
        let read = stdout.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(failed)?;
    }
    let status = child.wait().map_err(failed)?;
    let errors = errors.join().ok().flatten().unwrap_or_default();
    if bytes.len() as u64 > OUTPUT_BYTES_MAX {
        let text = format!("it wrote more than {OUTPUT_BYTES_MAX} bytes");
        Err(Failure::ended(program, status, text))
    } else if status.success() {
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    } else {
        let tail = tail(errors.iter().map(String::as_str));
        Err(Failure::ended(program, status, tail))
    }
}

/// Runs a command and passes each line of its standard error to `line`.
pub(super) fn watch(mut command: Command, line: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    let program = name(&command);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|source| Failure::start(&program, source))?;
    let stderr = child.stderr.take();
    let lines = stderr
        .map(|pipe| last_lines(pipe, line))
        .unwrap_or_default();
    let status = child
        .wait()
        .map_err(|source| Failure::start(&program, source))?;
    if status.success() {
        Ok(())
    } else {
        let tail = tail(lines.iter().map(String::as_str));
        Err(Failure::ended(program, status, tail))
    }
}

/// Reads a pipe to its end, passes each line to `line`, and returns the last ones. Macros and build
/// scripts of a strategy may write without end.
fn last_lines(pipe: impl Read, line: &mut dyn FnMut(&str)) -> VecDeque<String> {
    let mut lines = VecDeque::new();
    for text in BoundedLines::new(pipe, LINE_BYTES_MAX) {
        let text = text.trim_end();
        line(text);
        lines.push_back(text.to_owned());
        if lines.len() > TAIL_LINES {
            lines.pop_front();
        }
    }
    lines
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

    /// A program that ended with an error, or that [`BUILD_STEP`] could not start.
    fn ended(program: String, status: ExitStatus, tail: String) -> Self {
        if status.code() == Some(i32::from(NOT_STARTED)) {
            return Self::start(&program, std::io::Error::other(tail));
        }
        Self::Failed { program, tail }
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

/// The program's name, also if [`BUILD_STEP`] starts it.
fn name(command: &Command) -> String {
    let mut arguments = command.get_args();
    let is_step = arguments.next().is_some_and(|first| first == BUILD_STEP);
    let inner = arguments.skip_while(|one| *one != "--").nth(1);
    let program = inner.filter(|_| is_step).unwrap_or(command.get_program());
    let program = Path::new(program);
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
