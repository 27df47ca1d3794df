//! The tail of a segment: its newest blocks in a small file beside sled, so that a group is durable
//! after one write and one sync by the thread that owns it, and nobody else is woken for it.
//!
//! The file is made of zeros that were written, so that a sync has no metadata to write. Where the
//! file system can, the system's cache is passed by, which costs more than it saves for what is
//! never read: then whole sectors are written, the last one of a group again with the next. Frames
//! stand in it one after another from its beginning: length of the packed block as u32, its number
//! as u64, a checksum over number and block, the packed block; little endian. Once sled has made
//! all of them durable too, the next frame is written at the beginning again, over the oldest.
//! Therefore a file gives the run of frames from its beginning whose numbers follow one another:
//! what comes next is a frame that was cut, or one of an earlier round, whose number is lower.
//!
//! What may not enter: sled, and what is in a block.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Name of the file in the folder of its segment.
pub const NAME: &str = "tail";
/// Size of the file. As much is what sled must make durable at once when it has no more room.
const BYTES: usize = 1 << 20;
/// Beyond this, a quiet moment is used to begin again.
const LONG_BYTES: usize = BYTES / 2;
/// Beyond this, no quiet moment is waited for.
const CROWDED_BYTES: usize = BYTES / 4 * 3;
/// What is written without the system's cache begins and ends at multiples of this, in the file and
/// in memory; no disk has larger sectors.
const SECTOR: usize = 4096;

type Check = [u8; 8];

/// A packed block with its number.
pub type Numbered = (u64, Vec<u8>);
/// The same, where it stands.
pub type Frame<'a> = (u64, &'a [u8]);

/// The tail of the segment that is written.
pub struct Tail {
    path: PathBuf,
    file: File,
    /// Where the next group is written.
    at: usize,
    /// What stands in the sector of `at` before it.
    begun: Vec<u8>,
    /// Frames, from when they are pushed until the store takes them.
    frames: Vec<u8>,
    /// How much of that is written; what is not is the group.
    written: usize,
}

impl Tail {
    /// Makes an empty one; it is durable on return, but for its folder's entry.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let path = folder.join(NAME);
        let options = File::options().write(true).create_new(true).clone();
        let file = match zeros(options.clone().custom_flags(DIRECT), &path) {
            // A file system without direct writes says so, some of them at the first one.
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
            begun: Vec::new(),
            frames: Vec::new(),
            written: 0,
        })
    }

    /// Adds a block to the group.
    pub fn push(&mut self, number: u64, packed: &[u8]) {
        self.frames
            .extend_from_slice(&(packed.len() as u32).to_le_bytes());
        self.frames.extend_from_slice(&number.to_le_bytes());
        self.frames.extend_from_slice(&check(number, packed));
        self.frames.extend_from_slice(packed);
    }

    /// Whether there are frames that were not taken yet, written or not.
    pub const fn has_frames(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Gives them to the store; [`split_frames`] reads them.
    pub fn take_frames(&mut self) -> Vec<u8> {
        self.written = 0;
        std::mem::take(&mut self.frames)
    }

    /// Whether the group can be written behind the ones before it.
    pub const fn has_room(&self) -> bool {
        self.frames.len() - self.written <= BYTES - self.at
    }

    /// Writes the group; [`sync`](Self::sync) makes it durable.
    pub fn write(&mut self) -> io::Result<()> {
        let group = &self.frames[self.written..];
        let sector = self.at - self.begun.len();
        let bytes = Sectors::of(&[&self.begun, group]);
        self.file.write_all_at(bytes.whole(), sector as u64)?;
        self.at += group.len();
        self.written = self.frames.len();
        let begun = self.at - self.at % SECTOR - sector;
        self.begun.clear();
        self.begun.extend_from_slice(&bytes.taken()[begun..]);
        Ok(())
    }

    /// Makes durable what was written.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// The next group is written at the beginning: everything so far is durable elsewhere.
    pub fn begin_again(&mut self) {
        self.at = 0;
        self.begun.clear();
    }

    /// Whether a quiet moment should be used to begin again.
    pub const fn is_long(&self) -> bool {
        self.at > LONG_BYTES
    }

    /// Whether it is time to begin again without a quiet moment.
    pub const fn is_crowded(&self) -> bool {
        self.at > CROWDED_BYTES
    }

    /// Removes the file: everything in it is durable elsewhere. One that stays does no harm.
    pub fn remove(self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "the tail of a segment stays");
        }
    }
}

#[cfg(target_os = "linux")]
const DIRECT: i32 = libc::O_DIRECT;
#[cfg(not(target_os = "linux"))]
const DIRECT: i32 = 0;

/// A file of zeros, durable but for its folder's entry.
fn zeros(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.open(path)?;
    file.write_all_at(Sectors::of(&[&vec![0; BYTES]]).whole(), 0)?;
    file.sync_all()?;
    Ok(file)
}

