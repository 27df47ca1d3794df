//! Packing of an ended segment: sled and its WAL become `records.zst`, and `market` becomes
//! `market.zst`. sled uses several times the space of its content, and never frees any.
//!
//! `records.zst` (see `records`) and `market.zst` (see `market`) are written under a temporary name,
//! synced, read back and renamed, `market.zst` first. Once `records.zst` exists, the files that it
//! replaces are ignored and removed. So a kill at any moment leaves one complete segment. Only a
//! complete segment is packed.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::SystemTime;

use windvane_model::record::{Chain, Format};

use crate::directory::segments;
use crate::event::{Event, Listener};
use crate::failure::{Failure, guarded};
use crate::groups::{self, Times};
use crate::layout::{self, FILE_BYTES_MAX, chain_bytes, key};
use crate::market;
use crate::packed::{self, Packer};
use crate::reading::{self, ReadError, StoredSegment};
use crate::records;
use windvane_files::{read_bounded, sync_folder};

/// Extension of a file that is not finished.
const UNFINISHED: &str = "new";

/// When a segment began and was last written, packed or not.
pub fn times(folder: &Path) -> io::Result<Times> {
    match read_bounded(&folder.join(records::NAME), FILE_BYTES_MAX) {
        Ok(bytes) => {
            if let Some(times) = groups::times(&bytes) {
                return Ok(times);
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let modified = |name: &str| fs::metadata(folder.join(name))?.modified();
    Ok(Times {
        // sled writes this file once, when it creates the folder.
        started: modified("conf").or_else(|_| modified(records::NAME))?,
        written: modified("db").or_else(|_| modified(records::NAME))?,
    })
}

/// Packs a segment that has ended. Returns whether it is packed now.
pub fn pack(journal: &Path, number: u32) -> Result<bool, Failure> {
    let folder = layout::folder(journal, number);
    if folder.join(records::NAME).try_exists()? {
        remove_replaced(&folder)?;
        return Ok(true);
    }
    if !folder.try_exists()? {
        return Ok(false);
    }
    let stored = match reading::read_unpacked(journal, number, &folder, |_| true) {
        Ok(stored) => stored,
        Err(ReadError::Failed(failure)) => return Err(failure),
        Err(_) => return Ok(false),
    };
    let is_whole = stored.tear.is_none() && stored.format == Format::V3;
    if !is_whole {
        return Ok(false);
    }
    let (end, lost, checkpoint) = (stored.end(), stored.lost.clone(), stored.checkpoint.clone());
    let sealed = stored.sealed;
    write(&folder, stored)?;
    read_back(&folder, number, end, sealed, &lost, &checkpoint)?;
    for name in [market::PACKED, records::NAME] {
        fs::rename(folder.join(unfinished(name)), folder.join(name))?;
        sync_folder(&folder)?;
    }
    remove_replaced(&folder)?;
    Ok(true)
}

fn unfinished(name: &str) -> String {
    format!("{name}.{UNFINISHED}")
}

fn write(folder: &Path, stored: StoredSegment) -> Result<(), Failure> {
    let times = times(folder)?;
    let (end, sealed) = (stored.end(), stored.sealed);
    let path = |name| folder.join(unfinished(name));
    let mut rows = groups::Writer::create(&path(records::NAME), records::MAGIC, times)?;
    let mut parts = groups::Writer::create(&path(market::PACKED), market::MAGIC, times)?;
    let meta = stored
        .meta
        .ok_or_else(|| storage("it has no description"))?;
    let checkpoint = Packer::new()?.pack_checkpoint(&stored.checkpoint)?;
    for block in stored.blocks {
        let key = key::block(block.number, 0);
        records::push_row(rows.group(), &key, &packed::plain(&block));
        rows.end_if_long()?;
        if let Some(part) = block.market.as_deref().filter(|part| !part.is_empty()) {
            market::push_frame(parts.group(), block.number, part);
            parts.end_if_long()?;
        }
    }
    records::push_row(rows.group(), &key::checkpoint(0), &checkpoint);
    records::push_row(rows.group(), &key::META, &meta.to_bytes());
    if sealed {
        records::push_row(rows.group(), &key::SEAL, &chain_bytes(&end));
    }
    rows.finish()?;
    parts.finish()?;
    Ok(())
}

/// Reads the packed files back, as a start would. The old files are removed only if the packed
/// files have the same content.
fn read_back(
    folder: &Path,
    number: u32,
    end: Chain,
    sealed: bool,
    lost: &[(u64, u64)],
    checkpoint: &[u8],
) -> Result<(), Failure> {
    let bytes = read_bounded(&folder.join(unfinished(records::NAME)), FILE_BYTES_MAX)?;
    let market = folder.join(unfinished(market::PACKED));
    let read = reading::contents_of(number, &market, records::parse(&bytes));
    let read = read.map_err(|error| storage(&error.to_string()))?;
    let is_same = read.end() == end
        && read.sealed == sealed
        && read.lost == lost
        && read.checkpoint == checkpoint
        && read.tear.is_none();
    if is_same {
        Ok(())
    } else {
        Err(storage(
            "its packed files have other contents than the segment",
        ))
    }
}

fn storage(what: &str) -> Failure {
    Failure::Storage(format!("a segment cannot be packed: {what}"))
}

/// Removes the files that the packed ones replace.
fn remove_replaced(folder: &Path) -> io::Result<()> {
    let kept = [records::NAME, market::PACKED, market::DROPPED];
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if kept.iter().any(|kept| name == *kept) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Size of the market parts of a packed segment, in bytes.
pub fn market_bytes(folder: &Path) -> io::Result<u64> {
    match fs::metadata(folder.join(market::PACKED)) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Drops the market parts of a packed segment.
pub fn drop_market(folder: &Path) -> io::Result<()> {
    let path = folder.join(market::PACKED);
    // This file is created first, so that dropped market parts are never mistaken for lost ones.
    windvane_files::create(&folder.join(market::DROPPED))?.sync_all()?;
    sync_folder(folder)?;
    fs::remove_file(path)?;
    sync_folder(folder)
}

/// The thread that packs segments in the background.
pub struct PackThread {
    numbers: Option<Sender<u32>>,
    /// Set at the end: waiting segments are left for the next start.
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PackThread {
    /// Starts with the segments of earlier processes, up to `last`.
    pub fn start(journal: &Path, last: u32, listener: Listener) -> io::Result<Self> {
        let (numbers, received) = mpsc::channel();
        for number in segments(journal)? {
            if number <= last {
                // The receiver still exists, so this cannot fail.
                let _ = numbers.send(number);
            }
        }
        let journal = journal.to_owned();
        let ends = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ends);
        let builder = std::thread::Builder::new().name("journal-pack".to_owned());
        let thread = builder.spawn(move || run(&journal, &received, (&seen, &listener)))?;
        Ok(Self {
            numbers: Some(numbers),
            ends,
            thread: Some(thread),
        })
    }

    /// Queues a segment that has ended.
    pub fn ended(&self, number: u32) {
        if let Some(numbers) = &self.numbers {
            let _ = numbers.send(number);
        }
    }
}

impl Drop for PackThread {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        drop(self.numbers.take());
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the thread that packs the journal panicked");
        }
    }
}

fn run(journal: &Path, numbers: &Receiver<u32>, (ends, listener): (&AtomicBool, &Listener)) {
    for number in numbers {
        if ends.load(Ordering::Relaxed) {
            return;
        }
        let before = SystemTime::now();
        match guarded(|| pack(journal, number)) {
            Ok(is_packed) => {
                let took = before.elapsed().unwrap_or_default();
                tracing::debug!(
                    number,
                    is_packed,
                    ?took,
                    "packing of an ended segment is finished"
                );
            }
            // The segment stays unpacked and can still be read.
            Err(failure) => {
                tracing::warn!(%failure, number, "an ended segment could not be packed: it stays readable but takes more space");
            }
        }
        listener(Event::Packed { segment: number });
    }
}
