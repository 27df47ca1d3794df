//! The cache outside the repository: where it is, what is whole in it, and who may write.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::BuildError;

/// `$XDG_CACHE_HOME/windvane`, or `~/.cache/windvane`.
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
            source: std::io::Error::other("neither XDG_CACHE_HOME nor HOME is an absolute path"),
        })
}

/// Where private toolchains lie, one folder each.
pub(super) fn toolchains() -> Result<PathBuf, BuildError> {
    Ok(folder()?.join("toolchain"))
}

/// Removes all private toolchains; the next build makes one again. False if there was none.
pub fn remove_toolchains() -> Result<bool, BuildError> {
    let folder = toolchains()?;
    if !folder.exists() {
        return Ok(false);
    }
    let _lock = lock(&folder, &mut |_| {})?;
    std::fs::remove_dir_all(&folder).map_err(BuildError::file(&folder))?;
    Ok(true)
}

/// Holds the folder for this process until dropped. The lock is the kernel's: it ends with the
/// process, however that ends.
pub(super) fn lock(folder: &Path, progress: &mut dyn FnMut(&str)) -> Result<File, BuildError> {
    std::fs::create_dir_all(folder).map_err(BuildError::file(folder))?;
    let path = folder.join("lock");
    let file = File::create(&path).map_err(BuildError::file(&path))?;
    if file.try_lock().is_err() {
        progress("Waiting for another build that makes the toolchain");
        file.lock().map_err(BuildError::file(&path))?;
    }
    Ok(file)
}

/// Writes a file so that it is whole or not there, whoever else writes or reads it.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(BuildError::file(folder))?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(BuildError::file(folder))?;
    std::io::Write::write_all(&mut file, bytes).map_err(BuildError::file(path))?;
    file.persist(path).map_err(|error| BuildError::File {
        path: path.to_owned(),
        source: error.error,
    })?;
    Ok(())
}
