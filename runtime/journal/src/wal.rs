//! The write-ahead log (WAL) of the open segment: its newest blocks, in the small file `tail` beside
//! sled. A group of blocks becomes durable with one write and one sync by the thread that owns the
//! file, and no other thread is woken for it.
//!
//! The file is preallocated by writing zeros, so that a sync need not write metadata. If the file
//! system supports direct writes, the system's cache is bypassed: it costs more than it saves,
//! because the file is normally never read. Direct writes use whole sectors, so the last sector of
//! a group is written again with the next group.
//!
//! Frames follow one another from the beginning of the file: length of the packed block as u32, its
//! number as u64, a checksum over number and block, and the packed block; little endian. Once sled
//! has made all frames durable, the next frame is written at the beginning again, over the oldest
//! one.
//!
//! A reader therefore takes the frames from the beginning as long as their numbers are consecutive.
//! The next frame is incomplete, or it belongs to an earlier round and has a lower number.
//!
//! This module must never use sled, or interpret the content of a block.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::checksum::{CHECK, check};

/// Name of the file in the folder of its segment.
pub const NAME: &str = "tail";
/// Size of the file, in bytes. sled must make at most this much durable at once if the WAL has no
/// more room.
const BYTES: usize = 1 << 20;
/// A longer file is not read. No version of the program has made one of this size.
const BYTES_READ_MAX: u64 = 64 << 20;
/// Beyond this, a quiet moment is used to start the WAL again.
const LONG_BYTES: usize = BYTES / 2;
/// Beyond this, the WAL is started again without waiting for a quiet moment.
const CROWDED_BYTES: usize = BYTES / 4 * 3;
/// Alignment of direct writes, in the file and in memory. No disk has larger sectors.
const SECTOR: usize = 4096;

type Check = [u8; CHECK];

/// A packed block with its number.
pub type Numbered = (u64, Vec<u8>);
/// A packed block in a buffer, with its number.
pub type Frame<'a> = (u64, &'a [u8]);

/// The WAL of the segment that is being written.
pub struct Wal {
    path: PathBuf,
    file: File,
    /// Position at which the next group is written.
    at: usize,
    /// The bytes before `at` in the same sector.
    partial_sector: Vec<u8>,
    /// Frames that the store did not get yet.
    frames: Vec<u8>,
    /// How much of `frames` is written. The rest is the group.
    written: usize,
}

impl Wal {
    /// Creates an empty WAL. It is durable on return, except for its entry in the folder.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let path = folder.join(NAME);
        let options = File::options().write(true).create_new(true).clone();
        let file = match zeros(options.clone().custom_flags(DIRECT), &path) {
            // A file system without direct writes reports this, in some cases only at the first
            // write.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => zeros(&options, &path)?,
                }
            }
            made => made?,
        };
        Ok(Self {
            path,
            file,
            at: 0,
            partial_sector: Vec::new(),
            frames: Vec::new(),
            written: 0,
        })
    }

    /// Adds a block to the group.
    pub fn push(&mut self, number: u64, packed: &[u8]) {
        self.frames
            .extend_from_slice(&(packed.len() as u32).to_le_bytes());
        self.frames.extend_from_slice(&number.to_le_bytes());
        self.frames
            .extend_from_slice(&check(&[&number.to_le_bytes(), packed]));
        self.frames.extend_from_slice(packed);
    }

    /// Whether there are frames that the store did not get yet, written or not.
    pub const fn has_frames(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Takes the frames for the store; [`split_frames`] reads them.
    pub fn take_frames(&mut self) -> Vec<u8> {
        self.written = 0;
        std::mem::take(&mut self.frames)
    }

    /// Whether the group fits after the earlier groups.
    pub const fn has_room(&self) -> bool {
        self.frames.len() - self.written <= BYTES - self.at
    }

    /// Writes the group; [`sync`](Self::sync) makes it durable.
    pub fn write(&mut self) -> io::Result<()> {
        let group = &self.frames[self.written..];
        let sector = self.at - self.partial_sector.len();
        let bytes = Sectors::of(&[&self.partial_sector, group]);
        self.file.write_all_at(bytes.whole(), sector as u64)?;
        self.at += group.len();
        self.written = self.frames.len();
        let partial_sector = self.at - self.at % SECTOR - sector;
        self.partial_sector.clear();
        self.partial_sector
            .extend_from_slice(&bytes.taken()[partial_sector..]);
        Ok(())
    }

    /// Makes the written bytes durable.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Starts again: the next group is written at the beginning. Everything so far must be durable
    /// elsewhere.
    pub fn begin_again(&mut self) {
        self.at = 0;
        self.partial_sector.clear();
    }

    /// Whether a quiet moment should be used to start again.
    pub const fn is_long(&self) -> bool {
        self.at > LONG_BYTES
    }

    /// Whether to start again without waiting for a quiet moment.
    pub const fn is_crowded(&self) -> bool {
        self.at > CROWDED_BYTES
    }

    /// Removes the file. Everything in it must be durable elsewhere. If the file cannot be removed,
    /// it does no harm.
    pub fn remove(self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "the WAL file of an ended segment could not be removed");
        }
    }
}

