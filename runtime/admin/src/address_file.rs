//! `<data_dir>/admin.addr` contains the TCP address of a running instance, if it has one.
//! It exists while the server runs. After a crash it remains, so a reader must expect no program,
//! or another one, at that address.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const NAME: &str = "admin.addr";
/// An address is shorter.
const BYTES_MAX: u64 = 256;

/// The file of this process. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct AddressFile {
    path: PathBuf,
    address: SocketAddr,
}

impl AddressFile {
    /// The path of the file in a data folder.
    pub(crate) fn path(data_dir: &Path) -> PathBuf {
        data_dir.join(NAME)
    }

    /// Writes the file, readable only for the owner of the data folder.
    pub(crate) fn write(data_dir: &Path, address: SocketAddr) -> io::Result<Self> {
        let path = Self::path(data_dir);
        windvane_files::replace(&path, format!("{address}\n").as_bytes())?;
        Ok(Self { path, address })
    }

    /// Removes the file of an earlier process.
    pub(crate) fn remove_stale(data_dir: &Path) -> io::Result<()> {
        match fs::remove_file(Self::path(data_dir)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The address in the file; `None` without a file.
    pub(crate) fn read(data_dir: &Path) -> io::Result<Option<SocketAddr>> {
        let text = match windvane_files::read_text_bounded(&Self::path(data_dir), BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let address = text.trim().parse();
        address
            .map(Some)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it contains no address"))
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        let path = &self.path;
        // Another process may have written its own address by now.
        let ours = path
            .parent()
            .is_some_and(|folder| matches!(Self::read(folder), Ok(Some(a)) if a == self.address));
        if ours && let Err(error) = fs::remove_file(path) {
            tracing::warn!(path = %path.display(), %error, "could not remove admin.addr");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_or_a_long_file_is_no_address() {
        let folder = tempfile::tempdir().unwrap();
        let path = AddressFile::path(folder.path());
        fs::write(&path, vec![b' '; 10_000]).unwrap();
        let error = AddressFile::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("at most 256 bytes"), "{error}");
        fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let error = AddressFile::read(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("is a pipe"), "{error}");
    }

    #[test]
    fn dropping_removes_only_the_own_file() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = ("127.0.0.1:1000", "[::1]:2000");
        assert!(AddressFile::read(folder.path()).unwrap().is_none());
        let first = AddressFile::write(folder.path(), one.parse().unwrap()).unwrap();
        let read = || AddressFile::read(folder.path()).unwrap();
        assert_eq!(read(), Some(one.parse().unwrap()));
        let second = AddressFile::write(folder.path(), two.parse().unwrap()).unwrap();
        drop(first);
        assert_eq!(read(), Some(two.parse().unwrap()));
        drop(second);
        assert_eq!(read(), None);
    }

    #[test]
    fn a_damaged_file_is_an_error_and_not_a_missing_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(AddressFile::path(folder.path()), "nowhere").unwrap();
        assert!(AddressFile::read(folder.path()).is_err());
    }
}
