//! The watchdog processes of a run, found by its data folder.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long they are waited for, on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(90);
/// From one look to the next.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Process ids of the watchdogs of the run with this data folder.
///
/// # Panics
/// The system does not show its processes.
#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
pub fn of(data: &Path) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("the system shows its processes");
    let data = data.display().to_string();
    let mut found = Vec::new();
    for process in processes.flatten() {
        let arguments = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments).into_owned();
        if arguments.starts_with("windvane\0watchdog\0") && arguments.contains(&data) {
            found.push(process.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

/// Kills one, as `kill -9` does.
pub fn kill(pid: &str) {
    // It may have ended already.
    let _ = Command::new("kill").args(["-9", pid]).status();
}

/// Waits until there is none any more.
///
/// # Panics
/// There still is one.
pub fn until_gone(data: &Path) {
    let begin = Instant::now();
    while let left = of(data)
        && !left.is_empty()
    {
        assert!(begin.elapsed() < PATIENCE, "{left:?} go on");
        std::thread::sleep(LOOK_EVERY);
    }
}
