//! Finds the processes that a run starts beside itself, by its data folder.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Longest wait, on a machine that also runs other work.
const PATIENCE: Duration = Duration::from_secs(90);
/// Time between two looks at the process list.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Which of the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The process that holds the keys.
    Signer,
    /// The process that starts it.
    Keeper,
    /// The process that cancels spot orders after a failure of the run.
    Watchdog,
}

/// The processes that sign.
pub const SIGNERS: [Which; 2] = [Which::Signer, Which::Keeper];

/// Process ids of these processes of the run with this data folder. A process that has ended, but that
/// its parent has not noticed yet, does not count.
///
/// # Panics
/// If `/proc` cannot be read.
#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
pub fn of(data: &Path, which: Which) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("the system shows its processes");
    let data = data.display().to_string();
    let mut found = Vec::new();
    for process in processes.flatten() {
        let arguments = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments).into_owned();
        let verb = match which {
            Which::Watchdog => "windvane\0watchdog\0",
            Which::Signer | Which::Keeper => "windvane\0signer\0",
        };
        // Only the keeper has it.
        let is_keeper = which != Which::Watchdog && arguments.contains("\0--socket\0");
        if arguments.starts_with(verb)
            && arguments.contains(&data)
            && is_keeper == (which == Which::Keeper)
        {
            found.push(process.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

/// The process id of the one such process of this data folder.
///
/// # Panics
/// If there is not exactly one.
pub fn one(data: &Path, which: Which) -> String {
    let pids = of(data, which);
    let [pid] = &pids[..] else {
        panic!("one {which:?} of {} must run: {pids:?}", data.display());
    };
    pid.clone()
}

/// Sends a signal, such as `-9`.
pub fn signal(pid: &str, signal: &str) {
    // The process may have ended already.
    let _ = Command::new("kill").args([signal, pid]).status();
}

/// Kills a process, as `kill -9` does.
pub fn kill(pid: &str) {
    signal(pid, "-9");
}

/// Kills the watchdogs of this data folder, which would wait for a venue that has ended.
pub fn kill_watchdogs(data: &Path) {
    for pid in of(data, Which::Watchdog) {
        kill(&pid);
    }
}

/// Waits until exactly one such process runs, with another process id. Returns it.
///
/// # Panics
/// If that takes too long.
pub fn wait_until_replaced(data: &Path, which: Which, earlier: &str) -> String {
    let begin = Instant::now();
    loop {
        let pids = of(data, which);
        if let [pid] = &pids[..]
            && pid != earlier
        {
            return pid.clone();
        }
        assert!(
            begin.elapsed() < PATIENCE,
            "the {which:?} {earlier} was not replaced: {pids:?}"
        );
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Waits until no such process of this data folder runs.
///
/// # Panics
/// If one still runs after the longest wait.
pub fn wait_until_ended(data: &Path, which: &[Which]) {
    let begin = Instant::now();
    loop {
        let left: Vec<_> = which.iter().flat_map(|one| of(data, *one)).collect();
        if left.is_empty() {
            return;
        }
        assert!(
            begin.elapsed() < PATIENCE,
            "these processes still run: {left:?}"
        );
        std::thread::sleep(LOOK_EVERY);
    }
}
