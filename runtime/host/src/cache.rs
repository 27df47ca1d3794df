//! The compile cache: native code of modules, in a private folder of the host.
//!
//! The key is the SHA-256 of the module, of the call path, and of the compiler's version and
//! settings. Each file has a checksum: a damaged file is detected and made again. A failure of the
//! cache never makes a load fail; [`CacheUse`] shows what happened.

use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wasmtime::component::Component;
use wasmtime::{Engine, Module};
use windvane_files::{OF_OTHERS, PrivateError};

use crate::error::LoadError;
use crate::prepare::Prepared;

const MAGIC: &[u8; 8] = b"WVNATIV1";
const HEADER: usize = MAGIC.len() + 32;
/// A longer file is not read whole, so its checksum is wrong. Native code has some times the size of
/// its module, and a module at most 128 MiB.
const NATIVE_BYTES_MAX: u64 = 4 << 30;

/// The result of the compile cache for a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// The native code of a strategy: what the cache did, and the file.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) used: CacheUse,
    /// The file in the cache, with a shared lock. As long as the strategy keeps it, no process
    /// removes the file from the cache.
    _file: Option<Arc<File>>,
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
) -> Result<(N, Stored), LoadError> {
    let only = |used| Stored { used, _file: None };
    let fresh = || N::compile(engine, wasm).map_err(|e| LoadError::compile(&e));
    let Some(cache) = cache else {
        return Ok((fresh()?, only(CacheUse::Off)));
    };
    if let Err(reason) = cache.prepare() {
        return Ok((fresh()?, only(CacheUse::Unusable(reason))));
    }
    let path = cache.folder.join(key::<N>(engine, wasm));
    let damage = match Cache::read(engine, &path) {
        Ok(Some((native, file))) => {
            let used = CacheUse::Hit;
            return Ok((
                native,
                Stored {
                    used,
                    _file: Some(Arc::new(file)),
                },
            ));
        }
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
    let file = lock(&path).ok().map(Arc::new);
    Ok((native, Stored { used, _file: file }))
}

/// The native code that another process stored under this key.
pub(crate) fn stored<N: Native>(
    engine: &Engine,
    cache: Option<&Cache>,
    prepared: &Prepared,
) -> Result<(N, Stored), LoadError> {
    let failed =
        |reason: String| LoadError::Compile(format!("its native code is unusable: {reason}"));
    let cache = cache.ok_or_else(|| {
        failed(
            "there is no folder for native code that only this user may enter: run chmod 700 on \
             `compiled` in the data folder, or for a command without one on \
             $XDG_CACHE_HOME/windvane/compiled (~/.cache/windvane/compiled)"
                .to_owned(),
        )
    })?;
    let path = cache.folder.join(&prepared.key);
    let found = Cache::read(engine, &path).map_err(failed)?;
    let (native, file) =
        found.ok_or_else(|| failed(format!("{} does not exist any more", path.display())))?;
    let used = prepared.cache.clone();
    Ok((
        native,
        Stored {
            used,
            _file: Some(Arc::new(file)),
        },
    ))
}

/// Opens a file of the cache that this user alone can have written, and marks it as used: it gets a shared
/// lock and the present time.
fn lock(path: &Path) -> Result<File, PrivateError> {
    let file = windvane_files::open_private(path, OF_OTHERS)?;
    // If another process is about to remove it, this process keeps what it has opened.
    let _ = file.try_lock_shared();
    // Without it, the file only seems older.
    let _ = file.set_modified(SystemTime::now());
    Ok(file)
}

impl Cache {
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Creates the folder with mode 0700. Refuses an existing folder that others may read or write.
    pub(crate) fn prepare(&self) -> Result<(), String> {
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
        if !(meta.is_dir() && is_private(&meta)) {
            return Err(format!(
                "the compile cache {shown} must be a folder of mode 0700"
            ));
        }
        windvane_files::require_own_folder(&self.folder)
            .map_err(|e| format!("the compile cache {shown} cannot be used: {e}"))
    }

    /// `None` if the file does not exist; an error if it exists but must not be used.
    #[allow(
        unsafe_code,
        reason = "native code that this program made; the proof is at the call"
    )]
    fn read<N: Native>(engine: &Engine, path: &Path) -> Result<Option<(N, File)>, String> {
        let unreadable = |e: std::io::Error| format!("cannot read {}: {e}", path.display());
        let file = match lock(path) {
            Ok(file) => file,
            Err(PrivateError::Io(e)) if e.kind() == std::io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(e) => return Err(format!("{} is not a private file: {e}", path.display())),
        };
        let mut bytes = Vec::new();
        let mut limited = (&file).take(NATIVE_BYTES_MAX);
        limited.read_to_end(&mut bytes).map_err(unreadable)?;
        let payload = sound_payload(&bytes)
            .ok_or_else(|| format!("the checksum of {} is wrong", path.display()))?;
        // SAFETY: `deserialize` requires unchanged output of `serialize`.
        // - Only `write` below creates files with this name and header. It writes the output of
        //   `serialize` to a temporary file, which it renames when it is complete.
        // - The SHA-256 of the payload was checked on the bytes in memory that are passed here. So
        //   a torn or damaged file, or a change after the check, cannot get through.
        // - The opened file has mode 0600 and belongs to this user or to root, and nobody else can
        //   put another one in its place (`open_private`). This user, or root, could also replace
        //   this program.
        // - The name contains the compiler's compatibility hash. wasmtime also checks the version
        //   and settings in the payload, and returns an error.
        let native = unsafe { N::deserialize(engine, payload) };
        native
            .map(|native| Some((native, file)))
            .map_err(|e| e.to_string())
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

pub(crate) fn key<N: Native>(engine: &Engine, wasm: &[u8]) -> String {
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