#[cfg(target_os = "linux")]
const DIRECT: i32 = libc::O_DIRECT;
#[cfg(not(target_os = "linux"))]
const DIRECT: i32 = 0;

/// A file of zeros, durable except for its entry in the folder.
fn zeros(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.open(path)?;
    file.write_all_at(Sectors::of(&[&vec![0; BYTES]]).whole(), 0)?;
    file.sync_all()?;
    Ok(file)
}

/// Bytes padded with zeros to whole sectors.
struct Sectors {
    buffer: Vec<u8>,
    /// Position of the first sector in the buffer.
    begin: usize,
    len: usize,
}

impl Sectors {
    fn of(parts: &[&[u8]]) -> Self {
        let len = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut buffer = vec![0; len.next_multiple_of(SECTOR) + SECTOR];
        let begin = buffer.as_ptr().align_offset(SECTOR);
        let mut at = begin;
        for part in parts {
            buffer[at..][..part.len()].copy_from_slice(part);
            at += part.len();
        }
        Self { buffer, begin, len }
    }

    fn whole(&self) -> &[u8] {
        &self.buffer[self.begin..][..self.len.next_multiple_of(SECTOR)]
    }

    fn taken(&self) -> &[u8] {
        &self.buffer[self.begin..][..self.len]
    }
}

