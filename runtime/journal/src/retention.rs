//! Retention: drops market parts first, then whole segments, oldest first, but never the last two.
//! A segment is dropped only after the ledger has its orders, fills, fees and funding.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::directory::{Directory, segments};
use crate::layout;
use crate::packing;
use windvane_files::sync_folder;

/// Number of segments that are never dropped: the one that is being written and the one before it.
const KEPT: usize = 2;
const PRUNED: &str = "pruned";

/// The limits of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Maximum total size of all segments, in bytes.
    pub bytes: u64,
    /// Maximum time since a segment was last written.
    pub age: Duration,
    /// Maximum time that the market data of a segment is kept after its last write.
    pub market_age: Duration,
}

/// The dropped parts of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Numbers of segments.
    pub segments: Vec<u32>,
    /// Their size, in bytes.
    pub bytes: u64,
    /// Numbers of segments whose market data was dropped.
    pub markets: Vec<u32>,
    /// Size of that market data, in bytes.
    pub market_bytes: u64,
}

impl Directory {
    /// Disk space of all segments, in bytes, without those that were put aside.
    ///
    /// # Errors
    /// The disk failed.
    pub fn journal_bytes(&self) -> io::Result<u64> {
        let journal = self.journal();
        let sizes = segments(&journal)?;
        let sizes = sizes.iter().map(|number| segment_bytes(&journal, *number));
        sizes.sum()
    }

    /// When the oldest segment began; `None` without a segment.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn oldest_started(&self) -> io::Result<Option<SystemTime>> {
        let journal = self.journal();
        let Some(oldest) = segments(&journal)?.first().copied() else {
            return Ok(None);
        };
        let times = packing::times(&layout::folder(&journal, oldest))?;
        Ok(Some(times.started))
    }

    /// The parts that [`Self::prune`] would drop.
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
        let mut pruned = Pruned::default();
        sizes.truncate(sizes.len().saturating_sub(KEPT));
        let kept = &numbers[sizes.len()..];
        let mut total = 0;
        for number in kept {
            total += segment_bytes(&journal, *number)?;
        }
        let mut ages = Vec::with_capacity(sizes.len());
        for (number, bytes) in &mut sizes {
            let folder = layout::folder(&journal, *number);
            let written = packing::times(&folder)?.written;
            let age = now.duration_since(written).unwrap_or_default();
            ages.push(age);
            let market = packing::market_bytes(&folder)?;
            if age > keep.market_age && market > 0 {
                pruned.markets.push(*number);
                pruned.market_bytes += market;
                *bytes -= market;
            }
            total += *bytes;
        }
        for ((number, bytes), age) in sizes.iter().zip(ages) {
            if total <= keep.bytes && age <= keep.age {
                break;
            }
            total -= bytes;
            pruned.segments.push(*number);
            pruned.bytes += bytes;
        }
        Ok(pruned)
    }

    /// Drops market data and segments beyond the limits, as of `now`, but only of segments that the
    /// ledger has. Segments that were put aside as damaged stay.
    ///
    /// # Errors
    /// The disk failed. Everything that was dropped before the error is gone.
    pub fn prune(&self, keep: Keep, now: SystemTime) -> io::Result<Pruned> {
        let journal = self.journal();
        remove_pruned(&journal)?;
        let mut pruned = self.prunable(keep, now)?;
        let in_ledger = self.ledger()?.last();
        let is_in_ledger = |number: &u32| in_ledger.is_some_and(|last| *number <= last);
        pruned.segments.retain(is_in_ledger);
        pruned.markets.retain(is_in_ledger);
        for &number in &pruned.markets {
            packing::drop_market(&layout::folder(&journal, number))?;
        }
        for &number in &pruned.segments {
            // The folder is renamed first, so that a half-removed segment is never taken for a
            // segment.
            let folder = layout::folder(&journal, number);
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

/// Size of a segment's files, in bytes.
pub fn segment_bytes(journal: &Path, number: u32) -> io::Result<u64> {
    fn folder_bytes(path: &Path) -> io::Result<u64> {
        let mut bytes = 0;
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            // A file may disappear while sled is writing.
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => bytes += folder_bytes(&entry.path())?,
                Ok(metadata) => bytes += metadata.len(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
    }
    folder_bytes(&layout::folder(journal, number))
}
