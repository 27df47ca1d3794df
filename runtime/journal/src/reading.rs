//! Reads a segment that is not being written.
//!
//! sled repairs a database when it opens it: it overwrites records that it takes for torn with
//! zeros, and deletes blobs. So even reading may destroy data. Therefore a segment is read from a
//! copy, and its own files are never changed.
//!
//! The copy is made without `snap.*` and `conf`. A truncated snapshot makes sled refuse an intact
//! log forever, and sled can rebuild both from the log. Only if this copy gives too few blocks, a
//! second copy that includes them is read, and the result with more blocks is used. sled also
//! panics on some damage, which `guarded` catches.
//!
//! The blocks of the WAL, which sled may lack, are joined with the blocks of sled, and then with
//! their market parts. A packed segment has two other files and no sled database (see `records`).

use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};
use windvane_model::record::{Chain, Format};

use crate::failure::{Failure, guarded};
use crate::layout::{self, FILE_BYTES_MAX, FORMAT_VERSION, Meta, key};
use crate::market::{self, Parts, Presence};
use crate::packed::{Blocks, market_of, unpack_checkpoint};
use crate::records::{self, Packed, Rows};
use crate::wal::{self, Numbered};

/// Maximum size of a checkpoint, so that damage cannot cause a huge allocation.
const CHECKPOINT_BYTES_MAX: u64 = 4 << 30;
/// Prefix of the folders of copies. Folders that a killed process left are removed at the next
/// open.
pub const SCRATCH: &str = "scratch-";

/// A segment that was read: its checkpoint and the blocks after it.
#[derive(Debug)]
pub struct StoredSegment {
    /// Its number.
    pub number: u32,
    /// The format of its records.
    pub format: Format,
    /// The checkpoint, as the caller gave it.
    pub checkpoint: Vec<u8>,
    /// Its blocks, as far as they verify.
    pub blocks: Blocks,
    /// The end of the chain after each block. The first element is the base.
    pub(crate) chains: Vec<Chain>,
    /// Whether it has a seal that names the last of these blocks: its writer ended it in order.
    pub sealed: bool,
    /// Ranges of blocks whose market parts are lost: first and last number of each.
    pub lost: Vec<(u64, u64)>,
    /// Whether retention dropped the market parts.
    pub market_dropped: bool,
    /// The segment's metadata: format version, number, base of the chain, and length and hash of
    /// the checkpoint. `None` for an empty journal without segments.
    pub(crate) meta: Option<Meta>,
    /// The problem after the last block that verifies, or with the copy that was used.
    pub tear: Option<String>,
}

impl StoredSegment {
    /// The position that its first block continues.
    pub fn base(&self) -> Chain {
        self.chains.first().copied().unwrap_or_default()
    }

    /// The end of the chain after its last block.
    pub fn end(&self) -> Chain {
        self.chains.last().copied().unwrap_or_default()
    }
}

/// Why nothing of a segment can be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It has no checkpoint and no blocks: its creation was interrupted, or its content is lost.
    #[error("the segment is empty")]
    Empty,
    /// It is damaged.
    #[error("{0}")]
    Damaged(String),
    /// It could not be read. This does not mean that it is damaged.
    #[error("the segment could not be copied and read: {0}")]
    Failed(Failure),
}

impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::DiskFull(_) | Failure::ReadOnly(_) => Self::Failed(failure),
            // A disk error counts as damage, because a later attempt would not help.
            Failure::Io(error) => Self::Damaged(error.to_string()),
            Failure::Storage(what) => Self::Damaged(what),
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::from(Failure::from(error))
    }
}

/// The content of the WAL of a segment.
#[derive(Default)]
struct Newest {
    /// Packed consecutive blocks, with their numbers.
    blocks: Vec<Numbered>,
    /// Why blocks may be missing.
    problem: Option<String>,
}

impl Newest {
    fn read(folder: &Path) -> Result<Self, ReadError> {
        let problem = match wal::read(folder) {
            Ok(Some(blocks)) => {
                return Ok(Self {
                    blocks,
                    problem: None,
                });
            }
            Ok(None) => "its WAL is missing".to_owned(),
            Err(error) => match ReadError::from(error) {
                failed @ ReadError::Failed(_) => return Err(failed),
                damaged => format!("its WAL cannot be read: {damaged}"),
            },
        };
        Ok(Self {
            blocks: Vec::new(),
            problem: Some(problem),
        })
    }
}

