//! The build cache outside the repository: its place, atomic writes and the lock for writers.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::BuildError;

/// The cache folder: `$XDG_CACHE_HOME/windvane`, or `~/.cache/windvane`.
pub fn folder() -> Result<PathBuf, BuildError> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("windvane"))
        .ok_or_else(|| BuildError::File {
            path: PathBuf::from("$XDG_CACHE_HOME"),
            source: std::io::Error::other("set HOME or XDG_CACHE_HOME to an absolute path"),
        })
}

/// The folder of native code.
pub(super) fn compiled() -> Option<PathBuf> {
    folder().ok().map(|folder| folder.join("compiled"))
}

/// The folder of private toolchains. Each has its own subfolder.
pub(super) fn toolchains() -> Result<PathBuf, BuildError> {
    Ok(folder()?.join("toolchain"))
}

/// Removes all private toolchains. Returns false if no toolchain exists. The next build that needs
/// one creates it again.
pub fn remove_toolchains() -> Result<bool, BuildError> {
    let folder = toolchains()?;
    if !folder.exists() {
        return Ok(false);
    }
    let _lock = lock(&folder, &mut |_| {})?;
    std::fs::remove_dir_all(&folder).map_err(BuildError::file(&folder))?;
    Ok(true)
}

/// Locks the folder for this process until the file is dropped. It is a kernel lock, so it also
/// ends if the process is killed.
pub(super) fn lock(folder: &Path, progress: &mut dyn FnMut(&str)) -> Result<File, BuildError> {
    std::fs::create_dir_all(folder).map_err(BuildError::file(folder))?;
    let path = folder.join("lock");
    let file = File::create(&path).map_err(BuildError::file(&path))?;
    if file.try_lock().is_err() {
        progress("Waiting for another build to create the toolchain");
        file.lock().map_err(BuildError::file(&path))?;
    }
    Ok(file)
}

/// Writes a file atomically: readers see the whole new file or none of it, even with several
/// writers.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(BuildError::file(folder))?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(BuildError::file(folder))?;
    std::io::Write::write_all(&mut file, bytes).map_err(BuildError::file(path))?;
    file.persist(path).map_err(|error| BuildError::File {
        path: path.to_owned(),
        source: error.error,
    })?;
    Ok(())
}
