//! Loads modules. In a program with the hidden command, another process compiles them.

use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windvane_config::Compile;
use windvane_host::{Grant, Host, HostError, HostOptions, Limits, LoadError, Strategy};

use super::compile;
use crate::program::program;

/// Loads modules under the limits of `[compile]`.
#[derive(Clone, Debug)]
pub struct Loader {
    host: Host,
    options: HostOptions,
    compile: Compile,
    /// The cache of this loader alone, if the intended one cannot be used. It is removed with the loader.
    _own_cache: Option<Arc<tempfile::TempDir>>,
}

impl Loader {
    /// A loader with the user's cache of native code.
    ///
    /// # Errors
    /// This machine cannot run WebAssembly modules.
    pub fn new(compile: Compile) -> Result<Self, HostError> {
        Self::with_cache(compile, crate::cache::compiled())
    }

    /// A loader with this folder for native code.
    ///
    /// # Errors
    /// This machine cannot run WebAssembly modules.
    pub(super) fn with_cache(
        compile: Compile,
        mut folder: Option<PathBuf>,
    ) -> Result<Self, HostError> {
        let mut own_cache = None;
        // In one process, a load can do without a cache. Two processes need one.
        if program().is_some() && !folder.as_deref().is_some_and(is_usable) {
            let private = std::fs::Permissions::from_mode(0o700);
            let own = tempfile::Builder::new().permissions(private).tempdir();
            own_cache = own.ok().map(Arc::new);
            folder = own_cache.as_ref().map(|dir| dir.path().to_owned());
        }
        let options = HostOptions {
            compile_cache: folder,
            ..HostOptions::default()
        };
        Ok(Self {
            host: Host::new(options.clone())?,
            options,
            compile,
            _own_cache: own_cache,
        })
    }

    /// Loads a module file.
    ///
    /// # Errors
    /// It is not a strategy, needs a capability that is not granted, or does not compile within the
    /// limits.
    pub fn load(&self, module: &[u8], limits: Limits, grant: Grant) -> Result<Strategy, LoadError> {
        let Some(program) = program() else {
            return self.host.load(module, limits, grant);
        };
        let options = self.options.clone();
        let prepared = compile::prepare(program, options, module, (limits, grant), self.compile)?;
        self.host.load_prepared(&prepared, limits, grant)
    }
}

/// Whether the folder is private and can be written, or can be created so.
fn is_usable(folder: &Path) -> bool {
    let created = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    let is_private = |folder: &PathBuf| {
        std::fs::metadata(folder).is_ok_and(|meta| meta.permissions().mode().trailing_zeros() >= 6)
    };
    created.is_ok() && is_private(&folder.to_owned()) && tempfile::tempfile_in(folder).is_ok()
}
