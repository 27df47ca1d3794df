//! Keeps the processors from sleeping while a run lasts (`run.keep_awake`). An order passes several
//! threads and the disk, and waking a sleeping processor costs as much time as all of the engine's
//! work.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// While this file is open, Linux keeps the wake-up latency that is written to it.
pub const DEVICE: &str = "/dev/cpu_dma_latency";

/// Holds the request for a wake-up latency of zero. Dropping it ends the request.
#[derive(Debug)]
pub struct CpuLatency(#[expect(dead_code, reason = "it is held open, and nothing else")] File);

impl CpuLatency {
    /// Makes the request if the configuration wants it. If the system refuses, the run is only
    /// slower, and the log says so.
    pub fn wanted(keep_awake: bool) -> Option<Self> {
        if !keep_awake {
            return None;
        }
        match Self::open(Path::new(DEVICE)) {
            Ok(cpu_latency) => Some(cpu_latency),
            Err(error) => {
                tracing::warn!(
                    %error,
                    "run.keep_awake has no effect, because {DEVICE} is not writable: processors \
                     may sleep and orders may leave later. Give this user write access, or remove \
                     run.keep_awake"
                );
                None
            }
        }
    }

    fn open(device: &Path) -> io::Result<Self> {
        let mut file = File::options().write(true).open(device)?;
        // The maximum latency in microseconds, as a native 32-bit integer.
        file.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self(file))
    }

    /// Whether the system would accept the request.
    pub fn is_possible() -> io::Result<()> {
        Self::open(Path::new(DEVICE)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_latency_of_zero_is_requested() {
        let device = tempfile::NamedTempFile::new().unwrap();
        CpuLatency::open(device.path()).unwrap();
        assert_eq!(std::fs::read(device.path()).unwrap(), [0; 4]);
    }

    #[test]
    fn a_missing_device_is_not_created() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("none");
        let error = CpuLatency::open(&device).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!device.exists());
        assert!(CpuLatency::wanted(false).is_none());
    }
}
