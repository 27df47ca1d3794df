//! Writes the kill switch file on a thread of its own, because a disk that hangs must not delay the
//! engine or the cancels of a halt. The session decides when it is written, and when it is written
//! again after a failure.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use windvane_journal::Directory;
use windvane_model::kill_switch::StoredKillSwitches;

use super::mailbox::{Disk, Mailbox};

/// Writes the kill switch file (`latch` in the data folder).
#[derive(Debug)]
pub struct KillSwitchFile {
    jobs: Sender<StoredKillSwitches>,
}

impl KillSwitchFile {
    /// Starts the thread. It reports the result of each write to the mailbox.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub fn start(directory: Arc<Directory>, mailbox: Mailbox) -> std::io::Result<Self> {
        let (jobs, requested) = channel::<StoredKillSwitches>();
        let thread = std::thread::Builder::new().name("kill-switch".to_owned());
        thread.spawn(move || {
            for kill_switches in requested {
                let result = directory.set_kill_switch(&kill_switches);
                let result = result.map_err(|error| error.to_string());
                mailbox.disk(Disk::KillSwitch(result));
            }
        })?;
        Ok(Self { jobs })
    }

    /// Queues the kill switches for writing.
    pub fn write(&self, kill_switches: StoredKillSwitches) {
        // Sending cannot fail, because the thread ends only after this sender.
        let _ = self.jobs.send(kill_switches);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windvane_model::kill_switch::StoredKillSwitch;

    use super::super::mailbox::{Wake, mailbox};
    use super::*;

    fn halted() -> StoredKillSwitches {
        let reason = "a test".to_owned();
        StoredKillSwitches {
            account: StoredKillSwitch::Halted { reason },
            ..StoredKillSwitches::default()
        }
    }

    #[tokio::test]
    async fn the_mailbox_gets_each_result_after_the_file_is_durable() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Arc::new(Directory::lock(folder.path()).unwrap());
        let (mailbox, mut inbox) = mailbox();
        let file = KillSwitchFile::start(Arc::clone(&directory), mailbox).unwrap();
        let blocks = folder.path().join("latch.new");
        for fails in [false, true, false] {
            if fails {
                std::fs::create_dir(&blocks).unwrap();
            } else if blocks.exists() {
                std::fs::remove_dir(&blocks).unwrap();
            }
            let kill_switches = if fails {
                StoredKillSwitches::default()
            } else {
                halted()
            };
            file.write(kill_switches);
            let wake = inbox.wait(Duration::from_mins(1)).await;
            let Wake::Disk(Disk::KillSwitch(result)) = wake else {
                panic!("{wake:?}");
            };
            assert_eq!(result.is_err(), fails, "{result:?}");
            assert_eq!(directory.kill_switch(), halted());
        }
    }
}
