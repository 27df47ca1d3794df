//! Tasks that must not wait for a slow disk, each on its own thread: reporting a slow write while
//! it is still running, and keeping the mark up to date.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::event::{Event, Listener};
use crate::mark::Mark;
use crate::small_file::SmallFileError;

/// Locks a mutex even if another thread panicked while it held the lock. The content is valid at
/// every step.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Write {
    since: Option<Instant>,
    reported: bool,
    ended: bool,
}

/// Reports a write that takes too long.
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

    /// A write began for a message that waits since `since`.
    pub fn begin(&self, since: Instant) {
        lock(&self.write).since = Some(since);
    }

    /// The write has ended. Returns how long it took.
    pub fn finish(&self) -> Duration {
        let mut write = lock(&self.write);
        let took = write
            .since
            .take()
            .map_or(Duration::ZERO, |since| since.elapsed());
        if std::mem::take(&mut write.reported) {
            // This is sent under the lock, so that it cannot overtake the report of the slow write.
            (self.listener)(Event::Healthy { stalled: took });
        }
        took
    }

    /// Whether the present write takes too long.
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

    /// Checks when the present write would be too long, or after `stall_after` without a write. A
    /// write that begins meanwhile cannot be too long before then, so a write need not wake this
    /// thread.
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

/// Writes the mark beside the segments.
pub struct MarkKeeper {
    path: PathBuf,
    latest: Mutex<Option<Mark>>,
    /// The content of the file. The lock is held during a write, so that an old mark never replaces
    /// a newer one.
    written: Mutex<Option<Mark>>,
}

impl MarkKeeper {
    /// Starts the thread that writes a changed mark every `every`, until the sender is dropped.
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
                        tracing::warn!(%error, "the mark of the journal could not be written: if \
                            the journal is rolled back now, a start may not notice it");
                    }
                    Err(_) => {}
                }
            }
        })?;
        Ok((keeper, alive, thread))
    }

    /// Sets what is durable now; the file follows later.
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
