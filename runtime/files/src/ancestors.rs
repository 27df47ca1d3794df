//! Whether other users can replace a path. Who may write to a folder can rename what is in it and
//! put something else there, whoever owns the file and whatever its mode is. So each folder on the
//! way from `/` must belong to root or to the user, and nobody else may write to it. In a folder
//! with the sticky bit, such as `/tmp`, others may write, because only the owner of an entry can
//! rename it: the next entry must belong to root or to the user.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// The user id of root.
pub(crate) const ROOT: u32 = 0;
/// Permission bits by which others than the owner may change something.
pub(crate) const CHANGE_BY_OTHERS: u32 = 0o022;
/// Only the owner of an entry may rename or remove it.
const STICKY: u32 = 0o1000;
/// Links on one path, as in Linux.
const LINKS_MAX: usize = 40;

/// Other users can replace the path.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceableError {
    /// A folder on the way to it belongs to another user, or it is in a folder for all users and
    /// belongs to another user.
    #[error(
        "{} belongs to user {owner} (mode {mode:04o}), who can replace what is there; only root and \
         user {user} may own it: use a path below folders of root and of this user",
        path.display()
    )]
    Owner {
        /// The folder, the link or the entry.
        path: PathBuf,
        /// The owner's number.
        owner: u32,
        /// Its permission bits.
        mode: u32,
        /// The user who may own it, besides root.
        user: u32,
    },
    /// Other users may write to a folder on the way to it.
    #[error(
        "the folder {} above it has mode {mode:04o} (owner {owner}), so other users can rename what \
         is in it and put something else there; run chmod go-w {}, or use another path",
        path.display(), path.display()
    )]
    Mode {
        /// The folder.
        path: PathBuf,
        /// The owner's number.
        owner: u32,
        /// Its permission bits.
        mode: u32,
    },
    /// The way cannot be followed.
    #[error("{}: {error}", path.display())]
    Io {
        /// Where it ends.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl ReplaceableError {
    /// Whether a part of the path does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Requires that only root and `user` can replace a path, or a link on the way to it. The owner and
/// the mode of the last entry are not checked, unless it is in a folder for all users.
///
/// # Errors
/// Others can replace it, or a part of it does not exist.
pub(crate) fn require(path: &Path, user: u32) -> Result<(), ReplaceableError> {
    let absolute = std::path::absolute(path).map_err(|error| ReplaceableError::Io {
        path: path.to_owned(),
        error,
    })?;
    let mut left = steps(&absolute);
    let mut folder = PathBuf::from("/");
    let mut links = 0;
    while let Some(step) = left.pop_front() {
        let is_shared = require_folder(&folder, user)?;
        if step == ".." {
            folder.pop();
            continue;
        }
        let entry = folder.join(&step);
        let metadata = look(&entry)?;
        if is_shared && !is_trusted(&metadata, user) {
            return Err(owner_error(entry, &metadata, user));
        }
        if metadata.is_symlink() {
            if left.is_empty() && is_open_descriptor(&folder) {
                return Ok(());
            }
            links += 1;
            let target = if links > LINKS_MAX {
                Err(io::Error::other("too many links"))
            } else {
                fs::read_link(&entry)
            };
            let target = target.map_err(|error| ReplaceableError::Io { path: entry, error })?;
            if target.is_absolute() {
                folder = PathBuf::from("/");
            }
            let mut next = steps(&target);
            next.append(&mut left);
            left = next;
        } else {
            folder = entry;
        }
    }
    Ok(())
}

/// The names on a path, without `/` and `.`.
fn steps(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    names.collect()
}

/// Whether the entries of a folder are the open files of this process. Nobody can replace them, and
/// a link there may lead to no path.
fn is_open_descriptor(folder: &Path) -> bool {
    folder == Path::new(&format!("/proc/{}/fd", std::process::id()))
}

/// Requires that only root and `user` can replace what is in a folder. Returns whether others may
/// write to it too, but only to entries of their own.
fn require_folder(folder: &Path, user: u32) -> Result<bool, ReplaceableError> {
    let metadata = look(folder)?;
    if !is_trusted(&metadata, user) && !is_outside_namespace(metadata.uid()) {
        return Err(owner_error(folder.to_owned(), &metadata, user));
    }
    let mode = mode(&metadata);
    if !others_may_change(&metadata) {
        return Ok(false);
    }
    if mode & STICKY != 0 {
        return Ok(true);
    }
    Err(ReplaceableError::Mode {
        path: folder.to_owned(),
        owner: metadata.uid(),
        mode,
    })
}

/// Whether others than the owner and root may write. A group without another member is no other:
/// systems that give each user such a group have a umask of 002.
pub(crate) fn others_may_change(metadata: &Metadata) -> bool {
    const CHANGE_BY_GROUP: u32 = 0o020;
    const CHANGE_BY_ANYBODY: u32 = 0o002;
    let mode = mode(metadata);
    if mode & CHANGE_BY_ANYBODY != 0 || mode & CHANGE_BY_GROUP == 0 {
        return mode & CHANGE_BY_OTHERS != 0;
    }
    let read = |file| fs::read_to_string(file).unwrap_or_default();
    let (users, groups) = (read("/etc/passwd"), read("/etc/group"));
    !is_without_others(&users, &groups, metadata.uid(), metadata.gid())
}

/// Whether a group in the texts of `/etc/passwd` and `/etc/group` has no member but its owner and
/// root. The members of a group that is not in these files are not known.
fn is_without_others(users: &str, groups: &str, owner: u32, group: u32) -> bool {
    let number = |fields: &[&str], at: usize| fields.get(at)?.parse::<u32>().ok();
    let rows = |text| str::lines(text).map(|line| line.split(':').collect::<Vec<_>>());
    let is_ours = |user: Option<u32>| user == Some(owner) || user == Some(ROOT);
    let is_first_of_others =
        rows(users).any(|user| number(&user, 3) == Some(group) && !is_ours(number(&user, 2)));
    let Some(found) = rows(groups).find(|row| number(row, 2) == Some(group)) else {
        return false;
    };
    let named = found.get(3).copied().unwrap_or_default();
    let mut members = named.split(',').filter(|name| !name.is_empty());
    !is_first_of_others
        && members.all(|name| {
            rows(users).any(|user| user.first() == Some(&name) && is_ours(number(&user, 2)))
        })
}

fn look(path: &Path) -> Result<Metadata, ReplaceableError> {
    fs::symlink_metadata(path).map_err(|error| ReplaceableError::Io {
        path: path.to_owned(),
        error,
    })
}

fn is_trusted(metadata: &Metadata, user: u32) -> bool {
    metadata.uid() == user || metadata.uid() == ROOT
}

/// Whether an owner has no number in the user namespace of this process. The system then shows one
/// number for all such users. The real root, the owner of `/`, is one of them. Outside of a user
/// namespace every user has a number.
fn is_outside_namespace(owner: u32) -> bool {
    let read = |file| fs::read_to_string(file).unwrap_or_default();
    read("/proc/sys/kernel/overflowuid").trim() == owner.to_string()
        && is_unmapped(&read("/proc/self/uid_map"), owner)
}

/// Whether no line of a `uid_map` (first number inside, first number outside, count) contains the
/// number. An empty text says nothing.
fn is_unmapped(uid_map: &str, owner: u32) -> bool {
    let has = |line: &str| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), _, Some(Ok(count))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return true;
        };
        (first..first.saturating_add(count)).contains(&owner.into())
    };
    !uid_map.is_empty() && !uid_map.lines().any(has)
}

