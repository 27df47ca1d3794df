//! The data directory: it has one instance at a time, and holds the small files that survive the
//! loss of a journal.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use windvane_files::PrivateError;
use windvane_model::kill_switch::StoredKillSwitches;

use crate::ban::Ban;
use crate::epoch::{self, EpochError};
use crate::kill_switch;
use crate::reading;
use crate::reports;
use crate::small_file::SmallFileError;
use crate::watch::lock;

/// The process id in the lock file is shorter.
const PID_BYTES_MAX: u64 = 32;
/// Names that a run creates in the directory. The directory itself may be the user's.
const OURS: [&str; 9] = [
    "lock",
    "epoch",
    "mark",
    "latch",
    "bans",
    "ledger",
    "journal",
    "modules",
    "bug-reports",
];

/// A data directory that this process has locked until it is dropped.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    lock: File,
    /// Only one thread at a time writes small files.
    writing: Mutex<()>,
}

/// The directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another instance uses it.
    #[error(
        "another instance, pid {pid}, uses {}: stop it or use another data_dir",
        path.display()
    )]
    Held {
        /// The directory.
        path: PathBuf,
        /// The process, or `unknown`.
        pid: String,
    },
    /// Others may change or replace it, or it belongs to another user. Its content decides about orders.
    #[error(
        "data_dir {} cannot be used: {reason}. Nothing was started and no order was touched. Only root \
         and the user of this program may be able to change or replace the folder",
        path.display()
    )]
    NotPrivate {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The folder of the journal is a link to a folder that is not one. A confined run would get the
    /// right to change that folder.
    #[error(
        "{} is a link to a folder that cannot be the journal: {reason}. Nothing was started and no order was \
         touched. If you did not make this link, a program of this user did: find it first. Otherwise \
         link to an empty folder of this user, or to a journal",
        path.display()
    )]
    NotAJournal {
        /// The link.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// It cannot be created or locked.
    #[error("{} cannot be used as data_dir: {error}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// The epoch that a data folder reserved last, even while another process uses the folder. `None`
/// if no epoch was reserved, or if its file cannot be read.
pub fn last_epoch(data_dir: &Path) -> Option<u64> {
    epoch::last(&data_dir.join("epoch")).ok().flatten()
}

impl Directory {
    /// Requires that only root and the user of this process can replace what will be at a path.
    /// Nothing needs to exist there yet.
    ///
    /// # Errors
    /// Others can replace it: see [`LockError::NotPrivate`].
    pub fn require_place(path: &Path) -> Result<(), LockError> {
        windvane_files::require_place(path).map_err(|error| refused(path, error))
    }

    /// Requires that only root and the user of this process can change or replace an existing
    /// folder, and changes nothing.
    ///
    /// # Errors
    /// Others can change or replace it, or it cannot be opened.
    pub fn require_own(path: &Path) -> Result<(), LockError> {
        windvane_files::require_own_folder(path).map_err(|error| refused(path, error))
    }

    /// Creates the directory if necessary and locks it.
    ///
    /// # Errors
    /// [`LockError::Held`] names the process that holds the lock.
    pub fn lock(path: &Path) -> Result<Self, LockError> {
        let failed = |error| LockError::Io {
            path: path.to_owned(),
            error,
        };
        Self::require_place(path)?;
        make(path).map_err(failed)?;
        own(path)?;
        linked_journal(path)?;
        let mut file = windvane_files::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join("lock"))
            .map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            let reason = "its file `lock` is not a regular file; remove it";
            return Err(failed(io::Error::new(ErrorKind::InvalidInput, reason)));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                // The process id is only for the message.
                let _ = (&mut file).take(PID_BYTES_MAX).read_to_string(&mut pid);
                let pid = pid.trim();
                let pid = if pid.is_empty() { "unknown" } else { pid };
                return Err(LockError::Held {
                    path: path.to_owned(),
                    pid: pid.to_owned(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        close(path);
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            lock: file,
            writing: Mutex::new(()),
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    pub(crate) fn mark(&self) -> PathBuf {
        mark(&self.path)
    }

    /// The epoch that was reserved last; `None` if no epoch was reserved, or if its file cannot be
    /// read.
    pub fn last_epoch(&self) -> Option<u64> {
        last_epoch(&self.path)
    }

    /// Reserves an epoch for client order ids: max(last + 1, `now_seconds`). It is durable on
    /// return (`docs/promises.md#1-order-ids`).
    ///
    /// # Errors
    /// No epoch could be made durable, so no order may get an id.
    pub fn reserve_epoch(&self, now_seconds: u64) -> Result<u64, EpochError> {
        let _writing = lock(&self.writing);
        epoch::reserve(&self.path.join("epoch"), now_seconds)
    }

    /// Stores which hosts accept no requests; durable on return. [`Ban::read`] returns them.
    ///
    /// # Errors
    /// The disk failed.
    pub fn set_bans(&self, bans: &[Ban]) -> Result<(), SmallFileError> {
        let _writing = lock(&self.writing);
        Ban::write(bans, &self.path)
    }

    /// Stores a snapshot of the engine for a bug report, and returns its file.
    ///
    /// # Errors
    /// The disk failed.
    pub fn keep_report(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        reports::keep(&self.path, name, bytes)
    }

    /// The stored kill switches. A file that cannot be read counts as a halt.
    pub fn kill_switch(&self) -> StoredKillSwitches {
        kill_switch::read(&self.path.join("latch"))
    }

    /// Stores the kill switches; durable on return.
    ///
    /// # Errors
    /// The kill switches are not durable. The old ones may apply at the next start.
    pub fn set_kill_switch(
        &self,
        kill_switches: &StoredKillSwitches,
    ) -> Result<(), SmallFileError> {
        let _writing = lock(&self.writing);
        kill_switch::write(kill_switches, &self.path.join("latch"))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Closing the file alone would leave the lock with a child process that is just being
        // started. If the unlock fails, the end of the process releases the lock.
        let _ = self.lock.unlock();
    }
}

/// Creates the directory and the journal folder in it, both accessible only to their owner. The
/// permissions of an existing folder are checked later.
fn make(path: &Path) -> io::Result<()> {
    windvane_files::parents(path)?;
    windvane_files::folder(path)?;
    windvane_files::folder(&path.join("journal"))
}

/// Requires that only this user may change or replace the folder. A folder into which others may look is
/// restricted.
fn own(path: &Path) -> Result<(), LockError> {
    let earlier = windvane_files::own_folder(path).map_err(|error| refused(path, error))?;
    if let Some(mode) = earlier {
        tracing::warn!(
            path = %path.display(), mode = format!("{mode:04o}"),
            "other users could look into the data folder: it is restricted to its owner now (mode 0700). \
             Trading is not affected. A program of another user that reads the folder needs another way"
        );
    }
    Ok(())
}

/// The folder of the journal, if the data folder has a link in its place, such as one to another disk. A
/// run that was taken over could leave a link to any folder of its user there, so that the next run may
/// change it. So the folder must be private, and must contain nothing but segments. Hidden files, such as
/// those of a network file system, are accepted beside a segment only: a home folder is full of them.
///
/// # Errors
/// [`LockError::NotAJournal`], or the link leads nowhere.
pub fn linked_journal(data_dir: &Path) -> Result<Option<PathBuf>, LockError> {
    let path = data_dir.join("journal");
    if !path.is_symlink() {
        return Ok(None);
    }
    let refused = |reason: String| LockError::NotAJournal {
        path: path.clone(),
        reason,
    };
    let real = path.canonicalize();
    let real = real.map_err(|error| refused(error.to_string()))?;
    windvane_files::require_own_folder(&real).map_err(|error| refused(error.to_string()))?;
    let foreign = foreign_names(&real).map_err(|error| refused(error.to_string()))?;
    if let Some(name) = foreign.iter().find(|name| !name.starts_with('.')) {
        let name = name.escape_debug();
        return Err(refused(format!("it contains {name}, which is no segment")));
    }
    let Some(name) = foreign.first() else {
        return Ok(Some(real));
    };
    let segments = segments(&real).map_err(|error| refused(error.to_string()))?;
    let name = name.escape_debug();
    if segments.is_empty() {
        let reason =
            format!("it contains {name} and no segment. A new folder inside it can be one");
        return Err(refused(reason));
    }
    tracing::debug!(
        path = %real.display(), %name,
        "the folder of the journal also has hidden files. They are left alone"
    );
    Ok(Some(real))
}

/// The names in the folder of a journal that no run creates there.
fn foreign_names(journal: &Path) -> io::Result<Vec<String>> {
    let mut foreign = Vec::new();
    for entry in fs::read_dir(journal)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let is_ours = split_name(&name).is_some() || name.starts_with(reading::SCRATCH);
        // The root of a disk has the second one.
        if !is_ours && name != "lost+found" {
            foreign.push(name.into_owned());
        }
    }
    Ok(foreign)
}

fn refused(path: &Path, error: PrivateError) -> LockError {
    match error {
        PrivateError::Io(error) => LockError::Io {
            path: path.to_owned(),
            error,
        },
        other => LockError::NotPrivate {
            path: path.to_owned(),
            reason: other.about_folder(path),
        },
    }
}

/// Restricts the permissions of files that an earlier version, or a copy, left readable for others.
fn close(path: &Path) {
    for name in OURS {
        if let Err(error) = windvane_files::close(&path.join(name)) {
            tracing::warn!(
                path = %path.join(name).display(), %error,
                "other users may read this path: its permissions could not be restricted"
            );
        }
    }
}

/// The mark of a data directory. It is not in the journal folder: if that folder is rolled back as
/// a whole, the mark must stay.
pub fn mark(data_dir: &Path) -> PathBuf {
    data_dir.join("mark")
}

/// Numbers of the segments of a journal, oldest first.
pub fn segments(journal: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(journal)? {
        let entry = entry?;
        if let Some((number, "")) = split_name(&entry.file_name().to_string_lossy())
            && entry.file_type()?.is_dir()
        {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// The highest number that any segment has or had, including those that were put aside.
pub fn highest(journal: &Path) -> io::Result<Option<u32>> {
    let mut highest = None;
    for entry in fs::read_dir(journal)? {
        let name = entry?.file_name();
        highest = highest.max(split_name(&name.to_string_lossy()).map(|(number, _)| number));
    }
    Ok(highest)
}

/// Splits `0000000a.damaged-1` into 10 and `.damaged-1`.
fn split_name(name: &str) -> Option<(u32, &str)> {
    let (number, rest) = name.split_at_checked(8)?;
    let digits = number
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let whole = rest.is_empty() || rest.starts_with('.');
    (digits && whole).then(|| u32::from_str_radix(number, 16).ok().map(|n| (n, rest)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_instance_is_refused_with_the_pid_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let first = Directory::lock(folder.path()).unwrap();
        let error = Directory::lock(folder.path()).unwrap_err().to_string();
        let pid = std::process::id();
        assert!(
            error.starts_with(&format!("another instance, pid {pid}, uses ")),
            "{error}"
        );
        drop(first);
        Directory::lock(folder.path()).unwrap();
    }

    #[test]
    fn files_are_private_and_an_open_folder_is_restricted() {
        use std::os::unix::fs::PermissionsExt;
        let outer = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let made = outer.path().join("deep/data");
        drop(Directory::lock(&made).unwrap());
        let journal = made.join("journal");
        assert_eq!([mode(&made), mode(&journal)], [0o700; 2]);

        for (path, to) in [
            (&made, 0o755),
            (&journal, 0o755),
            (&made.join("lock"), 0o644),
        ] {
            fs::set_permissions(path, fs::Permissions::from_mode(to)).unwrap();
        }
        let directory = Directory::lock(&made).unwrap();
        directory.reserve_epoch(7).unwrap();
        directory
            .set_kill_switch(&StoredKillSwitches::default())
            .unwrap();
        assert_eq!([mode(&made), mode(&journal)], [0o700; 2]);
        for name in ["lock", "epoch", "latch"] {
            assert_eq!(mode(&made.join(name)), 0o600, "{name}");
        }
    }

    #[test]
    fn a_folder_that_others_may_change_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o770)).unwrap();
        let refused = Directory::lock(folder.path()).unwrap_err().to_string();
        assert!(
            refused.contains("mode 0770") && refused.contains("chmod 700"),
            "{refused}"
        );
        assert!(!folder.path().join("lock").exists());
    }

    #[test]
    fn the_journal_may_be_a_link_to_a_journal_only() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
        let outer = tempfile::tempdir().unwrap();
        let (data, disk) = (outer.path().join("data"), outer.path().join("disk"));
        windvane_files::folder(&data).unwrap();
        windvane_files::folder(&disk).unwrap();
        symlink(&disk, data.join("journal")).unwrap();
        fs::create_dir(disk.join("0000000a")).unwrap();
        fs::create_dir(disk.join("lost+found")).unwrap();
        let linked = linked_journal(&data).unwrap().unwrap();
        assert_eq!(linked, disk.canonicalize().unwrap());
        drop(Directory::lock(&data).unwrap());

        let refused = || Directory::lock(&data).unwrap_err().to_string();
        fs::set_permissions(&disk, fs::Permissions::from_mode(0o770)).unwrap();
        assert!(refused().contains("mode 0770"), "{}", refused());
        fs::set_permissions(&disk, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(disk.join("authorized_keys"), "").unwrap();
        assert!(refused().contains("authorized_keys"), "{}", refused());
        fs::remove_file(disk.join("authorized_keys")).unwrap();
        if outer.path().metadata().unwrap().uid() == 0 {
            std::os::unix::fs::chown(&disk, Some(3_999_999), None).unwrap();
            assert!(refused().contains("belongs to user"), "{}", refused());
        }
    }

    #[test]
    fn a_link_in_place_of_the_lock_is_not_followed() {
        let outer = tempfile::tempdir().unwrap();
        let (data, other) = (outer.path().join("data"), outer.path().join("other"));
        windvane_files::folder(&data).unwrap();
        fs::write(&other, "keep this").unwrap();
        std::os::unix::fs::symlink(&other, data.join("lock")).unwrap();
        assert!(Directory::lock(&data).is_err());
        assert_eq!(fs::read_to_string(&other).unwrap(), "keep this");
    }

    /// A data folder whose journal is a link to a folder with these folders.
    fn linked_to(files: &[&str]) -> (tempfile::TempDir, Result<Option<PathBuf>, LockError>) {
        let outer = tempfile::tempdir().unwrap();
        let (data, target) = (outer.path().join("data"), outer.path().join("target"));
        for folder in [&data, &target] {
            windvane_files::folder(folder).unwrap();
        }
        for name in files {
            fs::create_dir(target.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(&target, data.join("journal")).unwrap();
        let linked = linked_journal(&data);
        (outer, linked)
    }

    #[test]
    fn hidden_files_beside_a_segment_are_accepted_in_a_linked_journal() {
        for names in [&["0000000a", ".snapshot"], &[".nfs0001", "0000000a"]] {
            assert!(linked_to(names).1.unwrap().is_some(), "{names:?}");
        }
    }

    #[test]
    fn a_linked_folder_with_hidden_files_and_no_segment_is_refused() {
        for names in [&[".ssh"][..], &[".bashrc", "lost+found"]] {
            let refused = linked_to(names).1.unwrap_err().to_string();
            assert!(refused.contains(names[0]), "{refused}");
            assert!(refused.contains("no segment"), "{refused}");
        }
    }

    #[test]
    fn only_a_folder_counts_as_a_segment_of_a_linked_journal() {
        let (outer, _) = linked_to(&[".snapshot"]);
        fs::write(outer.path().join("target/0000000a"), "").unwrap();
        linked_journal(&outer.path().join("data")).unwrap_err();
        let put_aside = linked_to(&[".snapshot", "0000000a.damaged-1"]);
        put_aside.1.unwrap_err();
    }

    #[test]
    fn a_linked_journal_with_other_files_is_refused() {
        let refused = linked_to(&["0000000a", ".snapshot", "notes"])
            .1
            .unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("notes, which is no segment"), "{refused}");
    }

    #[test]
    fn segment_names_are_eight_hex_digits() {
        assert_eq!(split_name("0000000a"), Some((10, "")));
        assert_eq!(split_name("0000000a.damaged-1"), Some((10, ".damaged-1")));
        for name in [
            "0000000",
            "0000000A",
            "000000001",
            "scratch-ab",
            "0000000\u{e4}",
        ] {
            assert_eq!(split_name(name), None, "{name}");
        }
    }
}