/// The blocks in the WAL of a segment, with their numbers; `None` without a WAL file.
pub fn read(folder: &Path) -> io::Result<Option<Vec<Numbered>>> {
    match windvane_files::read_bounded(&folder.join(NAME), BYTES_READ_MAX) {
        Ok(bytes) => Ok(Some(run(&bytes).map(|(n, b)| (n, b.to_vec())).collect())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The consecutive frames from the beginning.
fn run(bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut rest = bytes;
    let mut next = None;
    std::iter::from_fn(move || {
        let (expected, frame, behind) = split(rest)?;
        let (number, packed) = frame;
        if expected != check(&[&number.to_le_bytes(), packed])
            || next.is_some_and(|next| next != number)
        {
            rest = &[];
            return None;
        }
        rest = behind;
        next = number.checked_add(1);
        Some(frame)
    })
}

/// The blocks of frames that were taken from a WAL.
pub fn split_frames(frames: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut rest = frames;
    std::iter::from_fn(move || {
        let (_, frame, behind) = split(rest)?;
        rest = behind;
        Some(frame)
    })
}

/// The first frame, its stored checksum, and the bytes after it.
fn split(bytes: &[u8]) -> Option<(Check, Frame<'_>, &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (number, rest) = rest.split_first_chunk()?;
    let (check, rest) = rest.split_first_chunk()?;
    let (packed, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    Some((*check, (u64::from_le_bytes(*number), packed), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    const HEADER_BYTES: usize = 4 + 8 + size_of::<Check>();

    /// Only a few sizes, so that frames of different rounds often begin at the same position.
    fn sizes(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<usize>> {
        vec(select(&[0, 1, 40, 40, 600][..]), count)
    }

    fn block(number: u64, size: usize) -> Vec<u8> {
        let bytes = number.to_le_bytes();
        bytes.iter().copied().cycle().take(size).collect()
    }

    /// The possible file contents after a crash: before and after the write of the last group,
    /// which was never acknowledged.
    struct Crash {
        before: Vec<u8>,
        after: Vec<u8>,
        written: Vec<Vec<u8>>,
        /// Number of the first block of the last round.
        round: usize,
        /// Ends of the frames of the last round, without the last group.
        ends: Vec<usize>,
    }

    fn crash(rounds: &[Vec<usize>], last: &[usize]) -> Crash {
        let folder = tempfile::tempdir().unwrap();
        let mut wal = Wal::create(folder.path()).unwrap();
        let file = folder.path().join(NAME);
        let (mut written, mut ends, mut round) = (Vec::new(), Vec::new(), 0);
        for sizes in rounds {
            wal.begin_again();
            wal.take_frames();
            (ends, round) = (Vec::new(), written.len());
            for &size in sizes {
                let number = written.len() as u64;
                written.push(block(number, size));
                wal.push(number, &written[number as usize]);
                assert!(
                    split_frames(&wal.frames).last()
                        == Some((number, &written[number as usize][..]))
                );
                wal.write().unwrap();
                if number.is_multiple_of(3) {
                    wal.take_frames();
                }
                ends.push(wal.at);
            }
        }
        let before = fs::read(&file).unwrap();
        for &size in last {
            let number = written.len() as u64;
            written.push(block(number, size));
            wal.push(number, &written[number as usize]);
        }
        wal.write().unwrap();
        Crash {
            before,
            after: fs::read(file).unwrap(),
            written,
            round,
            ends,
        }
    }

    impl Crash {
        /// Checks that the image contains only written blocks, and the first `whole` blocks of the
        /// last round.
        fn assert_sound(&self, image: &[u8], whole: usize) {
            let run: Vec<_> = run(image).collect();
            for (i, (number, packed)) in run.iter().enumerate() {
                assert_eq!(*number, run[0].0 + i as u64);
                assert_eq!(*packed, self.written[*number as usize]);
            }
            if whole > 0 {
                assert_eq!(run[0].0, self.round as u64);
                assert!(run.len() >= whole, "{} of {whole}", run.len());
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_damaged_or_truncated_file_gives_only_written_blocks(
            rounds in vec(sizes(0..12), 1..4),
            last in sizes(0..6),
            places in vec((0_usize..8_000, 0..8), 40),
            sectors: [u64; 2],
        ) {
            let crash = crash(&rounds, &last);
            let whole = |at| crash.ends.iter().filter(|end| **end <= at).count();
            crash.assert_sound(&crash.after, crash.ends.len());
            for (at, bit) in places {
                crash.assert_sound(&crash.after[..at], whole(at));
                let mut flipped = crash.after.clone();
                flipped[at] ^= 1_u8 << bit;
                crash.assert_sound(&flipped, whole(at));
            }
            // After a write without a sync, any subset of the sectors may be on the disk.
            let mut torn = crash.before.clone();
            for (i, sector) in torn.chunks_mut(512).take(128).enumerate() {
                if sectors[i / 64] >> (i % 64) & 1 == 1 {
                    sector.copy_from_slice(&crash.after[i * 512..][..512]);
                }
            }
            crash.assert_sound(&torn, crash.ends.len());
        }
    }

    #[test]
    fn a_group_must_fit_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut wal = Wal::create(folder.path()).unwrap();
        let frame = HEADER_BYTES + 1000;
        for number in 0..(BYTES / frame) as u64 {
            wal.push(number, &[7; 1000]);
            assert!(wal.has_room());
            wal.write().unwrap();
            wal.take_frames();
            assert_eq!(wal.is_long(), wal.at > BYTES / 2);
        }
        wal.push(9_999, &[7; 1000]);
        assert!(!wal.has_room());
        wal.begin_again();
        assert!(wal.has_room() && !wal.is_long());
        assert_eq!(fs::metadata(&wal.path).unwrap().len(), BYTES as u64);
        wal.remove();
        assert_eq!(read(folder.path()).unwrap(), None);
    }
}
