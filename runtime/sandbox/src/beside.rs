//! The files and folders beside denied ones.

use std::path::{Path, PathBuf};

/// The files and folders to permit, so that everything in `roots` except `denied` is permitted. Landlock
/// can only list what is permitted: all entries of the parent of a denied folder except the folder itself,
/// and so on up to the root. The folders above a denied one can then be entered, but not listed, and
/// nothing new can be created directly in them.
///
/// Links below a root are left out, because a link can lead into a denied folder. The way through a link
/// is still open where its target is permitted. Paths of both lists are absolute and have no links.
pub fn all_beside(roots: &[PathBuf], denied: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for root in roots {
        if !denied.iter().any(|path| root.starts_with(path)) {
            permitted(root, denied, &mut found);
        }
    }
    found
}

fn permitted(folder: &Path, denied: &[PathBuf], found: &mut Vec<PathBuf>) {
    if denied.iter().any(|path| path == folder) {
        return;
    }
    if !denied.iter().any(|path| path.starts_with(folder)) {
        found.push(folder.to_owned());
        return;
    }
    // A folder that cannot be listed has nothing that the process could use.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            permitted(&entry.path(), denied, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn everything_beside_a_denied_path_is_permitted() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["data/journal", "source/src"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("key.json"), "").unwrap();
        std::fs::write(root.join("Cargo.toml"), "").unwrap();
        std::os::unix::fs::symlink(root.join("data"), root.join("link")).unwrap();
        let denied = [root.join("data"), root.join("key.json")];
        let mut found = all_beside(std::slice::from_ref(&root), &denied);
        found.sort();
        assert_eq!(found, [root.join("Cargo.toml"), root.join("source")]);
        let inside = [root.join("data/journal"), root.join("source/src")];
        assert_eq!(all_beside(&inside, &denied), [root.join("source/src")]);
    }
}
