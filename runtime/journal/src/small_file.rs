//! Small files that are either complete or absent: written under a temporary name, synced, renamed,
//! and then their folder is synced.
//!
//! They are text with a checksum, so that a person can read them, and damage can be detected.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::checksum::check;

/// A longer file is not read. It can only be damage.
const BYTES_MAX: u64 = 16 << 20;

/// A small file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SmallFileError {
    /// The disk failed.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the disk.
        error: io::Error,
    },
    /// Its content is damaged.
    #[error("{} is damaged: its checksum or form is wrong", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

fn checksum(kind: &str, text: &str) -> String {
    hex::encode(check(&[kind.as_bytes(), b"\n", text.as_bytes()]))
}

/// Writes `lines` to a file. After any end of the process or machine, the file is the old one or
/// the new one.
pub fn write(path: &Path, kind: &str, lines: &str) -> Result<(), SmallFileError> {
    let text = format!(
        "windvane {kind} 1\n{lines}\ncheck {}\n",
        checksum(kind, lines)
    );
    windvane_files::replace(path, text.as_bytes()).map_err(|error| SmallFileError::Io {
        path: path.to_owned(),
        error,
    })
}

/// The lines of a file; `None` if the file does not exist.
pub fn read(path: &Path, kind: &str) -> Result<Option<String>, SmallFileError> {
    let bytes = match windvane_files::read_bounded(path, BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(SmallFileError::Io {
                path: path.to_owned(),
                error,
            });
        }
    };
    let lines = String::from_utf8(bytes).ok().and_then(|text| {
        let rest = text.strip_prefix(&format!("windvane {kind} 1\n"))?;
        let (lines, check) = rest.rsplit_once("\ncheck ")?;
        (check.strip_suffix('\n')? == checksum(kind, lines)).then(|| lines.to_owned())
    });
    lines.map(Some).ok_or_else(|| damaged(path))
}

/// The error for damaged content.
pub fn damaged(path: &Path) -> SmallFileError {
    SmallFileError::Damaged {
        path: path.to_owned(),
    }
}

/// Renames a damaged file or folder to `<name>.<why>-<n>`, so that a person can look at it.
pub fn put_aside(path: &Path, why: &str) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut n = 1;
    loop {
        let aside = path.with_file_name(format!("{name}.{why}-{n}"));
        if !aside.try_exists()? {
            fs::rename(path, &aside)?;
            path.parent().map_or(Ok(()), windvane_files::sync_folder)?;
            return Ok(aside);
        }
        n += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_back_and_any_damaged_byte_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert_eq!(read(&path, "test").unwrap(), None);
        write(&path, "test", "a 1\nb 2").unwrap();
        write(&path, "test", "a 1\nb 3").unwrap();
        assert_eq!(read(&path, "test").unwrap().as_deref(), Some("a 1\nb 3"));
        assert!(
            read(&path, "other").is_err(),
            "a file of another kind must be refused"
        );

        let whole = fs::read(&path).unwrap();
        for i in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[i] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert!(read(&path, "test").is_err(), "byte {i}");
            fs::write(&path, &whole[..i]).unwrap();
            assert!(read(&path, "test").is_err(), "cut at {i}");
        }
    }

    #[test]
    fn files_put_aside_never_overwrite_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for n in 1..4 {
            fs::write(&path, "y").unwrap();
            let aside = put_aside(&path, "damaged").unwrap();
            assert_eq!(aside, folder.path().join(format!("x.damaged-{n}")));
        }
    }
}
