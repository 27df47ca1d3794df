//! The ledger: the part of the journal that is kept forever, in one file that only grows.
//!
//! The file begins with `windvane ledger 1` and a line feed. Each entry holds the lines of one
//! segment:
//! - number of the segment as u32, compressed length as u32, length as u32;
//! - the first 8 bytes of the SHA-256 of these numbers and of the compressed lines;
//! - the lines, compressed by zstd.
//!
//! All numbers are little endian. The segment numbers of the entries rise. Each segment is entered
//! once: an entry that was cut by a kill is removed at the next start, and its segment, which was
//! not pruned yet, is entered again.
//!
//! This module must never interpret the lines.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::checksum::{CHECK, check};
use crate::directory::Directory;
use crate::layout;

const NAME: &str = "ledger";
const MAGIC: &[u8] = b"windvane ledger 1\n";
const HEADER: usize = 12;
/// Entries are short and are written once, so a slow level is fine.
const LEVEL: i32 = 19;
/// Maximum length of an entry, so that damage cannot cause a huge allocation.
const ENTRY_MAX: usize = 1 << 30;
/// A longer ledger is not read. A segment adds less than a KiB, so this is many years.
const BYTES_MAX: u64 = 4 << 30;

/// The ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The disk failed.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is not a ledger, or a newer program wrote it.
    #[error(
        "{} is not a ledger that this program can read: a newer program wrote it, or it is \
         damaged. Segments are not pruned until the file is moved away", path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// An entry is damaged.
    #[error(
        "{}: the entry at byte {at} is damaged, and the entries after it cannot be read. Segments \
         are not pruned until the file is moved away", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The position of the entry, in bytes.
        at: usize,
    },
}

/// The ledger of a data directory, open for writing.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    last: Option<u32>,
    /// End of the complete entries, in bytes.
    len: u64,
}

/// The lines of one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Number of the segment.
    pub segment: u32,
    /// Its lines of JSON.
    pub lines: Vec<u8>,
}

impl Directory {
    /// Opens the ledger for writing.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn ledger(&self) -> Result<Ledger, LedgerError> {
        let path = self.path().join(NAME);
        let bytes = read(&path)?;
        let mut ledger = Ledger {
            path,
            last: None,
            len: 0,
        };
        let mut at = begin(&ledger.path, &bytes)?;
        if at < MAGIC.len() {
            return Ok(ledger);
        }
        while let Some((segment, _, behind)) = split(&bytes, at) {
            ledger.last = Some(segment);
            at = behind;
        }
        if is_damage(self.path(), &bytes, at) {
            return Err(LedgerError::Damaged {
                path: ledger.path,
                at,
            });
        }
        ledger.len = at as u64;
        Ok(ledger)
    }
}

impl Ledger {
    /// The number of the last segment that was entered.
    pub const fn last(&self) -> Option<u32> {
        self.last
    }

    /// Enters the lines of a segment; durable on return. A segment that was entered before is not
    /// entered again.
    ///
    /// # Errors
    /// The disk failed.
    pub fn enter(&mut self, segment: u32, lines: &[u8]) -> Result<(), LedgerError> {
        if self.last.is_some_and(|last| segment <= last) {
            return Ok(());
        }
        let written = self.write(segment, lines);
        self.len = written.map_err(|error| LedgerError::Io {
            path: self.path.clone(),
            error,
        })?;
        self.last = Some(segment);
        Ok(())
    }

    fn write(&self, segment: u32, lines: &[u8]) -> io::Result<u64> {
        let mut entry = Vec::new();
        if self.len == 0 {
            entry.extend_from_slice(MAGIC);
        }
        let packed = zstd::bulk::compress(lines, LEVEL)?;
        let mut header = segment.to_le_bytes().to_vec();
        header.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        header.extend_from_slice(&(lines.len() as u32).to_le_bytes());
        let check = check(&[&header, &packed]);
        for part in [&header[..], &check, &packed] {
            entry.extend_from_slice(part);
        }
        let mut file = windvane_files::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(&self.path)?;
        // This removes an entry that was cut by a kill.
        file.set_len(self.len)?;
        io::Seek::seek(&mut file, io::SeekFrom::Start(self.len))?;
        file.write_all(&entry)?;
        file.sync_all()?;
        if self.len == 0
            && let Some(folder) = self.path.parent()
        {
            windvane_files::sync_folder(folder)?;
        }
        Ok(self.len + entry.len() as u64)
    }
}

/// The entries of the ledger of a data directory, oldest first. Leaves out an entry that is being
/// written, or was cut by a kill.
///
/// # Errors
/// It cannot be read.
pub fn ledger(data_dir: &Path) -> Result<Vec<LedgerEntry>, LedgerError> {
    let path = data_dir.join(NAME);
    let bytes = read(&path)?;
    let mut entries = Vec::new();
    if bytes.is_empty() {
        return Ok(entries);
    }
    let mut at = begin(&path, &bytes)?;
    while let Some((segment, lines, behind)) = split(&bytes, at) {
        entries.push(LedgerEntry { segment, lines });
        at = behind;
    }
    if is_damage(data_dir, &bytes, at) {
        return Err(LedgerError::Damaged { path, at });
    }
    Ok(entries)
}