fn mode(metadata: &Metadata) -> u32 {
    metadata.permissions().mode() & 0o7777
}

fn owner_error(path: PathBuf, metadata: &Metadata, user: u32) -> ReplaceableError {
    ReplaceableError::Owner {
        path,
        owner: metadata.uid(),
        mode: mode(metadata),
        user,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    /// A number that no user of the test machine has.
    const STRANGER: u32 = 3_999_999;

    fn me() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn with_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A temporary folder with the folders `a/b` in it.
    fn nested() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let outer = folder.path().canonicalize().unwrap().join("a");
        let inner = outer.join("b");
        fs::create_dir_all(&inner).unwrap();
        with_mode(&outer, 0o755);
        (folder, outer, inner)
    }

    #[test]
    fn a_folder_that_others_may_write_makes_the_path_replaceable() {
        let (_folder, outer, inner) = nested();
        assert!(require(&inner, me()).is_ok());
        for mode in [0o777, 0o757, 0o702] {
            with_mode(&outer, mode);
            for path in [inner.clone(), inner.join("new"), outer.join("new")] {
                let refused = require(&path, me()).unwrap_err();
                let text = refused.to_string();
                assert!(
                    text.contains(&format!("{mode:04o}"))
                        && text.contains(&outer.display().to_string()),
                    "{text}"
                );
                assert!(matches!(refused, ReplaceableError::Mode { .. }), "{text}");
            }
        }
        // The last entry itself is not checked here.
        with_mode(&outer, 0o755);
        with_mode(&inner, 0o777);
        assert!(require(&inner, me()).is_ok());
        assert!(require(&outer.join("new"), me()).unwrap_err().is_missing());
    }

    #[test]
    fn a_group_without_another_member_may_write() {
        const USERS: &str = "root:x:0:0:root:/root:/bin/sh\nann:x:1001:1002::/home/ann:/bin/sh\n\
                             bob:x:1002:1003::/home/bob:/bin/sh\n";
        const GROUPS: &str =
            "root:x:0:\nstaff:x:50:\nann:x:1002:\nbob:x:1003:ann\nboth:x:60:root,ann\n";
        for (owner, group, expected) in [
            (1_001, 1_002, true),
            (1_001, 60, true),
            (0, 0, true),
            (0, 50, true),
            // Another user has it as the first group, or is a member.
            (1_001, 1_003, false),
            (1_002, 1_003, false),
            (1_002, 60, false),
            (1_001, 77, false),
        ] {
            let found = is_without_others(USERS, GROUPS, owner, group);
            assert_eq!(found, expected, "{owner}:{group}");
        }
    }

    #[test]
    fn in_a_folder_for_all_users_the_next_entry_must_be_of_the_user() {
        let (_folder, outer, inner) = nested();
        with_mode(&outer, 0o1777);
        assert!(require(&inner, me()).is_ok());
        if chown(&inner, Some(STRANGER), None).is_err() {
            return;
        }
        let refused = require(&inner, me()).unwrap_err();
        assert!(
            matches!(&refused, ReplaceableError::Owner { path, owner: STRANGER, .. } if *path == inner),
            "{refused}"
        );
        assert!(require(&inner, STRANGER).is_ok());
    }

    #[test]
    fn a_folder_of_another_user_makes_the_path_replaceable() {
        let (_folder, outer, inner) = nested();
        if chown(&outer, Some(STRANGER), None).is_err() {
            return;
        }
        let refused = require(&inner, me()).unwrap_err().to_string();
        assert!(
            refused.contains(&STRANGER.to_string()) && refused.contains("0755"),
            "{refused}"
        );
    }

    #[test]
    fn every_folder_on_the_way_through_links_counts() {
        let (folder, outer, inner) = nested();
        let open = folder.path().canonicalize().unwrap().join("open");
        fs::create_dir(&open).unwrap();
        let (safe_link, open_link) = (outer.join("to-open"), open.join("link"));
        symlink(&inner, &open_link).unwrap();
        // Relative, and over another link.
        symlink("../open/link", &safe_link).unwrap();
        with_mode(&open, 0o755);
        assert!(require(&safe_link, me()).is_ok());
        with_mode(&open, 0o777);
        for path in [&safe_link, &open_link, &safe_link.join("new")] {
            assert!(matches!(
                require(path, me()),
                Err(ReplaceableError::Mode { path, .. }) if path == open
            ));
        }
        assert!(require(&inner, me()).is_ok());
        let round = outer.join("round");
        symlink(&round, &round).unwrap();
        assert!(matches!(
            require(&round, me()),
            Err(ReplaceableError::Io { .. })
        ));
    }

    #[test]
    fn only_a_user_namespace_has_users_without_a_number() {
        let whole = "         0          0 4294967295\n";
        let one = "         0       1000          1\n";
        let several = "0 1000 1\n1 100000 65536\n";
        for (map, owner, unmapped) in [
            (whole, 65_534, false),
            (one, 0, false),
            (one, 65_534, true),
            (several, 65_534, false),
            (several, 65_537, true),
            ("", 65_534, false),
            ("damaged\n", 65_534, false),
        ] {
            assert_eq!(is_unmapped(map, owner), unmapped, "{map}: {owner}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_open_file_without_a_path_cannot_be_replaced() {
        use std::os::fd::AsRawFd;

        let file = tempfile::tempfile().unwrap();
        let path = format!("/dev/fd/{}", file.as_raw_fd());
        require(Path::new(&path), me()).unwrap();
    }
}
