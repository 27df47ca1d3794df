//! Retention: market parts are dropped first, then whole segments, oldest first; never of the last
//! two. A segment goes once the ledger has its orders, fills, fees and funding.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::directory::{Directory, segments};
use crate::packing;
use crate::segment;
use windvane_files::sync_folder;

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
    /// The same, for market data.
    pub market_age: Duration,
}

/// What was dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Numbers of segments.
    pub segments: Vec<u32>,
    /// Bytes that they had.
    pub bytes: u64,
    /// Numbers of segments whose market data was dropped.
    pub markets: Vec<u32>,
    /// Bytes that it had.
    pub market_bytes: u64,
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
        let times = packing::times(&segment::folder(&journal, oldest))?;
        Ok(Some(times.begun))
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
        let mut pruned = Pruned::default();
        sizes.truncate(sizes.len().saturating_sub(KEPT));
        let kept = &numbers[sizes.len()..];
        let mut total = 0;
        for number in kept {
            total += segment_bytes(&journal, *number)?;
        }
        let mut ages = Vec::with_capacity(sizes.len());
        for (number, bytes) in &mut sizes {
            let folder = segment::folder(&journal, *number);
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

    /// Drops market data and segments beyond what is kept, as of `now`, and only of segments that the
    /// ledger has. What was put aside as damaged stays.
    ///
    /// # Errors
    /// The disk refused; what was dropped until then is gone.
    pub fn prune(&self, keep: Keep, now: SystemTime) -> io::Result<Pruned> {
        let journal = self.journal();
        remove_pruned(&journal)?;
        let mut pruned = self.prunable(keep, now)?;
        let in_ledger = self.ledger()?.last();
        let is_in_ledger = |number: &u32| in_ledger.is_some_and(|last| *number <= last);
        pruned.segments.retain(is_in_ledger);
        pruned.markets.retain(is_in_ledger);
        for &number in &pruned.markets {
            packing::drop_market(&segment::folder(&journal, number))?;
        }
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
