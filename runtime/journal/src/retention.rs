//! Retention: whole segments are dropped, oldest first, never the last two.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::directory::{Directory, segments};
use crate::segment;
use crate::small_file::sync_folder;

/// Segments that are never dropped: the one that is written and the one that it came from.
const KEPT: usize = 2;
const PRUNED: &str = "pruned";

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Bytes of all segments together.
    pub bytes: u64,
    /// Time since a segment was last written.
    pub age: Duration,
}

/// What was dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Numbers of segments.
    pub segments: Vec<u32>,
    /// Bytes that they had.
    pub bytes: u64,
}

impl Directory {
    /// What all segments take on disk, those put aside left out.
    ///
    /// # Errors
    /// The disk refused.
    pub fn journal_bytes(&self) -> io::Result<u64> {
        let journal = self.journal();
        let sizes = segments(&journal)?;
        let sizes = sizes.iter().map(|number| segment_bytes(&journal, *number));
        sizes.sum()
    }

    /// When the oldest segment was begun; `None` where there is none.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn oldest_begun(&self) -> io::Result<Option<SystemTime>> {
        let journal = self.journal();
        let Some(oldest) = segments(&journal)?.first().copied() else {
            return Ok(None);
        };
        // sled writes it once, when it makes the folder.
        let begun = segment::folder(&journal, oldest).join("conf");
        fs::metadata(begun)?.modified().map(Some)
    }

    /// What [`Self::prune`] would drop.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn prunable(&self, keep: Keep, now: SystemTime) -> io::Result<Pruned> {
        let journal = self.journal();
        let numbers = segments(&journal)?;
        let mut sizes = Vec::with_capacity(numbers.len());
        for &number in &numbers {
            sizes.push((number, segment_bytes(&journal, number)?));
        }
        let mut total: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
        let mut pruned = Pruned::default();
        for (number, bytes) in &sizes[..sizes.len().saturating_sub(KEPT)] {
            let folder = segment::folder(&journal, *number);
            let written = fs::metadata(folder.join("db"))?.modified()?;
            let age = now.duration_since(written).unwrap_or_default();
            if total <= keep.bytes && age <= keep.age {
                break;
            }
            total -= bytes;
            pruned.segments.push(*number);
            pruned.bytes += bytes;
        }
        Ok(pruned)
    }

    /// Drops segments beyond what is kept, as of `now`. What was put aside as damaged stays.
    ///
    /// # Errors
    /// The disk refused; what was dropped until then is gone.
    pub fn prune(&self, keep: Keep, now: SystemTime) -> io::Result<Pruned> {
        let journal = self.journal();
        remove_pruned(&journal)?;
        let pruned = self.prunable(keep, now)?;
        for &number in &pruned.segments {
            // Renamed first, so that half a segment is never taken for one.
            let folder = segment::folder(&journal, number);
            fs::rename(&folder, journal.join(format!("{number:08x}.{PRUNED}")))?;
        }
        sync_folder(&journal)?;
        remove_pruned(&journal)?;
        Ok(pruned)
    }
}

fn remove_pruned(journal: &Path) -> io::Result<()> {
    for entry in fs::read_dir(journal)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == PRUNED)
        {
            fs::remove_dir_all(path)?;
        }
    }
    Ok(())
}

/// Bytes of a segment's files.
pub fn segment_bytes(journal: &Path, number: u32) -> io::Result<u64> {
    fn folder_bytes(path: &Path) -> io::Result<u64> {
        let mut bytes = 0;
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            // A file may go while sled writes beside us.
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => bytes += folder_bytes(&entry.path())?,
                Ok(metadata) => bytes += metadata.len(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
    }
    folder_bytes(&segment::folder(journal, number))
}
