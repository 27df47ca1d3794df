//! A file of compressed groups, the storage format of an ended segment.
//!
//! The file begins with four letters for its kind, the version of this format as u32, and two times
//! of its segment in seconds since 1970 as i64: when it began, and when it was last written. Each
//! group is: compressed length as u32, length as u32, the first 8 bytes of the SHA-256 of both
//! lengths and the compressed bytes, and the compressed bytes. All numbers are little endian.
//! Groups after a damaged group are lost.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use zstd::bulk::Compressor;

use crate::checksum::{CHECK, check};

/// Version of the format.
const VERSION: u32 = 1;
const HEADER: usize = 4 + 4 + 16;
/// Maximum length of a group, so that damage cannot cause a huge allocation.
const GROUP_MAX: usize = 128 << 20;
/// A group ends at this length.
const GROUP_BYTES: usize = 4 << 20;
/// Packing runs in the background, so there is time for this level. It takes half the time of level
/// 9 and gives 2 % more bytes.
const LEVEL: i32 = 7;

/// When a segment began and was last written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    pub started: SystemTime,
    pub written: SystemTime,
}

/// Writes a file of groups.
pub struct Writer {
    file: File,
    group: Vec<u8>,
    compressor: Compressor<'static>,
}

impl Writer {
    pub fn create(path: &Path, magic: [u8; 4], times: Times) -> io::Result<Self> {
        let mut file = windvane_files::options()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        let mut header = magic.to_vec();
        header.extend_from_slice(&VERSION.to_le_bytes());
        for time in [times.started, times.written] {
            let since = time.duration_since(SystemTime::UNIX_EPOCH);
            let seconds = since.map_or(0, |since| since.as_secs());
            header.extend_from_slice(&seconds.to_le_bytes());
        }
        file.write_all(&header)?;
        Ok(Self {
            file,
            group: Vec::new(),
            compressor: Compressor::new(LEVEL)?,
        })
    }

    /// The bytes of the open group. Bytes that are added between two calls of [`Self::end_if_long`]
    /// stay in one group.
    pub const fn group(&mut self) -> &mut Vec<u8> {
        &mut self.group
    }

    /// Ends the open group if it is long enough.
    pub fn end_if_long(&mut self) -> io::Result<()> {
        if self.group.len() >= GROUP_BYTES {
            self.end_group()?;
        }
        Ok(())
    }

    fn end_group(&mut self) -> io::Result<()> {
        if self.group.is_empty() {
            return Ok(());
        }
        let packed = self.compressor.compress(&self.group)?;
        let mut header = (packed.len() as u32).to_le_bytes().to_vec();
        header.extend_from_slice(&(self.group.len() as u32).to_le_bytes());
        let check = check(&[&header, &packed]);
        header.extend_from_slice(&check);
        self.file.write_all(&header)?;
        self.file.write_all(&packed)?;
        self.group.clear();
        Ok(())
    }

    /// Makes the file durable, except for its entry in the folder.
    pub fn finish(mut self) -> io::Result<()> {
        self.end_group()?;
        self.file.sync_all()
    }
}

/// The content of a file of groups.
pub struct Groups<'a> {
    /// Its groups up to the first damaged one: compressed bytes and uncompressed length.
    pub groups: Vec<(&'a [u8], usize)>,
    /// Why groups may be missing; `None` if the file is complete.
    pub problem: Option<String>,
}

/// Reads a file of groups.
pub fn read(bytes: &[u8], magic: [u8; 4]) -> Groups<'_> {
    let mut groups = Vec::new();
    let mut rest = match begin(bytes, magic) {
        Ok(rest) => rest,
        Err(problem) => {
            return Groups {
                groups,
                problem: Some(problem),
            };
        }
    };
    let mut problem = None;
    while !rest.is_empty() {
        let Some((group, behind)) = split(rest) else {
            let at = bytes.len() - rest.len();
            problem = Some(format!("the group at byte {at} of its file is damaged"));
            break;
        };
        groups.push(group);
        rest = behind;
    }
    Groups { groups, problem }
}

fn begin(bytes: &[u8], magic: [u8; 4]) -> Result<&[u8], String> {
    let damaged = || "the beginning of its file is damaged".to_owned();
    let (header, rest) = bytes.split_at_checked(HEADER).ok_or_else(damaged)?;
    if header[..4] != magic {
        return Err(damaged());
    }
    let version = header[4..8]
        .first_chunk()
        .map_or(0, |v| u32::from_le_bytes(*v));
    if version != VERSION {
        return Err(format!(
            "the format of its file is {version}, this program reads {VERSION}: use a newer program"
        ));
    }
    Ok(rest)
}

/// When the segment of a file began and was last written.
pub fn times(bytes: &[u8]) -> Option<Times> {
    let time = |at: usize| {
        let seconds = u64::from_le_bytes(*bytes.get(at..at + 8)?.first_chunk()?);
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
    };
    Some(Times {
        started: time(8)?,
        written: time(16)?,
    })
}

/// The compressed bytes of a group, and its uncompressed length.
type Group<'a> = (&'a [u8], usize);

/// The first group, and the bytes after it.
fn split(bytes: &[u8]) -> Option<(Group<'_>, &[u8])> {
    let (header, rest) = bytes.split_at_checked(8)?;
    let (stored, rest) = rest.split_at_checked(CHECK)?;
    let word = |at: usize| {
        header[at..]
            .first_chunk()
            .map(|w| u32::from_le_bytes(*w) as usize)
    };
    let (packed, behind) = rest.split_at_checked(word(0)?)?;
    let len = word(4).filter(|len| *len <= GROUP_MAX)?;
    (check(&[header, packed]) == stored).then_some(((packed, len), behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_before_the_damage_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let second = |s| SystemTime::UNIX_EPOCH + Duration::from_secs(s);
        let times_of = Times {
            started: second(7),
            written: second(1 << 33),
        };
        let mut writer = Writer::create(&path, *b"TEST", times_of).unwrap();
        let mut ends = Vec::new();
        for group in 0..3_u8 {
            writer.group().extend_from_slice(&[group; 300]);
            writer.end_group().unwrap();
            ends.push(std::fs::metadata(&path).unwrap().len() as usize);
        }
        writer.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(times(&bytes), Some(times_of));
        assert_eq!(read(&bytes, *b"TEST").groups.len(), 3);
        assert!(read(&bytes, *b"TEST").problem.is_none());
        assert!(read(&bytes, *b"ELSE").problem.is_some());
        for at in 0..bytes.len() {
            let whole = ends.iter().filter(|end| **end <= at).count();
            let cut = read(&bytes[..at], *b"TEST");
            assert_eq!(cut.groups.len(), whole, "{at}");
            assert_eq!(
                cut.problem.is_none(),
                at == HEADER || ends.contains(&at),
                "{at}"
            );
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            let read = read(&damaged, *b"TEST");
            if at >= HEADER {
                assert_eq!(read.groups.len(), whole, "{at}");
            }
            assert_eq!(read.problem.is_some(), !(8..HEADER).contains(&at), "{at}");
        }
    }
}
