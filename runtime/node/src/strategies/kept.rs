//! Modules kept beside the journal by their hashes, so that a replay has the very ones that ran.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::Guest;
use crate::results::hex;

fn file(data_dir: &Path, sha256: &[u8; 32]) -> PathBuf {
    let name = format!("{}.wasm", hex(sha256));
    data_dir.join("modules").join(name)
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
    fs::create_dir_all(data_dir.join("modules"))?;
    for guest in guests {
        if kept(data_dir, &guest.sha256).is_ok() {
            continue;
        }
        // Written aside first: a file of this name is always whole.
        let file = file(data_dir, &guest.sha256);
        let aside = file.with_extension("new");
        fs::write(&aside, &guest.module)?;
        fs::rename(aside, file)?;
    }
    Ok(())
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
