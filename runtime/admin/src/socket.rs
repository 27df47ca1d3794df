//! `<data_dir>/admin.sock`, the Unix socket of a running instance. It needs no token: the kernel
//! tells each side the user of the other.
//!
//! The server accepts its own user and root. The client accepts a server of its own user; root accepts
//! the owner of the data folder too. The client uses no data folder that other users can change or
//! replace. After a crash the file remains, and nothing listens on it.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};
use windvane_files::PrivateError;

const NAME: &str = "admin.sock";
/// The socket has this name until its mode is set.
const NEW_NAME: &str = "admin.sock.new";
/// The longest path of a Unix socket on Linux, in bytes.
const PATH_BYTES_MAX: usize = 107;
/// The folder with the open files of this process, on Linux.
const OPEN_FILES: &str = "/proc/self/fd";
/// The user id of root.
const ROOT: u32 = 0;

/// The path of the socket in a data folder.
pub(crate) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(NAME)
}

/// The socket of this process. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct AdminSocket {
    listener: UnixListener,
    own_user: u32,
    _file: SocketFile,
}

/// The socket's file. It is removed if it still is the one of this process.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    device_and_inode: (u64, u64),
}

impl AdminSocket {
    /// Listens in a data folder that this process has locked. A file of an earlier process is
    /// replaced. The caller's runtime must be tokio's.
    pub(crate) fn listen(data_dir: &Path) -> io::Result<Self> {
        let (new, path) = (data_dir.join(NEW_NAME), path(data_dir));
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = {
            let short = ShortPath::of(data_dir, NEW_NAME)?;
            UnixListener::bind(&short.path)?
        };
        // Under its final name, the socket always has this mode.
        fs::set_permissions(&new, Permissions::from_mode(0o600))?;
        let metadata = fs::symlink_metadata(&new)?;
        fs::rename(&new, &path)?;
        Ok(Self {
            listener,
            own_user: own_user()?,
            _file: SocketFile {
                path,
                device_and_inode: (metadata.dev(), metadata.ino()),
            },
        })
    }

    /// The next connection of this user or of root. Connections of other users are closed.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            match stream.peer_cred() {
                Ok(peer) if peer.uid() == self.own_user || peer.uid() == ROOT => return Ok(stream),
                Ok(peer) => {
                    let user = peer.uid();
                    tracing::debug!(user, "refused an admin connection of another user");
                }
                Err(error) => tracing::debug!(%error, "an admin connection has no user"),
            }
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let metadata = fs::symlink_metadata(&self.path);
        let ours = metadata.is_ok_and(|file| (file.dev(), file.ino()) == self.device_and_inode);
        if ours && let Err(error) = fs::remove_file(&self.path) {
            let path = self.path.display();
            tracing::warn!(%path, %error, "could not remove admin.sock");
        }
    }
}

/// Why the client did not reach a server through the socket.
#[derive(Debug)]
pub(crate) enum NotReached {
    /// There is no socket.
    Absent,
    /// A socket remains, but no process listens on it.
    Stale,
    /// The server's user is not the one of the run.
    Stranger {
        /// The user id of the server.
        user: u32,
    },
    /// Another user can change or replace the data folder, or it belongs to another user.
    Folder(PrivateError),
    /// Another error, such as a socket of another user.
    Failed(io::Error),
}

impl From<io::Error> for NotReached {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Absent,
            io::ErrorKind::ConnectionRefused => Self::Stale,
            _ => Self::Failed(error),
        }
    }
}

/// Connects to the instance of a data folder. The folder is checked each time: it must belong to the
/// user of this process, and nobody else may be able to change or replace it. Root may use the folder
/// of another user.
pub(crate) async fn connect(data_dir: &Path) -> Result<UnixStream, NotReached> {
    let of_run = windvane_files::user_of_folder(data_dir).map_err(|error| match error {
        PrivateError::Io(error) => NotReached::from(error),
        other => NotReached::Folder(other),
    })?;
    let short = ShortPath::of(data_dir, NAME)?;
    let stream = UnixStream::connect(&short.path).await?;
    let user = stream.peer_cred()?.uid();
    if user == of_run || user == own_user()? {
        return Ok(stream);
    }
    Err(NotReached::Stranger { user })
}

/// The effective user of this process, as the kernel shows it to the other end of a socket.
fn own_user() -> io::Result<u32> {
    let (end, _other) = UnixStream::pair()?;
    Ok(end.peer_cred()?.uid())
}

/// A path that is short enough for a socket. A longer one goes through the open folder.
struct ShortPath {
    path: PathBuf,
    _folder: Option<File>,
}

impl ShortPath {
    fn of(folder: &Path, name: &str) -> io::Result<Self> {
        let path = folder.join(name);
        if path.as_os_str().len() <= PATH_BYTES_MAX {
            return Ok(Self {
                path,
                _folder: None,
            });
        }
        let open = File::open(folder)?;
        let short = Path::new(OPEN_FILES).join(open.as_raw_fd().to_string());
        if !short.exists() {
            let text = format!(
                "the path is over {PATH_BYTES_MAX} bytes, too long for a socket; use a shorter one"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(Self {
            path: short.join(name),
            _folder: Some(open),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_socket_is_private_and_replaces_a_stale_one() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path();
        assert!(matches!(connect(data_dir).await, Err(NotReached::Absent)));
        drop(UnixListener::bind(path(data_dir)).unwrap());
        assert!(path(data_dir).exists());
        assert!(matches!(connect(data_dir).await, Err(NotReached::Stale)));
        let first = AdminSocket::listen(data_dir).unwrap();
        let mode = fs::symlink_metadata(path(data_dir)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        let (client, server) = tokio::join!(connect(data_dir), first.accept());
        assert!(client.is_ok() && server.is_ok());
        let second = AdminSocket::listen(data_dir).unwrap();
        drop(first);
        assert!(
            connect(data_dir).await.is_ok(),
            "the file of the second remains"
        );
        drop(second);
        assert_eq!(fs::read_dir(data_dir).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_long_path_works() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().join("d".repeat(200));
        fs::create_dir(&data_dir).unwrap();
        let socket = AdminSocket::listen(&data_dir).unwrap();
        assert!(path(&data_dir).exists());
        let (client, server) = tokio::join!(connect(&data_dir), socket.accept());
        assert!(client.is_ok() && server.is_ok());
        drop((client, server, socket));
        assert!(matches!(connect(&data_dir).await, Err(NotReached::Absent)));
    }

    #[tokio::test]
    async fn a_data_folder_that_others_can_replace_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let outer = folder.path().join("open");
        let data_dir = outer.join("data");
        fs::create_dir_all(&data_dir).unwrap();
        let with_mode = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        let _server = AdminSocket::listen(&data_dir).unwrap();
        // Whether a group may write depends on its members, see `runtime/files/src/ancestors.rs`.
        for (outer_mode, data_mode) in [(0o777, 0o700), (0o702, 0o700), (0o700, 0o777)] {
            with_mode(&outer, outer_mode);
            with_mode(&data_dir, data_mode);
            let refused = connect(&data_dir).await;
            assert!(matches!(refused, Err(NotReached::Folder(_))), "{refused:?}");
        }
        with_mode(&data_dir, 0o700);
        assert!(connect(&data_dir).await.is_ok());
    }
}
