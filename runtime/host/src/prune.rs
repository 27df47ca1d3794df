//! Limits the size and the age of the compile cache.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::host::Host;

/// A file that was stored or used within this time is kept in any case: another process may be
/// about to load it.
const KEPT: Duration = Duration::from_mins(10);
/// An unfinished file of this age belongs to a process that was killed.
const UNFINISHED: Duration = Duration::from_hours(1);

impl Host {
    /// Removes native code from the cache: files that were not used within `age`, then the files
    /// with the oldest use, until at most `bytes` remain. It keeps files that a running process has
    /// loaded, and files that were used in the last minutes. Returns the number of removed files.
    ///
    /// # Errors
    /// The folder cannot be read, or a file cannot be removed.
    pub fn prune_cache(&self, bytes: u64, age: Duration) -> io::Result<usize> {
        let Some(cache) = &self.cache else {
            return Ok(0);
        };
        cache.prepare().map_err(io::Error::other)?;
        let now = SystemTime::now();
        let mut files = Vec::new();
        let mut removed = 0;
        for entry in fs::read_dir(cache.folder())? {
            let entry = entry?;
            // Another process may remove the file meanwhile.
            let Ok(meta) = entry.metadata() else { continue };
            if !meta.is_file() {
                continue;
            }
            let unused = now.duration_since(meta.modified()?).unwrap_or_default();
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "tmp") {
                if unused > UNFINISHED {
                    removed += remove(&path)?;
                }
                continue;
            }
            files.push((unused, meta.len(), path));
        }
        files.sort();
        let mut total = 0;
        for (unused, len, path) in files {
            let is_old = unused > age || total + len > bytes;
            if is_old && unused > KEPT && !is_in_use(&path) {
                removed += remove(&path)?;
            } else {
                total += len;
            }
        }
        Ok(removed)
    }
}

/// Whether a process has loaded the file.
fn is_in_use(path: &PathBuf) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_err())
}

fn remove(path: &PathBuf) -> io::Result<usize> {
    match fs::remove_file(path) {
        Ok(()) => Ok(1),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}
