//! Checks `run.busy_poll` against the number of cores. With it, the engine's thread never sleeps.
//! On few cores that takes time from the threads that read the sockets and write the journal, and
//! orders leave later.

use std::thread::available_parallelism;

/// The minimum number of cores for which `run.busy_poll` helps.
const CORES_MIN: usize = 4;

/// The advice for too few cores.
pub const ADVICE: &str = "set run.busy_poll = false, or run on at least 4 cores";

/// The problem if `run.busy_poll` is on and this machine has too few cores, else `None`.
pub fn too_few(busy_poll: bool) -> Option<String> {
    // The cores that this process may use, with the limits of its container.
    let cores = available_parallelism().map_or(1, usize::from);
    too_few_of(cores, busy_poll)
}

fn too_few_of(cores: usize, busy_poll: bool) -> Option<String> {
    (busy_poll && cores < CORES_MIN).then(|| {
        format!(
            "run.busy_poll keeps one core busy, and this process has {cores}: other threads wait \
             for a core, and orders may leave later"
        )
    })
}

/// Logs the problem, if there is one.
pub fn warn(busy_poll: bool) {
    if let Some(found) = too_few(busy_poll) {
        tracing::warn!("{found}; {ADVICE}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_poll_needs_four_cores() {
        assert_eq!(too_few_of(4, true), None);
        assert_eq!(too_few_of(2, false), None);
        let found = too_few_of(3, true).unwrap();
        assert!(found.contains("has 3"), "{found}");
    }
}