/// Reads segment `number` of a journal. `enough` says whether the end of a chain includes
/// everything that is known to have been durable.
pub fn read(
    journal: &Path,
    number: u32,
    enough: impl Fn(&Chain) -> bool,
) -> Result<StoredSegment, ReadError> {
    let folder = layout::folder(journal, number);
    if let Some(rows) = records::read(&folder)? {
        return contents_of(number, &folder.join(market::PACKED), rows);
    }
    let read = read_unpacked(journal, number, &folder, enough);
    let is_whole = read.as_ref().is_ok_and(|read| read.tear.is_none());
    // The segment may have been packed meanwhile.
    match if is_whole {
        None
    } else {
        records::read(&folder)?
    } {
        Some(rows) => contents_of(number, &folder.join(market::PACKED), rows),
        None => read,
    }
}

/// Reads a segment that is still in sled.
pub fn read_unpacked(
    journal: &Path,
    number: u32,
    folder: &Path,
    enough: impl Fn(&Chain) -> bool,
) -> Result<StoredSegment, ReadError> {
    let newest = Newest::read(folder)?;
    let read = |whole| {
        let rows = Packed {
            rows: rows(journal, folder, whole)?,
            problem: None,
        };
        contents(number, &folder.join(market::NAME), rows, Some(&newest))
    };
    let plain = read(false);
    match &plain {
        Ok(contents) if contents.tear.is_none() && enough(&contents.end()) => return plain,
        Err(ReadError::Failed(_)) => return plain,
        _ => {}
    }
    let whole = read(true);
    let (Ok(first), Ok(second)) = (&plain, &whole) else {
        return if plain.is_ok() {
            plain
        } else {
            whole.or(plain)
        };
    };
    if second.end().next_block > first.end().next_block {
        return whole;
    }
    plain
}

/// All rows of a copy of a segment, in order. The copy is made beside the segments, where copying
/// is cheapest. If that disk accepts no writes, it is made in the system's folder for temporary
/// files.
fn rows(journal: &Path, folder: &Path, whole: bool) -> Result<Rows, ReadError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(SCRATCH);
    match rows_in(builder.tempdir_in(journal), folder, whole) {
        Err(ReadError::Failed(_)) => rows_in(builder.tempdir(), folder, whole),
        read => read,
    }
}

fn rows_in(
    scratch: io::Result<tempfile::TempDir>,
    folder: &Path,
    whole: bool,
) -> Result<Rows, ReadError> {
    let scratch = scratch?;
    let copy = scratch.path().join("segment");
    copy_folder(folder, &copy, whole)?;
    let rows = guarded(|| {
        let db = layout::sled_config(&copy).open()?;
        let rows: Result<Rows, sled::Error> = db
            .iter()
            .map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())))
            .collect();
        Ok(rows?)
    })?;
    Ok(rows)
}

