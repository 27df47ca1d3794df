//! The market parts of blocks, in plain files beside sled. They are bulk data: no order waits for
//! them, sled would write them several times, and retention drops them before anything else.
//!
//! `market` holds the parts of the segment that is being written, as a sequence of frames: length
//! as u32, number of the block as u64, and the part; little endian. The order part of a block has
//! the length and the digest of its market part. So a frame needs no checksum, and frames after
//! damage can be found again. `market.zst` has the same frames of an ended segment, compressed (see
//! `groups`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use windvane_model::record::{Hash, digest_of};

use crate::groups;
use crate::layout::FILE_BYTES_MAX;
use crate::options::SyncHook;

/// The file of the segment that is being written.
pub const NAME: &str = "market";
/// The file of an ended segment.
pub const PACKED: &str = "market.zst";
/// An empty file that shows that retention dropped the market parts.
pub const DROPPED: &str = "market.dropped";
/// The first bytes of `market.zst`.
pub const MAGIC: [u8; 4] = *b"WVMP";
/// A loss of power may lose this much, plus the time of a sync.
const SYNC_EVERY: Duration = Duration::from_secs(2);
const FRAME_HEADER: usize = 12;

/// Appends a frame.
pub fn push_frame(frames: &mut Vec<u8>, number: u64, part: &[u8]) {
    frames.extend_from_slice(&(part.len() as u32).to_le_bytes());
    frames.extend_from_slice(&number.to_le_bytes());
    frames.extend_from_slice(part);
}

/// The market file of the segment that is being written.
pub struct MarketFile {
    file: File,
    hook: Option<SyncHook>,
    /// Since when there are unsynced bytes.
    unsynced: Option<Instant>,
}

impl MarketFile {
    pub fn create(folder: &Path, hook: Option<SyncHook>) -> io::Result<Self> {
        let file = windvane_files::options()
            .append(true)
            .create_new(true)
            .open(folder.join(NAME))?;
        Ok(Self {
            file,
            hook,
            unsynced: None,
        })
    }

    /// Writes frames to the system. They survive the end of the process, but not a loss of power.
    pub fn append(&mut self, frames: &[u8]) -> io::Result<()> {
        if frames.is_empty() {
            return Ok(());
        }
        self.unsynced.get_or_insert_with(Instant::now);
        self.file.write_all(frames)
    }

    /// Time until the next sync is due; `None` if all bytes are synced.
    pub fn sync_in(&self) -> Option<Duration> {
        let since = self.unsynced?;
        Some(SYNC_EVERY.saturating_sub(since.elapsed()))
    }

    /// Makes everything durable.
    pub fn sync(&mut self) -> io::Result<()> {
        match self.unsynced.take() {
            Some(_) => {
                self.hook.as_ref().map_or(Ok(()), |hook| hook())?;
                self.file.sync_data()
            }
            None => Ok(()),
        }
    }
}

/// Length and digest of the market part of each block that has one, by block number.
pub type Expected = BTreeMap<u64, (usize, Hash)>;

/// The market parts of a segment that was read.
#[derive(Default)]
pub struct Parts {
    groups: Vec<Group>,
    places: BTreeMap<u64, (usize, Range<usize>)>,
    /// The group that was decompressed last.
    open: Option<(usize, Vec<u8>)>,
}

enum Group {
    Plain(Vec<u8>),
    Packed(Vec<u8>, usize),
}

/// Whether a segment should have its market parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The file exists.
    Kept,
    /// Retention dropped them.
    Dropped,
    /// The file does not exist, for an unknown reason.
    Missing,
}

