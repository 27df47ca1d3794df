//! Modules kept beside the journal by their hashes, so that a replay has the very ones that ran.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::Guest;

const FOLDER: &str = "modules";

fn file(data_dir: &Path, sha256: &[u8; 32]) -> PathBuf {
    let name = format!("{}.wasm", hex::encode(sha256));
    data_dir.join(FOLDER).join(name)
}

/// Why there is no module of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    /// It cannot be read.
    #[error("the module was not kept")]
    Missing,
    /// Its file holds something else.
    #[error("the module's file is not what it was: its hash differs from its name")]
    Altered,
}

/// Keeps the modules of these strategies in a data folder.
///
/// # Errors
/// The disk refuses.
pub fn keep(guests: &[Guest], data_dir: &Path) -> io::Result<()> {
    for guest in guests {
        keep_module(data_dir, &guest.sha256, &guest.module)?;
    }
    Ok(())
}

/// Keeps a module with this hash, unless it is kept; where it lies.
///
/// # Errors
/// The disk refuses.
pub fn keep_module(data_dir: &Path, sha256: &[u8; 32], module: &[u8]) -> io::Result<PathBuf> {
    windvane_files::folder(&data_dir.join(FOLDER))?;
    let file = file(data_dir, sha256);
    if kept(data_dir, sha256).is_err() {
        // Written aside first: a file of this name is always whole.
        let aside = file.with_extension("new");
        windvane_files::create(&aside)?.write_all(module)?;
        fs::rename(aside, &file)?;
    }
    Ok(file)
}

/// The hashes of all modules that are kept, and since when.
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

/// The hash in the name of a kept module; other files are none of ours.
fn hash(name: &str) -> Option<[u8; 32]> {
    let digits = name.strip_suffix(".wasm")?;
    let mut sha256 = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    for (i, byte) in sha256.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[i * 2..i * 2 + 2], 16).ok()?;
    }
    Some(sha256)
}

/// Drops the module with this hash.
///
/// # Errors
/// The disk refuses.
pub fn drop_kept(data_dir: &Path, sha256: &[u8; 32]) -> io::Result<()> {
    fs::remove_file(file(data_dir, sha256))
}

/// The module with this hash.
///
/// # Errors
/// It was not kept, or is not what it was.
pub fn kept(data_dir: &Path, sha256: &[u8; 32]) -> Result<Arc<[u8]>, NotKept> {
    let module = fs::read(file(data_dir, sha256)).map_err(|_| NotKept::Missing)?;
    if Sha256::digest(&module)[..] == sha256[..] {
        Ok(module.into())
    } else {
        Err(NotKept::Altered)
    }
}