fn copy_folder(from: &Path, to: &Path, whole: bool) -> io::Result<()> {
    fs::create_dir(to)?;
    fs::create_dir(to.join("blobs"))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let can_be_made_again = name == "conf" || name.to_string_lossy().starts_with("snap.");
        let ours = [wal::NAME, market::NAME, market::PACKED, market::DROPPED];
        let of_sled = !ours.iter().any(|ours| name == *ours) && entry.file_type()?.is_file();
        if of_sled && (whole || !can_be_made_again) {
            copy_file(&entry.path(), &to.join(name))?;
        }
    }
    let blobs = from.join("blobs");
    if blobs.is_dir() {
        for entry in fs::read_dir(blobs)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                copy_file(&entry.path(), &to.join("blobs").join(entry.file_name()))?;
            }
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let length = fs::metadata(from)?.len();
    if length > FILE_BYTES_MAX {
        let reason = format!(
            "{} has {length} bytes, and at most {FILE_BYTES_MAX} bytes are read",
            from.display()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    fs::copy(from, to).map(drop)
}

/// Interprets the rows of a packed segment.
pub fn contents_of(number: u32, market: &Path, read: Packed) -> Result<StoredSegment, ReadError> {
    contents(number, market, read, None)
}

/// Interprets the rows of a segment, with its file of market parts. A segment that is not packed
/// also has a WAL.
fn contents(
    number: u32,
    market: &Path,
    read: Packed,
    newest: Option<&Newest>,
) -> Result<StoredSegment, ReadError> {
    let rows = read.rows;
    if rows.is_empty() {
        return Err(read.problem.map_or(ReadError::Empty, ReadError::Damaged));
    }
    let mut meta = None;
    let mut checkpoint = Vec::new();
    let mut seal = None;
    let mut stored = Vec::new();
    for (key, value) in rows {
        match key.as_slice() {
            [key::BLOCK, rest @ ..] => stored.push((rest.to_vec(), value)),
            [key::CHECKPOINT, ..] => checkpoint.extend_from_slice(&value),
            key if key == key::META => meta = Some(value),
            key if key == key::SEAL => seal = Some(value),
            _ => return Err(ReadError::Damaged(format!("unknown key {key:02x?}"))),
        }
    }
    let Some(meta) = meta else {
        return Err(match stored.first() {
            None => ReadError::Empty,
            Some(_) => ReadError::Damaged("it has blocks but no checkpoint".to_owned()),
        });
    };
    let meta = parse_meta(number, &meta)?;
    let checkpoint = unpacked_checkpoint(&meta, &checkpoint)?;
    let (mut packed, gap) = join_parts(meta.base.next_block, stored);
    let gap = match newest {
        Some(newest) => join_tail(meta.base.next_block, &mut packed, &newest.blocks).or(gap),
        None => read.problem.or(gap),
    };
    let market = Market::read(market, newest.is_none(), meta.base.next_block, &packed)?;
    let verified = Blocks::verify(meta.base, packed, market.parts)?;
    let end = verified.chains.last().copied().unwrap_or_default();
    let lost = runs(
        market
            .lost
            .into_iter()
            .filter(|lost| *lost < end.next_block),
    );
    // Since version 2 a segment has a WAL until it is sealed.
    let unreported = newest.and_then(|newest| newest.problem.clone());
    let unreported = unreported.filter(|_| meta.version > 1 && seal.is_none());
    let tear = verified.problem.map(|error| error.to_string());
    let tear = tear.or(gap).or(unreported);
    let sealed = seal.as_deref() == Some(&layout::chain_bytes(&end)[..]);
    let cut = seal.is_some() && !sealed && tear.is_none();
    let tear = tear.or_else(|| cut.then(|| "its last block is not the one in its seal".to_owned()));
    // A sealed segment must be complete, unless retention dropped its market parts.
    let is_damage = sealed && !market.dropped;
    let tear = tear.or_else(|| {
        let (first, last) = lost.first().filter(|_| is_damage)?;
        Some(format!(
            "the market records of blocks {first} to {last} are lost"
        ))
    });
    Ok(StoredSegment {
        number,
        format: meta.record_format(),
        checkpoint,
        blocks: verified.blocks,
        chains: verified.chains,
        sealed,
        lost,
        market_dropped: market.dropped,
        meta: Some(meta),
        tear,
    })
}

/// The available market parts of a segment.
struct Market {
    parts: Parts,
    /// Numbers of blocks whose market part is lost.
    lost: Vec<u64>,
    dropped: bool,
}

impl Market {
    fn read(
        path: &Path,
        is_packed: bool,
        first: u64,
        packed: &[Vec<u8>],
    ) -> Result<Self, ReadError> {
        let expected = (first..).zip(packed);
        let expected: market::Expected = expected
            .filter_map(|(number, packed)| Some((number, market_of(packed)?)))
            .collect();
        if expected.is_empty() {
            return Ok(Self {
                parts: Parts::default(),
                lost: Vec::new(),
                dropped: false,
            });
        }
        let (parts, presence) = match Parts::read(path, is_packed, &expected) {
            Ok(read) => read,
            Err(error) => match ReadError::from(error) {
                failed @ ReadError::Failed(_) => return Err(failed),
                damaged => {
                    tracing::warn!(%damaged, "the market records of a segment cannot be read");
                    (Parts::default(), Presence::Missing)
                }
            },
        };
        let lost = expected.keys().copied();
        Ok(Self {
            lost: lost.filter(|number| !parts.has(*number)).collect(),
            parts,
            dropped: presence == Presence::Dropped,
        })
    }
}

/// Groups consecutive numbers into ranges.
fn runs(numbers: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    runs
}

fn parse_meta(number: u32, bytes: &[u8]) -> Result<Meta, ReadError> {
    let damaged = |what: String| ReadError::Damaged(what);
    let bytes: &[u8; 96] = bytes
        .try_into()
        .map_err(|_| damaged("its description has the wrong length".to_owned()))?;
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(word)
    };
    let version = word(0) as u32;
    if !(1..=FORMAT_VERSION).contains(&version) {
        return Err(damaged(format!(
            "its format is {version}, this program reads up to {FORMAT_VERSION}: use a newer \
             program"
        )));
    }
    let mut base = Chain {
        next_block: word(8),
        last_record: word(16),
        hash: [0; 32],
    };
    base.hash.copy_from_slice(&bytes[24..56]);
    let mut checkpoint_hash = [0; 32];
    checkpoint_hash.copy_from_slice(&bytes[64..]);
    let meta = Meta {
        version,
        number: (word(0) >> 32) as u32,
        base,
        checkpoint_len: word(56),
        checkpoint_hash,
    };
    if meta.number != number {
        return Err(damaged(format!(
            "its description names segment {:08x}: was its folder renamed or copied?",
            meta.number
        )));
    }
    Ok(meta)
}

