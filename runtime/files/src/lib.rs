//! Files of the data folder: only their owner can read them, and a small file is whole or absent.
//!
//! `journal`, `admin`, `build` and `live` use this crate to write their files, so that the mode of a
//! file and the order of sync and rename are decided in one place. `config`, `recording`, `client`,
//! `build`, `live` and `cli` read files of the user with it: only regular files, up to a stated
//! length; all of them read the files of the data folder with it. `config`, `client`, `signer` and
//! `admin` use it to open files with secrets and rules, and `host` to open native code. `build` and `live` read the lines of their
//! child processes with it. It must not contain the format of any file.

mod ancestors;
mod lines;
mod private;
mod regular;

pub use ancestors::ReplaceableError;
pub use lines::BoundedLines;
pub use private::{
    OF_OTHERS, Others, PrivateError, open_private, others_in_folder_of, own_folder,
    require_own_folder, require_place, require_unchangeable, user_of_folder,
};

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;

pub use regular::{open_regular, read_bounded, read_open_text, read_text_bounded};

const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;

/// Creates a folder that only its owner may enter. An existing folder does not change.
///
/// # Errors
/// The disk failed.
pub fn folder(path: &Path) -> io::Result<()> {
    match new_folder(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        other => other,
    }
}

/// Creates a folder that only its owner may enter. It must not exist.
///
/// # Errors
/// It exists, or the disk failed.
pub fn new_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER).create(path)
}

/// Creates the folders above a path. Others may enter the new ones, but not change them, whatever
/// the umask is.
///
/// # Errors
/// The disk failed.
pub fn parents(path: &Path) -> io::Result<()> {
    const PARENT: u32 = 0o755;
    let Some(parent) = path.parent().filter(|parent| *parent != Path::new("")) else {
        return Ok(());
    };
    DirBuilder::new()
        .recursive(true)
        .mode(PARENT)
        .create(parent)
}

/// Options to open a file that only its owner may read, if the file is created by them. A link in its
/// place is not followed: a run that was taken over could leave one in its data folder, and another
/// command, which is not confined, would change a file elsewhere.
pub fn options() -> OpenOptions {
    let mut options = File::options();
    options
        .mode(FILE)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// Creates a file that only its owner may read, and replaces an existing one.
///
/// # Errors
/// The disk failed.
pub fn create(path: &Path) -> io::Result<File> {
    let file = options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    // The file may have existed with another mode.
    file.set_permissions(Permissions::from_mode(FILE))?;
    Ok(file)
}

/// Restricts a file, or a folder with all its content, to its owner. A missing path is ignored, and
/// a link is not followed.
///
/// # Errors
/// The disk failed, or the path belongs to another user.
pub fn close(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    if metadata.is_symlink() {
        return Ok(());
    }
    let open = metadata.permissions().mode() & 0o077 != 0;
    if metadata.is_dir() {
        // If only the owner may enter a folder, its content is protected already.
        if open {
            close_files(path)?;
            fs::set_permissions(path, Permissions::from_mode(FOLDER))?;
        }
    } else if open {
        fs::set_permissions(path, Permissions::from_mode(FILE))?;
    }
    Ok(())
}

/// Restricts all content of a folder to its owner.
///
/// # Errors
/// The disk failed, or a path belongs to another user.
pub fn close_files(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        close(&entry?.path())?;
    }
    Ok(())
}

/// Writes a small file so that after a crash of the process or the machine it holds either the old
/// content or the new content: written to `<path>.new`, synced, renamed, and the folder synced.
///
/// # Errors
/// The path names no file, or the disk refuses; then the old content is still there.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut new_name = name.to_os_string();
    new_name.push(".new");
    let new = folder.join(new_name);
    // A file left over by a crash could have another owner or another mode.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = options().write(true).create_new(true).open(&new)?;
    // The process's umask may have removed bits.
    file.set_permissions(Permissions::from_mode(FILE))?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_folder(folder)
}

/// Makes the entries of a folder durable.
///
/// # Errors
/// The disk refuses.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn open_up(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn new_folders_and_files_are_private() {
        let folder_ = tempfile::tempdir().unwrap();
        let (inner, file) = (folder_.path().join("a"), folder_.path().join("b"));
        folder(&inner).unwrap();
        folder(&inner).unwrap();
        assert_eq!(mode(&inner), 0o700);
        fs::write(&file, "left over").unwrap();
        open_up(&file, 0o644);
        create(&file).unwrap();
        assert_eq!((mode(&file), fs::read(&file).unwrap().len()), (0o600, 0));
        assert!(folder(&file).is_err(), "a file is in the way");
    }

    #[test]
    fn a_link_in_place_of_a_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "keep this").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(create(&link).is_err());
        replace(&link, b"new").unwrap();
        assert_eq!(fs::read_to_string(&link).unwrap(), "new");
        assert_eq!(fs::read_to_string(&file).unwrap(), "keep this");
    }

    #[test]
    fn an_open_folder_is_restricted_with_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a");
        let file = inner.join("b");
        fs::create_dir(&inner).unwrap();
        fs::write(&file, "x").unwrap();
        open_up(&inner, 0o755);
        open_up(&file, 0o644);
        std::os::unix::fs::symlink("/etc/hostname", inner.join("c")).unwrap();
        close(&inner).unwrap();
        assert_eq!((mode(&inner), mode(&file)), (0o700, 0o600));
        close(&folder.path().join("missing")).unwrap();
    }

    #[test]
    fn replace_removes_a_leftover_and_sets_the_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(folder.path().join("file.new"), "torn").unwrap();
        fs::write(&path, "old and longer").unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn replace_keeps_the_old_content_when_it_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        fs::create_dir(folder.path().join("file.new")).unwrap();
        assert!(replace(&path, b"new").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    }
}
