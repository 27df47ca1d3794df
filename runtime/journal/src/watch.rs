//! What must not wait for a slow disk: telling that a write takes too long while it still does,
//! and keeping the mark young, each on a thread of its own.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::mark::Mark;
use crate::owner::{Event, Listener};
use crate::small_file::SmallFileError;

/// A lock that a panic elsewhere cannot take away: its content is whole at every step.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Write {
    since: Option<Instant>,
    reported: bool,
    ended: bool,
}

/// Tells of a write that takes longer than it may.
pub struct Watch {
    write: Mutex<Write>,
    end: Condvar,
    stall_after: Duration,
    listener: Listener,
}

impl Watch {
    pub fn start(
        stall_after: Duration,
        listener: Listener,
    ) -> std::io::Result<(Arc<Self>, JoinHandle<()>)> {
        let watch = Arc::new(Self {
            write: Mutex::default(),
            end: Condvar::new(),
            stall_after,
            listener,
        });
        let thread = Arc::clone(&watch);
        let builder = std::thread::Builder::new().name("journal-watch".to_owned());
        let thread = builder.spawn(move || thread.run())?;
        Ok((watch, thread))
    }

    /// A write began for something that waits since `since`.
    pub fn begin(&self, since: Instant) {
        lock(&self.write).since = Some(since);
    }

    /// The write is over. Answers how long it took.
    pub fn finish(&self) -> Duration {
        let mut write = lock(&self.write);
        let took = write
            .since
            .take()
            .map_or(Duration::ZERO, |since| since.elapsed());
        if std::mem::take(&mut write.reported) {
            // Under the lock, so that it never overtakes the report that it takes back.
            (self.listener)(Event::Healthy { stalled: took });
        }
        took
    }

    /// Whether a write takes too long right now.
    pub fn stalled(&self) -> bool {
        let write = lock(&self.write);
        write
            .since
            .is_some_and(|since| since.elapsed() >= self.stall_after)
    }

    pub fn stop(&self) {
        lock(&self.write).ended = true;
        self.end.notify_all();
    }

    /// Looks when the write that runs would be too long, or in `stall_after` if none does: one
    /// that begins meanwhile cannot be too long before. So a write need not wake this thread.
    fn run(&self) {
        let mut write = lock(&self.write);
        while !write.ended {
            let mut next_look = self.stall_after;
            if let Some(since) = write.since
                && !write.reported
            {
                let waiting = since.elapsed();
                next_look = self.stall_after.saturating_sub(waiting);
                if next_look.is_zero() {
                    write.reported = true;
                    (self.listener)(Event::Stalled { waiting });
                    continue;
                }
            }
            let waited = self.end.wait_timeout(write, next_look);
            write = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Keeps the mark beside the segments.
pub struct MarkKeeper {
    path: PathBuf,
    latest: Mutex<Option<Mark>>,
    /// What the file holds. Locked while it is written, so that an old mark never follows a young
    /// one.
    written: Mutex<Option<Mark>>,
}

impl MarkKeeper {
    /// Starts the thread that writes a mark that changed, every `every`, until the sender goes.
    pub fn start(
        path: PathBuf,
        every: Duration,
    ) -> std::io::Result<(Arc<Self>, mpsc::Sender<()>, JoinHandle<()>)> {
        let keeper = Arc::new(Self {
            path,
            latest: Mutex::default(),
            written: Mutex::default(),
        });
        let (alive, end) = mpsc::channel();
        let thread = Arc::clone(&keeper);
        let builder = std::thread::Builder::new().name("journal-mark".to_owned());
        let thread = builder.spawn(move || {
            let mut warned = false;
            while end.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                match thread.write() {
                    Ok(()) => warned = false,
                    Err(error) if !warned => {
                        warned = true;
                        tracing::warn!(%error, "the mark of the journal is not kept: a journal \
                            that is rolled back now could go unnoticed");
                    }
                    Err(_) => {}
                }
            }
        })?;
        Ok((keeper, alive, thread))
    }

    /// What is durable now; the file follows.
    pub fn set(&self, mark: Mark) {
        *lock(&self.latest) = Some(mark);
    }

    /// Writes the mark if it changed; durable on return.
    pub fn write(&self) -> Result<(), SmallFileError> {
        let mut written = lock(&self.written);
        let latest = *lock(&self.latest);
        if let Some(mark) = latest
            && *written != latest
        {
            mark.write(&self.path)?;
            *written = latest;
        }
        Ok(())
    }
}
