//! The real binary, built as the tests are built, with a small helper to run it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

static PATH: OnceLock<PathBuf> = OnceLock::new();

/// Has all tests of this process run this binary.
///
/// # Panics
/// Another one was run already.
pub fn choose(path: &Path) {
    let chosen = PATH.get_or_init(|| path.to_owned());
    assert_eq!(chosen, path, "another binary was run already");
}

/// The binary under test: `WINDVANE_BIN` if set, else built beside the tests. It is built (which
/// takes no time when it is fresh) rather than looked for, so that no stale one is ever tested.
///
/// # Panics
/// It cannot be built: a test cannot go on.
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
        .args(["build", "--quiet", "-p", "windvane", "--bin", "windvane"]);
    cargo.arg("--target-dir").arg(target);
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
    panic!("cargo built no {}", binary.display());
}

/// The root of the repository.
///
/// # Panics
/// Never: the package is in a folder of the root.
pub fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// Runs the binary at the root of the repository, where relative paths of configurations start.
///
/// # Panics
/// It cannot be started.
#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
pub fn run<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    Command::new(path())
        .current_dir(root())
        .args(arguments)
        .output()
        .expect("the binary starts")
}

/// Runs the binary and demands success; answers what it printed.
///
/// # Panics
/// It fails: with what it said.
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
