//! Processors that do not fall asleep while a run lasts (`run.keep_awake`): an order's way leads
//! over several threads and the disk, and each wake-up of a sleeping processor costs as much as the
//! engine's whole work.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Linux keeps the promise that is written here for as long as the file is open.
pub const DEVICE: &str = "/dev/cpu_dma_latency";

/// The promise: no processor takes any time to wake. Dropping it takes it back.
#[derive(Debug)]
pub struct Awake(#[expect(dead_code, reason = "it is held open, and nothing else")] File);

impl Awake {
    /// Asks for it where a configuration does; where the system refuses, the run is slower and says
    /// so.
    pub fn wanted(keep_awake: bool) -> Option<Self> {
        if !keep_awake {
            return None;
        }
        match Self::ask(Path::new(DEVICE)) {
            Ok(awake) => Some(awake),
            Err(error) => {
                tracing::warn!(
                    %error,
                    "run.keep_awake: processors may sleep, for {DEVICE} is not writable; let this \
                     user write there, or leave run.keep_awake out"
                );
                None
            }
        }
    }

    fn ask(device: &Path) -> io::Result<Self> {
        let mut file = File::options().write(true).open(device)?;
        // So many microseconds at most, as a number of the machine.
        file.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self(file))
    }

    /// Whether the system would take it.
    pub fn is_possible() -> io::Result<()> {
        Self::ask(Path::new(DEVICE)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_to_wake_is_asked_for() {
        let device = tempfile::NamedTempFile::new().unwrap();
        Awake::ask(device.path()).unwrap();
        assert_eq!(std::fs::read(device.path()).unwrap(), [0; 4]);
    }

    #[test]
    fn a_device_that_is_not_there_is_never_made() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("none");
        let error = Awake::ask(&device).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!device.exists());
        assert!(Awake::wanted(false).is_none());
    }
}
