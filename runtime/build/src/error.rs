//! Why a strategy cannot be built.

use std::path::{Path, PathBuf};

use windvane_host::ContractVersion;

/// Why a folder cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The folder has no `Cargo.toml`.
    #[error("{0} has no Cargo.toml: name the folder of a strategy, or a .wasm file")]
    NoManifest(PathBuf),
    /// The manifest is a workspace without a package of its own.
    #[error("{0} is a workspace, not a strategy: name the folder of one of its members")]
    NoPackage(PathBuf),
    /// The package is not a dynamic library.
    #[error(
        "package {0} is not a WebAssembly module: add `[lib] crate-type = [\"cdylib\", \"rlib\"]` \
         to its Cargo.toml"
    )]
    NotAModule(String),
    /// A program cannot be started.
    #[error("cannot run {program}: {source}; {hint}")]
    Program {
        /// The program.
        program: String,
        /// Advice for the user.
        hint: &'static str,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// No compiler has the target, and none could be created.
    #[error(
        "there is no compiler for wasm32-unknown-unknown: {0}. If rustup can download, run \
         `rustup target add wasm32-unknown-unknown`. On Debian, a compiler from its packages \
         is used"
    )]
    NoToolchain(String),
    /// The strategy does not compile.
    #[error("{package} does not compile:\n{tail}")]
    Compile {
        /// The package.
        package: String,
        /// The end of cargo's output.
        tail: String,
    },
    /// What the package needs cannot be downloaded, and without it the package does not compile.
    #[error(
        "{package} cannot be built: cargo fetch failed:\n{fetch}\n\
         and the build without a network failed too:\n{build}\n\
         If Cargo.lock is not up to date, run `cargo update --workspace` in {}, and build again. \
         Nothing else changes Cargo.lock",
        dir.display()
    )]
    Fetch {
        /// The package.
        package: String,
        /// Its folder.
        dir: PathBuf,
        /// The end of the output of `cargo fetch`.
        fetch: String,
        /// The end of the output of `cargo build`.
        build: String,
    },
    /// The build needs a folder inside a folder that builds must not read.
    #[error(
        "the build needs {}, which is inside {}. Builds must not read that folder, because it has \
         the state of a run. Move one of the two, or set another run.data_dir",
        inside.display(), denied.display()
    )]
    InDenied {
        /// The folder of the build.
        inside: PathBuf,
        /// The folder that builds must not read.
        denied: PathBuf,
    },
    /// The folder of the sources has more than sources.
    #[error(
        "{} cannot be the folder of sources, because the home folder of the user or the system is in it. A \
         build may read the whole folder of its package or workspace, and of those on which it depends by \
         path. Move these sources into a folder of their own",
        .0.display()
    )]
    TooWide(PathBuf),
    /// Settings of cargo that a build must read have an access token.
    #[error(
        "{} has an access token, and builds of strategies must read that file. Move the token into \
         credentials.toml in the same folder (`cargo login` writes it there), which builds cannot read",
        .0.display()
    )]
    TokenInSettings(PathBuf),
    /// The system cannot keep a build away from keys, and the configuration has keys.
    #[error(
        "{} is a folder with sources, and this system cannot keep its build away from the keys of \
         this configuration: {reason}. Run `windvane build {}` as a user who cannot read the keys, \
         and name the .wasm file as `module`",
        dir.display(), dir.display()
    )]
    NotConfined {
        /// The folder.
        dir: PathBuf,
        /// What the system lacks.
        reason: String,
    },
    /// The package compiles, but is not a strategy.
    #[error("{package} compiles, but is not a strategy: {source}")]
    NotAStrategy {
        /// The package.
        package: String,
        /// The host's error.
        source: windvane_host::LoadError,
    },
    /// The package uses an SDK of an earlier contract version.
    #[error(
        "{package} compiles, but its SDK has strategy contract {contract}, and \
         this program runs contract {}. Set windvane-sdk to this program's version in {}, and \
         build again",
        ContractVersion::PRESENT,
        manifest.display()
    )]
    OldContract {
        /// The package.
        package: String,
        /// The contract version of its SDK.
        contract: ContractVersion,
        /// The manifest that names its SDK.
        manifest: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
}

impl BuildError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}
