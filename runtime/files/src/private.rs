//! Files and folders that only their owner may use: secrets, tokens, keystores, data folders. They
//! are checked on the open descriptor, so that nobody can replace them between check and use.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::ancestors::{self, CHANGE_BY_OTHERS, ROOT, ReplaceableError};
use super::regular::open_regular;

/// Permission bits of others than the owner: none may be set.
pub const OF_OTHERS: u32 = 0o077;
const FOLDER: u32 = 0o700;

/// A file or a folder that this program must not use.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// It cannot be opened, or it is not a regular file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It belongs to another user, who could change or read it.
    #[error(
        "it belongs to user {owner}, and this program runs as user {user}; run the program as user \
         {owner}, or change the owner with chown {user}"
    )]
    Owner {
        /// The owner's number.
        owner: u32,
        /// The number of this process's user.
        user: u32,
    },
    /// Its permission bits let others use it.
    #[error("it has mode {mode:04o}, which lets other users use it")]
    Mode {
        /// Its permission bits.
        mode: u32,
    },
    /// Others can put something else in its place.
    #[error(transparent)]
    Replaceable(ReplaceableError),
}

impl From<ReplaceableError> for PrivateError {
    fn from(error: ReplaceableError) -> Self {
        match error {
            ReplaceableError::Io { error, .. } if error.kind() == io::ErrorKind::NotFound => {
                Self::Io(error)
            }
            ReplaceableError::Io { path, error } => {
                let text = format!("{}: {error}", path.display());
                Self::Io(io::Error::new(error.kind(), text))
            }
            other => Self::Replaceable(other),
        }
    }
}

impl PrivateError {
    /// The error as text, with what to do about a folder.
    pub fn about_folder(&self, path: &Path) -> String {
        match self {
            Self::Mode { .. } => format!("{self}; run chmod 700 {}", path.display()),
            Self::Io(_) | Self::Owner { .. } | Self::Replaceable(_) => self.to_string(),
        }
    }
}

/// Opens a regular file for reading that belongs to this process's user or to the superuser, and
/// that has none of the `forbidden` permission bits. A link is followed, and its target is checked.
/// Nobody else may be able to replace the file, or a link on the way to it.
///
/// # Errors
/// It cannot be opened, or it is not private.
pub fn open_private(path: &Path, forbidden: u32) -> Result<File, PrivateError> {
    let file = open_regular(path)?;
    let metadata = file.metadata()?;
    require_owner(&metadata)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & forbidden != 0 {
        return Err(PrivateError::Mode { mode });
    }
    ancestors::require(path, own_user())?;
    Ok(file)
}

/// Requires that only this process's user and the superuser can replace a path. A path that
/// does not exist yet passes: check again when it exists.
///
/// # Errors
/// Others can replace it.
pub fn require_place(path: &Path) -> Result<(), PrivateError> {
    match ancestors::require(path, own_user()) {
        Err(error) if !error.is_missing() => Err(error.into()),
        _ => Ok(()),
    }
}

/// The user of the instance whose data folder this is: the user of this process, or for root the
/// owner of the folder. Nobody else may be able to change or replace the folder.
///
/// # Errors
/// It belongs to another user, others can change or replace it, or it does not exist.
pub fn user_of_folder(path: &Path) -> Result<u32, PrivateError> {
    // Not opened: another user's folder cannot be, and the error must name its owner.
    let metadata = fs::metadata(path)?;
    let user = match own_user() {
        ROOT => metadata.uid(),
        user => user,
    };
    if metadata.uid() != user {
        require_owner(&metadata)?;
    }
    require_unchanged_by_others(&metadata)?;
    ancestors::require(path, user)?;
    Ok(user)
}

/// Requires that a folder belongs to this process's user or to the superuser, and that nobody else
/// may change or replace it. If others may look into it, it is restricted to its owner; the earlier mode is
/// returned.
///
/// # Errors
/// It is not private, or the disk failed.
pub fn own_folder(path: &Path) -> Result<Option<u32>, PrivateError> {
    let folder = File::open(path)?;
    let metadata = folder.metadata()?;
    require_owner(&metadata)?;
    let mode = require_unchanged_by_others(&metadata)?;
    ancestors::require(path, own_user())?;
    if mode & OF_OTHERS == 0 {
        return Ok(None);
    }
    folder.set_permissions(fs::Permissions::from_mode(FOLDER))?;
    Ok(Some(mode))
}

/// Requires the same as [`own_folder`], and changes nothing.
///
/// # Errors
/// It is not private, or cannot be opened.
pub fn require_own_folder(path: &Path) -> Result<(), PrivateError> {
    let metadata = File::open(path)?.metadata()?;
    require_owner(&metadata)?;
    require_unchanged_by_others(&metadata)?;
    Ok(ancestors::require(path, own_user())?)
}