fn read(path: &Path) -> Result<Vec<u8>, LedgerError> {
    match windvane_files::read_bounded(path, BYTES_MAX) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(LedgerError::Io {
            path: path.to_owned(),
            error,
        }),
    }
}

/// The position of the first entry.
fn begin(path: &Path, bytes: &[u8]) -> Result<usize, LedgerError> {
    if bytes.starts_with(MAGIC) {
        return Ok(MAGIC.len());
    }
    // The first write was cut by a kill.
    if MAGIC.starts_with(bytes) {
        return Ok(bytes.len());
    }
    Err(LedgerError::Format {
        path: path.to_owned(),
    })
}

/// Whether bytes that are not a complete entry are damage, instead of an entry that was cut by a
/// kill. After a cut entry there is nothing else, and its segment still exists, because a segment
/// is pruned only once its entry is durable.
fn is_damage(data_dir: &Path, bytes: &[u8], at: usize) -> bool {
    let segment = word(bytes, at).and_then(|number| u32::try_from(number).ok());
    let is_there = |number| layout::folder(&data_dir.join("journal"), number).is_dir();
    if segment.is_some_and(|number| !is_there(number)) {
        return true;
    }
    let is_longer = word(bytes, at + 4).is_some_and(|len| bytes.len() - at > HEADER + CHECK + len);
    is_longer || (at + 1..bytes.len()).any(|at| split(bytes, at).is_some())
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..at + 4)?.first_chunk()?;
    Some(u32::from_le_bytes(*word) as usize)
}

/// The entry at a position: its segment, its lines, and the position of the next entry.
fn split(bytes: &[u8], at: usize) -> Option<(u32, Vec<u8>, usize)> {
    let (header, rest) = bytes.get(at..)?.split_at_checked(HEADER)?;
    let (stored, rest) = rest.split_at_checked(CHECK)?;
    let packed = rest.get(..word(header, 4)?)?;
    let len = word(header, 8).filter(|len| *len <= ENTRY_MAX)?;
    if check(&[header, packed]) != stored {
        return None;
    }
    let lines = zstd::bulk::decompress(packed, len).ok()?;
    let segment = word(header, 0)? as u32;
    Some((segment, lines, at + HEADER + CHECK + packed.len()))
}

impl From<LedgerError> for io::Error {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Io { error, .. } => error,
            other => Self::new(io::ErrorKind::InvalidData, other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    const SEGMENTS: [u32; 3] = [3, 4, 9];

    fn filled(folder: &Path) -> Vec<LedgerEntry> {
        let directory = Directory::lock(folder).unwrap();
        for number in SEGMENTS {
            fs::create_dir_all(layout::folder(&folder.join("journal"), number)).unwrap();
        }
        let mut ledger = directory.ledger().unwrap();
        assert_eq!(ledger.last(), None);
        let mut expected = Vec::new();
        for segment in SEGMENTS {
            let lines = format!("{{\"order\":{segment}}}\n").repeat(segment as usize);
            ledger.enter(segment, lines.as_bytes()).unwrap();
            ledger.enter(segment, b"again").unwrap();
            let lines = lines.into_bytes();
            expected.push(LedgerEntry { segment, lines });
        }
        expected
    }

    #[test]
    fn a_segment_is_entered_once_despite_kills() {
        let folder = tempfile::tempdir().unwrap();
        let expected = filled(folder.path());
        let path = folder.path().join(NAME);
        assert_eq!(super::ledger(folder.path()).unwrap(), expected);
        let bytes = fs::read(&path).unwrap();
        for cut in 0..bytes.len() {
            fs::write(&path, &bytes[..cut]).unwrap();
            let directory = Directory::lock(folder.path()).unwrap();
            let mut ledger = directory.ledger().unwrap();
            let last = ledger.last();
            for entry in &expected {
                ledger.enter(entry.segment, &entry.lines).unwrap();
            }
            assert_eq!(
                super::ledger(folder.path()).unwrap(),
                expected,
                "{cut} {last:?}"
            );
            assert_eq!(fs::read(&path).unwrap(), bytes, "{cut}");
        }
    }

    #[test]
    fn damage_before_the_last_entry_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let expected = filled(folder.path());
        let path = folder.path().join(NAME);
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).unwrap();
            let read = super::ledger(folder.path());
            match read {
                Err(_) => {}
                Ok(read) => assert!(expected.starts_with(&read) && read.len() < 3, "{at}"),
            }
        }
    }

    #[test]
    fn a_damaged_last_entry_is_reported_once_its_segment_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path());
        let path = folder.path().join(NAME);
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, &bytes).unwrap();
        let open = || Directory::lock(folder.path()).unwrap().ledger();
        assert_eq!(
            open().unwrap().last(),
            Some(4),
            "segment 9 can be entered again"
        );
        fs::remove_dir(layout::folder(&folder.path().join("journal"), 9)).unwrap();
        assert!(matches!(open(), Err(LedgerError::Damaged { .. })));
        let read = super::ledger(folder.path());
        assert!(matches!(read, Err(LedgerError::Damaged { .. })), "{read:?}");
    }

    #[test]
    fn a_ledger_of_a_newer_program_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAME), b"windvane ledger 2\nabc").unwrap();
        let directory = Directory::lock(folder.path()).unwrap();
        let error = directory.ledger().unwrap_err().to_string();
        assert!(error.contains("newer"), "{error}");
    }
}