fn unpacked_checkpoint(meta: &Meta, packed: &[u8]) -> Result<Vec<u8>, ReadError> {
    if meta.checkpoint_len > CHECKPOINT_BYTES_MAX {
        return Err(ReadError::Damaged(
            "the stated length of its checkpoint is too large".to_owned(),
        ));
    }
    let checkpoint = unpack_checkpoint(packed, meta.checkpoint_len as usize).map_err(|error| {
        ReadError::Damaged(format!("its checkpoint cannot be unpacked: {error}"))
    })?;
    if checkpoint.len() as u64 != meta.checkpoint_len
        || Sha256::digest(&checkpoint)[..] != meta.checkpoint_hash
    {
        return Err(ReadError::Damaged(
            "the checksum of its checkpoint is wrong".to_owned(),
        ));
    }
    Ok(checkpoint)
}

/// Joins the parts of consecutive blocks from `first` on. The second result says where a block or a
/// part is missing.
fn join_parts(first: u64, stored: Rows) -> (Vec<Vec<u8>>, Option<String>) {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    let mut next_part = 0;
    for (key, value) in stored {
        let next = first + blocks.len() as u64;
        let last = next.saturating_sub(1);
        if key == key::block(next, 0)[1..] {
            blocks.push(value);
            next_part = 1;
        } else if let Some(block) = blocks.last_mut()
            && key == key::block(last, next_part)[1..]
        {
            block.extend_from_slice(&value);
            next_part += 1;
        } else {
            let gap = format!("block {next} or a part of block {last} is missing");
            return (blocks, Some(gap));
        }
    }
    (blocks, None)
}

/// Joins the blocks of the WAL with the blocks of sled, which are consecutive from `first` on.
/// Returns a problem if blocks between them are missing. If both have a block, the WAL's copy is
/// used: it is complete, while the last block in sled may lack parts.
fn join_tail(first: u64, blocks: &mut Vec<Vec<u8>>, newest: &[Numbered]) -> Option<String> {
    let next = first + blocks.len() as u64;
    if let Some((begin, _)) = newest.first()
        && !(first..=next).contains(begin)
    {
        return Some(format!(
            "its WAL begins with block {begin}, but block {next} is missing"
        ));
    }
    for (number, packed) in newest {
        match blocks.get_mut((number - first) as usize) {
            Some(block) => block.clone_from(packed),
            None => blocks.push(packed.clone()),
        }
    }
    None
}
