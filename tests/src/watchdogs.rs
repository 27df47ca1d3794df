//! Finds the watchdog processes of a run by its data folder.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Longest wait for the watchdogs to end, on a machine that also runs other work.
const PATIENCE: Duration = Duration::from_secs(90);
/// Time between two looks at the process list.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Process ids of the watchdogs of the run with this data folder.
///
/// # Panics
/// If `/proc` cannot be read.
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

/// Kills a process, as `kill -9` does.
pub fn kill(pid: &str) {
    // The process may have ended already.
    let _ = Command::new("kill").args(["-9", pid]).status();
}

/// Waits until no watchdog of this data folder runs.
///
/// # Panics
/// If one still runs after the longest wait.
pub fn wait_until_ended(data: &Path) {
    let begin = Instant::now();
    while let left = of(data)
        && !left.is_empty()
    {
        assert!(
            begin.elapsed() < PATIENCE,
            "these watchdog processes still run: {left:?}"
        );
        std::thread::sleep(LOOK_EVERY);
    }
}