impl Parts {
    /// Reads the parts of a segment from its file. A part without the expected digest is left out.
    pub fn read(path: &Path, is_packed: bool, expected: &Expected) -> io::Result<(Self, Presence)> {
        let bytes = match windvane_files::read_bounded(path, FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let dropped = path.with_file_name(DROPPED).try_exists()?;
                let presence = [Presence::Missing, Presence::Dropped][usize::from(dropped)];
                return Ok((Self::default(), presence));
            }
            Err(error) => return Err(error),
        };
        let mut parts = Self::default();
        if is_packed {
            for (packed, len) in groups::read(&bytes, MAGIC).groups {
                if let Ok(plain) = zstd::bulk::decompress(packed, len) {
                    parts.find(&plain, expected);
                    parts.groups.push(Group::Packed(packed.to_vec(), len));
                }
            }
        } else {
            parts.find(&bytes, expected);
            parts.groups.push(Group::Plain(bytes));
        }
        Ok((parts, Presence::Kept))
    }

    /// Finds the frames of the next group. After damage every position is tried.
    fn find(&mut self, bytes: &[u8], expected: &Expected) {
        let mut at = 0;
        while at + FRAME_HEADER <= bytes.len() {
            match whole_frame(&bytes[at..], expected) {
                Some((number, len)) => {
                    let begin = at + FRAME_HEADER;
                    let place = (self.groups.len(), begin..begin + len);
                    self.places.entry(number).or_insert(place);
                    at = begin + len;
                }
                None => at += 1,
            }
        }
    }

    /// Whether the part of a block was found.
    pub fn has(&self, number: u64) -> bool {
        self.places.contains_key(&number)
    }

    /// The part of a block; `None` if it is lost.
    pub fn get(&mut self, number: u64) -> Option<Vec<u8>> {
        let (group, range) = self.places.get(&number)?.clone();
        match self.groups.get(group)? {
            Group::Plain(bytes) => bytes.get(range).map(<[u8]>::to_vec),
            Group::Packed(packed, len) => {
                if self.open.as_ref().is_none_or(|(open, _)| *open != group) {
                    self.open = Some((group, zstd::bulk::decompress(packed, *len).ok()?));
                }
                let (_, plain) = self.open.as_ref()?;
                plain.get(range).map(<[u8]>::to_vec)
            }
        }
    }
}

/// The block number and part length of the frame at the beginning, if it is a complete frame with
/// the expected digest.
fn whole_frame(bytes: &[u8], expected: &Expected) -> Option<(u64, usize)> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (number, rest) = rest.split_first_chunk()?;
    let (number, len) = (
        u64::from_le_bytes(*number),
        u32::from_le_bytes(*len) as usize,
    );
    let (expected_len, digest) = expected.get(&number)?;
    let part = rest.get(..len).filter(|_| len == *expected_len)?;
    (digest_of(part) == *digest).then_some((number, len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn part(number: u64) -> Vec<u8> {
        let bytes = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        let size = 1 + number as usize * 7 % 90;
        bytes.iter().copied().cycle().take(size).collect()
    }

    fn expected(numbers: Range<u64>) -> Expected {
        let one = |number| (number, (part(number).len(), digest_of(&part(number))));
        numbers.map(one).collect()
    }

    #[test]
    fn damage_loses_only_the_frames_it_hits() {
        let folder = tempfile::tempdir().unwrap();
        let mut frames = Vec::new();
        let mut ends = Vec::new();
        for number in 3..40 {
            push_frame(&mut frames, number, &part(number));
            ends.push(frames.len());
        }
        let mut file = MarketFile::create(folder.path(), None).unwrap();
        file.append(&frames).unwrap();
        assert!(file.sync_in().is_some());
        file.sync().unwrap();
        assert!(file.sync_in().is_none());
        let path = folder.path().join(NAME);
        assert_eq!(fs::read(&path).unwrap(), frames);
        let expected = expected(3..40);
        for at in 0..frames.len() {
            let mut damaged = frames.clone();
            damaged[at] ^= 0x41;
            fs::write(&path, &damaged).unwrap();
            let (mut parts, presence) = Parts::read(&path, false, &expected).unwrap();
            assert_eq!(presence, Presence::Kept);
            let hit = 3 + ends.iter().filter(|end| **end <= at).count() as u64;
            for number in 3..40 {
                let found = parts.get(number);
                assert_eq!(
                    found,
                    (number != hit).then(|| part(number)),
                    "{at} {number}"
                );
                assert_eq!(parts.has(number), number != hit);
            }
        }
        for cut in 0..frames.len() {
            fs::write(&path, &frames[..cut]).unwrap();
            let (parts, _) = Parts::read(&path, false, &expected).unwrap();
            let whole = ends.iter().filter(|end| **end <= cut).count() as u64;
            assert!((3..40).all(|number| parts.has(number) == (number < 3 + whole)));
        }
    }

    #[test]
    fn a_missing_file_counts_as_lost_unless_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PACKED);
        let presence = || Parts::read(&path, true, &Expected::new()).unwrap().1;
        assert_eq!(presence(), Presence::Missing);
        fs::write(folder.path().join(DROPPED), []).unwrap();
        assert_eq!(presence(), Presence::Dropped);
    }
}
