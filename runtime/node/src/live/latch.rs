//! The small file of the latch, written on a thread of its own: a disk that hangs must hold up
//! neither the cancels of a halt nor anything else of the engine.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use windvane_engine::engine::Latch;
use windvane_journal::{Directory, Latch as Latched};

use super::mailbox::Mailbox;

/// After it could not be written it is tried again this often.
const AGAIN: Duration = Duration::from_secs(1);

/// Writes the latch down where it changed.
#[derive(Debug)]
pub struct LatchFile {
    jobs: Sender<Latched>,
    written: Receiver<Result<(), String>>,
    /// What was written last, or is being written.
    latch: Latch,
    writing: usize,
    failed: Option<(Instant, String)>,
}

/// Whether the latch survives the end of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It does.
    Durable,
    /// It is being written.
    Writing,
    /// It could not be written, for this reason.
    Failed(String),
}

impl LatchFile {
    /// Begins its thread; the file says `latch` already.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        directory: Arc<Directory>,
        mailbox: Mailbox,
        latch: Latch,
    ) -> std::io::Result<Self> {
        let (jobs, asked) = channel::<Latched>();
        let (tell, written) = channel();
        let thread = std::thread::Builder::new().name("latch".to_owned());
        thread.spawn(move || {
            for latched in asked {
                let result = directory.set_latch(&latched);
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
            latch,
            writing: 0,
            failed: None,
        })
    }

    /// Has it written where it is another one than before, or could not be written a while ago.
    pub fn keep(&mut self, latch: Latch, cause: &str) {
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
        let again = self.writing == 0 && self.failed.as_ref().is_some_and(is_due);
        if latch == self.latch && !again {
            return;
        }
        let reason = cause.to_owned();
        let latched = match latch {
            Latch::None => Latched::Clear,
            Latch::Paused => Latched::Paused { reason },
            Latch::Halted => Latched::Halted { reason },
        };
        self.latch = latch;
        // The thread ends after this sender.
        if self.jobs.send(latched).is_ok() {
            self.writing += 1;
        }
    }

    /// What became of it, as far as [`Self::keep`] heard.
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
    use super::super::mailbox::mailbox;
    use super::*;

    fn until_written(file: &mut LatchFile, latch: Latch) -> Kept {
        loop {
            file.keep(latch, "a test");
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
        let mut file = LatchFile::start(Arc::clone(&directory), mailbox, Latch::None).unwrap();
        assert_eq!(until_written(&mut file, Latch::None), Kept::Durable);
        assert_eq!(until_written(&mut file, Latch::Halted), Kept::Durable);
        let reason = "a test".to_owned();
        assert_eq!(directory.latch(), Latched::Halted { reason });
        assert_eq!(until_written(&mut file, Latch::None), Kept::Durable);
        assert_eq!(directory.latch(), Latched::Clear);
    }

    #[test]
    fn a_latch_that_cannot_be_written_is_told_and_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Arc::new(Directory::lock(folder.path()).unwrap());
        let (mailbox, _inbox) = mailbox();
        let mut file = LatchFile::start(Arc::clone(&directory), mailbox, Latch::None).unwrap();
        std::fs::create_dir(folder.path().join("latch.new")).unwrap();
        let kept = until_written(&mut file, Latch::Paused);
        assert!(matches!(kept, Kept::Failed(_)), "{kept:?}");
        std::fs::remove_dir(folder.path().join("latch.new")).unwrap();
        let begin = Instant::now();
        while until_written(&mut file, Latch::Paused) != Kept::Durable {
            assert!(begin.elapsed() < Duration::from_secs(20), "never again");
        }
        let reason = "a test".to_owned();
        assert_eq!(directory.latch(), Latched::Paused { reason });
    }
}