/// Requires that only root and the user of this process can change or replace an existing file or
/// folder. Others may read it. A link is followed.
///
/// # Errors
/// Others can change or replace it, or it cannot be found.
pub fn require_unchangeable(path: &Path) -> Result<(), PrivateError> {
    let metadata = fs::metadata(path)?;
    require_owner(&metadata)?;
    if ancestors::others_may_change(&metadata) {
        let mode = metadata.permissions().mode() & 0o7777;
        return Err(PrivateError::Mode { mode });
    }
    Ok(ancestors::require(path, own_user())?)
}

/// The permission bits, none of which lets others change something.
fn require_unchanged_by_others(metadata: &fs::Metadata) -> Result<u32, PrivateError> {
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & CHANGE_BY_OTHERS == 0 {
        Ok(mode)
    } else {
        Err(PrivateError::Mode { mode })
    }
}

/// What other users may do in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Others {
    /// They may see the names of its files.
    See,
    /// They may add, replace and remove files, or a folder above it.
    Change,
}

/// What other users may do in the folder of a file, also through a folder above it; `None` if nothing.
/// A link is followed, and both folders count.
///
/// # Errors
/// A folder cannot be read.
pub fn others_in_folder_of(file: &Path) -> io::Result<Option<Others>> {
    const SEE_BY_OTHERS: u32 = 0o044;
    /// In a folder with this bit, only the owner of a file may replace it.
    const STICKY: u32 = 0o1000;
    let mut most = None;
    for file in [std::path::absolute(file)?, file.canonicalize()?] {
        for (above, folder) in file.ancestors().skip(1).enumerate() {
            let metadata = fs::metadata(folder)?;
            let mode = metadata.permissions().mode();
            let is_changed = mode & CHANGE_BY_OTHERS != 0 && (above == 0 || mode & STICKY == 0);
            let found = if is_changed || require_owner(&metadata).is_err() {
                Some(Others::Change)
            } else {
                (above == 0 && mode & SEE_BY_OTHERS != 0).then_some(Others::See)
            };
            most = most.max(found);
        }
    }
    Ok(most)
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn require_owner(metadata: &fs::Metadata) -> Result<(), PrivateError> {
    let (owner, user) = (metadata.uid(), own_user());
    if owner == user || owner == ROOT {
        Ok(())
    } else {
        Err(PrivateError::Owner { owner, user })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    /// A number that no user of the test machine has.
    const STRANGER: u32 = 3_999_999;

    #[test]
    fn only_private_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("secret"), folder.path().join("link"));
        fs::write(&path, "x").unwrap();
        symlink(&path, &link).unwrap();
        let with_mode = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            [&path, &link].map(|path| open_private(path, OF_OTHERS))
        };
        assert!(with_mode(0o600).iter().all(Result::is_ok));
        for mode in [0o640, 0o604, 0o602] {
            for refused in with_mode(mode) {
                assert!(
                    matches!(refused, Err(PrivateError::Mode { mode: found }) if found == mode)
                );
            }
        }
        for other in [folder.path(), Path::new("/dev/zero")] {
            assert!(matches!(
                open_private(other, OF_OTHERS),
                Err(PrivateError::Io(error)) if error.kind() == io::ErrorKind::InvalidInput
            ));
        }
        let absent = open_private(&folder.path().join("absent"), OF_OTHERS).unwrap_err();
        assert!(
            matches!(absent, PrivateError::Io(error) if error.kind() == io::ErrorKind::NotFound)
        );
    }

    #[test]
    fn a_pipe_is_refused_without_a_wait() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(matches!(
            open_private(&path, OF_OTHERS),
            Err(PrivateError::Io(error)) if error.kind() == io::ErrorKind::InvalidInput
        ));
    }

    #[test]
    fn a_file_that_others_may_read_but_not_change_is_unchangeable() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let (path, link) = (folder.join("file"), outer.path().join("link"));
        fs::write(&path, "x").unwrap();
        symlink(&path, &link).unwrap();
        let with_modes = |of_folder, of_file| {
            fs::set_permissions(&folder, fs::Permissions::from_mode(of_folder)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(of_file)).unwrap();
            [&path, &link].map(|path| require_unchangeable(path))
        };
        assert!(with_modes(0o755, 0o644).iter().all(Result::is_ok));
        for found in with_modes(0o755, 0o646) {
            assert!(matches!(found, Err(PrivateError::Mode { mode: 0o646 })));
        }
        for found in with_modes(0o757, 0o644) {
            assert!(matches!(found, Err(PrivateError::Replaceable(_))));
        }
        assert!(matches!(
            require_unchangeable(&folder.join("absent")),
            Err(PrivateError::Io(_))
        ));
        assert!(with_modes(0o755, 0o644).iter().all(Result::is_ok));
        if given_away(&path) {
            let found = require_unchangeable(&path);
            assert!(matches!(
                found,
                Err(PrivateError::Owner {
                    owner: STRANGER,
                    ..
                })
            ));
        }
    }

    /// Only the superuser can give a file away, so other users test nothing here.
    fn given_away(path: &Path) -> bool {
        chown(path, Some(STRANGER), None).is_ok()
    }

    #[test]
    fn a_file_or_folder_of_another_user_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (file, inner) = (folder.path().join("file"), folder.path().join("inner"));
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::create_dir(&inner).unwrap();
        if !(given_away(&file) && given_away(&inner)) {
            return;
        }
        let refused = open_private(&file, OF_OTHERS).unwrap_err().to_string();
        assert!(refused.contains(&STRANGER.to_string()), "{refused}");
        assert!(matches!(
            own_folder(&inner),
            Err(PrivateError::Owner {
                owner: STRANGER,
                ..
            })
        ));
    }

    #[test]
    fn a_folder_that_others_may_change_is_refused_and_a_readable_one_restricted() {
        let folder = tempfile::tempdir().unwrap();
        let with_mode = |mode| {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            own_folder(folder.path())
        };
        for mode in [0o777, 0o770, 0o702] {
            assert!(matches!(with_mode(mode), Err(PrivateError::Mode { .. })));
        }
        assert_eq!(with_mode(0o755).unwrap(), Some(0o755));
        assert_eq!(
            fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert_eq!(with_mode(0o700).unwrap(), None);
    }

    #[test]
    fn the_folder_of_a_file_says_what_others_may_do() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let (file, link) = (inner.join("key"), outer.path().join("link"));
        fs::write(&file, "x").unwrap();
        symlink(&file, &link).unwrap();
        let with_modes = |of_outer, of_inner| {
            for (path, mode) in [(outer.path(), of_outer), (&inner, of_inner)] {
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            }
            [&file, &link].map(|path| others_in_folder_of(path).unwrap())
        };
        assert_eq!(with_modes(0o700, 0o700), [None, None]);
        assert_eq!(with_modes(0o711, 0o700), [None, None]);
        assert_eq!(with_modes(0o700, 0o755), [Some(Others::See); 2]);
        assert_eq!(with_modes(0o700, 0o1777), [Some(Others::Change); 2]);
        assert_eq!(with_modes(0o777, 0o700), [Some(Others::Change); 2]);
        assert_eq!(
            with_modes(0o1777, 0o700),
            [None, Some(Others::Change)],
            "others may add files beside the link"
        );
        if rustix::process::geteuid().is_root() {
            with_modes(0o700, 0o700);
            chown(&inner, Some(STRANGER), None).unwrap();
            let found = others_in_folder_of(&file).unwrap();
            assert_eq!(found, Some(Others::Change));
        }
        assert!(others_in_folder_of(&inner.join("missing")).is_err());
    }

    #[test]
    fn a_path_that_others_can_replace_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let outer = folder.path().join("outer");
        let (file, inner) = (outer.join("secret"), outer.join("inner"));
        fs::create_dir_all(&inner).unwrap();
        fs::write(&file, "x").unwrap();
        for (path, mode) in [(&file, 0o600), (&inner, 0o700), (&outer, 0o777)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let refused = [
            open_private(&file, OF_OTHERS).unwrap_err(),
            own_folder(&inner).unwrap_err(),
            require_own_folder(&inner).unwrap_err(),
            require_place(&outer.join("new")).unwrap_err(),
            user_of_folder(&inner).unwrap_err(),
        ];
        for refused in refused {
            assert!(refused.to_string().contains("0777"), "{refused}");
            assert!(matches!(refused, PrivateError::Replaceable(_)), "{refused}");
        }
        fs::set_permissions(&outer, fs::Permissions::from_mode(0o755)).unwrap();
        open_private(&file, OF_OTHERS).unwrap();
        require_place(&outer.join("new/and/newer")).unwrap();
        assert_eq!(user_of_folder(&inner).unwrap(), own_user());
    }

    #[test]
    fn root_accepts_the_folder_of_a_user_whose_parents_are_safe() {
        let folder = tempfile::tempdir().unwrap();
        let outer = folder.path().join("outer");
        let inner = outer.join("inner");
        fs::create_dir_all(&inner).unwrap();
        // Only root can give a folder away, and only root sees the folders of others.
        if !(given_away(&inner) && given_away(&outer)) {
            return;
        }
        assert_eq!(user_of_folder(&inner).unwrap(), STRANGER);
        chown(&outer, Some(STRANGER + 1), None).unwrap();
        let refused = user_of_folder(&inner).unwrap_err().to_string();
        assert!(refused.contains(&(STRANGER + 1).to_string()), "{refused}");
    }
}
