//! Snapshots of the engine for bug reports, in the folder `bug-reports` of the data folder. Only
//! the newest few are kept.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Name of the folder in the data folder.
pub const BUG_REPORTS: &str = "bug-reports";
/// At most this many reports are kept; older ones are deleted.
const KEPT: usize = 16;

/// Stores a report and returns its file. The names must sort by age.
///
/// # Errors
/// The disk failed.
pub fn keep(data_dir: &Path, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let folder = data_dir.join(BUG_REPORTS);
    windvane_files::folder(&folder)?;
    let path = folder.join(name);
    let mut file = windvane_files::create(&path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    let entries = fs::read_dir(&folder)?.filter_map(Result::ok);
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.sort();
    let old = files.len().saturating_sub(KEPT);
    for file in &files[..old] {
        fs::remove_file(file)?;
    }
    Ok(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_reports_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        for nth in 0..KEPT + 3 {
            let path = keep(folder.path(), &format!("{nth:03}.snapshot"), &[1, 2]).unwrap();
            assert_eq!(fs::read(path).unwrap(), [1, 2]);
        }
        let left = fs::read_dir(folder.path().join(BUG_REPORTS)).unwrap();
        let mut names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names.len(), KEPT);
        assert_eq!(names[0], "003.snapshot");
    }
}
