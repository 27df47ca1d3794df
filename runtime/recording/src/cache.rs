//! The cache file of a decoded recording: its place, its validity, its header and its survey. It is
//! written to a temporary file and renamed, so that readers never see an incomplete file and
//! writers do not disturb each other.
//!
//! Layout, little endian: a header of 128 bytes (`magic, version u32, crc u32, source length u64,
//! source mtime ns i64, source hash 32 bytes, surface u8 and 7 zeros, survey offset u64, survey
//! length u64, survey crc u32`, zeros), the chunks, the survey as JSON.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use windvane_model::Surface;

use super::chunk::{self, Stored};
use super::{RecordingError, Survey};

const MAGIC: [u8; 8] = *b"WVTAPE\0\x01";
/// Increase it whenever the layout or the decoding changes.
const VERSION: u32 = 1;
/// Length of the header, bytes.
pub(super) const HEAD: usize = 128;
const EXTENSION: &str = "windvane-cache";
/// How many bytes at the start and at the end of a recording are hashed.
const ENDS: u64 = 64 * 1024;
/// A survey has some hundred bytes for each instrument and gap.
const SURVEY_BYTES_MAX: u64 = 256 << 20;

/// Identifies the recording and the way it is decoded. A valid cache has the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    length: u64,
    modified_ns: i64,
    hash: [u8; 32],
    surface: Option<Surface>,
}

impl Key {
    pub(super) fn of(path: &Path, surface: Option<Surface>) -> Result<Self, RecordingError> {
        let mut file = windvane_files::open_regular(path).map_err(RecordingError::io(path))?;
        let metadata = file.metadata().map_err(RecordingError::io(path))?;
        let modified = metadata.modified().ok();
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let length = metadata.len();
        let mut hash = Sha256::new();
        for start in [0, length.saturating_sub(ENDS)] {
            let mut end = Vec::new();
            file.seek(SeekFrom::Start(start))
                .map_err(RecordingError::io(path))?;
            let part = (&mut file).take(ENDS).read_to_end(&mut end);
            part.map_err(RecordingError::io(path))?;
            hash.update(&end);
        }
        Ok(Self {
            length,
            modified_ns: since.map_or(0, |since| since.as_nanos() as i64),
            hash: hash.finalize().into(),
            surface,
        })
    }

    fn bytes(&self) -> [u8; 56] {
        let mut bytes = [0; 56];
        bytes[0..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.modified_ns.to_le_bytes());
        bytes[16..48].copy_from_slice(&self.hash);
        bytes[48] = self.surface.map_or(0, |surface| 1 + surface.code());
        bytes
    }
}

/// Why a valid cache is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    None,
    /// Another version of this program wrote it.
    Version,
    /// The recording changed, or it is now decoded differently.
    Stale,
    Damaged,
}

impl Absence {
    /// The message for the user. `None` if no cache exists.
    pub(super) fn notice(&self, cache: &Path) -> Option<String> {
        let reason = match self {
            Self::None => return None,
            Self::Version => "was written by another version",
            Self::Stale => "is stale: the recording or its options changed",
            Self::Damaged => "is damaged",
        };
        let cache = cache.display();
        Some(format!(
            "the decoded cache {cache} {reason}; the recording was decoded again"
        ))
    }
}

/// The path of a recording's cache.
pub(super) fn locate(path: &Path, dir: Option<&Path>) -> Result<PathBuf, RecordingError> {
    let full = fs::canonicalize(path).map_err(RecordingError::io(path))?;
    let name = full
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let folder = full.parent().unwrap_or(Path::new("."));
    let is_writable = |dir: &Path| {
        // The permissions show what the folder's owner wants, even if this process could write
        // anyway.
        let mode_allows = fs::metadata(dir).is_ok_and(|meta| !meta.permissions().readonly());
        mode_allows && NamedTempFile::new_in(dir).is_ok()
    };
    let dir = match dir {
        Some(dir) => dir.to_owned(),
        None if is_writable(folder) => return Ok(folder.join(format!("{name}.{EXTENSION}"))),
        None => user_folder(),
    };
    fs::create_dir_all(&dir).map_err(|error| RecordingError::NoCache {
        path: dir.clone(),
        reason: error.to_string(),
    })?;
    // Recordings in different folders may have the same name, so the name starts with a hash of the
    // path.
    let hash = Sha256::digest(full.as_os_str().as_encoded_bytes());
    let prefix = u64::from_be_bytes(std::array::from_fn(|at| hash[at]));
    Ok(dir.join(format!("{prefix:016x}-{name}.{EXTENSION}")))
}

