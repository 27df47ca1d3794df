//! The compile cache: native code of modules, in a private folder of the host.
//!
//! The key is the SHA-256 of the module, of the call path, and of the compiler's version and
//! settings. Each file has a checksum: a damaged file is detected and made again. A failure of the
//! cache never makes a load fail; [`CacheUse`] shows what happened.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};
use wasmtime::component::Component;
use wasmtime::{Engine, Module};

use crate::error::LoadError;

const MAGIC: &[u8; 8] = b"WVNATIV1";
const HEADER: usize = MAGIC.len() + 32;

/// The result of the compile cache for a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheUse {
    /// No cache is configured.
    Off,
    /// The native code came from the cache.
    Hit,
    /// The module was compiled, and its native code was stored.
    Stored,
    /// The stored file was damaged or foreign, for this reason. The module was compiled again and
    /// its native code was stored.
    Rebuilt(String),
    /// The module was compiled, but its native code could not be stored, for this reason.
    Unusable(String),
}

/// A folder of native code.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

/// Something that wasmtime compiles to native code.
pub(crate) trait Native: Sized {
    /// Part of the key, so that core modules and components have different keys.
    const KIND: &'static str;
    fn compile(engine: &Engine, wasm: &[u8]) -> wasmtime::Result<Self>;
    fn serialize(&self) -> wasmtime::Result<Vec<u8>>;
    /// # Safety
    /// `bytes` must be unchanged output of [`Native::serialize`].
    #[allow(
        unsafe_code,
        reason = "declares the obligation; discharged in `Cache::read`"
    )]
    unsafe fn deserialize(engine: &Engine, bytes: &[u8]) -> wasmtime::Result<Self>;
}

macro_rules! native {
    ($type:ty, $kind:literal) => {
        impl Native for $type {
            const KIND: &'static str = $kind;
            fn compile(engine: &Engine, wasm: &[u8]) -> wasmtime::Result<Self> {
                Self::new(engine, wasm)
            }
            fn serialize(&self) -> wasmtime::Result<Vec<u8>> {
                self.serialize()
            }
            #[allow(unsafe_code, reason = "passes the caller's obligation on")]
            unsafe fn deserialize(engine: &Engine, bytes: &[u8]) -> wasmtime::Result<Self> {
                // SAFETY: the caller's obligation is the same as this call's.
                unsafe { Self::deserialize(engine, bytes) }
            }
        }
    };
}
native!(Module, "core");
native!(Component, "component");

/// The native code of `wasm`: from the cache if it has a valid file, otherwise compiled.
pub(crate) fn compile<N: Native>(
    engine: &Engine,
    cache: Option<&Cache>,
    wasm: &[u8],
) -> Result<(N, CacheUse), LoadError> {
    let fresh = || N::compile(engine, wasm).map_err(|e| LoadError::compile(&e));
    let Some(cache) = cache else {
        return Ok((fresh()?, CacheUse::Off));
    };
    if let Err(reason) = cache.prepare() {
        return Ok((fresh()?, CacheUse::Unusable(reason)));
    }
    let path = cache.folder.join(key::<N>(engine, wasm));
    let damage = match Cache::read(engine, &path) {
        Ok(Some(native)) => return Ok((native, CacheUse::Hit)),
        Ok(None) => None,
        Err(reason) => Some(reason),
    };
    let native = fresh()?;
    let stored = native
        .serialize()
        .map_err(|e| e.to_string())
        .and_then(|payload| write(&path, &payload).map_err(|e| e.to_string()));
    let used = match (stored, damage) {
        (Err(reason), _) => CacheUse::Unusable(reason),
        (Ok(()), Some(reason)) => CacheUse::Rebuilt(reason),
        (Ok(()), None) => CacheUse::Stored,
    };
    Ok((native, used))
}

impl Cache {
    pub(crate) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Creates the folder with mode 0700. Refuses an existing folder that others may read or write.
    fn prepare(&self) -> Result<(), String> {
        let shown = self.folder.display();
        if !self.folder.exists() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.folder)
                .map_err(|e| format!("cannot create the compile cache {shown}: {e}"))?;
        }
        let meta = fs::symlink_metadata(&self.folder)
            .map_err(|e| format!("cannot read the compile cache {shown}: {e}"))?;
        if meta.is_dir() && is_private(&meta) {
            Ok(())
        } else {
            Err(format!(
                "the compile cache {shown} must be a folder of mode 0700"
            ))
        }
    }

    /// `None` if the file does not exist; an error if it exists but must not be used.
    #[allow(
        unsafe_code,
        reason = "native code that this program made; the proof is at the call"
    )]
    fn read<N: Native>(engine: &Engine, path: &Path) -> Result<Option<N>, String> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(format!("cannot read {}: {e}", path.display())),
        };
        private_file(path)?;
        let payload = sound_payload(&bytes)
            .ok_or_else(|| format!("the checksum of {} is wrong", path.display()))?;
        // SAFETY: `deserialize` requires unchanged output of `serialize`.
        // - Only `write` below creates files with this name and header. It writes the output of
        //   `serialize` to a temporary file, which it renames when it is complete.
        // - The SHA-256 of the payload was checked on the bytes in memory that are passed here. So
        //   a torn or damaged file, or a change after the check, cannot get through.
        // - Folder (0700) and file (0600) belong to one user, so no other user can have created
        //   them. That user, or root, could also replace this program.
        // - The name contains the compiler's compatibility hash. wasmtime also checks the version
        //   and settings in the payload, and returns an error.
        let native = unsafe { N::deserialize(engine, payload) };
        native.map(Some).map_err(|e| e.to_string())
    }
}

/// Checks that a file is regular, has mode 0600 and belongs to the owner of its folder.
fn private_file(path: &Path) -> Result<(), String> {
    let meta = fs::symlink_metadata(path).map_err(|e| e.to_string())?;
    let folder = path.parent().and_then(|parent| fs::metadata(parent).ok());
    let owned = folder.is_some_and(|folder| folder.uid() == meta.uid());
    if meta.is_file() && owned && is_private(&meta) {
        Ok(())
    } else {
        Err(format!("{} is not a private file", path.display()))
    }
}

/// Whether only the owner may read, write or enter.
fn is_private(meta: &fs::Metadata) -> bool {
    meta.permissions().mode().trailing_zeros() >= 6
}

fn sound_payload(bytes: &[u8]) -> Option<&[u8]> {
    let payload = bytes.get(HEADER..)?;
    let sound = bytes.starts_with(MAGIC)
        && bytes[MAGIC.len()..HEADER] == *Sha256::digest(payload).as_slice();
    sound.then_some(payload)
}

/// Writes a temporary file and renames it, so that another process sees a complete file or none.
fn write(path: &Path, payload: &[u8]) -> std::io::Result<()> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let aside = path.with_extension(format!("{}-{serial}.tmp", std::process::id()));
    // A killed process with the same id may have left this file.
    match fs::remove_file(&aside) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)?;
    file.write_all(MAGIC)?;
    file.write_all(&Sha256::digest(payload))?;
    file.write_all(payload)?;
    file.sync_all()?;
    fs::rename(&aside, path)
}

fn key<N: Native>(engine: &Engine, wasm: &[u8]) -> String {
    let mut hasher = Sha256Hasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    let mut sha = hasher.0;
    sha.update(N::KIND);
    sha.update(wasm);
    hex::encode(sha.finalize())
}

/// Passes the data that wasmtime hashes to SHA-256. A 64-bit hash would be too weak as a key of
/// native code.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |n, b| n << 8 | u64::from(*b))
    }
}
