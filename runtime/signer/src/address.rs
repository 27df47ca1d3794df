//! The address of a Unix socket. The kernel allows 107 bytes; a data folder may have a longer path.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Longest path that fits into a socket address, bytes.
const LONGEST: usize = 107;

/// A path that fits into a socket address.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    /// The folder, which must stay open while its path in `/proc` is used.
    _folder: Option<File>,
}

impl SocketPath {
    /// The address of the socket at this path. A longer path is written through the open folder.
    ///
    /// # Errors
    /// The folder cannot be opened, or the path names no file.
    pub fn of(path: &Path) -> io::Result<Self> {
        if path.as_os_str().len() <= LONGEST {
            return Ok(Self {
                path: path.to_owned(),
                _folder: None,
            });
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::other("the path of the socket names no file"));
        };
        let folder = File::open(folder)?;
        let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string());
        Ok(Self {
            path: short.join(name),
            _folder: Some(folder),
        })
    }

    /// The path for the socket address. It is valid while this value exists.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn a_socket_in_a_long_folder_can_be_bound_and_reached() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("f".repeat(90)).join("g".repeat(90));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["s", "another"] {
            let path = folder.join(name);
            let listener = UnixListener::bind(SocketPath::of(&path).unwrap().path()).unwrap();
            assert!(path.exists());
            UnixStream::connect(SocketPath::of(&path).unwrap().path()).unwrap();
            drop(listener);
        }
    }
}