fn user_folder() -> PathBuf {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let home = || set("HOME").map(|home| home.join(".cache"));
    let base = set("XDG_CACHE_HOME")
        .or_else(home)
        .unwrap_or_else(std::env::temp_dir);
    base.join("windvane").join("recordings")
}

/// Reads the survey of a valid cache. Only the header and the survey are checked here; each chunk
/// has its own checksum, which is checked when the chunk is read.
pub(super) fn read_survey(cache: &Path, key: &Key) -> Result<Survey, Absence> {
    let mut file = windvane_files::open_regular(cache).map_err(|_| Absence::None)?;
    let mut head = [0; HEAD];
    file.read_exact(&mut head).map_err(|_| Absence::Damaged)?;
    let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
    if head[..8] != MAGIC {
        return Err(Absence::Damaged);
    }
    if word(8) != VERSION {
        return Err(Absence::Version);
    }
    if word(12) != crc32fast::hash(&head[16..]) {
        return Err(Absence::Damaged);
    }
    if head[16..72] != key.bytes() {
        return Err(Absence::Stale);
    }
    let (offset, length) = (long(72), long(80));
    if length > SURVEY_BYTES_MAX {
        return Err(Absence::Damaged);
    }
    let mut text = Vec::new();
    let survey = file
        .seek(SeekFrom::Start(offset))
        .and_then(|_| file.take(length).read_to_end(&mut text));
    if survey.is_err() || crc32fast::hash(&text) != word(88) {
        return Err(Absence::Damaged);
    }
    serde_json::from_slice(&text).map_err(|_| Absence::Damaged)
}

/// Opens a cache at its first chunk. Also returns the offset of the end of the chunks.
pub(super) fn open_chunks(cache: &Path) -> std::io::Result<(File, u64)> {
    let mut file = windvane_files::open_regular(cache)?;
    let mut head = [0; HEAD];
    file.read_exact(&mut head)?;
    Ok((
        file,
        u64::from_le_bytes(std::array::from_fn(|i| head[72 + i])),
    ))
}

/// A cache file that is being written.
pub(super) struct Writer {
    home: PathBuf,
    file: BufWriter<NamedTempFile>,
    offset: u64,
    bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn create(home: &Path) -> Result<Self, RecordingError> {
        let dir = home.parent().unwrap_or(Path::new("."));
        let file = NamedTempFile::new_in(dir).map_err(RecordingError::io(dir))?;
        let mut writer = Self {
            home: home.to_owned(),
            file: BufWriter::new(file),
            offset: HEAD as u64,
            bytes: Vec::new(),
        };
        let head = writer.file.write_all(&[0; HEAD]);
        head.map_err(RecordingError::io(&writer.home))?;
        Ok(writer)
    }

    pub(super) fn chunk(&mut self, stored: &Stored) -> Result<(), RecordingError> {
        chunk::write(&mut self.file, stored, &mut self.bytes)
            .map_err(RecordingError::io(&self.home))?;
        self.offset += self.bytes.len() as u64;
        Ok(())
    }

    /// Writes the survey and the header, then renames the file.
    pub(super) fn finish(mut self, key: &Key, survey: &Survey) -> Result<(), RecordingError> {
        let text = serde_json::to_vec(survey).map_err(|error| RecordingError::Cache {
            path: self.home.clone(),
            reason: error.to_string(),
        })?;
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[16..72].copy_from_slice(&key.bytes());
        head[72..80].copy_from_slice(&self.offset.to_le_bytes());
        head[80..88].copy_from_slice(&(text.len() as u64).to_le_bytes());
        head[88..92].copy_from_slice(&crc32fast::hash(&text).to_le_bytes());
        let crc = crc32fast::hash(&head[16..]);
        head[12..16].copy_from_slice(&crc.to_le_bytes());
        let written = self.file.write_all(&text).and_then(|()| {
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(&head)
        });
        written.map_err(RecordingError::io(&self.home))?;
        let file = self.file.into_inner().map_err(|error| {
            let (error, _) = error.into_parts();
            RecordingError::io(&self.home)(error)
        })?;
        let persisted = file.persist(&self.home).map_err(|error| error.error);
        persisted.map_err(RecordingError::io(&self.home))?;
        Ok(())
    }
}