/// Bytes in whole sectors, the last one filled with zeros.
struct Sectors {
    buffer: Vec<u8>,
    /// Where they begin in the buffer.
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

/// The blocks that the tail of a segment holds, with their numbers; `None` where it has none.
pub fn read(folder: &Path) -> io::Result<Option<Vec<Numbered>>> {
    match fs::read(folder.join(NAME)) {
        Ok(bytes) => Ok(Some(run(&bytes).map(|(n, b)| (n, b.to_vec())).collect())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The run of frames from the beginning.
fn run(bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut rest = bytes;
    let mut next = None;
    std::iter::from_fn(move || {
        let (expected, frame, behind) = split(rest)?;
        let (number, packed) = frame;
        if expected != check(number, packed) || next.is_some_and(|next| next != number) {
            rest = &[];
            return None;
        }
        rest = behind;
        next = number.checked_add(1);
        Some(frame)
    })
}

/// The blocks of frames that were taken from a tail.
pub fn split_frames(frames: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut rest = frames;
    std::iter::from_fn(move || {
        let (_, frame, behind) = split(rest)?;
        rest = behind;
        Some(frame)
    })
}

/// The frame at the beginning, with the checksum that stands there, and what is behind it.
fn split(bytes: &[u8]) -> Option<(Check, Frame<'_>, &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (number, rest) = rest.split_first_chunk()?;
    let (check, rest) = rest.split_first_chunk()?;
    let (packed, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    Some((*check, (u64::from_le_bytes(*number), packed), rest))
}

fn check(number: u64, packed: &[u8]) -> Check {
    let mut hasher = Sha256::new();
    hasher.update(number.to_le_bytes());
    hasher.update(packed);
    let mut check = Check::default();
    check.copy_from_slice(&hasher.finalize()[..size_of::<Check>()]);
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    const HEADER_BYTES: usize = 4 + 8 + size_of::<Check>();

    /// Few sizes, so that frames of different rounds often begin at the same place.
    fn sizes(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<usize>> {
        vec(select(&[0, 1, 40, 40, 600][..]), count)
    }

    fn block(number: u64, size: usize) -> Vec<u8> {
        let bytes = number.to_le_bytes();
        bytes.iter().copied().cycle().take(size).collect()
    }

    /// What a crash may find: a file before and after the write of the last group, which was never
    /// acknowledged.
    struct Crash {
        before: Vec<u8>,
        after: Vec<u8>,
        written: Vec<Vec<u8>>,
        /// Number of the first block of the last round.
        round: usize,
        /// Where the frames of the last round end, those of the last group left out.
        ends: Vec<usize>,
    }

    fn crash(rounds: &[Vec<usize>], last: &[usize]) -> Crash {
        let folder = tempfile::tempdir().unwrap();
        let mut tail = Tail::create(folder.path()).unwrap();
        let file = folder.path().join(NAME);
        let (mut written, mut ends, mut round) = (Vec::new(), Vec::new(), 0);
        for sizes in rounds {
            tail.begin_again();
            tail.take_frames();
            (ends, round) = (Vec::new(), written.len());
            for &size in sizes {
                let number = written.len() as u64;
                written.push(block(number, size));
                tail.push(number, &written[number as usize]);
                assert!(
                    split_frames(&tail.frames).last()
                        == Some((number, &written[number as usize][..]))
                );
                tail.write().unwrap();
                if number.is_multiple_of(3) {
                    tail.take_frames();
                }
                ends.push(tail.at);
            }
        }
        let before = fs::read(&file).unwrap();
        for &size in last {
            let number = written.len() as u64;
            written.push(block(number, size));
            tail.push(number, &written[number as usize]);
        }
        tail.write().unwrap();
        Crash {
            before,
            after: fs::read(file).unwrap(),
            written,
            round,
            ends,
        }
    }

    impl Crash {
        /// What an image gives is what was written, and the first `whole` of the last round are
        /// there.
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
        fn a_damaged_or_cut_file_gives_blocks_that_were_written_and_no_other(
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
            // Of a write without its sync, any sectors may be there.
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
    fn a_group_needs_room_for_all_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut tail = Tail::create(folder.path()).unwrap();
        let frame = HEADER_BYTES + 1000;
        for number in 0..(BYTES / frame) as u64 {
            tail.push(number, &[7; 1000]);
            assert!(tail.has_room());
            tail.write().unwrap();
            tail.take_frames();
            assert_eq!(tail.is_long(), tail.at > BYTES / 2);
        }
        tail.push(9_999, &[7; 1000]);
        assert!(!tail.has_room());
        tail.begin_again();
        assert!(tail.has_room() && !tail.is_long());
        assert_eq!(fs::metadata(&tail.path).unwrap().len(), BYTES as u64);
        tail.remove();
        assert_eq!(read(folder.path()).unwrap(), None);
    }
}
