//! The executable with the hidden commands `build-step` and `compile-module`. The binary registers
//! itself. A program without them, such as a unit test, builds without confinement and compiles in
//! its own process.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// This program's executable, even if the file was replaced since the start.
const THIS_PROGRAM: &str = "/proc/self/exe";

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Says that this process runs a program with the hidden commands.
pub fn use_this_program() {
    if Path::new(THIS_PROGRAM).exists() {
        use_program(PathBuf::from(THIS_PROGRAM));
    } else if let Ok(file) = std::env::current_exe() {
        use_program(file);
    }
}

/// Uses another executable with the hidden commands. Only the first call of a process has an
/// effect.
pub fn use_program(file: PathBuf) {
    let _ = PROGRAM.set(file);
}

/// The executable, if there is one.
pub(crate) fn program() -> Option<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path)
}
