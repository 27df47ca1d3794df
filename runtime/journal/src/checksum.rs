//! The short checksum in the journal's own files.

use sha2::{Digest, Sha256};

/// Length, bytes.
pub(crate) const CHECK: usize = 8;

/// The first bytes of the SHA-256 of these parts, one after the other.
pub(crate) fn check(parts: &[&[u8]]) -> [u8; CHECK] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    let mut check = [0; CHECK];
    check.copy_from_slice(&hasher.finalize()[..CHECK]);
    check
}
