//! The small file of the latches, written on a thread of its own: a disk that hangs must hold up
//! neither the cancels of a halt nor anything else of the engine.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use windvane_engine::latches::Latches;
use windvane_journal::Directory;

use super::mailbox::Mailbox;

/// After it could not be written it is tried again this often.
const AGAIN: Duration = Duration::from_secs(1);

/// Writes the latches down where they changed.
#[derive(Debug)]
pub struct LatchFile {
    jobs: Sender<Latches>,
    written: Receiver<Result<(), String>>,
    /// What was written last, or is being written.
    latches: Latches,
    writing: usize,
    failed: Option<(Instant, String)>,
}

/// Whether the latches survive the end of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// They do.
    Durable,
    /// They are being written.
    Writing,
    /// They could not be written, for this reason.
    Failed(String),
}

impl LatchFile {
    /// Begins its thread; the file says `latches` already.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        directory: Arc<Directory>,
        mailbox: Mailbox,
        latches: Latches,
    ) -> std::io::Result<Self> {
        let (jobs, asked) = channel::<Latches>();
        let (tell, written) = channel();
        let thread = std::thread::Builder::new().name("latch".to_owned());
        thread.spawn(move || {
            for latches in asked {
                let result = directory.set_latches(&latches);
                if tell
                    .send(result.map_err(|error| error.to_string()))
                    .is_err()
                {
                    return; // the run is over
                }
                mailbox.nudge();
            }
        })?;
        Ok(Self {
            jobs,
            written,
            latches,
            writing: 0,
            failed: None,
        })
    }

    /// Has them written.
    pub fn write(&mut self, latches: Latches) {
        self.latches = latches;
        self.send();
    }

    /// Hears what became of it; what could not be written a while ago is tried again.
    pub fn look(&mut self) {
        while let Ok(result) = self.written.try_recv() {
            self.writing -= 1;
            self.failed = result.err().map(|error| {
                tracing::error!(
                    error,
                    "the latch is not durable: a restart may not know of it"
                );
                (Instant::now(), error)
            });
        }
        let is_due = |(at, _): &(Instant, String)| at.elapsed() >= AGAIN;
        if self.writing == 0 && self.failed.as_ref().is_some_and(is_due) {
            self.send();
        }
    }

    fn send(&mut self) {
        // The thread ends after this sender.
        if self.jobs.send(self.latches.clone()).is_ok() {
            self.writing += 1;
        }
    }

    /// What became of it, as far as [`Self::look`] heard.
    pub fn kept(&self) -> Kept {
        match &self.failed {
            _ if self.writing > 0 => Kept::Writing,
            Some((_, error)) => Kept::Failed(error.clone()),
            None => Kept::Durable,
        }
    }
}

#[cfg(test)]
mod tests {
    use windvane_engine::latches::Latch;

    use super::super::mailbox::mailbox;
    use super::*;

    fn halted() -> Latches {
        let reason = "a test".to_owned();
        Latches {
            account: Latch::Halted { reason },
            ..Latches::default()
        }
    }

    fn until_written(file: &mut LatchFile) -> Kept {
        loop {
            file.look();
            match file.kept() {
                Kept::Writing => std::thread::yield_now(),
                kept => return kept,
            }
        }
    }

    #[test]
    fn a_latch_is_durable_once_it_is_said_to_be() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Arc::new(Directory::lock(folder.path()).unwrap());
        let (mailbox, _inbox) = mailbox();
        let clear = Latches::default();
        let mut file = LatchFile::start(Arc::clone(&directory), mailbox, clear.clone()).unwrap();
        assert_eq!(until_written(&mut file), Kept::Durable);
        for latches in [halted(), clear] {
            file.write(latches.clone());
            assert_eq!(until_written(&mut file), Kept::Durable);
            assert_eq!(directory.latches(), latches);
        }
    }

    #[test]
    fn a_latch_that_cannot_be_written_is_told_and_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Arc::new(Directory::lock(folder.path()).unwrap());
        let (mailbox, _inbox) = mailbox();
        let clear = Latches::default();
        let mut file = LatchFile::start(Arc::clone(&directory), mailbox, clear).unwrap();
        std::fs::create_dir(folder.path().join("latch.new")).unwrap();
        file.write(halted());
        let kept = until_written(&mut file);
        assert!(matches!(kept, Kept::Failed(_)), "{kept:?}");
        std::fs::remove_dir(folder.path().join("latch.new")).unwrap();
        let begin = Instant::now();
        while until_written(&mut file) != Kept::Durable {
            assert!(begin.elapsed() < Duration::from_secs(20), "never again");
        }
        assert_eq!(directory.latches(), halted());
    }
}
