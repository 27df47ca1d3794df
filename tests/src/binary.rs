//! Builds the real binary with the profile of the tests, and runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// A test of the package `windvane`. To build it, cargo builds the binary with the same features of the
/// dependencies as `cargo test --workspace` does, so that nothing large is compiled twice.
const WITH_BINARY: &str = "command_line";

static PATH: OnceLock<PathBuf> = OnceLock::new();

/// Makes all tests of this process use this binary.
///
/// # Panics
/// If another binary was run already.
pub fn choose(path: &Path) {
    let chosen = PATH.get_or_init(|| path.to_owned());
    assert_eq!(chosen, path, "another binary was run already");
}

/// The binary under test: `WINDVANE_BIN` if set, otherwise a binary built beside the tests. It is
/// always built, so that no stale binary is tested; this takes no time when it is up to date.
///
/// # Panics
/// If it cannot be built.
pub fn path() -> &'static Path {
    PATH.get_or_init(|| match std::env::var_os("WINDVANE_BIN") {
        Some(path) => PathBuf::from(path),
        None => build(),
    })
}

#[expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]
fn build() -> PathBuf {
    // This executable is <target>/<profile>/deps/<name>.
    let exe = std::env::current_exe().expect("the test knows its own place");
    let profile = exe
        .ancestors()
        .nth(2)
        .expect("tests are built into <profile>/deps");
    let target = profile.parent().expect("<profile> is in the target folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(root())
        .args(["test", "--no-run", "--quiet", "--workspace"])
        .args(["--test", WITH_BINARY]);
    cargo.arg("--target-dir").arg(target);
    // Build scripts of dependencies run again if these variables change, and cargo sets them for a test.
    for (name, _) in std::env::vars_os() {
        let of_test = ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_PRIMARY_"];
        let text = name.to_string_lossy();
        if of_test.iter().any(|prefix| text.starts_with(prefix)) {
            cargo.env_remove(&name);
        }
    }
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.status().expect("cargo runs");
    assert!(status.success(), "windvane does not build: {status}");
    let binary = profile
        .join("windvane")
        .with_extension(std::env::consts::EXE_EXTENSION);
    if binary.exists() {
        return binary;
    }
    panic!("cargo did not build {}", binary.display());
}

/// The root of the repository.
///
/// # Panics
/// Never: the package is in a folder of the root.
pub fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// Runs the binary in the root of the repository; relative paths in configurations start there.
///
/// # Panics
/// If the binary cannot be started.
#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
pub fn run<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    Command::new(path())
        .current_dir(root())
        .args(arguments)
        .output()
        .expect("the binary starts")
}

/// Runs the binary, requires success, and returns its stdout.
///
/// # Panics
/// If it fails; the message has its stderr.
pub fn succeed<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> String {
    let output = run(arguments);
    assert!(
        output.status.success(),
        "{}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
