//! Modules kept beside the journal by their hash, so that a replay uses exactly the modules that
//! ran.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::Guest;

const FOLDER: &str = "modules";

/// Held while a module is kept or deleted: a reload keeps a module again while retention, on another
/// thread of the same process, deletes old ones.
static CHANGE: Mutex<()> = Mutex::new(());

fn file(data_dir: &Path, sha256: &[u8; 32]) -> PathBuf {
    let name = format!("{}.wasm", hex::encode(sha256));
    data_dir.join(FOLDER).join(name)
}

/// Why a kept module cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    /// Its file cannot be read.
    #[error("the module was not kept")]
    Missing,
    /// Its file does not have the hash of its name.
    #[error("the module's file was changed: its hash differs from its name")]
    Altered,
}

/// Saves the modules of these strategies in a data folder.
///
/// # Errors
/// A file cannot be written.
pub fn keep(guests: &[Guest], data_dir: &Path) -> io::Result<()> {
    for guest in guests {
        keep_module(data_dir, &guest.sha256, &guest.module)?;
    }
    Ok(())
}

/// Saves a module under this hash unless it is saved already, and returns its path. A saved file gets
/// the present time, so that [`all_kept`] shows when the module was used last.
///
/// # Errors
/// The file cannot be written.
pub fn keep_module(data_dir: &Path, sha256: &[u8; 32], module: &[u8]) -> io::Result<PathBuf> {
    let _change = CHANGE.lock().unwrap_or_else(PoisonError::into_inner);
    windvane_files::folder(&data_dir.join(FOLDER))?;
    let file = file(data_dir, sha256);
    if renew(&file).is_err() || kept(data_dir, sha256).is_err() {
        // Write to another name and rename, so that a file of this name is always complete.
        let aside = file.with_extension("new");
        windvane_files::create(&aside)?.write_all(module)?;
        fs::rename(aside, &file)?;
    }
    Ok(file)
}

/// Gives a file the present time.
fn renew(file: &Path) -> io::Result<()> {
    windvane_files::open_regular(file)?.set_modified(SystemTime::now())
}

/// The hashes of all kept modules, each with the time of its file.
///
/// # Errors
/// The folder cannot be read.
pub fn all_kept(data_dir: &Path) -> io::Result<Vec<([u8; 32], SystemTime)>> {
    let entries = match fs::read_dir(data_dir.join(FOLDER)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry?;
        if let Some(sha256) = hash(&entry.file_name().to_string_lossy()) {
            all.push((sha256, entry.metadata()?.modified()?));
        }
    }
    Ok(all)
}

/// The hash in the name of a kept module, or `None` for any other file.
fn hash(name: &str) -> Option<[u8; 32]> {
    let digits = name.strip_suffix(".wasm")?;
    let mut sha256 = [0; 32];
    hex::decode_to_slice(digits, &mut sha256).ok()?;
    Some(sha256)
}

/// Deletes the module with this hash, unless it was used since `oldest`: a reload may have kept it
/// again in the meantime. Returns whether it was deleted.
///
/// # Errors
/// The file cannot be removed.
pub fn drop_kept(data_dir: &Path, sha256: &[u8; 32], oldest: SystemTime) -> io::Result<bool> {
    let _change = CHANGE.lock().unwrap_or_else(PoisonError::into_inner);
    let file = file(data_dir, sha256);
    let is_old = fs::metadata(&file)?.modified()? < oldest;
    if is_old {
        fs::remove_file(file)?;
    }
    Ok(is_old)
}

/// The module with this hash.
///
/// # Errors
/// The module was not kept, or its file was changed.
pub fn kept(data_dir: &Path, sha256: &[u8; 32]) -> Result<Arc<[u8]>, NotKept> {
    let module = windvane_files::read_bounded(&file(data_dir, sha256), super::MODULE_BYTES_MAX);
    let module = module.map_err(|_| NotKept::Missing)?;
    if Sha256::digest(&module)[..] == sha256[..] {
        Ok(module.into())
    } else {
        Err(NotKept::Altered)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_module_that_is_kept_again_gets_the_present_time() {
        let folder = tempfile::tempdir().unwrap();
        let sha256: [u8; 32] = Sha256::digest(b"module").into();
        let file = keep_module(folder.path(), &sha256, b"module").unwrap();
        let before = SystemTime::now() - Duration::from_hours(1);
        let opened = fs::File::options().write(true).open(&file).unwrap();
        opened.set_modified(before).unwrap();
        keep_module(folder.path(), &sha256, b"module").unwrap();
        let [(found, time)] = all_kept(folder.path()).unwrap()[..] else {
            panic!("one module is kept");
        };
        assert_eq!(found, sha256);
        assert!(time > before + Duration::from_mins(59), "{time:?}");
        assert_eq!(*kept(folder.path(), &sha256).unwrap(), *b"module");
    }

    #[test]
    fn a_module_that_was_used_again_is_not_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let sha256: [u8; 32] = Sha256::digest(b"module").into();
        keep_module(folder.path(), &sha256, b"module").unwrap();
        let now = SystemTime::now();
        let deleted = |oldest| drop_kept(folder.path(), &sha256, oldest).unwrap();
        assert!(!deleted(now - Duration::from_hours(1)));
        assert!(kept(folder.path(), &sha256).is_ok());
        assert!(deleted(now + Duration::from_hours(1)));
        assert!(kept(folder.path(), &sha256).is_err());
    }
}
